"""Latency at shares of the PDR: which trials tell it, what they come to, and how a change of it is told."""

from __future__ import annotations

from typing import Any

import pytest
from causes import because
from flat_values import flat_scenario, flat_trial
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.gate.verdicts.build_latency import latencies, latency_trials
from pdrgate.gate.verdicts.change_verdict import told
from pdrgate.measurands import LATENCY, Ask, LatencyTrials
from pdrgate.measurands.measurand import is_counted
from pdrgate.measurands.rates.latency import MedianLatency, TailLatency, probe_rate
from pdrgate.record.stretch import Latency
from pdrgate.record.trial import Trial
from pdrgate.reports.words.latencies import latency_cells, latency_part
from pdrgate.results.model import ChangeResult, LatencyResult, PdrResult, ScenarioResult
from pdrgate.results.verdict import Verdict

LOADS = (5e5, 9e5, 9.9e5)


def trial(phase: str, p50: float = 1e-4, p99: float = 5e-4, **more: Any) -> Trial:
    load = LOADS[LATENCY.index(phase)]
    known = {"latency": Latency(p50, (p50 + p99) / 2, p99, 2 * p99, 100), "sending_time": 1.0}
    return flat_trial(load, 1.0, int(load), int(load), phase=phase, **known | more)


def asked(step: LatencyTrials) -> list[Ask]:
    """All that it wants, where each trial is what was wanted."""
    found: list[Ask] = []
    trials: list[Trial] = []
    while (ask := step.next(trials)) is not None:
        found.append(ask)
        trials.append(trial(ask.phase))
    return found


def test_trials_are_at_shares_of_the_pdr() -> None:
    step = LatencyTrials.of_pdr(1e6, 0.25)
    assert step.loads == LOADS
    assert [ask.load for ask in asked(step)] == [5e5] * 3 + [9e5] * 3 + [9.9e5]
    assert {ask.duration for ask in asked(step)} == {0.25}


def test_nothing_is_wanted_while_no_pdr_is_known() -> None:
    assert asked(LatencyTrials()) == []


def test_what_the_machine_adds_to_a_trial_decides_nothing() -> None:
    """Of equal boots one had a 99th percentile of twice the others', by the median of its three trials."""
    trials = [trial("latency90", p99=p99) for p99 in (5e-4, 40e-3, 6e-4)]
    assert TailLatency().value(trials) == 5e-4
    assert MedianLatency().value(trials) is None
    assert MedianLatency().value([trial("latency50", p50) for p50 in (1e-4, 2e-4, 9e-3)]) == 2e-4


@pytest.mark.parametrize(
    "spoilt",
    [
        {"disturbed": because("a stall of 9 ms")}, {"unsent": 10_000}, {"latency": None},
        {"latency": Latency(0.0, 0.0, 0.0, 0.0, 0)},
    ],
)  # fmt: skip
def test_trials_that_are_not_sound_or_whose_probes_are_gone_tell_nothing(spoilt: dict[str, Any]) -> None:
    assert TailLatency().value([trial("latency90", **spoilt)]) is None
    assert TailLatency().value([trial("latency90", **spoilt), trial("latency90")]) == 5e-4
    assert latencies([[trial("latency90", **spoilt)]]) == ()


WIDE = (1e-3, 1e-3, 1e-3, 1e-3)


def bucketed(phase: str, p50: float, p99: float, within: tuple[float, ...] = WIDE) -> Trial:
    return trial(phase, latency=Latency(p50, p99, p99, p99, 100, within))


