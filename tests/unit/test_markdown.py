"""What is pasted into a pull request: rendered by an independent reader of Markdown, and by an eye on its words."""

from __future__ import annotations

import dataclasses
import re
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from flat_values import changed
from hypothesis import given
from hypothesis import strategies as st
from made_results import result, scenario, written
from markdown_it import MarkdownIt

from pdrgate.cli import main
from pdrgate.reports.ci.markdown import comparison_markdown, run_markdown
from pdrgate.reports.markup.gfm import block, cut, markdown_text, table_markdown
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.reports.words.packet_way import way_part
from pdrgate.results.model import (
    BootResult,
    ChangeResult,
    ComparisonResult,
    CostResult,
    Evidence,
    FrameResult,
    FunctionChange,
    PartChange,
    RunResult,
    ScenarioResult,
    SideResult,
)
from pdrgate.results.verdict import Judgement, Verdict

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HOSTILE = [
    "<script>alert(1)</script>", "a | b || c", "`a` ``b`` |`", "line\n\n# head\r\n- point\u2028| x |", "x" * 300,
    "ядро-Ω-内核", "[a](javascript:x) ![b](c)", "*a* __b__ ~~c~~ $d$", "&lt;b&gt; &#60;i>", "\\", "\\|", "\u202eabc",
    "@everyone #1 http://x.example www.x.example", "", " ", "<!-- ", "- [ ] x", "\0\x1b[31m", "```",
]  # fmt: skip


def change(name: str, verdict: Verdict = Verdict.REGRESSION, **further: object) -> ChangeResult:
    values: dict[str, object] = {
        "measurand": name, "change": -0.05, "lower": -0.06, "upper": -0.04, "confidence": 0.975, "tolerance": 0.02,
        "baseline": 1e6, "candidate": 0.95e6, "unit": "packets/s", "better": "higher", "verdict": verdict,
        "evidence": Evidence(slower=12.0, faster=-20.0, pairs=4, deviation=0.004, resolves=0.009),
    }  # fmt: skip
    return ChangeResult(**(values | further))  # type: ignore[arg-type]


def functions(*names: str) -> tuple[FunctionChange, ...]:
    return tuple(FunctionChange(function=name, before=10.0, after=30.5, change=20.5, sure=True) for name in names)


def comparison(**further: object) -> ComparisonResult:
    values: dict[str, object] = {
        "baseline": "linux-a", "tolerance": 0.02, "change": -0.05, "lower": -0.06, "upper": -0.04, "confidence": 0.975,
        "pairs": 4, "changes": (change("PDR"),), "functions": functions("ip6_rcv"),
    }  # fmt: skip
    return ComparisonResult(**(values | further))  # type: ignore[arg-type]


def compared(**further: object) -> ScenarioResult:
    sides = (SideResult(side="baseline", build="linux-a"), SideResult(side="candidate", build="linux-b"))
    values: dict[str, object] = {"sides": sides, "comparison": comparison(), "measurands": (), "pdr": None}
    return changed(scenario("REGRESSION"), **(values | further))  # type: ignore[arg-type]


def regression(*scenarios: ScenarioResult) -> RunResult:
    return result(
        *(scenarios or (compared(),)),
        verdict=Verdict.REGRESSION,
        reason="slower by 5 %",
        command="./ci/gate --kernel 'b c'",
    )


def tags(markdown: str) -> list[str]:
    """What an independent reader makes of it: its kinds of tokens, in order."""
    return [child.type for token in READER.parse(markdown) for child in (token, *(token.children or ()))]


def cells(markdown: str) -> list[list[str]]:
    """The rows of all tables, as the reader has their text."""
    rows: list[list[str]] = []
    tokens = READER.parse(markdown)
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("td_open", "th_open"):
            rows[-1].append("".join(one.content for one in token.children or ()))
    return rows


# --- words ---


def test_a_regression_begins_with_its_verdict_and_has_all_that_a_reviewer_asks() -> None:
    told = run_markdown(regression())
    assert told.splitlines()[0] == "**REGRESSION:** slower by 5 %"
    head, row, functions_head, function, grounds_head, grounds = cells(told)
    assert "\n\n#### IPv6 routing\n\n" in told
    assert head == ["measurand", "base", "candidate", "change"]
    assert row == ["PDR", "1 Mpps", "950 kpps", "✗ REGRESSION<br>-5.0% (-6.0% to -4.0%)"]
    assert "In brackets: the interval of the change, 95 % for both comparisons together." in told
    assert grounds_head[3:] == ["evidence", "resolvable change"]
    assert (grounds[0], *grounds[2:]) == ("PDR", "97.5 %", "over 1000 : 1 worse", "0.9%")
    assert functions_head == ["function", "before", "after", "change"]
    assert function == ["ip6_rcv", "10.0", "30.5", "+20.5"]
    assert "`linux-b` against `linux-a`, 4 pairs of boots, tolerance 2 %." in told
    assert told.endswith("Again:\n\n```\n./ci/gate --kernel 'b c'\n```\n\n</details>\n")
    # What a reader sees without a click is short.
    assert len(re.sub(r"(?s)<details>.*?</details>", "", told)) < 700


