"""Which paths a run measures, because the code that they run differs between both builds, and which it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pdrgate.results.verdict import Verdict

Reason = Literal["affected", "unknown", "audit", "same"]
"""Why a path is measured: its code differs; what it runs is not known; it was drawn to check the selection. ``same``:
it is not measured, for it runs the same code in both builds."""


_WORSE = (Verdict.REGRESSION, Verdict.CRASH)


@dataclass(frozen=True, slots=True)
class SelectedPath:
    """A path, and what of its code differs."""

    path: str
    """The name of its test."""
    scenario: str
    reason: Reason
    functions: tuple[str, ...] = ()
    """Functions that packets run, and that differ."""
    variables: tuple[str, ...] = ()
    """Variables that packets touch, and that have other values."""
    set_up: tuple[str, ...] = ()
    """Functions that differ of those that only its set-up runs."""

    @property
    def is_measured(self) -> bool:
        """Whether the run measures it from the beginning on."""
        return self.reason != "same"


@dataclass(frozen=True, slots=True)
class Selection:
    """What differs between both builds, and what follows from it for each path."""

    differ: tuple[str, ...]
    """Functions that differ, ``module: name`` for those of a module."""
    differ_variables: tuple[str, ...]
    """Variables whose initial values differ."""
    functions: int
    """Functions that were compared."""
    variables: int
    modules: int
    paths: tuple[SelectedPath, ...]
    everywhere: bool = False
    """Whether so much differs that a change of the sources does not explain it; then every path is measured."""
    missing: tuple[str, ...] = ()
    """What could not be compared, and why; then every path is measured."""
    identical: bool = False
    """Whether both builds are the same, byte by byte: then nothing is looked at after boot."""
    builds: tuple[str, str] = ("", "")
    """The digests of the baseline and of the candidate: of other builds it says nothing."""

    def of(self, scenario: str) -> SelectedPath | None:
        """The path of that scenario; None where the selection has none."""
        return next((one for one in self.paths if one.scenario == scenario), None)

    def with_affected(self, scenario: str, variables: tuple[str, ...] | None) -> Selection:
        """The selection with a path that is measured after all: variables have other values, or nobody knows (None)."""
        reason: Reason = "unknown" if variables is None else "affected"
        return replace(self, paths=tuple(
            replace(one, reason=reason, variables=tuple(sorted({*one.variables, *(variables or ())})))
            if one.scenario == scenario
            else one
            for one in self.paths
        ))  # fmt: skip

    def failed_audits(self, verdicts: Mapping[str, Verdict]) -> tuple[SelectedPath, ...]:
        """The paths that were drawn as an audit and are worse. A fault of the machine says nothing of the selection.

        Args:
            verdicts: of the scenarios that were measured, by name.
        """
        return tuple(one for one in self.because("audit") if verdicts.get(one.scenario) in _WORSE)

    def because(self, *reasons: Reason) -> tuple[SelectedPath, ...]:
        """The paths that have one of these reasons."""
        return tuple(one for one in self.paths if one.reason in reasons)
