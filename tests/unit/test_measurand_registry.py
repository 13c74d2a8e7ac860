"""What a measurand says of itself, and what is told of one that nobody here knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flat_values import changed, flat_trial
from made_results import result, scenario

import pdrgate
from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.measurands import DESCRIPTIONS, OF_TRANSFERS, OF_TRIALS, Description, Rule, described, unit_of
from pdrgate.measurands.observed import gained_by_places
from pdrgate.reports.ci.exports.openmetrics import open_metrics
from pdrgate.results.model import ChangeResult, MeasurandResult
from pdrgate.results.verdict import Verdict

ACCEPTED = {
    "PDR": 0.02, "saturation throughput": 0.02, "least delivered past the PDR": 0.25, "overload throughput": 0.1,
    "livelock threshold": 0.1, "median latency at 50% PDR": 0.3, "p99 latency at 90% PDR": 0.3, "cost": 0.01,
    "TCP throughput": 0.02, "round trip under load": 0.15, "transmissions per segment": 0.005, "cost of a byte": 0.01,
    "used window": 0.1, "advertised window": 0.1, "bytes to a grown window": 0.35,
    "request rate": 0.5, "latency of a request": 0.5, "cost of a request": 0.01,
    "time of a replacement": 0.1, "packets sent for each forwarded": 0.005,
    "packets for each in order": 0.005,
}  # fmt: skip


def test_a_run_that_asks_for_nothing_accepts_what_each_measurand_says() -> None:
    told = {one.name: one.tolerance.accepted({}) for one in DESCRIPTIONS if one.rule is Rule.PAIRS}
    assert told == ACCEPTED


def test_the_pdr_of_an_end_host_gets_a_larger_tolerance_and_nothing_else_does() -> None:
    """Within 2 % of its knee an end host holds a load or not by chance."""
    at_programs = {one.name: one.tolerance.accepted({}, delivered=True) for one in DESCRIPTIONS if one.name in ACCEPTED}
    assert at_programs == {**ACCEPTED, "PDR": 0.05}
    (pdr,) = (one for one in DESCRIPTIONS if one.name == "PDR")
    assert pdr.tolerance.accepted({"tolerance": 0.1}, delivered=True) == 0.1


@pytest.mark.parametrize("one", DESCRIPTIONS, ids=lambda one: one.name)
def test_an_option_sets_the_tolerance_that_the_measurand_says_and_no_other(one: Description) -> None:
    options = {each.tolerance.option for each in DESCRIPTIONS} - {""}
    for option in options:
        asked = {option: 0.5}
        mine = option == one.tolerance.option
        assert one.tolerance.accepted(asked) == (0.5 if mine else one.tolerance.accepted({}))
        assert one.tolerance.judges({option: None}) is not mine


def test_what_a_run_is_about_comes_first_and_no_two_have_one_name() -> None:
    assert len({one.name for one in DESCRIPTIONS}) == len(DESCRIPTIONS)
    for kinds in (OF_TRIALS, OF_TRANSFERS):
        assert kinds[0].about.rank == 0
        assert kinds[0].about.essential


def test_no_name_of_a_measurand_is_written_again_by_who_judges_tells_or_exports_it() -> None:
    """A second place that knows a name is what makes a further measurand touch a second file."""
    several = [one.name for one in DESCRIPTIONS if " " in one.name]
    several += [
        spelling
        for one in DESCRIPTIONS
        for spelling in (one.unit, one.quantity.metric)
        if "/" in spelling or "_" in spelling
    ]
    names = re.compile("|".join(f'"{re.escape(name)}"' for name in several))
    house = Path(pdrgate.__file__).parent
    found = {
        str(path.relative_to(house)): names.findall(path.read_text())
        for room in ("gate", "reports", "cli", "keywords")
        for path in (house / room).rglob("*.py")
        if names.search(path.read_text())
    }
    assert found == {}


def test_exports_spell_each_unit_as_its_measurand_says() -> None:
    found = scenario()
    names = "transmissions per segment", "p99 latency at 90% PDR", "cost", "energy"
    units = [(name, described(name).unit or {"energy": "µJ/packet"}.get(name, "")) for name in names]
    told = tuple(MeasurandResult(name=name, unit=unit, better="lower", value=1.5) for name, unit in units)
    lines = open_metrics(result(changed(found, measurands=told, pdr=None))).splitlines()
    assert {line.split()[2] for line in lines if line.startswith("# UNIT") and "change" not in line} == {
        "pdrgate_run_started_seconds", "pdrgate_transmissions_per_segment_ratio",
        "pdrgate_p99_latency_at_90_pdr_seconds",
        "pdrgate_cost_instructions_per_packet", "pdrgate_energy_j_packet",
    }  # fmt: skip


def test_an_unknown_measurand_is_told_by_its_own_name_and_unit() -> None:
    change = ChangeResult(
        measurand="energy", change=0.5, lower=0.4, upper=0.6, confidence=0.95, tolerance=0.02, baseline=2.0,
        candidate=3.0, unit="µJ/packet", better="lower", verdict=Verdict.REGRESSION,
    )  # fmt: skip
    assert judged([change]).reason == (
        "slower: energy 3 µJ/packet against 2 µJ/packet, change +50.0% (+40.0% to +60.0%), tolerance 2.0%"
    )
    assert described("energy", "µJ/packet", "lower").better == "lower"
    assert unit_of("pps").name == "packets/s"


def test_a_count_of_an_observer_is_told_over_all_places_of_its_kind() -> None:
    before = {"cpu0": {"kernel_cycles": 5}, "cpu1": {"kernel_cycles": 7}, "in0": {"rx_packets": 1}}
    after = {"cpu0": {"kernel_cycles": 15}, "cpu1": {"kernel_cycles": 7}, "in0": {"rx_packets": 9}}
    trial = flat_trial(1e3, 1.0, 10, 10, counters_before=before, counters_after=after)
    assert gained_by_places(trial, "cpu", "kernel_cycles") == 10
    assert gained_by_places(trial, "backlog", "kernel_cycles") is None
    assert gained_by_places(trial, "cpu", "steal_ticks") is None


@pytest.mark.parametrize("rule", Rule)
def test_the_page_of_rules_names_the_measurands_of_each(rule: Rule) -> None:
    page = (Path(__file__).parents[2] / "docs/error-rates.md").read_text()
    (row,) = [line.split(" | ") for line in page.splitlines() if line.startswith(f"| {rule.value} |")]
    assert row[2].split(", ") == [one.name for one in DESCRIPTIONS if one.rule is rule]
