"""The first line of every report: one sentence, at most 160 characters, with the number that matters."""

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from flat_values import changed
from hypothesis import given
from hypothesis import strategies as st
from made_results import compared, result, scenario

from pdrgate.measurands import DESCRIPTIONS, Rule, agree_at_the_knee, described
from pdrgate.measurands.memory.shared_lines import InterprocessorInterrupts, LockWaits, Wakeups
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.blocks import measurands_html
from pdrgate.reports.words.headline import (
    HEADLINE_LENGTH,
    headline,
    left_out,
    scenario_fault,
    scenario_headline,
    scenario_in_lines,
)
from pdrgate.reports.words.measurands import change_told, measurand_rows, tolerance_told
from pdrgate.results.model import ChangeResult, Evidence, FunctionChange, PartChange, ScenarioResult
from pdrgate.results.verdict import Verdict

NAMES = st.text(min_size=1, max_size=300)
NUMBERS = st.floats(-0.99, 1e4, allow_nan=False)


def change(measurand: str = "PDR", verdict: Verdict = Verdict.REGRESSION, **further: object) -> ChangeResult:
    about = next(one for one in DESCRIPTIONS if one.name == measurand)
    values: dict[str, object] = {
        "measurand": measurand, "change": -0.1, "lower": -0.12, "upper": -0.08, "confidence": 0.975, "tolerance": 0.02,
        "baseline": 1e6, "candidate": 0.9e6, "unit": about.unit, "better": about.better, "verdict": verdict,
    }  # fmt: skip
    return ChangeResult(**(values | further))  # type: ignore[arg-type]


def found(*changes: ChangeResult, functions: tuple[FunctionChange, ...] = (), **further: object) -> ScenarioResult:
    one = compared(str(changes[0].verdict))
    assert one.comparison is not None
    comparison = dataclasses.replace(one.comparison, changes=changes, functions=functions)
    return changed(dataclasses.replace(one, comparison=comparison), **further)


@st.composite
def regressions(draw: st.DrawFn) -> ScenarioResult:
    judged = [one for one in DESCRIPTIONS if one.rule is Rule.PAIRS]
    picked = draw(st.lists(st.sampled_from(judged), min_size=1, max_size=4, unique_by=lambda one: one.name))
    changes = [
        change(
            one.name, change=draw(NUMBERS), lower=draw(NUMBERS), upper=draw(NUMBERS),
            baseline=draw(st.floats(1e-9, 1e15)), candidate=draw(st.floats(1e-9, 1e15)),
        )
        for one in picked
    ]  # fmt: skip
    functions = [
        FunctionChange(function=draw(NAMES), before=1.0, after=2.0, change=draw(st.floats(0.1, 1e6)), sure=True)
        for _ in range(draw(st.integers(0, 4)))
    ]
    return found(*changes, functions=tuple(functions), title=draw(NAMES), reason=draw(NAMES), test=draw(NAMES))


@given(regressions())
def test_a_regression_has_its_number_and_fits(one: ScenarioResult) -> None:
    told = scenario_headline(one)
    assert told.startswith("REGRESSION: ")
    assert len(told) <= HEADLINE_LENGTH and "\n" not in told
    assert re.search(r"\d %|\d%", told)
    assert headline(result(one, reason=one.reason)) == told


@given(st.one_of(regressions(), st.builds(
    lambda word, reason: dataclasses.replace(scenario(str(word)), reason=reason), st.sampled_from(Verdict), NAMES
)))  # fmt: skip
def test_robots_message_has_the_headline_first_and_once(one: ScenarioResult) -> None:
    first, *more = scenario_in_lines(one).split("\n")
    assert first == scenario_headline(one) and len(first) <= HEADLINE_LENGTH
    assert first not in more and not any(line in first for line in more)


@given(st.sampled_from(Verdict), NAMES, NAMES, st.lists(regressions(), max_size=4))
def test_no_headline_is_longer(word: Verdict, reason: str, title: str, others: list[ScenarioResult]) -> None:
    one = dataclasses.replace(scenario(str(word)), reason=reason, title=title)
    for run in (result(one, reason=reason), result(one, *others, reason=reason), result(reason=reason, verdict=word)):
        told = headline(run)
        assert len(told) <= HEADLINE_LENGTH and told.startswith(f"{run.verdict}:")


def test_brackets_give_way_to_what_is_to_be_done() -> None:
    times = (
        "205 times, at worst the guest's CPU was late by 139 of 251 ms; 195 times, at worst QEMU had no CPU for 203 ms"
    )
    reason = f"69 of 77 trials were disturbed, after up to 2 repeats each ({times}); free CPU 1 of all else"
    one = dataclasses.replace(scenario("DISTURBED"), reason=reason)
    told = scenario_headline(one)
    assert told == "DISTURBED: 69 of 77 trials were disturbed, after up to 2 repeats each; free CPU 1 of all else"
    assert left_out(told, reason) == [reason.rpartition("; ")[0]]


