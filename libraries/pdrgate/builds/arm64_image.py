"""An arm64 kernel's image: flat, packed by gzip, or packed in an EFI program (Documentation/arch/arm64/booting.rst,
drivers/firmware/efi/libstub/zboot-header.S).

A flat image says neither its release nor where it is linked: the release is read in the banner that it prints.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from contextlib import closing
from typing import BinaryIO

from pdrgate.builds.bz_image import LARGEST_IMAGE, PackedKernel, number
from pdrgate.builds.decompression import Part, Unpacked, decompressed, is_packed, most_unpacked, read_all
from pdrgate.builds.elf_file import Section

_HEADER = 64
_MAGIC_AT, _MAGIC = 0x38, b"ARMd"
_FLAGS_AT = 0x18
_BIG_ENDIAN = 1
_PAGES = {1: 4096, 2: 16384, 3: 65536}
"""Bytes of a page by the bits 1 and 2 of the flags; 0: it is not said."""
_ZBOOT_AT, _ZBOOT = 4, b"zimg"
_GZIP = b"\x1f\x8b"
_GZIP_SIZE, _GZIP_TRAILER = 4, 8
_BANNER_BEGIN, _BANNER_END = b"Linux version ", b"\n\0"
_RELEASE = re.compile(rb"\d[\w.+~-]*")
_LONGEST_BANNER = 1024


_BTF_HEAD = struct.Struct("<HBBIIIII")
_BTF_MAGIC = bytes.fromhex("9feb0100")
"""Magic and version of a kernel's types, little-endian (Documentation/bpf/btf.rst)."""
_TRIED = 256
"""Places that are tried for them."""


class FlatImage:
    """A flat image as far as it shows sections: it has no table of them, and types are known by how they begin."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def section(self, name: str) -> Section | None:
        """The kernel's types, which are the largest that lie in the image; None of any other section."""
        if name != ".BTF":
            return None
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found: list[tuple[int, int]] = []
            at, tried = content.find(_BTF_MAGIC), 0
            while at >= 0 and tried < _TRIED:
                tried += 1
                head = content[at : at + _BTF_HEAD.size]
                if at % 4 == 0 and len(head) == _BTF_HEAD.size:
                    _, _, _, length, types, types_size, names, names_size = _BTF_HEAD.unpack(head)
                    size = length + names + names_size
                    if types == 0 and types_size <= names and at + size <= len(content):
                        found.append((size, at))
                at = content.find(_BTF_MAGIC, at + 1)
        size, at = max(found, default=(0, 0))
        return Section(name, 1, 0, 0, at, size, 0) if size else None

    def content(self, section: Section, most: int) -> bytes:
        """Content of a section, ``most`` bytes at most. Raises ValueError where it has more."""
        if section.size > most:
            raise ValueError("it is damaged")
        self._file.seek(section.offset)
        return read_all(self._file, section.size)


def is_flat(head: bytes) -> bool:
    """Whether a file that begins so is a flat image."""
    return head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC


def may_be_arm64(head: bytes) -> bool:
    """Whether a file that begins so may be an image for arm64, as far as it shows that before it is unpacked."""
    return is_flat(head) or _is_zboot(head) or head.startswith(_GZIP)


def flat_kernel(image: BinaryIO) -> PackedKernel | None:
    """The flat image in a file, or the file itself where it is one; None if it has none that can be read."""
    size = image.seek(0, os.SEEK_END)
    image.seek(0)
    head = read_all(image, _HEADER)
    if is_flat(head):
        begin, length, unpacked = 0, size, size
    elif _is_zboot(head):
        begin, length = number(head, 8, 4), number(head, 12, 4)
        if begin < _HEADER or length <= _GZIP_TRAILER or begin + length > size:
            return None
        image.seek(begin)
        magic = read_all(image, 8)
        if not is_packed(magic):
            return None
        image.seek(begin + length - _GZIP_SIZE)
        unpacked = number(read_all(image, _GZIP_SIZE), 0, _GZIP_SIZE)
        # What is not packed by gzip has its size appended, as a bzImage's payload has.
        length -= 0 if magic.startswith(_GZIP) else _GZIP_SIZE
    elif head.startswith(_GZIP) and size > _GZIP_TRAILER:
        image.seek(size - _GZIP_SIZE)
        begin, length, unpacked = 0, size, number(read_all(image, _GZIP_SIZE), 0, _GZIP_SIZE)
    else:
        return None
    image.seek(begin)
    most = LARGEST_IMAGE if is_flat(head) else min(most_unpacked(length), LARGEST_IMAGE)
    return PackedKernel(Part(image, length), unpacked) if 0 < unpacked <= most else None


def flat_head(kernel: PackedKernel) -> bytes:
    """The first bytes of a flat image; what is read of it is gone. Raises ValueError if it is damaged."""
    with closing(Unpacked(kernel.packed, kernel.size)) as content:
        return read_all(content, _HEADER)


def is_big_endian(head: bytes) -> bool:
    """Whether a flat image that begins so is of a kernel for the other byte order."""
    return bool(number(head, _FLAGS_AT, 8) & _BIG_ENDIAN)


def page_size(head: bytes) -> int:
    """Bytes of a page of a kernel whose flat image begins so; 4096 where it does not say."""
    return _PAGES.get(number(head, _FLAGS_AT, 8) >> 1 & 3, 4096)


def banner(kernel: PackedKernel) -> tuple[str, str] | None:
    """Release and version in a kernel's banner; None if it has none.

    Raises:
        ValueError: it is damaged.
    """
    window = b""
    for piece in decompressed(kernel.packed, kernel.size):
        window = window[-_LONGEST_BANNER:] + piece
        if (found := _banner_in(window)) is not None:
            return found
    return None


def _banner_in(window: bytes) -> tuple[str, str] | None:
    """Release and version of the first banner in some bytes: ``Linux version RELEASE (…) #1 SMP …``."""
    at = window.find(_BANNER_BEGIN)
    while at >= 0:
        end = window.find(_BANNER_END, at, at + _LONGEST_BANNER)
        line = window[at + len(_BANNER_BEGIN) : max(end, 0)]
        release, _, rest = line.partition(b" (")
        _, bracket, version = rest.rpartition(b") #")
        # The linker's own copy has no number yet.
        if bracket and _RELEASE.fullmatch(release) and version[:1].strip():
            return release.decode(), f"#{version.decode(errors='replace')}"
        at = window.find(_BANNER_BEGIN, at + 1)
    return None


def _is_zboot(head: bytes) -> bool:
    return head.startswith(b"MZ") and head[_ZBOOT_AT : _ZBOOT_AT + len(_ZBOOT)] == _ZBOOT
