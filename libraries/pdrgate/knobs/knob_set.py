"""Turning knobs and turning them back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs.knob import ChangeLog, Knob, Missing
from pdrgate.knobs.records import knob_from_record
from pdrgate.values.errors import TestbedError


@dataclass(frozen=True, slots=True)
class Undone:
    """Outcome for a setting that was to be put back."""

    is_back: bool
    """Whether the value is back. It was left alone where somebody else has changed it since."""
    sentence: str


def put_back(host: Host, knob: Knob, old: str, new: str) -> Undone | None:
    """Restore ``old`` where the knob still holds ``new``; what somebody else has set since is left alone.

    Returns what was done, None when there was nothing to do.

    Raises:
        TestbedError: the host refuses the old value.
    """
    if knob.gone(host):
        return None
    now = knob.read(host)
    if knob.holds(now, old):
        return None
    if knob.holds(now, new) or knob.halfway(now, old, new):
        _turn(host, knob, old, lambda: knob.restore(host, old))
        return Undone(True, f"put back {_in_words(knob, _brief(old, now))} on {host.name}")
    return Undone(
        False,
        f"left alone {_in_words(knob, _brief(now, old))} on {host.name}: pdrgate had set {_brief(new, old)} in place "
        f"of {_brief(old, now)}, and somebody else has changed it since",
    )


def _turn(host: Host, knob: Knob, value: str, turn: Callable[[], None]) -> None:
    """Set a value. What reads back decides whether it is set, and no exit code: a driver may refuse what it does.

    What failed and changed something nonetheless is tried again, for only what is missing yet.

    Raises:
        TestbedError: it is not set; with the words of the tool, where it had some.
    """
    seen: set[str] = set()
    while True:
        try:
            return turn()
        except CommandError as error:
            try:
                now = knob.read(host)
            except TestbedError:
                raise error from None
            if knob.holds(now, value):
                return None
            if now in seen:
                raise
            seen.add(now)


def _in_words(knob: Knob, value: str) -> str:
    return knob_from_record(knob.to_record(), value).describe()


@dataclass(frozen=True, slots=True)
class _Applied:
    host: Host
    knob: Knob
    old: str
    number: int | None


class KnobSet:
    """The knobs a run has turned, so that they can be turned back in reverse order; a context manager that does so."""

    def __init__(self, log: ChangeLog | None = None) -> None:
        self.skipped: list[str] = []
        """Why knobs were skipped, one sentence each."""
        self._log = log
        self._applied: list[_Applied] = []

    def apply(self, host: Host, knob: Knob, missing: Missing = "error") -> bool:
        """Set a knob on a host, after the log has noted what it replaces. Returns False if it was skipped.

        Raises:
            TestbedError: the host lacks the knob and ``missing`` is error, or the value did not take. The earlier value
                is then back, or the message says that it is not. A driver that refuses a knob only when it is set lacks
                it as well.
        """
        if lack := knob.lacking(host):
            if missing != "error":
                self._skip(knob, lack, missing)
                return False
            raise TestbedError(f"cannot set {knob.describe()}: {lack}; take it out or let missing knobs be skipped")
        old = knob.read(host)
        number = self._log.change(host.name, knob.to_record(), old, knob.value) if self._log else None
        self._applied.append(applied := _Applied(host, knob, old, number))
        try:
            _turn(host, knob, knob.value, lambda: knob.apply(host))
        except TestbedError as error:
            try:
                # Not put_back: a value the kernel made of ours is not somebody else's.
                if not knob.holds(knob.read(host), old):
                    _turn(host, knob, old, lambda: knob.restore(host, old))
            except TestbedError as second:
                raise TestbedError(f"{error}; and it does not go back: {second}") from error
            self._forget(applied)
            if missing != "error" and _unsupported(error):
                self._skip(knob, str(error), missing)
                return False
            raise
        return True

    def restore(self) -> list[str]:
        """Put all knobs back, the last one first, and say in sentences which were left alone.

        Raises:
            TestbedError: some would not go back; all others did. Those stay for a next try.
        """
        sentences: list[str] = []
        failures: list[str] = []
        stuck: list[tuple[Host, dict[str, str]]] = []
        for applied in reversed(self._applied.copy()):
            setting = (applied.host, applied.knob.to_record())
            if setting in stuck:  # an earlier change of it can only be undone after the later one
                continue
            try:
                undone = put_back(applied.host, applied.knob, applied.old, applied.knob.value)
            except TestbedError as error:
                failures.append(str(error))
                stuck.append(setting)
                continue
            self._forget(applied)
            if undone is not None and not undone.is_back:
                sentences.append(undone.sentence)
        if failures:
            raise TestbedError(f"{len(failures)} of the settings could not be put back: {'; '.join(failures)}")
        return sentences

    def _skip(self, knob: Knob, why: str, missing: Missing) -> None:
        if missing == "skip":
            self.skipped.append(f"skipped {knob.describe()}: {why}")

    def _forget(self, applied: _Applied) -> None:
        self._applied.remove(applied)
        if self._log and applied.number is not None:
            self._log.undone(applied.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self.restore()
        except TestbedError as failure:
            if error is None:
                raise
            # The first error is raised; the journal still holds what is left to undo.
            error.add_note(str(failure))


_UNSUPPORTED = re.compile(r"not supported|unsupported|kind is unknown", re.IGNORECASE)


def _unsupported(error: TestbedError) -> bool:
    return isinstance(error, CommandError) and _UNSUPPORTED.search(error.completed.stderr) is not None


def _brief(state: str, other: str) -> str:
    """``state`` without the words it has in common with ``other``, when it has many: a device has sixty features."""
    if "\n" in state:
        return f"{len(state.splitlines())} lines"
    words = state.split()
    return " ".join(word for word in words if word not in other.split()) or state if len(words) > 8 else state
