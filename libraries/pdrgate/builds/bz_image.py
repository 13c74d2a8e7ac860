"""The parts of a bzImage: its header, and the packed kernel in it (Documentation/arch/x86/boot.rst)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import BinaryIO

from pdrgate.builds.decompression import Part, is_packed, most_unpacked

LARGEST_IMAGE = 512 << 20
"""Bytes that an image may have."""

_SETUP_SECTORS, _MAGIC, _PROTOCOL, _PAYLOAD = 0x1F1, 0x202, 0x206, 0x248
"""Offsets in a bzImage of its first part's length, "HdrS", the protocol, and the payload's offset and length."""
_WITH_PAYLOAD = 0x208
"""The protocol's version since which it says where the payload lies."""
_LOAD_FLAGS, _WITH_LOAD_FLAGS, _HAS_64_BITS = 0x236, 0x20C, 1
"""Offset of the flags of 64-bit entry, the protocol since which they are there, and the one of any such entry."""
_HEADER = 0x250
_SIZE = 4
"""Bytes behind the compressed image that hold its size, little-endian; with gzip they are part of the format."""
_ELF, _GZIP = b"\x7fELF", b"\x1f\x8b"
_LARGEST = 1 << 30


@dataclass(frozen=True, slots=True)
class PackedKernel:
    """The kernel in a bzImage."""

    packed: Part
    """Part that decompresses to the kernel, to be read once; the kernel itself if it is not compressed."""
    size: int
    """Bytes that it has decompressed, as the image says."""


def is_bz_image(head: bytes) -> bool:
    """Whether a file that begins so is a bzImage."""
    return head[_MAGIC : _MAGIC + 4] == b"HdrS"


def is_32_bit(head: bytes) -> bool:
    """Whether a bzImage that begins so says that it has a kernel of 32 bits."""
    said = len(head) >= _HEADER and number(head, _PROTOCOL, 2) >= _WITH_LOAD_FLAGS
    return said and not number(head, _LOAD_FLAGS, 2) & _HAS_64_BITS


def payload_place(head: bytes) -> tuple[int, int] | None:
    """The place and the length of the packed kernel in a bzImage that begins so; None if that is not said."""
    if len(head) < _HEADER or not is_bz_image(head) or number(head, _PROTOCOL, 2) < _WITH_PAYLOAD:
        return None
    return (head[_SETUP_SECTORS] + 1) * 512 + number(head, _PAYLOAD, 4), number(head, _PAYLOAD + 4, 4)


def packed_kernel(image: BinaryIO) -> PackedKernel | None:
    """The kernel in a bzImage; None if it has none that can be read, or a size that no kernel has."""
    size = image.seek(0, os.SEEK_END)
    image.seek(0)
    place = payload_place(image.read(_HEADER))
    if place is None:
        return None
    start, length = place[0], min(place[1], size - place[0])
    if length <= _SIZE:
        return None
    image.seek(start)
    magic = image.read(8)
    image.seek(start + length - _SIZE)
    unpacked = length if magic.startswith(_ELF) else number(image.read(_SIZE), 0, _SIZE)
    if not (magic.startswith(_ELF) or is_packed(magic)) or unpacked > min(most_unpacked(length), _LARGEST):
        return None
    image.seek(start)
    return PackedKernel(Part(image, length if magic.startswith((_ELF, _GZIP)) else length - _SIZE), unpacked)


def number(content: bytes, at: int, size: int) -> int:
    """A number in a header, little-endian."""
    return int.from_bytes(content[at : at + size], "little")
