"""Who else used the SUT's CPUs while it was measured: the first thing to know of a measurement that is not stable."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from pdrgate.trial import Trial

_WORTH_TELLING = 0.02
"""Share of a CPU's time that others had. At 1 Mpps this is the difference between 4096 and 20000 packets waiting."""


def interference(trials: Sequence[Trial], cpus: Collection[int]) -> str:
    """A clause such as ``other processes had 12 % of CPU 1``, empty when nobody disturbed or nothing is known."""
    clauses = []
    for kind, who in (("process_ticks", "other processes"), ("steal_ticks", "the hypervisor's other guests")):
        share, cpu = max(((_share(trials, f"cpu{cpu}", kind), cpu) for cpu in cpus), default=(0.0, 0))
        if share >= _WORTH_TELLING:
            clauses.append(f"{who} had {share:.0%} of CPU {cpu}")
    return " and ".join(clauses)


def _share(trials: Sequence[Trial], place: str, name: str) -> float:
    seconds = sum(max(trial.intended_duration, trial.sending_time) for trial in trials)
    ticks = sum(trial.counter_changes.get(place, {}).get(name, 0) for trial in trials)
    return ticks / os.sysconf("SC_CLK_TCK") / seconds if seconds else 0.0
