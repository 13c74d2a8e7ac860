"""One JSON message per line, asked on stdin and answered on stdout; whatever the client prints goes to stderr.

``{"do": "open", …}``, ``{"do": "look", …}``, ``{"do": "trial", …}`` and ``{"do": "close"}`` are answered by
``{"ok": …}`` or by ``{"error": {"kind": …, "what": …}}``. The end of stdin is a ``close``, also in the middle of a
trial.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any, NoReturn

from .client import Refusal, error_in_words
from .held_connection import WorkerSession
from .supervisor import supervised


class Abandoned(Exception):  # noqa: N818
    """Nobody waits for the trial any more."""


class Conversation:
    """The two ends of the conversation, and the session that it is about."""

    def __init__(self, answers: int) -> None:
        self._answers = os.fdopen(answers, "w")
        self._session: WorkerSession | None = None

    def run(self) -> None:
        """Answer messages until the last."""
        try:
            for line in sys.stdin:
                message = json.loads(line)
                try:
                    answer: dict[str, Any] = {"ok": self._do(message)}
                except Abandoned:
                    return
                except Refusal as refusal:
                    answer = {"error": {"kind": refusal.kind, "what": error_in_words(refusal)}}
                except Exception as error:  # a client raises all kinds of things
                    answer = {"error": {"kind": "trex", "what": error_in_words(error)}}
                self._answers.write(json.dumps(answer) + "\n")
                self._answers.flush()
                if message["do"] == "close":
                    return
        finally:
            if self._session:
                self._session.close()

    def _do(self, message: dict[str, Any]) -> Any:
        if message["do"] == "open":
            self._session = WorkerSession(message, pause)
            return self._session.open()
        if message["do"] == "close":
            session, self._session = self._session, None
            return session.close() if session else None
        if not self._session:
            raise Refusal("trex", "no connection to a TRex server was opened")
        return self._session.look(message) if message["do"] == "look" else self._session.trial(message)


def pause(seconds: float) -> None:
    """Sleep, unless those who asked go away meanwhile; nothing else can be on stdin during a trial."""
    if select.select([0], [], [], max(0.0, seconds))[0]:
        raise Abandoned


def main() -> NoReturn:
    """The worker, under its supervisor."""
    supervised()
    answers = os.dup(1)
    os.dup2(2, 1)
    os.set_inheritable(answers, False)
    code = 0
    try:
        Conversation(answers).run()
    except BaseException as error:
        sys.stderr.write(f"{error_in_words(error)}\n")
        code = 1
    sys.stderr.flush()
    os._exit(code)  # the client's threads and sockets need no farewell, and may not give one
