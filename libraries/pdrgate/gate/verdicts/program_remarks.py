"""What a verdict on eBPF programs says of what ran: which fate packets had, and how much of the programs they ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.builds.program_code import code_of
from pdrgate.measurands.counted.program_run import program_run
from pdrgate.observers.fates import by_fate
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
    before, after = (program_run(sides[side].findings) for side in ("baseline", "candidate"))
    if before is None or after is None or code_of(baseline) == code_of(candidate):
        return []
    if abs(after.instructions - before.instructions) > _SAME:
        return []
    question = f"a packet runs the same {after.instructions:.0f} instructions of both: does it reach what differs?"
    return [f"{PROGRAMS_DIFFER}{question}"]


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
    fates = ", ".join(f"{number} {what}" for what, number in sorted(found.items(), key=lambda pair: -pair[1]) if number)
    return [f"of {one.offered} packets: {fates}"] if fates else []
