"""Facts that a kernel's image states of itself, in the form of whichever architecture it is for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from pdrgate.builds.architecture import ARM64, X86_64, Architecture
from pdrgate.builds.arm64_image import banner, flat_head, flat_kernel, is_big_endian, is_flat, may_be_arm64, page_size
from pdrgate.builds.bz_image import LARGEST_IMAGE, is_32_bit, is_bz_image, number, payload_place
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.handed_over import BuildError, opened_build_file

_HEADER = 1 << 16
_LONGEST_RELEASE = 64
"""Characters that a kernel's uname has room for."""
_HINT = "name the bzImage, or arm64's Image (arch/x86/boot/bzImage or arch/arm64/boot/Image of a build tree, vmlinuz-…)"
_ELF = b"\x7fELF"
_FOREIGN = (
    ((0x24, bytes.fromhex("18286f01")), "a kernel for 32-bit ARM"),
    ((0x38, b"RSC\x05"), "a kernel for RISC-V, of which Debian 12 has no packages"),
)
"""Place and magic of images that no guest runs, and what such a file is."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Facts that an image states."""

    architecture: Architecture
    release: str
    """The release, as ``uname -r`` will print it."""
    version: str
    """The version, as ``uname -v`` will print it: build number and date."""
    page_size: int = 4096
    """Bytes of a page."""


def image_facts(image: Path) -> ImageFacts:
    """Read what an image states of itself.

    Raises:
        BuildError: the file is no image of a kernel that guests can run, or is cut off.
    """
    with opened_build_file(image, image.resolve(), LARGEST_IMAGE) as file:
        head, size = file.read(_HEADER), os.fstat(file.fileno()).st_size
        if is_bz_image(head):
            return _checked(_of_bz_image(image, head, size))
        if may_be_arm64(head):
            return _checked(_of_arm64(image, file))
    raise BuildError(f"{image}: is {_other(head)}")


def _of_bz_image(image: Path, head: bytes, size: int) -> ImageFacts:
    """The words in the setup header (Documentation/arch/x86/boot.rst, field kernel_version)."""
    if is_32_bit(head):
        raise BuildError(f"{image}: is a 32-bit kernel; guests run those of 64 bits")
    at = number(head, 0x20E, 2) + 0x200
    words = head[at : head.find(b"\0", at)].decode(errors="replace")
    release, _, rest = words.partition(" ")
    if not _is_release(release):
        raise BuildError(f"{image}: has no kernel release in its header; is the file damaged?")
    if sum(payload_place(head) or ()) > size:
        raise BuildError(f"{image}: ends too early, after {size} bytes; was it copied whole?")
    return ImageFacts(X86_64, release, rest[rest.find("#") :] if "#" in rest else "")


def _of_arm64(image: Path, file: FileIO) -> ImageFacts:
    try:
        kernel = flat_kernel(file)
        head = b"" if kernel is None else flat_head(kernel)
        if kernel is None or not is_flat(head):
            raise BuildError(f"{image}: is no kernel image; {_HINT}")
        if is_big_endian(head):
            raise BuildError(f"{image}: is a big-endian kernel; guests run little-endian ones")
        again = flat_kernel(file)
        found = None if again is None else banner(again)
    except ValueError as error:
        raise BuildError(f"{image}: cannot be unpacked: {error}; is it whole?") from error
    except MissingToolError as error:
        raise MissingToolError(f"{image}: {error}") from error
    if found is None or not _is_release(found[0]):
        raise BuildError(f"{image}: has no kernel release in its banner; is the file damaged?")
    return ImageFacts(ARM64, *found, page_size(head))


def _checked(facts: ImageFacts) -> ImageFacts:
    version = "".join(one for one in facts.version[:_HEADER] if one.isprintable())[:256]
    return ImageFacts(facts.architecture, facts.release, version, facts.page_size)


def _is_release(text: str) -> bool:
    return re.fullmatch(r"\d[\w.+~-]*", text, re.ASCII) is not None and len(text) <= _LONGEST_RELEASE


def _other(head: bytes) -> str:
    """What a file is that begins so and is no image for guests, and what to do."""
    for (at, magic), what in _FOREIGN:
        if head[at : at + len(magic)] == magic:
            return f"{what}; guests run those for x86-64 and arm64"
    return f"{'an uncompressed vmlinux' if head.startswith(_ELF) else 'no kernel image'}; {_HINT}"
