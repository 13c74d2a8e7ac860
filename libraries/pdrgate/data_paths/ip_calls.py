"""Calls of ``ip`` that one start of it makes: to start it takes an emulated guest longer than what it then does."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.hosts.host import CommandError, Completed, Host, NoJsonError

_COUNTED = ("link", "show", "dev", "lo")
_END = "end of calls"


@dataclass(frozen=True, slots=True)
class IpCall:
    """Words of a call of ``ip``, and of the one that undoes it."""

    words: tuple[str, ...]
    undo: tuple[str, ...] = ()


class IpCalls:
    """Calls of one IP version that are made together, and undone together in reverse; a `Step`.

    Args:
        check: reads back what they did.
    """

    def __init__(self, host: Host, family: int, calls: Sequence[IpCall], check: Callable[[], None]) -> None:
        self._host = host
        self._family = family
        self._calls = tuple(calls)
        self._check = check
        self._done = 0

    def apply(self) -> None:
        self._done, error = _made(self._host, self._family, [call.words for call in self._calls])
        if error is not None:
            raise error

    def read_back(self) -> None:
        self._check()

    def undo(self) -> Sequence[str]:
        left, self._done = [call.undo for call in reversed(self._calls[: self._done])], 0
        sentences = []
        while left:
            made, error = _made(self._host, self._family, left)
            sentences += [] if error is None else [str(error)]
            left = left[made + 1 :]
        return sentences


def ip_answers(host: Host, family: int, questions: Sequence[tuple[str, ...]]) -> list[Any]:
    """What ``ip`` answers to several questions, as JSON. Raises TestbedError where it has no answer to one."""
    completed = _batch(host, family, questions, "-j")
    lines = [line for line in completed.stdout.splitlines() if line.strip()]
    if completed.exit_code:
        raise _error(host, family, questions, len(lines), completed)
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        told = f"`ip -j -{family}` on {host.name} printed no JSON ({error}); is that program too old there?"
        raise NoJsonError(told) from error


def _made(host: Host, family: int, calls: Sequence[tuple[str, ...]]) -> tuple[int, CommandError | None]:
    """Make calls until one fails: how many were made, and why the next was not."""
    # Most calls end ip where they fail, and it prints no number. So each call is followed by one that prints a line.
    counted = [one for call in calls for one in (call, _COUNTED)]
    completed = _batch(host, family, counted, "-o")
    made = sum(line.startswith("1: lo") for line in completed.stdout.splitlines())
    return made, _error(host, family, calls, made, completed) if completed.exit_code else None


def _batch(host: Host, family: int, calls: Sequence[tuple[str, ...]], option: str) -> Completed:
    lines = "\n".join(shlex.join(words) for words in calls)
    return host.script(f"ip {option} -{family} -batch - <<'{_END}'\n{lines}\n{_END}")


def _error(
    host: Host, family: int, calls: Sequence[tuple[str, ...]], number: int, completed: Completed
) -> CommandError:
    """Why the call of that number, from 0, failed."""
    call = calls[min(number, len(calls) - 1)]
    why = "\n".join(line for line in completed.stderr.splitlines() if not line.startswith("Command failed -"))
    ended = Completed(call, completed.exit_code, completed.stdout, why)
    return CommandError(host.name, f"`{shlex.join(('ip', f'-{family}', *call))}`", ended)
