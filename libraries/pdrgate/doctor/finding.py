"""The finding of one check."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, wraps
from typing import ParamSpec

from pdrgate.values.errors import PdrGateError

P = ParamSpec("P")


class Status(StrEnum):
    """Severity of a finding. A check without an answer is unknown, and no fault."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    FAIL = "fail"


Outcome = tuple[Status, str, str]
"""Result of a check: status, message and remedy."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result, for a person: which part of the testbed, what is so, and what to do."""

    part: str
    """The part that was looked at: this machine, the SUT, the traffic."""
    check: str
    status: Status
    message: str
    remedy: str = ""
    """What to do; empty if nothing is to be done."""

    def to_dict(self) -> dict[str, str]:
        """The finding as JSON has it."""
        return {key: str(value) for key, value in dataclasses.asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Check:
    """A check that a part of the testbed can be given: its name, and what finds status, message and remedy."""

    name: str
    look: Callable[[], Outcome]

    def on(self, part: str) -> Finding:
        """Run the check. An error of the testbed's is reported as an unknown finding."""
        try:
            return Finding(part, self.name, *self.look())
        except PdrGateError as error:
            return Finding(part, self.name, Status.UNKNOWN, f"could not be found out: {error}")


def check_named(name: str) -> Callable[[Callable[P, Outcome]], Callable[P, Check]]:
    """Make a function that finds an outcome one that makes a check of this name, which finds it when it is run."""
    return lambda look: wraps(look)(lambda *given, **named: Check(name, partial(look, *given, **named)))


def ok(message: str) -> Outcome:
    """Nothing to do."""
    return Status.OK, message, ""


def warn(message: str, remedy: str = "") -> Outcome:
    """A finding that lets the testbed measure, though the numbers may suffer."""
    return Status.WARN, message, remedy


def fail(message: str, remedy: str = "") -> Outcome:
    """A finding that lets nothing be measured, or makes the numbers mean nothing."""
    return Status.FAIL, message, remedy


def unknown(message: str) -> Outcome:
    """The outcome of a check that has no answer here."""
    return Status.UNKNOWN, message, ""


def worst(findings: Iterable[Finding]) -> Status:
    """The gravest status; ok if there are no findings."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)
