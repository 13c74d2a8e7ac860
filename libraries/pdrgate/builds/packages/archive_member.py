"""Members of archives, whatever their format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdrgate.builds.decompression import Part, Source, read_all
from pdrgate.builds.handed_over import CHUNK

MemberKind = Literal["file", "hard link", "link", "folder", "other"]


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive. Its content is to be read before the next member is asked for."""

    name: str
    kind: MemberKind
    target: str
    """The place that a link points to."""
    size: int
    changed: int
    """Seconds since 1970."""
    content: Part


def skip_bytes(archive: Source, length: int) -> None:
    """Read what fills a member up. Raises ValueError if the archive ends before it."""
    if len(read_all(archive, length)) < length:
        raise ValueError("it ends too early")


def skip_rest(content: Part) -> None:
    """Read what is left of a file. Raises ValueError if the archive ends before it."""
    while content.read(CHUNK):
        pass
    if content.left:
        raise ValueError("it ends too early")
