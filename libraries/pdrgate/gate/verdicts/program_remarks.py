"""What a verdict on eBPF programs says of what ran: which fate packets had, and how much of the programs they ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.builds.program_code import code_of
from pdrgate.observers.fates import by_fate
from pdrgate.observers.function_names import PROGRAM
from pdrgate.record.fate import INSIDE
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side, SideResult
from pdrgate.results.verdict import PROGRAMS_DIFFER

_SAME = 0.5
"""Instructions per packet by which equal code differs at most."""
_LOST = 0.01
"""Share of its packets that a trial may lose that stands for all of them."""


def program_remarks(
    programs: Mapping[Side, BpfBuild | Path | None], sides: Mapping[Side, SideResult], trials: Sequence[Trial]
) -> list[str]:
    """Clauses on two programs; none where builds are no programs.

    Args:
        trials: those of both, with counters around them.
    """
    baseline, candidate = programs.get("baseline"), programs.get("candidate")
    if not (isinstance(baseline, BpfBuild) and isinstance(candidate, BpfBuild)):
        return []
    return [*_unrun(baseline, candidate, sides), *_fates(trials)]


def _unrun(baseline: BpfBuild, candidate: BpfBuild, sides: Mapping[Side, SideResult]) -> list[str]:
    ran = [_instructions(sides[side]) for side in ("baseline", "candidate")]
    if None in ran or code_of(baseline) == code_of(candidate):
        return []
    before, after = (one or 0.0 for one in ran)
    if abs(after - before) > _SAME:
        return []
    return [f"{PROGRAMS_DIFFER}a packet runs the same {after:.0f} instructions of both: does it reach what differs?"]


def _instructions(side: SideResult) -> float | None:
    """Instructions of programs that a packet runs; None where nobody counted by function."""
    cost = side.findings.cost
    if cost is None or not cost.functions:
        return None
    return sum(one.instructions for one in cost.functions if one.name.startswith(PROGRAM))


def _fates(trials: Sequence[Trial]) -> list[str]:
    """What became of the candidate's packets, in a trial that lost few, where that is counted inside the SUT."""
    whole = [
        one
        for one in trials
        if one.belonging.side == "candidate" and one.aside.fate in INSIDE and one.seen.counters_after
        and not one.closed_loop and one.forwarded >= (1.0 - _LOST) * one.offered
    ]  # fmt: skip
    if not whole:
        return []
    one = max(whole, key=lambda trial: trial.offered)
    passed = by_fate(one, "passed")
    back = min(one.aside.left, passed.aside.returned)
    found = {
        "passed": passed.forwarded,  # also those that the kernel's router sent on
        "dropped": by_fate(one, "dropped").forwarded,
        "sent back": back,
        "sent on": max(0, one.aside.left - back - passed.forwarded),
    }
    told = ", ".join(f"{number} {what}" for what, number in sorted(found.items(), key=lambda pair: -pair[1]) if number)
    return [f"of {one.offered} packets: {told}"] if told else []
