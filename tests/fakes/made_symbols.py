"""Images of made-up kernels that have their symbols in them, in each form in which scripts/kallsyms.c has put them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path

from hostile_kernel import bz_image

TEXT, RODATA = 0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_8200_0000
"""Where the sections of such a kernel lie."""
FORMS = ("up to 6.14", "since 6.15", "since 7.1")
_COMMON = {0x80: b"ip6_", 0x81: b"skb_", 0x82: b"Tx"}
"""Tokens that are several characters."""

Symbol = tuple[int, str, str]
"""Address, type and name."""


def image_with(symbols: Sequence[Symbol], form: str, *, torn: bool = False) -> bytes:
    """The ELF file of a kernel, whose ``_text`` is at `TEXT`; as `tables_of`."""
    return _elf(tables_of(symbols, form, torn=torn))


def tables_of(symbols: Sequence[Symbol], form: str, *, torn: bool = False, text_at: int = TEXT) -> bytes:
    """The tables of a kernel's symbols, with something before them.

    Args:
        symbols: in the order of their addresses; one of them is ``_text``.
        torn: whether its names end before the last one.
        text_at: the address of ``_text``.
    """
    tokens = [_COMMON.get(number, bytes([number]) if 32 < number < 127 else b"") for number in range(256)]
    names, markers = b"", []
    for number, (_, kind, name) in enumerate(symbols):
        if number % 256 == 0:
            markers.append(len(names))
        packed = (kind + name).encode()
        for token, text in _COMMON.items():
            packed = packed.replace(text, bytes([token]))
        length = bytes([len(packed)]) if len(packed) < 0x80 else bytes([len(packed) & 0x7F | 0x80, len(packed) >> 7])
        names += length + packed
    names = names[:-20] if torn else names
    table = b"".join(token + b"\0" for token in tokens)
    starts = [sum(len(one) + 1 for one in tokens[:number]) for number in range(256)]
    begin = struct.pack("<I", len(symbols))
    begin += b"\0" * 4 if form == FORMS[0] else b""
    middle = _padded(names, 4) + struct.pack(f"<{len(markers)}I", *markers)
    behind = _padded(_padded(table, 4) + struct.pack("<256H", *starts), 8)
    content = b"some of the kernel's constants 0\x001\x00, "
    content += b"\0" * (-len(content) % 8)
    if form == FORMS[0]:
        distances = [at if at < text_at else -1 - (at - text_at) for at, _, _ in symbols]
        content += _padded(struct.pack(f"<{len(symbols)}i", *distances), 8) + struct.pack("<Q", text_at)
        content += begin + middle + behind
    elif form == FORMS[1]:
        content += _padded(begin + middle, 4) + behind
        content = _padded(content, 8)
        content += _padded(struct.pack(f"<{len(symbols)}I", *(at - text_at for at, _, _ in symbols)), 8)
        content += struct.pack("<Q", text_at)
    else:
        content = _padded(content + begin + middle + behind, 4)
        place = RODATA + len(content)
        distances = [at - place - 4 * number for number, (at, _, _) in enumerate(symbols)]
        content += struct.pack(f"<{len(symbols)}i", *distances)
    return content


def bz_image_of(path: Path, image: bytes) -> Path:
    """Write a bzImage whose payload is an ELF image, packed."""
    return bz_image(path, gzip.compress(image))


def _padded(content: bytes, to: int) -> bytes:
    return content + b"\0" * (-len(content) % to)


def _elf(rodata: bytes) -> bytes:
    names = b"\0.text\0.rodata\0.shstrtab\0"
    at = 64
    sections = [(0, 0, 0, 0, 0)]
    body = b""
    for name, address, content in ((1, TEXT, b"\x90" * 64), (7, RODATA, rodata), (15, 0, names)):
        body = _padded(body, 8)
        sections.append((name, 3 if address == 0 else 1, address, at + len(body), len(content)))
        body += content
    body = _padded(body, 8)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, TEXT, 0, at + len(body), 0, 64, 56, 0, 64, len(sections), 3
    )
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, 6 if address == TEXT else 2, address, offset, size, 0, 0, 8, 0)
        for name, kind, address, offset, size in sections
    )
    return head + body + table
