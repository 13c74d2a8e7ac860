"""Output of a guest to its serial console: a file that QEMU writes, and the faults on it.

The guest's kernel is a stranger's program and may write without an end. The kernel of this machine bounds the file
(RLIMIT_FSIZE), so that no thread of ours need keep up with a guest, and neither disk nor memory can be filled. A guest
whose file is full is ended when it is looked at next. New output is read once, from where the last look ended.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable
from pathlib import Path

from pdrgate.crashes.faults import Crash, FaultReader, last_lines
from pdrgate.values.errors import StorageError

MOST_OUTPUT = 8 << 20
"""Bytes that a guest may write. A boot of a distribution's kernel has 30 to 60 kB, and reading the limit takes some
s."""

OUTPUT_BOUND = ("prlimit", f"--fsize={MOST_OUTPUT}", "--core=0")
"""Words that start QEMU: no file that it writes gets longer, and it leaves no core."""

_CHUNK = 1 << 20
_TAIL = 1 << 16
_WRITTEN = 1.0
"""Seconds for a report that is being written to get to its end."""
_LOOK = 0.02


class GuestConsole:
    """The console of one boot, in ``folder``.

    Raises:
        StorageError: the file cannot be made.
    """

    def __init__(self, folder: Path, boot_id: str) -> None:
        self.path = folder.absolute() / f"console-{boot_id}.log"
        self._reader = FaultReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read = 0
        """Bytes that have been looked at."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o644)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}; make room there, start again") from error

    def open(self) -> int:
        """A descriptor to write to it by."""
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    @property
    def length(self) -> int:
        """Bytes that the guest has written so far."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @property
    def full(self) -> bool:
        """Whether the guest wrote more than it may."""
        return self.length >= MOST_OUTPUT

    def text(self) -> str:
        """Everything that the guest has written."""
        return self._bytes(0, MOST_OUTPUT).decode(errors="replace")

    def last_lines(self) -> str:
        """End of the console, in one line."""
        return last_lines(self._bytes(max(0, self.length - _TAIL), _TAIL).decode(errors="replace"))

    def find(self, words: str) -> str:
        """The first line that holds these words; empty if there is none."""
        return next((line for line in self.text().split("\n") if words in line), "")

    @property
    def new(self) -> bool:
        """Whether anything has been written since the last look."""
        return self.length > self._read

    @property
    def seen(self) -> int:
        """Number of faults that the last look had found."""
        return self._reader.count

    def faults(self) -> tuple[Crash, ...]:
        """Return the faults on the console so far. Only what is new is read."""
        while chunk := self._bytes(self._read, _CHUNK):
            self._read += len(chunk)
            self._reader.read(self._decoder.decode(chunk))
        return self._reader.faults

    def whole_faults(self, running: Callable[[], bool]) -> tuple[Crash, ...]:
        """The faults, the last one with all of its trace: a guest that still runs is given a moment to write it."""
        deadline = time.monotonic() + _WRITTEN
        self.faults()
        while self._reader.writing and running() and time.monotonic() < deadline:
            time.sleep(_LOOK)
            self.faults()
        if not running():
            self.faults()
            self._reader.end()
        return self._reader.faults

    def _bytes(self, at: int, most: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(at)
                return file.read(most)
        except OSError:
            return b""