def test_of_several_the_worst_is_told_after_how_many_there_are() -> None:
    one = found(change(), reason="slower: numbers")
    other = dataclasses.replace(scenario("PASS"), reason="not slower", title="IPv4 routing")
    told = headline(result(one, other, reason=one.reason))
    assert told.startswith("REGRESSION: 1 of 2 scenarios got slower, IPv6 routing: slower: PDR 900 kpps against 1 Mpps")
    told = headline(result(one, one, reason=one.reason))
    assert told.startswith("REGRESSION: both scenarios got slower, IPv6 routing most: slower: PDR 900 kpps")


def test_what_somebody_else_said_of_the_whole_run_is_its_headline() -> None:
    assert headline(result(found(change()), reason="IPv6 routing on rack: slower; 3 of 6 came to no result")) == (
        "REGRESSION: IPv6 routing on rack: slower; 3 of 6 came to no result"
    )


def test_functions_are_told_where_there_is_room_and_the_first_alone_where_there_is_little() -> None:
    grown = [
        FunctionChange(function=name, before=0.0, after=each, change=each, sure=True)
        for name, each in (("hash_of_header", 822.0), ("a_function_with_a_name_that_is_rather_long", 700.0))
    ]
    cost = change("cost", change=0.3, lower=0.29, upper=0.31, baseline=4000.0, candidate=5200.0)
    both = scenario_headline(found(cost, functions=tuple(grown[:1])))
    assert both == (
        "REGRESSION: a packet costs 30.0 % more instructions (+29.0 to +31.0 %) on IPv6 routing, most of it in "
        "hash_of_header (+822)"
    )
    assert scenario_headline(found(cost, functions=tuple(grown))).endswith(
        "on IPv6 routing, most in hash_of_header (+822)"
    )


def test_what_is_told_is_not_left_out_and_all_else_is() -> None:
    reason = "a packet costs 8.3 % more instructions (+6.8 to +9.8 %); notice: one; 4 trials repeated (a; b)"
    told = "REGRESSION: a packet costs 8.3 % more instructions (+6.8 to +9.8 %) on NAT"
    assert left_out(told, reason) == ["notice: one", "4 trials repeated (a; b)"]
    assert left_out("REGRESSION: a packet costs 8.3 % more…", reason)[0].startswith("a packet costs 8.3 %")


@pytest.mark.parametrize(("saturation", "names"), [
    ({}, ["PDR (at the knee)"]),
    ({"change": -0.02, "lower": -0.03, "upper": -0.01}, ["PDR", "saturation throughput"]),
    ({"baseline": 2e6, "candidate": 1.8e6}, ["PDR", "saturation throughput"]),
    ({"verdict": Verdict.PASS}, ["PDR", "saturation throughput"]),
])  # fmt: skip
def test_pdr_and_saturation_throughput_are_one_row_where_they_agree(
    saturation: dict[str, object], names: list[str]
) -> None:
    changes = (change(), change("saturation throughput", **saturation))  # type: ignore[arg-type]
    assert agree_at_the_knee(changes) is (len(names) == 1)
    assert [row.name for row in measurand_rows(found(*changes)) if row.change] == names


def test_all_clauses_of_a_notice_stand_behind_what_the_verdict_rests_on() -> None:
    for also in ("another function is called more or less often as well", "4 other functions are called more often"):
        reason = f"notice: a is called twice for each packet; {also}; not slower: it costs as much"
        one = changed(scenario("PASS"), reason=reason)
        assert scenario_headline(one).startswith("PASS: not slower: it costs as much")


def test_of_what_memory_trials_count_no_share_is_told() -> None:
    """A packet that had none of it would have infinitely more."""
    parts = (PartChange(function="bpf:router", change=0.9986, baseline=0.0, candidate=0.9986),)
    misses = change(
        "last-level misses", change=0.9986, lower=0.9, upper=1.04, baseline=0.0, candidate=0.9986, parts=parts
    )  # fmt: skip
    (row,) = [row for row in measurand_rows(found(misses)) if row.name == "last-level misses"]
    told = "+1.0 (+0.9 to +1.0)"
    assert (row.change, row.where) == (told, "in bpf:router, tolerance 0.02 more")
    older = dataclasses.replace(misses, lower=0.9986, upper=0.9986)
    assert change_told(older) == "+1.0", "results of older versions have no interval of it"
    assert "99.9" not in scenario_headline(found(change(), misses))


