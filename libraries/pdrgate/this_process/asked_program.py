"""A program that this process has started, asks on its standard input, and hears by lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from pdrgate.this_process.child_environment import child_environment

_CHUNK = 1 << 16


class LostProgramError(Exception):
    """The program has ended, or does not answer and was ended. The message is a clause without its subject."""


class AskedProgram:
    """A program in a session of its own, from `__init__` to `end`: Ctrl-C is for us to handle. Raises OSError."""

    def __init__(self, command: Sequence[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- who says much would block on a full pipe
        self._heard = b""
        """Bytes of answers that came behind the last one."""
        self._lost = "has ended already"
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=child_environment(),
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            self._said.close()
            raise

    @property
    def pid(self) -> int:
        """Its process id, and that of its session and process group."""
        return self._process.pid

    def write(self, content: bytes) -> None:
        """Ask it. Raises LostProgramError."""
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            raise LostProgramError(self._lost)
        try:
            self._process.stdin.write(content)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._gone(f"has ended ({self._last_words()})") from error

    def answer(self, patience: float) -> dict[str, Any]:
        """Its next answer, within ``patience`` seconds; then it is killed. Raises LostProgramError."""
        assert self._process.stdout is not None
        output, deadline = self._process.stdout.fileno(), time.monotonic() + patience
        while b"\n" not in self._heard:
            if not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise self._gone(f"did not answer within {patience:.0f} s and was ended")
            heard = os.read(output, _CHUNK)
            if not heard:
                raise self._gone(f"has ended ({self._last_words()})")
            self._heard += heard
        line, _, self._heard = self._heard.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self, grace: float = 0.0) -> None:
        """Close its input, and kill it where it has not ended ``grace`` seconds later. Calling it twice is harmless."""
        assert self._process.stdin is not None
        try:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it, and all of its process group, at once."""
        # Until it was waited for, the group's name cannot belong to anybody else.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _gone(self, how: str) -> LostProgramError:
        self.kill()
        self._lost = how
        return LostProgramError(how)

    def _last_words(self) -> str:
        """How it ended, and the last line of its standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.returncode
        lines: list[bytes] = []
        if not self._said.closed:
            self._said.seek(0)
            lines = [line for line in self._said.read().splitlines() if line.strip()]
        how = "it hung" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        return how + (f": {lines[-1].decode(errors='replace').strip()[:300]}" if lines else "")
