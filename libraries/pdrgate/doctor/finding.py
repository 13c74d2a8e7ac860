"""What one check found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from pdrgate.values.errors import PdrGateError


class Status(StrEnum):
    """How bad it is. What could not be found out is told, and is no fault."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    FAIL = "fail"


Outcome = tuple[Status, str, str]
"""What a check finds: status, message and remedy."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result, for a person: which part of the testbed, what is so, and what to do."""

    part: str
    """What was looked at: this machine, the SUT, the traffic."""
    check: str
    status: Status
    message: str
    remedy: str = ""
    """What to do; empty when there is nothing to do."""

    def to_dict(self) -> dict[str, str]:
        """The finding as JSON has it."""
        return {key: str(value) for key, value in dataclasses.asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Check:
    """A check that a part of the testbed can be given: its name, and what finds status, message and remedy."""

    name: str
    look: Callable[[], Outcome]

    def on(self, part: str) -> Finding:
        """Do it. What it cannot find out, for whatever reason of the testbed's, is a finding as well."""
        try:
            return Finding(part, self.name, *self.look())
        except PdrGateError as error:
            return Finding(part, self.name, Status.UNKNOWN, f"could not be found out: {error}")


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
    """A finding that cannot be told here."""
    return Status.UNKNOWN, message, ""


def worst(findings: Iterable[Finding]) -> Status:
    """The gravest status; ok when there is nothing."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)