@pytest.mark.parametrize(
    ("whole", "told", "sentence"),
    [
        ((11.6, 13.2), "+1.6", "each packet takes 1.6 more atomic instructions (11.6 -> 13.2), in f"),
        ((11.6, 13.31), "+1.7", "each packet takes 1.7 more atomic instructions (11.6 -> 13.3), in f"),
        ((11.6, 12.4), "+0.8, by function +1.6",
         "each packet takes 0.8 more atomic instructions (11.6 -> 12.4), +1.6 in f"),
        ((11.6, 11.4), "-0.2, by function +1.6",
         "each packet takes 0.2 fewer atomic instructions (11.6 -> 11.4), though +1.6 in f"),
    ],
)  # fmt: skip
def test_a_packets_numbers_are_said_first_and_those_of_functions_where_they_come_to_others(
    whole: tuple[float, float], told: str, sentence: str
) -> None:
    parts = (PartChange(function="f", change=1.6, baseline=0.0, candidate=1.6),)
    before, after = whole
    sure = 1.6 / before
    atomics = change(
        "atomics", change=sure, lower=sure, upper=sure, baseline=before, candidate=after, tolerance=0.05, parts=parts
    )
    (row,) = [row for row in measurand_rows(found(atomics)) if row.name == "atomics"]
    assert (row.baseline, row.number) == (f"{before:g}", f"{after:.4g}")
    assert row.change == told
    assert row.title == "atomics (per packet)"
    assert described("atomics").told(atomics) == sentence
    assert scenario_headline(found(atomics)).startswith(f"REGRESSION: {sentence}")


def test_functions_with_long_names_leave_room_for_a_packets_numbers() -> None:
    names = ("__udp_enqueue_schedule_skb", "udp_queue_rcv_one_skb")
    parts = tuple(
        PartChange(function=name, change=by, candidate=by) for name, by in zip(names, (4.0, 0.8), strict=True)
    )
    atomics = change("atomics", change=0.41, lower=0.4, upper=0.42, baseline=11.6, candidate=13.8, parts=parts)
    told = scenario_headline(found(atomics))
    assert told.startswith(
        "REGRESSION: each packet takes 2.2 more atomic instructions (11.6 -> 13.8), by function +4.8 (+4.6 to +4.9), "
        "most in __udp_enqueue_schedule_skb"
    )
    assert len(told) <= 160


def test_why_a_packet_is_slower_that_costs_as_much_is_said() -> None:
    """A reader at night: nothing got slower here, so why is it red?"""
    atomics, cost = change("atomics"), change("cost")
    assert scenario_fault(found(atomics, change("cost", verdict=Verdict.PASS))).endswith(
        " differ by here. An atomic instruction takes its line from all other CPUs, which is slow where several handle "
        "packets."
    )
    assert scenario_fault(found(atomics, cost)).endswith(" differ by here.")


def test_where_nothing_was_compared_it_says_so_and_what_to_do_next() -> None:
    why = "nothing was compared: PDR 18.36 kpps"
    for folder, end in (("results/20261127-023301", " results/20261127-023301"), (f"/{'long/' * 30}run", "")):
        reason = f"{why}; compare the next build with it by --baseline {folder}; saturation throughput 18.27 kpps"
        told = scenario_headline(dataclasses.replace(scenario("NO_BASELINE"), reason=reason))
        assert told.startswith(f"NO_BASELINE: {why}; compare the next build with it by --baseline{end}")
        assert folder in told or folder in " ".join(left_out(told, reason))


_PARTS = (PartChange(function="raw_spin_lock", change=200.0, baseline=0.0, candidate=200.0),)
_HIDDEN = Evidence(slower=0.1, faster=-0.1, pairs=6, deviation=0.05, resolves=0.08, needs=40)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (change("cost", verdict=Verdict.NO_BASELINE, evidence=_HIDDEN), "noise hides it, some 40 pairs would show it"),
        (change("cost", verdict=Verdict.NO_BASELINE), "what boots differ by is not known"),
        *((change(kind.about.name, verdict=Verdict.NO_BASELINE, parts=_PARTS), "it depends on when the CPUs meet")
          for kind in (InterprocessorInterrupts, Wakeups, LockWaits)),
    ],
)  # fmt: skip
def test_what_is_not_judged_says_why(one: ChangeResult, why: str) -> None:
    told = found(change("PDR"), one)
    (row,) = [row for row in measurand_rows(told) if row.name == one.measurand]
    assert (row.word, row.why) == ("not judged", why)
    assert why in measurands_html(told)
    assert why in run_markdown(result(told))
    screen = io.StringIO()
    show_verdict(result(told), Screen(screen, live=False))
    assert why in screen.getvalue()
    assert described(one.measurand).not_judged(dataclasses.replace(one, verdict=Verdict.PASS)) == ""


def test_a_tolerance_of_many_is_no_power_of_ten() -> None:
    waits = change("waiting for locks", baseline=0.0, tolerance=100.0, parts=_PARTS)
    assert tolerance_told(waits) == "100 more"
    assert tolerance_told(dataclasses.replace(waits, tolerance=0.756)) == "0.76 more"
