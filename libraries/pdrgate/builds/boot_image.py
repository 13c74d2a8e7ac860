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
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from pdrgate.builds.decompression import MissingToolError, Part, decompressed, is_packed, most_unpacked
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.handed_over import BuildError, opened_build_file
from pdrgate.builds.kernel_build import LARGEST_IMAGE
from pdrgate.cache import cache_folder

_SETUP_SECTORS, _MAGIC, _PROTOCOL, _PAYLOAD = 0x1F1, 0x202, 0x206, 0x248
"""Where a bzImage tells of itself: its first part's length, "HdrS", the protocol, the payload's offset and length."""
_WITH_PAYLOAD = 0x208
"""The protocol's version since which it tells where the payload lies."""
_HEADER = 0x250

_PHYS32_ENTRY = 18
"""XEN_ELFNOTE_PHYS32_ENTRY: where a kernel may be entered by PVH."""

_SIZE = 4
"""Bytes behind the compressed image that hold its size, little-endian; with gzip they are part of the format."""
_ELF, _GZIP = b"\x7fELF", b"\x1f\x8b"

_LARGEST = 1 << 30
_KEPT = 16
"""Images that stay in the cache, each of about 60 MB, though more were not used for a day."""
_DAY = 86_400.0


def elf_image(image: Path, cache: Path | None = None) -> Path | None:
    """The ELF image in a bzImage, from the cache or put there; None where there is none that boots by PVH.

    That is a kernel without CONFIG_PVH, a compression for which there is no program here (lz4, zstd), a damaged
    payload or one that is too good to be a kernel's, or a cache that cannot be written: the bzImage boots all the same.

    Args:
        image: the real path of the bzImage.
        cache: the folder for such images; by default in `cache_folder`.
    """
    return _kept_image(image, cache, "elf", boots_by_pvh)


def _kept_image(image: Path, cache: Path | None, kind: str, is_it: Callable[[BinaryIO], bool]) -> Path | None:
    """What is in a bzImage, from the cache or put there; None where it cannot be had, or is not of that kind."""
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


def linked_image(image: Path, cache: Path | None = None) -> Path | None:
    """The ELF image in a bzImage, as `elf_image`, also of a kernel that cannot be entered by PVH."""
    return elf_image(image, cache) or _kept_image(image, cache, "vmlinux", _is_elf)


def boots_by_pvh(file: BinaryIO) -> bool:
    """Whether an ELF file says where it is entered by PVH."""
    try:
        return any(note == (b"Xen", _PHYS32_ENTRY) for note in ElfFile(file).notes())
    except ValueError:
        return False


def _is_elf(file: BinaryIO) -> bool:
    file.seek(0)
    return file.read(len(_ELF)) == _ELF


def _unpack(image: BinaryIO, kept: Path, is_it: Callable[[BinaryIO], bool]) -> bool:
    """Put what a bzImage decompresses itself to into the cache; False when it cannot be had."""
    size = image.seek(0, os.SEEK_END)
    image.seek(0)
    head = image.read(_HEADER)
    if len(head) < _HEADER or head[_MAGIC : _MAGIC + 4] != b"HdrS" or _number(head, _PROTOCOL, 2) < _WITH_PAYLOAD:
        return False
    start = (head[_SETUP_SECTORS] + 1) * 512 + _number(head, _PAYLOAD, 4)
    length = min(_number(head, _PAYLOAD + 4, 4), size - start)
    if length <= _SIZE:
        return False
    image.seek(start)
    magic = image.read(8)
    image.seek(start + length - _SIZE)
    told = length if magic.startswith(_ELF) else _number(image.read(_SIZE), 0, _SIZE)
    if not (magic.startswith(_ELF) or is_packed(magic)) or told > min(most_unpacked(length), _LARGEST):
        return False
    image.seek(start)
    return _keep(kept, Part(image, length if magic.startswith((_ELF, _GZIP)) else length - _SIZE), told, is_it)


def _keep(kept: Path, payload: Part, told: int, is_it: Callable[[BinaryIO], bool]) -> bool:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix="part-", ignore_cleanup_errors=True) as place:
        part = Path(place) / kept.name
        with part.open("w+b") as file:
            try:
                for piece in decompressed(payload, told):
                    file.write(piece)
            except ValueError:
                return False
            if file.tell() != told:
                return False  # it was cut off
            if not is_it(file):
                # An empty file says that it was looked at and is not of that kind: unpacking takes seconds.
                file.truncate(0)
        part.rename(kept)
    _forget(kept.parent)
    return True


def _number(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "little")


def _forget(cache: Path) -> None:
    """Remove the images that were not used for longest; those of the last day may be in use just now."""
    images = sorted((*cache.glob("*.elf"), *cache.glob("*.vmlinux")), key=lambda path: path.stat().st_mtime)
    for path in images[:-_KEPT]:
        if time.time() - path.stat().st_mtime > _DAY:
            path.unlink(missing_ok=True)
