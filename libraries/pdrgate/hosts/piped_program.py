"""A program of ours on a host, which is asked and answers by lines through two named pipes.

It works alike on this machine, in a guest and over SSH, and no message passes over the way there while it works. It is
statically linked, sent to the host unless it lies there already, and prints {"ready": ...} when it is ready. It ends
with the host's shell at the latest.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any

from pdrgate.hosts.answers import understood
from pdrgate.hosts.host import DEFAULT_TIMEOUT, CommandError, Host, HostError, Running
from pdrgate.values.errors import TestbedError

_PATIENCE = 10
"""Seconds for an answer."""
_ASK = f'''[ -z "$1" ] || echo "$1" 1<>"$2"; exec timeout {_PATIENCE} cat "$3"'''
"""The pipe is opened both ways, so that nobody waits for a program that has ended."""
_KILLED = (137, -9)
"""Exit codes of what SIGKILL ended."""
_ENDED = 3
"""Exit code of `_ASK_AT_ONCE`."""
# A zombie's is no file: where nobody waits for orphans, a program that was killed stays as one.
_ASK_AT_ONCE = f"""for pid in {{pids}}; do [ -e /proc/$pid/exe ] || exit {_ENDED}; done
printf '%s\\n' {{line}} >{{control}}
exec cat <{{answer}}"""


class PipedProgram:
    """Program that runs at a host from `__init__` to `close`.

    Args:
        program: the file on this machine; its first argument is the folder of its pipes.
        arguments: the others.
        what: its name in messages, in the plural: ``the receivers``.

    Raises:
        TestbedError: it does not run there, or cannot do what it is asked for.
    """

    def __init__(self, host: Host, program: Path, *arguments: str, what: str) -> None:
        self._host = host
        self._what = what
        self._running: Running | None = None
        self._folder = host.folder("program")
        try:
            path = sent(host, program, self._folder, what)
            host.run("mkfifo", f"{self._folder}/control", f"{self._folder}/answer")
            self._running = host.start(path, self._folder, *arguments)
            with understood(host.name):
                self.greeting = self.ask()["ready"]
            """What it says once it is there."""
        except BaseException:
            with contextlib.suppress(TestbedError):
                self.close()
            raise

    def ask(self, line: str = "") -> dict[str, Any]:
        """Say a line, if any, and read what is answered. Raises TestbedError when that is an error, or nothing."""
        pipes = (f"{self._folder}/control", f"{self._folder}/answer")
        asked = self._host.run("sh", "-c", _ASK, "sh", line, *pipes, timeout=2 * _PATIENCE, check=False)
        if asked.exit_code:
            ended = self._running.stop() if self._running is not None else asked
            said = (
                "; they were killed: memory ran out, or they were still at work; give a guest more memory in its "
                "testbed's file"
                if ended.exit_code in _KILLED
                else f"; they ended with exit code {ended.exit_code}: {ended.stderr.strip() or 'without a word'}"
            )
            raise TestbedError(f"{self._what} on {self._host.name} do not answer within {_PATIENCE} s{said}")
        return self._parsed(asked.stdout)

    def ask_at_once(self, line: str, timeout: float = DEFAULT_TIMEOUT) -> dict[str, Any]:
        """Answer to a line of a program that never fails to answer and greets with its process ids.

        One program is started to ask, and not the four of `ask`, which take an emulated guest 10 ms each.
        """
        control, answer = (f"{self._folder}/{pipe}" for pipe in ("control", "answer"))
        asked = self._host.script(
            _ASK_AT_ONCE.format(
                pids=self._processes, line=shlex.quote(line), control=shlex.quote(control), answer=shlex.quote(answer)
            ),
            timeout,
        )
        if asked.exit_code == _ENDED:
            raise TestbedError(f"{self._what} on {self._host.name} have ended; did somebody end them?")
        if asked.exit_code:
            raise CommandError(self._host.name, f"asking {self._what}", asked)
        return self._parsed(asked.stdout)

    @property
    def _processes(self) -> str:
        return " ".join(map(str, self.greeting)) if isinstance(self.greeting, list) else str(self.greeting)

    def _parsed(self, text: str) -> dict[str, Any]:
        with understood(self._host.name):
            answer: dict[str, Any] = dict(json.loads(text))
        if "error" in answer:
            raise TestbedError(f"{self._what} on {self._host.name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the program. Calling it twice is harmless. Raises TestbedError when the host cannot be asked."""
        running, self._running = self._running, None
        if running is not None:
            with contextlib.suppress(HostError):  # it ended before, with the shell that it was started from
                running.stop()
        if self._folder:
            self._host.run("rm", "-rf", self._folder)
            self._folder = ""


_USAGE = 64
"""The program's exit code when it is asked for nothing: it runs there."""


def sent(host: Host, program: Path, folder: str, what: str) -> str:
    """The path of the program on the host, once it is there and seen to run.

    Args:
        program: the file on this machine, in a folder that is named after what it was made of.
        folder: where it is put on the host.
        what: its name in words and the plural: ``the receivers``.

    Raises:
        CommandError: it does not run there.
    """
    if host.exists(str(program)):
        return str(program)
    path = f"{folder}/{program.name}"
    host.put(path, program.read_bytes(), 0o700)
    if (tried := host.run(path, check=False)).exit_code != _USAGE:
        raise CommandError(host.name, f"the program of {what}, which this machine has built,", tried)
    return path
