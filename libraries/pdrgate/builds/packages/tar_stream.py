"""Reading a tar archive from its beginning to its end (POSIX.1-1988 ustar, GNU's long names, POSIX.1-2001 pax headers).

Python's tarfile takes as much memory as a header asks for: a pax header of gigabytes, packed into kilobytes, for one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pdrgate.builds.decompression import Part, Source, read_all
from pdrgate.builds.packages.archive_member import Member, MemberKind, skip_bytes, skip_rest

_BLOCK = 512
_LONGEST_HEADER = 64 << 10
"""Bytes of a name or of a pax header; paths have 4096."""

_KINDS: dict[bytes, MemberKind] = {
    b"0": "file", b"\0": "file", b"7": "file", b"1": "hard link", b"2": "link", b"5": "folder",
}  # fmt: skip


def tar_members(archive: Source) -> Iterator[Member]:
    """The members of an archive, in its order.

    Raises:
        ValueError: it is no such archive, damaged, or ends too early.
    """
    extended: dict[str, str] = {}
    while True:
        head = read_all(archive, _BLOCK)
        if len(head) == _BLOCK and not any(head):
            return
        size, kind = _checked(head), head[156:157]
        if kind in b"LKxg":
            if size > _LONGEST_HEADER:
                raise ValueError("it has a name or header of more than 64 KiB")
            content = read_all(archive, size)
            skip_bytes(archive, -size % _BLOCK)
            if kind == b"x":
                extended |= _pax(content)
            elif kind != b"g":
                extended["path" if kind == b"L" else "linkpath"] = _text(content)
            continue
        size = int(extended["size"]) if extended.get("size", "").isdigit() else size
        part = Part(archive, size if _KINDS.get(kind) == "file" else 0)
        yield Member(
            extended.get("path") or _name(head), _KINDS.get(kind, "other"),
            extended.get("linkpath") or _text(head[157:257]),
            size, min(_number(head[136:148]), 1 << 40), part,
        )  # fmt: skip
        extended = {}
        skip_rest(part)
        if _KINDS.get(kind) == "file":
            skip_bytes(archive, -size % _BLOCK)


def _checked(head: bytes) -> int:
    """Size in a checked header."""
    if len(head) < _BLOCK:
        raise ValueError("it ends too early")
    if sum(head[:148]) + 8 * 32 + sum(head[156:]) != _number(head[148:156]):
        raise ValueError("it is no tar archive, or damaged")
    return _number(head[124:136])


def _number(field: bytes) -> int:
    """Octal digits, or GNU's binary numbers for what is larger."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not digits:
        return 0
    if not digits.isdigit():
        raise ValueError("it is no tar archive, or damaged")
    return int(digits, 8)


def _name(head: bytes) -> str:
    name, prefix = _text(head[:100]), _text(head[345:500])
    return f"{prefix}/{name}" if prefix and head[257:263] == b"ustar\0" else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="surrogateescape")


def _pax(content: bytes) -> dict[str, str]:
    """Records such as ``27 path=some/longer/name\\n``, whose number is their length."""
    found = {}
    with contextlib.suppress(ValueError):
        while content:
            length = int(content.partition(b" ")[0])
            if not 4 < length <= len(content):
                break
            key, _, value = content[:length].partition(b" ")[2].rstrip(b"\n").partition(b"=")
            found[_text(key)] = value.decode(errors="surrogateescape")
            content = content[length:]
    return found
