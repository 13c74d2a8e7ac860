"""The ELF image inside a bzImage, which QEMU boots by PVH (Documentation/arch/x86/boot.rst, Xen's misc/pvh.pandoc).

A bzImage decompresses itself, and under emulation the emulated CPU does it: half of the boot. So it is done here, once
for each image, and the result is kept in the cache. What the kernel's own decompressor also does is to choose a random
address (KASLR): a kernel booted by PVH lies where it was linked, in every boot alike. That is welcome here, for what
differs from boot to boot blurs comparisons, and addresses can be looked up in System.map; nothing in a guest that lives
for minutes is worth hiding. All builds of a comparison are booted alike wherever they can be.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from pdrgate.builds.arm64_image import flat_kernel, is_flat, may_be_arm64
from pdrgate.builds.bz_image import LARGEST_IMAGE, PackedKernel, packed_kernel
from pdrgate.builds.decompression import MissingToolError, decompressed
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.handed_over import BuildError, opened_build_file
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.this_process.cache import appearing, cache_folder, forget

_ELF, _HEAD = b"\x7fELF", 64
_PHYS32_ENTRY = 18
"""XEN_ELFNOTE_PHYS32_ENTRY: where a kernel may be entered by PVH."""

_KINDS = ("elf", "vmlinux", "flat")
"""Endings of the files in the cache."""
_KEPT = 16
"""Images that stay in the cache, each of about 60 MB, though more were not used for a day."""


def elf_image(image: Path, cache: Path | None = None) -> Path | None:
    """The ELF image in a bzImage, from the cache or put there; None if it has none that boots by PVH.

    That is a kernel without CONFIG_PVH, a compression for which there is no program here (lz4, zstd), a damaged
    payload or one that is too good to be a kernel's, or a cache that cannot be written: the bzImage boots all the same.

    Args:
        image: the real path of the bzImage.
        cache: the folder for such images; by default in `cache_folder`.
    """
    return _kept_image(image, cache, "elf", boots_by_pvh)


def _kept_image(image: Path, cache: Path | None, kind: str, is_it: Callable[[BinaryIO], bool]) -> Path | None:
    """Unpacked content of an image, from the cache or put there; None if it cannot be had, or is not of that kind."""
    folder = cache or cache_folder() / "images"
    with (
        contextlib.suppress(OSError, BuildError, MissingToolError),
        opened_build_file(image, image, LARGEST_IMAGE) as file,
    ):
        kept = folder / f"{hashlib.file_digest(file, 'sha256').hexdigest()}.{kind}"
        if not kept.exists() and not _unpack(file, kept, is_it):
            return None
        os.utime(kept)
        return kept if kept.stat().st_size else None
    return None


def flat_image(image: Path, cache: Path | None = None) -> Path | None:
    """The flat image of an arm64 kernel, from the cache or put there unless it is flat; None of any other file."""
    with contextlib.suppress(OSError, BuildError), opened_build_file(image, image, LARGEST_IMAGE) as file:
        head = file.read(_HEAD)
        if is_flat(head):
            return image
        if may_be_arm64(head):
            return _kept_image(image, cache, "flat", _is_flat)
    return None


def linked_image(image: Path, cache: Path | None = None) -> Path | None:
    """The linked kernel in an image: flat for arm64, else an ELF image, also of one that cannot be entered by PVH."""
    return flat_image(image, cache) or elf_image(image, cache) or _kept_image(image, cache, "vmlinux", _is_elf)


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """Way into a kernel."""

    protocol: Literal["pvh", "bzimage", "image"]
    """Entered as an ELF image, as a bzImage that decompresses itself, or as a flat image."""
    image: Path | None = None
    """The file that is booted in place of the build's image."""


def kernel_entry(build: KernelBuild, *, pvh: bool = True) -> KernelEntry:
    """The way into a build's kernel.

    Args:
        pvh: whether it is entered as an ELF image where it can be.

    Raises:
        BuildError: the image cannot be unpacked.
    """
    if build.architecture.has_flat_image:
        flat = flat_image(build.image)
        if flat is None:
            raise BuildError(f"{build.name}: its image cannot be unpacked; is it whole, and the cache writable?")
        return KernelEntry("image", None if flat == build.image else flat)
    elf = elf_image(build.image) if pvh else None
    return KernelEntry("bzimage") if elf is None else KernelEntry("pvh", elf)


def built_into(image: Path, name: str, cache: Path | None = None) -> bool | None:
    """Whether a driver is built into an image; None if that cannot be unpacked.

    The name of its module (KBUILD_MODNAME) is a text in the image then, by which it registers itself.
    """
    kernel = linked_image(image, cache)
    if kernel is None:
        return None
    with kernel.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(f"\0{name}\0".encode()) >= 0


def boots_by_pvh(file: BinaryIO) -> bool:
    """Whether an ELF file says where it is entered by PVH."""
    try:
        return any(note == (b"Xen", _PHYS32_ENTRY) for note in ElfFile(file).notes())
    except ValueError:
        return False


def _is_elf(file: BinaryIO) -> bool:
    file.seek(0)
    return file.read(len(_ELF)) == _ELF


def _is_flat(file: BinaryIO) -> bool:
    file.seek(0)
    return is_flat(file.read(_HEAD))


def _unpack(image: BinaryIO, kept: Path, is_it: Callable[[BinaryIO], bool]) -> bool:
    """Put what an image unpacks to into the cache; False when it cannot be had."""
    kernel = packed_kernel(image) or flat_kernel(image)
    if kernel is None:
        return False
    try:
        with appearing(kept) as part, part.open("w+b") as file:
            _write(kernel, file)
            if not is_it(file):
                # An empty file says that it was looked at and is not of that kind: unpacking takes seconds.
                file.truncate(0)
    except ValueError:
        return False
    forget((one for kind in _KINDS for one in kept.parent.glob(f"*.{kind}")), _KEPT)
    return True


def _write(kernel: PackedKernel, file: BinaryIO) -> None:
    """Unpack a kernel into a file. Raises ValueError if it is damaged or was cut off."""
    for piece in decompressed(kernel.packed, kernel.size):
        file.write(piece)
    if file.tell() != kernel.size:
        raise ValueError("it ends too early")
