"""Files of lines that are on disk before anything else happens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from pdrgate.errors import StorageError


class LineFile:
    """Appends lines to a file, flushed and synced to the disk one by one.

    A last line without its newline is what a killed run left of a line that it could not finish writing: it is cut off
    when the file is opened.

    Raises:
        StorageError: the file cannot be opened or written; the message says what to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._cut_torn_line()
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}; choose another folder with --output") from error

    def append_line(self, text: str) -> None:
        """Write one line; when this returns, it is on disk."""
        line = text.encode() + b"\n"
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
        size = os.fstat(self._fd).st_size
        tail = b""
        at = size
        while at and b"\n" not in tail:
            step = min(at, 65536)
            at -= step
            tail = os.pread(self._fd, step, at) + tail
        torn = len(tail) - (tail.rfind(b"\n") + 1)
        if torn:
            os.ftruncate(self._fd, size - torn)
