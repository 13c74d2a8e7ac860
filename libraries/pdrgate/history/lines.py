"""Files of lines that are on disk before anything else happens."""

from __future__ import annotations

import codecs
import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Self

from pdrgate.this_process.no_follow import folder_no_follow, open_no_follow
from pdrgate.values.errors import DataError, StorageError


class LineFile:
    """Appends lines to a file, flushed and synced to the disk one by one.

    Each line is a JSON object. A last line without its newline is what a killed run left of a line that it could not
    finish writing: it is cut off when the file is opened. A file that is no such lines is somebody else's, and stays as
    it is. A link is not followed: who runs may write where others may not, and a folder may be those others'.

    Raises:
        DataError: what is there is no lines of JSON objects, so that nothing can be cut off or appended.
        StorageError: the file cannot be opened or written; the message says what to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1
        self._writing = threading.Lock()
        """Held by who writes: several SUTs may be measured at once."""
        try:
            with folder_no_follow(path.parent, make=True):
                self._fd = _open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self._cut_torn_line()
        except DataError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise StorageError(f"cannot write {path}: {_why(error)}; choose another folder with --output") from error

    def append_line(self, text: str) -> None:
        """Write one line; when this returns, it is on disk."""
        with self._writing:
            self._append(text.encode() + b"\n")

    def _append(self, line: bytes) -> None:
        end = os.fstat(self._fd).st_size
        try:
            written = os.write(self._fd, line)
            if written == len(line):
                os.fsync(self._fd)
                return
            reason = "no space is left"
        except OSError as error:
            reason = error.strerror or str(error)
        os.ftruncate(self._fd, end)  # no half of a line stays behind
        raise StorageError(
            f"cannot write {self.path}: {reason}; all trials before this one are kept: make room, then continue with "
            f"--resume {self.path.parent}"
        )

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut_torn_line(self) -> None:
        content = _content(self._fd)
        *lines, torn = content.split(b"\n")
        if not torn:
            return
        foreign = [number for number, line in enumerate(lines, 1) if line.strip() and not _is_object(line)]
        # After whole lines of ours the torn one may be anything: a machine that lost its power leaves zeros there.
        if not any(map(bytes.strip, lines)) and not torn.removeprefix(codecs.BOM_UTF8).startswith(b"{"):
            foreign = [len(lines) + 1]
        if foreign:
            raise DataError(
                f"cannot continue {self.path}: line {foreign[0]} is no JSON object of a run's, so the file was left as "
                "it is; move it away, or start a new run"
            )
        os.ftruncate(self._fd, len(content) - len(torn))


def _open(path: Path, flags: int) -> int:
    """Open a file as `open_no_follow` does, and refuse what only looks like a file. Raises OSError."""
    fd = open_no_follow(path, flags | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    directory = stat.S_ISDIR(mode)
    raise OSError(errno.EISDIR if directory else errno.EINVAL, "Is a directory" if directory else "it is no plain file")


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _content(fd: int) -> bytes:
    with open(os.dup(fd), "rb") as file:  # noqa: PTH123 - it has no path any more
        file.seek(0)
        return file.read()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.removeprefix(codecs.BOM_UTF8)), dict)
    except (ValueError, RecursionError):
        return False
