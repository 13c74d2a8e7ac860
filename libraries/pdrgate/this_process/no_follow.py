"""Files and folders that no link leads to.

A folder that a pipeline hands over, or that somebody else may write, can hold a link at any name on the way to a file.
Root would read or write what that link leads to. A path is therefore resolved without following any link, from the
working directory or, where it is absolute, from the root of the file system.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_OPENAT2 = 437
"""The number of the system call, the same on all architectures (Linux 5.6)."""
_RESOLVE_NO_SYMLINKS = 0x04
_AT_FDCWD = -100
_LACKING = (errno.ENOSYS, errno.EPERM)
"""Errors of openat2 on an older kernel, and in a container that does not know it."""


class LinkError(OSError):
    """A link on the way to a file, which is not followed. ``strerror`` says which one, and what to do."""

    def __init__(self, link: Path, path: Path) -> None:
        to_file = link == path and not link.is_dir()
        words = "it is a link; name the file itself" if to_file else f"{link} is a link; name the folder itself"
        super().__init__(errno.ELOOP, words)


class _TooLargeError(OSError):
    def __init__(self, largest: int) -> None:
        super().__init__(errno.EFBIG, f"it is larger than {largest >> 20} MiB, which no such file is")


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_LIBC = ctypes.CDLL(None, use_errno=True)


def open_no_follow(path: Path, flags: int, mode: int = 0o644) -> int:
    """A file descriptor as `os.open` returns it, of a path on which no link is followed.

    Raises:
        LinkError: a part of the path is a link.
        OSError: as `os.open`.
    """
    flags |= os.O_CLOEXEC
    try:
        try:
            return _openat2(path, flags, mode)
        except OSError as error:
            if error.errno not in _LACKING:
                raise
            return _step_by_step(path, flags, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and (link := first_link(path)) is not None:
            raise LinkError(link, path) from error
        raise


@contextlib.contextmanager
def folder_no_follow(path: Path, *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder that no link leads to, for the ``dir_fd`` of functions of `os`.

    Args:
        make: whether it and its parents are made where they are not there.

    Raises:
        LinkError: a part of the path is a link.
        OSError: it cannot be opened, or made.
    """
    fd = _folder(path, make)
    try:
        yield fd
    finally:
        os.close(fd)


def regular_no_follow(path: Path, largest: int) -> BinaryIO:
    """Open for reading a regular file that no link leads to.

    Args:
        largest: bytes that it may have.

    Raises:
        LinkError: a part of the path is a link.
        OSError: it cannot be opened, is no regular file, or is larger.
    """
    looked_at = open_no_follow(path, os.O_PATH)  # to open a device or a FIFO does something
    try:
        status = os.fstat(looked_at)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if status.st_size > largest:
            raise _TooLargeError(largest)
        return Path(f"/proc/self/fd/{looked_at}").open("rb")
    finally:
        os.close(looked_at)


def read_no_follow(path: Path, largest: int) -> bytes:
    """The content of such a file. Raises as `regular_no_follow`."""
    with regular_no_follow(path, largest) as file:
        content = file.read(largest + 1)
    if len(content) > largest:  # it has grown meanwhile
        raise _TooLargeError(largest)
    return content


def first_link(path: Path) -> Path | None:
    """The first part of a path that is a link; None if no part is one by now."""
    return next((one for one in (*reversed(path.parents), path) if one.is_symlink()), None)


def first_linked_below(folder: Path) -> Path | None:
    """The first entry in or below a folder that is no plain file or folder; None if all are.

    Such entries are links, devices, FIFOs, sockets, and files that have another name as well.

    Raises:
        OSError: it cannot be looked through.
    """

    def fail(error: OSError) -> None:
        raise error

    for place, folders, files in os.walk(folder, onerror=fail):
        for one in (Path(place, name) for name in sorted((*folders, *files))):
            status = one.lstat()
            if not stat.S_ISDIR(status.st_mode) and not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
                return one
    return None


def _folder(path: Path, make: bool) -> int:
    try:
        return open_no_follow(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError as error:
        if not os.path.lexists(path):
            raise
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
    with folder_no_follow(path.parent, make=True) as parent:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path.name, dir_fd=parent)
        return os.open(path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def _openat2(path: Path, flags: int, mode: int) -> int:
    how = _OpenHow(flags, mode if flags & os.O_CREAT else 0, _RESOLVE_NO_SYMLINKS)
    fd: int = _LIBC.syscall(_OPENAT2, _AT_FDCWD, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
    return fd


def _step_by_step(path: Path, flags: int, mode: int) -> int:
    """Replacement of openat2 on an older kernel: each folder on the way is opened in the one before it."""
    *way, last = (".", *path.parts) if path.parts != (path.anchor,) else (path.anchor,)
    with contextlib.ExitStack() as stack:
        place = None
        for part in way:
            place = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            stack.callback(os.close, place)
        fd = os.open(last, flags | os.O_NOFOLLOW, mode, dir_fd=place)
    if stat.S_ISLNK(os.fstat(fd).st_mode):  # which O_PATH opens
        os.close(fd)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return fd