@pytest.mark.parametrize(
    ("verdict", "slower", "faster", "says"),
    [
        (Verdict.PASS, -5.0, -6.0, "150 : 1 unchanged"),
        (Verdict.IMPROVEMENT, -9.0, 5.0, "150 : 1 better"),
        (Verdict.INCONCLUSIVE, 1.0, -3.0, "3 : 1 worse"),
    ],
)
def test_evidence_is_told_for_what_it_speaks_of(verdict: Verdict, slower: float, faster: float, says: str) -> None:
    evidence = Evidence(slower=slower, faster=faster, pairs=4, deviation=0.01, resolves=0.02)
    told = run_markdown(
        regression(compared(comparison=comparison(changes=(change("PDR", verdict, evidence=evidence),))))
    )
    assert cells(told)[-1][3] == says


def test_only_the_five_largest_sure_changes_of_functions_are_told() -> None:
    many = (*functions(*(f"f{number}" for number in range(7))), dataclasses.replace(functions("unsure")[0], sure=False))
    told = run_markdown(regression(compared(comparison=comparison(functions=many))))
    assert [row[0] for row in cells(told)[3:8]] == ["f0", "f1", "f2", "f3", "f4"]
    assert "the largest 5 of 7 changes" in told


def test_what_disturbed_is_told_and_a_flood_of_it_is_cut() -> None:
    failed = BootResult(side="candidate", pair=2, boot="x", kernel="k", failure="it did not come up")
    one = compared(
        interference="another process had the CPU", boots=(failed,), uncounted="no counter",
        comparison=comparison(accepted=False, why_not="the baseline drifts"),
        complaints=tuple(f"complaint {number}" for number in range(50)),
    )  # fmt: skip
    told = run_markdown(regression(one))
    points = [line for line in told.splitlines() if line.startswith("- ")]
    assert points[:3] == [
        "- The verdict does not rest on the change: the baseline drifts",
        "- Meanwhile another process had the CPU",
        "- Boot 2 of the candidate failed: it did not come up",
    ]
    assert (len(points), points[-1]) == (11, "- And 44 more, in summary.html")


def test_a_tolerance_of_its_own_is_told() -> None:
    cost = change("cost", tolerance=0.01, unit="instructions/packet", better="lower")
    told = run_markdown(regression(compared(comparison=comparison(changes=(change("PDR"), cost)))))
    assert "tolerance 2 % (cost 1 %)" in told


def test_of_several_scenarios_each_says_its_verdict() -> None:
    other = dataclasses.replace(scenario("PASS"), title="IPv4 routing", reason="not slower")
    told = run_markdown(regression(compared(), other))
    assert "#### IPv4 routing: ✓ PASS\n" in told and "#### IPv6 routing: ✗ REGRESSION\n" in told
    assert "(inlined functions count for their callers) (IPv6 routing)" in told


def test_without_a_baseline_the_values_are_told() -> None:
    head, row = cells(run_markdown(result(scenario())))
    assert head == ["measurand", "value", "95 % interval"]
    assert row == ["PDR", "1 Mpps", "990 kpps .. 1.01 Mpps"]


def test_a_run_that_came_to_nothing_is_told() -> None:
    told = run_markdown(result(finished=None))
    assert told.startswith(
        "**ERROR:** because\n\nThe testbed, a tool or what both builds share is at fault, not the change.\n\n"
    )
    assert "Run `r`, which did not come to its end" in told
    assert cells(run_markdown(result(scenario("ERROR", per_run=None)))) == []


def test_the_run_s_pages_are_linked_where_a_job_keeps_them() -> None:
    assert "](https://ci.example/7/artifact/)" in run_markdown(regression(), "https://ci.example/7/artifact/")


def test_the_way_of_a_packet_is_drawn_in_text_with_what_changed() -> None:
    def cost(forwards: float, hashes: float) -> CostResult:
        frames = [("net_rx_action", None, forwards + hashes), ("ip6_forward", 0, forwards), ("new_hash", 1, hashes)]
        return CostResult(instructions=forwards + hashes, batch=None, trials=1, functions=(), path=tuple(
            FrameResult(function=name, caller=caller, instructions=each, own=each, calls=1.0)
            for name, caller, each in frames if each
        ))  # fmt: skip

    sides = tuple(
        changed(SideResult(side=side, build=side), cost=found)
        for side, found in (("baseline", cost(1000.0, 0.0)), ("candidate", cost(1000.0, 800.0)))
    )
    told = run_markdown(regression(compared(sides=sides)))
    assert re.search(r"\nnet_rx_action +1000 +1800 +\+800  █{20}\n", told)
    assert re.search(r"\n  new_hash +0 +800 +\+800  █{20}\n", told)
    assert not way_part(compared()).brief


