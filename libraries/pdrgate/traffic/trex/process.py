"""The worker as a process: started, asked, ended."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import GeneratorError

WORKER = pathlib.Path(__file__).parent / "worker"
FAREWELL = 6.0
"""Seconds for the worker to stop traffic and release its ports; longer than its supervisor gives it."""


class WorkerLostError(GeneratorError):
    """The worker has ended or does not answer; what it was asked is lost, another worker may do it."""


class RefusedError(GeneratorError):
    """The worker answered that it cannot; ``kind`` says which of its reasons it is."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Worker:
    """A worker process in a session of its own; it ends when this object is closed or this process ends.

    Args:
        interpreter: the Python to run it; None: ours.
    """

    def __init__(self, interpreter: pathlib.Path | None = None) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        command = [str(interpreter or sys.executable), "-W", "ignore", str(WORKER)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,  # a file, for a client that says much would block on a full pipe
                env=child_environment(),
                start_new_session=True,  # the client may end the whole group, and Ctrl-C is for us to handle
            )
        except OSError as error:
            self._said.close()
            raise GeneratorError(
                f"{command[0]} cannot run the TRex client: {error.strerror}; name a Python as interpreter"
            ) from error

    @property
    def pid(self) -> int:
        """Process id of the supervisor, which leads the worker's session and process group."""
        return self._process.pid

    def ask(self, message: Mapping[str, Any], deadline: float) -> Any:
        """The answer to a message.

        Args:
            deadline: seconds to wait for it; afterwards the worker is killed.

        Raises:
            WorkerLostError: it has ended or was silent.
            RefusedError: it answered that it cannot.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise WorkerLostError(f"the TRex client has ended ({self._last_words()})") from error
        answer = json.loads(self._line(deadline))
        if "error" in answer:
            raise RefusedError(answer["error"]["kind"], answer["error"]["what"])
        return answer["ok"]

    def close(self) -> None:
        """Let the worker release its ports and end; kill it if it does not. May be called twice."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=FAREWELL)
        self.kill()

    def kill(self) -> None:
        """End supervisor and worker at once."""
        # Until it was waited for, the group's name cannot belong to anybody else.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        end = time.monotonic() + deadline
        received = b""
        while not received.endswith(b"\n"):
            ready, _, _ = select.select([output], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.kill()
                raise WorkerLostError(f"the TRex client did not answer within {deadline:.0f} s and was ended")
            part = os.read(output, 1 << 16)
            if not part:
                raise WorkerLostError(f"the TRex client has ended ({self._last_words()})")
            received += part
        return received

    def _last_words(self) -> str:
        """Exit code and last line of what it said; the process is gone afterwards."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        code = self._process.returncode
        lines: list[bytes] = []
        if not self._said.closed:
            self._said.seek(0)
            lines = [line for line in self._said.read().splitlines() if line.strip()]
        self.kill()
        how = "it hung" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        return how + (f": {lines[-1].decode(errors='replace').strip()[:300]}" if lines else "")
