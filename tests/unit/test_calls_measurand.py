"""Calls of a packet: counted from what a kernel executes, and told of both builds without being judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from flat_values import changed, flat_trial
from test_packet_cost import PLAIN, RT, STEADY, boots, compared

from pdrgate.measurands import described
from pdrgate.measurands.counted.calls import Calls
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.exports.benchstat import go_benchmarks
from pdrgate.reports.ci.exports.openmetrics import open_metrics
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.results.model import FunctionChange
from pdrgate.results.verdict import Verdict

CALLS = Calls(0.005)


def trial(**calls: int) -> Trial:
    functions = {name.replace("_space", " space"): (100 * count, count) for name, count in calls.items()}
    return flat_trial(4e4, 0.25, 2000, 1000, phase=Phase.SATURATION, functions=functions, counted=0.25)


def test_the_kernels_calls_count_without_what_it_does_by_itself() -> None:
    idle = flat_trial(0.0, 0.25, 0, 0, phase=Phase.IDLE, functions={"tick": (500, 400)}, counted=0.25)
    made = trial(ip6_forward=1000, kfree_skb=2000, tick=500, user_space=9000)
    assert USER_SPACE in made.seen.functions
    assert CALLS.value([made]) == pytest.approx(3.5)
    assert CALLS.value([made, idle]) == pytest.approx(3.1)


def test_where_calls_are_not_known_there_are_none() -> None:
    sampled = changed(trial(ip6_forward=1000), functions={"ip6_forward": (9000, 0)})
    assert CALLS.value([sampled]) is None
    assert CALLS.value([]) is None


def test_a_change_is_told_by_the_functions_that_are_called_otherwise() -> None:
    changes = (
        FunctionChange(function="kfree_skb", before=9, after=9, change=0, sure=False, calls_before=1, calls_after=2,
                       calls_changed=True),
        FunctionChange(function="memcpy", before=9, after=30, change=21, sure=True, calls_before=1, calls_after=1),
    )  # fmt: skip
    parts = described("calls").parts
    assert parts is not None
    assert parts.within(1.0, changes) == "most of it in kfree_skb (+1.0)"


def test_it_is_told_of_both_builds_and_exported_and_judges_neither(tmp_path: Path) -> None:
    more = PLAIN | {"migrate_disable": 1.0}
    _, found, _ = compared(tmp_path, boots(PLAIN, STEADY), boots(more, STEADY))
    assert found.verdict is Verdict.PASS
    (entry,) = found.scenarios
    assert entry.comparison is not None
    assert "calls" not in [one.measurand for one in entry.comparison.changes]
    told = {
        side.side: {one.name: one.value for one in side.findings.measurands}["calls"] for side in entry.builds.sides
    }
    assert told["candidate"] - told["baseline"] == pytest.approx(1.0, abs=0.02)
    assert "calls" in run_markdown(found)
    assert "calls-calls/packet" in go_benchmarks(found)
    assert "pdrgate_calls_calls_per_packet{" in open_metrics(found)


def test_a_build_that_costs_more_is_judged_as_it_was(tmp_path: Path) -> None:
    _, found, _ = compared(tmp_path, boots(PLAIN, STEADY), boots(RT, STEADY))
    assert found.verdict is Verdict.REGRESSION
    assert found.reason.startswith("a packet costs 4.0 % more instructions")