# --- names ---


@pytest.mark.parametrize("evil", HOSTILE)
def test_a_hostile_name_is_harmless_wherever_it_stands(evil: str) -> None:
    part = PartChange(function=evil, change=1.0, kinds={evil: 4.0}, fields={evil: evil}, writer=evil)
    one = compared(
        name=evil, title=evil, reason=evil, interference=evil or "x", complaints=(evil,), uncounted=evil or "x",
        sides=(SideResult(side="baseline", build=evil), SideResult(side="candidate", build=evil)),
        boots=(BootResult(side="candidate", pair=1, boot=evil, kernel=evil, failure=evil or "x"),),
        comparison=comparison(
            baseline=evil, accepted=False, why_not=evil, functions=functions(evil),
            changes=(change(evil, unit=evil, parts=(part,)),),
        ),
    )  # fmt: skip
    run = result(one, one, verdict=Verdict.REGRESSION, run=evil, reason=evil, profile=evil, pdrgate=evil, command=evil)
    told = run_markdown(run)
    structure = {tag for tag in tags(told) if tag.endswith(("_open", "_block", "image"))}
    assert structure <= {
        "paragraph_open", "strong_open", "table_open", "thead_open", "tbody_open", "tr_open", "th_open", "td_open",
        "bullet_list_open", "list_item_open", "heading_open", "html_block",
    }  # fmt: skip
    tokens = [child for token in READER.parse(told) for child in (token, *(token.children or ()))]
    assert {one.content for one in tokens if one.type == "html_inline"} <= {"<br>"}
    ours = re.compile(r"<details><summary>[A-Za-z ,]+</summary>|</details>")
    assert all(ours.fullmatch(one.content.strip()) for one in tokens if one.type == "html_block")
    assert [columns for columns, _ in groupby(len(row) for row in cells(told))] == [4, 6, 4, 6, 5]
    assert all(len(cell) <= 240 for row in cells(told) for cell in row)
    told.encode()


@given(st.text(max_size=40))
def test_any_text_is_a_text_and_any_code_is_code(told: str) -> None:
    line = " ".join(told.split())
    shown = table_markdown(Table("", (Column("a"), Column("b")), [[Cell(told), Cell(told, is_name=True)]]))
    assert not {"html_inline", "link_open", "em_open", "strong_open", "s_open", "image"} & set(
        tags(f"x {markdown_text(told)}")
    )
    (_, row) = cells(shown)
    assert len(row) == 2
    if line.isascii() and line.isprintable():
        assert row[0].replace("\u200b", "") == line
        assert row[1] == line or "\\" in line


def test_a_mention_is_broken_and_a_word_is_not() -> None:
    assert markdown_text("ask @torvalds about #1") == "ask @&#8203;torvalds about #&#8203;1"
    assert (
        markdown_text("rt_spin_lock, 6.1.0-56-rt_amd64 (+8.3 to +9.2 %)")
        == "rt_spin_lock, 6.1.0-56-rt_amd64 (+8.3 to +9.2 %)"
    )
    assert cut("x" * 300) == "x" * 99 + "…"
    assert block("a ``` b") == "````\na ``` b\n````"


# --- commands ---


def test_report_prints_what_the_runs_folder_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "run", compared())
    assert main(["report", str(folder)]) == 0
    assert f"{folder}/summary.md" in capsys.readouterr().out.splitlines()
    before = sorted(folder.rglob("*"))
    assert main(["report", str(folder), "--format", "markdown"]) == 0
    assert capsys.readouterr().out == (folder / "summary.md").read_text()
    assert sorted(folder.rglob("*")) == before


def test_a_comparison_of_files_has_the_same_table() -> None:
    judgement = Judgement(Verdict.REGRESSION, "slower")
    told = comparison_markdown(comparison(), judgement, "b/trials.jsonl")
    assert told.startswith(
        "**REGRESSION:** slower\n\n`b/trials.jsonl` against `linux-a`, 4 pairs of boots, tolerance 2 %."
    )
    assert cells(told)[0][1] == "base" and cells(told)[1][0] == "PDR"
    assert comparison_markdown(None, judgement, "b") == "**REGRESSION:** slower\n"
    refused = comparison_markdown(comparison(accepted=False, why_not="it drifts"), judgement, "b")
    assert "- The verdict does not rest on the change: it drifts\n" in refused


def test_why_there_are_no_numbers_is_not_folded() -> None:
    failed = changed(scenario("ERROR"), reason=f"{'boots failed ' * 12}; given UDP over IPv4, XDP_PASS is returned")
    run = result(failed, verdict=Verdict.ERROR, reason=failed.reason)
    above, _, _ = run_markdown(run).partition("<details>")
    assert "- Given UDP over IPv4, XDP" in above
    page = summary_page(run, {})
    assert '<details class="faint" open><summary>What else was seen' in page
    assert '<details class="faint"><summary>What else was seen' in summary_page(result(scenario()), {})