def test_what_lies_in_too_wide_a_bucket_is_told_and_not_judged() -> None:
    """The edge of a bucket from 1 to 2 ms read as twice the latency of one below 1 ms."""
    assert TailLatency().value([bucketed("latency90", 1e-3, 2e-3)]) is None
    assert TailLatency().value([bucketed("latency90", 1e-3, 8e-3)]) == 8e-3
    assert TailLatency().value([bucketed("latency90", 1e-3, 20e-3), bucketed("latency90", 1e-3, 2e-3)]) is None
    assert MedianLatency().value([bucketed("latency50", p50, 0.1) for p50 in (9e-3, 8e-3, 2e-3)]) == 8e-3
    assert MedianLatency().value([bucketed("latency50", p50, 0.1) for p50 in (9e-3, 2e-3, 1e-3)]) is None


def test_the_width_of_a_bucket_is_told_with_the_latency() -> None:
    found = latencies([[bucketed("latency50", 1e-3, 2e-3), bucketed("latency50", 2e-3, 3e-3)]])
    assert [latency_cells(one)[0::2] for one in found] == [("500 µs to 1.5 ms", "1.5 ms to 2.5 ms")]
    (line,) = latency_part(stored(latency=found)).lines
    assert line.endswith("(500 kpps) (the generator's buckets; what is within 15 % is judged)")
    (exact,) = latencies([[trial("latency50")]])
    assert latency_cells(exact)[0] == "100 µs"


@given(st.floats(1, 1e8))
def test_probes_are_some_of_the_packets(load: float) -> None:
    assert 0 < probe_rate(load) <= min(load / 4, 10_000)


def test_a_build_has_the_medians_of_its_trials_and_the_longest_of_all() -> None:
    trials = [trial("latency90", p99=p99) for p99 in (5e-4, 40e-3, 6e-4)]
    half, busy = latencies([trials, [trial("latency50")]])
    assert half == LatencyResult(
        share=0.5, load=5e5, trials=1, probes=100, p50=1e-4, p90=pytest.approx(3e-4), p99=5e-4, longest=1e-3
    )
    assert (busy.trials, busy.probes, busy.p99, busy.longest) == (3, 300, 6e-4, 80e-3)


def test_where_it_is_counted_a_packets_cost_is_told_beside_its_latency() -> None:
    counted = {"functions": {"virtnet_poll": (1_000_000, 100_000), "ip_forward": (2_000_000_000, 500_000)}}
    (found,) = latencies([[trial("latency50", **counted)]])
    assert (found.instructions, found.batch) == (4002, 5)


def test_what_is_only_told_is_counted_in_the_first_replicates() -> None:
    """By function it takes ten times the room of a trial, and seven trials of a boot tell latency."""
    assert [is_counted(phase, replicate) for phase in ("latency50", "saturation") for replicate in (2, 3)] == [
        True, False, True, True,
    ]  # fmt: skip


def stored(**more: Any) -> ScenarioResult:
    pdr = PdrResult(load=2e6, lower=None, upper=None)
    return flat_scenario(name="", title="", verdict=Verdict.PASS, reason="", pdr=pdr, **more)


def test_a_stored_baseline_tells_the_loads() -> None:
    """A build that is slower by 10 % is at its limit at 90 % of what the other held: its own 90 % would hide that."""
    found = latencies([[trial(phase) for phase in LATENCY]])
    assert latency_trials(1.7e6, 1.0, stored(latency=found)).loads == LOADS
    assert latency_trials(1.7e6, 1.0, stored()).loads == (1e6, 1.8e6, 1.98e6)
    assert latency_trials(1.7e6, 1.0).loads == (8.5e5, 1.53e6, 1.683e6)
    assert latency_trials(None, 1.0).loads == ()


def test_a_change_says_of_what_it_is() -> None:
    change = ChangeResult(
        measurand=TailLatency.name, change=0.451, lower=0.3, upper=0.6, confidence=0.9875, tolerance=0.3,
        baseline=214e-6, candidate=310e-6, unit="s", better="lower", verdict=Verdict.REGRESSION,
    )  # fmt: skip
    assert told(change) == (
        "the 99th percentile of latency at 90 % of the PDR is +45 % (+30 to +60 %: 310 µs against 214 µs)"
    )
