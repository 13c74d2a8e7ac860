"""Reading a cpio archive in the form "newc" from its beginning to its end (cpio(5)), as packages of RPM have it."""

from __future__ import annotations

import dataclasses
import stat
import struct
from collections.abc import Iterator

from pdrgate.builds.decompression import Part, Source, read_all
from pdrgate.builds.packages.archive_member import Member, MemberKind, skip_bytes, skip_rest

_MAGIC = b"070701"
_HEADER = 110
_LONGEST = 4096
"""Bytes of a name, and of the place that a link points to."""
_LAST = "TRAILER!!!"
_KINDS: dict[int, MemberKind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}


def cpio_members(archive: Source) -> Iterator[Member]:
    """The members of an archive, in its order, but for hard links, which come after the file that they share.

    Raises:
        ValueError: it is no such archive, damaged, or ends too early.
    """
    shared: dict[int, list[Member]] = {}
    while True:
        inode, mode, links, changed, size, length = _header(read_all(archive, _HEADER))
        name = _read(archive, length, _HEADER).rstrip(b"\0").decode(errors="surrogateescape")
        if name == _LAST:
            break
        kind = _KINDS.get(stat.S_IFMT(mode), "other")
        target = _read(archive, size, 0).decode(errors="surrogateescape") if kind == "link" else ""
        member = Member(name, kind, target, size, changed, Part(archive, size if kind == "file" else 0))
        if kind == "file" and links > 1 and not size:
            # The last of the names that share a file comes with its content.
            shared.setdefault(inode, []).append(member)
            continue
        yield member
        skip_rest(member.content)
        if kind == "file":
            skip_bytes(archive, -size % 4)
            for other in shared.pop(inode, ()) if links > 1 else ():
                yield dataclasses.replace(other, kind="hard link", target=name)
    for members in shared.values():
        yield from members


def _header(head: bytes) -> tuple[int, int, int, int, int, int]:
    """Inode, mode, links, time, size and length of the name."""
    if len(head) < _HEADER:
        raise ValueError("it ends too early")
    fields = bytes.fromhex(head[len(_MAGIC) :].decode("ascii", "replace")) if head.startswith(_MAGIC) else b""
    if len(fields) != 52:
        raise ValueError("it is no cpio archive, or damaged")
    inode, mode, _, _, links, changed, size, _, _, _, _, length, _ = struct.unpack(">13I", fields)
    return inode, mode, links, changed, size, length


def _read(archive: Source, length: int, before: int) -> bytes:
    """A text of that length, and what fills it up, with what comes before it, to a multiple of four."""
    if length > _LONGEST:
        raise ValueError("it has a name of more than 4096 bytes")
    content = read_all(archive, length)
    if len(content) < length:
        raise ValueError("it ends too early")
    skip_bytes(archive, -(before + length) % 4)
    return content
