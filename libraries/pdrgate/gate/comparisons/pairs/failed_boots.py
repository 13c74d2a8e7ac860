"""Boots that failed: the words for one, and when they are a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.results.model import BootResult, Side
from pdrgate.results.verdict import Judgement, Verdict

_MOST_FAILURES = 2
"""Boots of one build that may fail; one failure can be the testbed's, two are the build's."""


def too_many_failed(
    boots: Sequence[BootResult], labels: Mapping[Side, str], *, baseline_came_up: bool
) -> Judgement | None:
    """What boots that failed say of their builds; None while too few did.

    A crash is the candidate's alone. What its baseline does as well, or a tool, is a fault of the testbed. A kernel
    that refuses a program says so each time: one boot is enough.

    Args:
        labels: by side, what a person calls the builds.
        baseline_came_up: whether a boot of another build than the candidate has come up beside it.
    """
    failed = {side: [boot for boot in boots if boot.side == side and boot.failure] for side in labels}
    refused = [boot.failure for boot in failed["candidate"] if boot.refused]
    if refused and baseline_came_up and not any(boot.refused for boot in failed["baseline"]):
        return refused_alone(refused[0])
    for side, failures in failed.items():
        if len(failures) < _MOST_FAILURES:
            continue
        count = f"{len(failures)} boots of the {side} {labels[side]} failed"
        if side == "candidate" and baseline_came_up and all(boot.sut_failed for boot in failures):
            if not failed["baseline"]:
                worst = next((boot for boot in failures if boot.crash is not None), failures[-1])
                return Judgement(Verdict.CRASH, f"{worst.failure}; {count}, and none of the baseline's")
            both = f"{count}, and {len(failed['baseline'])} of the baseline, so that both builds do"
            return Judgement(Verdict.ERROR, f"{both}; the last: {failures[-1].failure}")
        return Judgement(Verdict.ERROR, f"{count}, the last: {failures[-1].failure}")
    return None


def refused_alone(why: str) -> Judgement:
    """The verdict on a candidate whose program the kernel refuses, where the baseline's loads.

    Args:
        why: what was refused, and the verifier's or libbpf's own line.
    """
    return Judgement(Verdict.REGRESSION, f"the candidate's program does not load, and the baseline's does: {why}")
