"""Latency of whole builds, over all their replicates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from pdrgate.measurands import LatencyTrials
from pdrgate.measurands.counted.cost import idle_of, packet_cost
from pdrgate.measurands.rates.latency import SHARES, told_by
from pdrgate.record.trial import Trial
from pdrgate.results.model import LatencyResult, ScenarioResult


def latencies(replicates: Iterable[Sequence[Trial]]) -> tuple[LatencyResult, ...]:
    """Latency by share of the PDR: medians over the trials of all replicates of a build, and the longest of all.

    Where it is counted, beside it what a packet costs there: the more packets a poll takes, the less each costs, and
    the longer the first of them has waited.
    """
    found = []
    known = [(trials, idle_of(trials)) for trials in replicates]
    for phase, share in SHARES.items():
        own = [(one, idle) for trials, idle in known for one in trials if one.occasion.phase == phase]
        each = [latency for one, _ in own if (latency := told_by(one)) is not None]
        costs = [cost for one, idle in own if told_by(one) and (cost := packet_cost([one], idle)) is not None]
        batches = [cost.batch for cost in costs if cost.batch is not None]
        if each:
            found.append(
                LatencyResult(
                    share=share, load=own[0][0].intended_load, trials=len(each), probes=sum(one.count for one in each),
                    p50=median(one.p50 for one in each), p90=median(one.p90 for one in each),
                    p99=median(one.p99 for one in each), longest=max(one.max for one in each),
                    within=tuple(map(median, zip(*(one.within for one in each), strict=False))),
                    instructions=median(cost.instructions for cost in costs) if costs else None,
                    batch=median(batches) if batches else None,
                )
            )  # fmt: skip
    return tuple(found)


def latency_trials(pdr: float | None, duration: float, baseline: ScenarioResult | None = None) -> LatencyTrials:
    """Trials at the loads that a stored baseline had, so that both are offered the same; else at shares of a PDR.

    Of a history the loads are not kept: there it is the PDR of the baseline.

    Args:
        pdr: of the first replicate, packets/s; None where it came to none.
    """
    loads = {one.share: one.load for one in (baseline.findings.latency if baseline is not None else ())}
    if loads.keys() == set(SHARES.values()):
        return LatencyTrials(tuple(loads[share] for share in SHARES.values()), duration)
    if baseline is not None and baseline.pdr is not None:
        pdr = baseline.pdr.load
    return LatencyTrials() if pdr is None else LatencyTrials.of_pdr(pdr, duration)
