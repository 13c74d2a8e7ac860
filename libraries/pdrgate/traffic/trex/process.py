"""The worker as a process: started, asked, ended."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from pdrgate.this_process.asked_program import AskedProgram, LostProgramError
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
        command = [str(interpreter or sys.executable), "-W", "ignore", str(WORKER)]
        try:
            self._program = AskedProgram(command)
        except OSError as error:
            raise GeneratorError(
                f"{command[0]} cannot run the TRex client: {error.strerror}; name a Python as interpreter"
            ) from error
        self.pid = self._program.pid
        """Process id of the supervisor, which leads the worker's session and process group."""

    def ask(self, message: Mapping[str, Any], deadline: float) -> Any:
        """The answer to a message.

        Args:
            deadline: seconds to wait for it; afterwards the worker is killed.

        Raises:
            WorkerLostError: it has ended or was silent.
            RefusedError: it answered that it cannot.
        """
        try:
            self._program.write(json.dumps(message).encode() + b"\n")
            answer = self._program.answer(deadline)
        except LostProgramError as lost:
            raise WorkerLostError(f"the TRex client {lost}") from lost
        if "error" in answer:
            raise RefusedError(answer["error"]["kind"], answer["error"]["what"])
        return answer["ok"]

    def close(self) -> None:
        """Let the worker release its ports and end; kill it if it does not. May be called twice."""
        self._program.end(FAREWELL)

    def kill(self) -> None:
        """End supervisor and worker at once."""
        self._program.kill()
