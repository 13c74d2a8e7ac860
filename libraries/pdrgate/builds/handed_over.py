"""Files that were handed over as a build, opened as a stranger's: none of the host's own is ever taken for one of them.

A build may hold links: within it they are followed, and one that leaves it is refused, or what root may read here would
be copied into a guest or onto a SUT. A file is looked at before it is opened, for to open a device or a FIFO does
something, and it is opened where it was looked at: what is exchanged meanwhile is not what is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from pdrgate.values.errors import SutError

CHUNK = 1 << 20
"""Bytes that are read at once."""
_MOST_ENTRIES = 500_000
"""Files and folders of a build that are looked through; a kernel's modules are some 10 000."""
_KINDS = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class BuildError(SutError):
    """The file or folder is no kernel that could be booted."""


def opened_build_file(path: Path, within: Path, largest: int) -> FileIO:
    """A regular file of a build, unbuffered; the caller closes it.

    Args:
        within: the real path of the folder that it must lie in, or of the file itself.
        largest: bytes that such a file may have.

    Raises:
        BuildError: it cannot be read, is a link that leaves the folder, no regular file, or larger.
    """
    try:
        looked_at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise BuildError(f"{path}: cannot read it: {error.strerror}{_dangling(path)}") from error
    try:
        here = f"/proc/self/fd/{looked_at}"
        status = os.fstat(looked_at)
        _check_place(path, str(Path(here).readlink()), within)
        _check_kind(path, status, within, largest)
        return FileIO(os.open(here, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise BuildError(f"{path}: cannot read it: {error.strerror}") from error
    finally:
        os.close(looked_at)


def content(path: Path, within: Path, largest: int) -> bytes:
    """Content of a file of a build. Raises as `opened_build_file` does."""
    with opened_build_file(path, within, largest) as file:
        return read_at_most(file, largest, path)


def read_at_most(file: FileIO, largest: int, path: Path) -> bytes:
    """The rest of a file; it may have grown since it was looked at. Raises BuildError."""
    parts, left = [], largest
    try:
        while chunk := file.read(min(left + 1, CHUNK)):
            left -= len(chunk)
            if left < 0:
                raise BuildError(f"{path}: grows while it is read; is something writing it?")
            parts.append(chunk)
    except OSError as error:
        raise BuildError(f"{path}: cannot read it: {error.strerror}") from error
    return b"".join(parts)


def real_file(path: Path, within: Path, largest: int) -> Path:
    """The real path of a file of a build, once it was seen to be a file. Raises as `opened_build_file` does."""
    with opened_build_file(path, within, largest) as file:
        return Path(f"/proc/self/fd/{file.fileno()}").readlink()


def real_folder(path: Path, within: Path) -> Path:
    """The real path of a folder of a build. Raises BuildError if that is out of ``within``, or it is no folder."""
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise BuildError(f"{path}: cannot read it: {getattr(error, 'strerror', '') or error}") from error
    _check_place(path, str(found), within)
    if not found.is_dir():
        raise BuildError(f"{path}: is no folder; is the build whole?")
    return found


def new_place(folder: Path, name: str) -> Path:
    """The path of a new file of that name below a folder of ours, whose folders are made; nothing is there yet.

    Raises:
        ValueError: a file is there, or a file or a link, which may lead elsewhere, is there for a folder on the way.
    """
    place = folder / name
    for parent in reversed(place.relative_to(folder).parents[:-1]):
        way = folder / parent
        if way.is_symlink() or (way.exists() and not way.is_dir()):
            raise ValueError(f"{name} lies behind {parent}, which is no folder")
        way.mkdir(exist_ok=True)
    if os.path.lexists(place):
        raise ValueError(f"{name} is there twice")
    return place


def files_below(folder: Path) -> Iterator[Path]:
    """All that lies in a folder and below it and is no folder; links to folders are among it, and not followed.

    Raises:
        BuildError: there is more than any kernel has.
    """
    seen = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        seen += len(folders) + len(names)
        if seen > _MOST_ENTRIES:
            raise BuildError(f"{folder}: holds more than {_MOST_ENTRIES} files; name the folder of the modules alone")
        links = (name for name in folders if Path(place, name).is_symlink())
        yield from (Path(place, name) for name in sorted((*names, *links)))


def _check_place(path: Path, place: str, within: Path) -> None:
    if place != str(within) and not place.startswith(f"{str(within).rstrip('/')}/"):
        raise BuildError(
            f"{path}: is, or lies behind, a link to {place}, out of {within}; a build is taken with what lies in it: "
            "put the file itself there"
        )


def _check_kind(path: Path, status: os.stat_result, within: Path, largest: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for is_it, words in _KINDS if is_it(status.st_mode)), "something else")
        raise BuildError(f"{path}: is {kind} and no regular file; put the file itself there")
    if status.st_size > largest:
        raise BuildError(
            f"{path}: has {status.st_size >> 20} MiB, and no such file of a kernel more than {largest >> 20} MiB; is "
            "it the right one?"
        )
    # A link that cannot be distinguished from a file: whoever owns the build has linked somebody else's file into it.
    owner = within.stat().st_uid
    if status.st_nlink > 1 and status.st_uid not in (owner, path.parent.stat().st_uid):
        raise BuildError(
            f"{path}: is a hard link to a file of user {status.st_uid} in a build of user {owner}; put a copy there"
        )


def _dangling(path: Path) -> str:
    return f" (it is a link to {path.readlink()})" if path.is_symlink() else ""
