"""The trend alarm from results to what a person reads: what is left out, which builds, which words, which exit."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
import shlex
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from flat_values import changed
from made_results import result, scenario
from markdown_it import MarkdownIt

from pdrgate.cli import main
from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.reports.pages.runs_page import runs_page
from pdrgate.reports.pages.trend_matrix import series_of_matrix, trend_matrix
from pdrgate.reports.pages.trend_page import trend_page
from pdrgate.reports.words.trend_lines import trend_lines, trend_markdown
from pdrgate.results.model import CostResult, FunctionResult, MeasurandResult, RunResult, ScenarioResult, SideResult
from pdrgate.results.verdict import Verdict
from pdrgate.trend import LEFT_OUT, Move, Point, Series, moves, series_of
from pdrgate.values.errors import DataError

DAY = 86400.0


def levels(*parts: tuple[int, float], seed: int = 1) -> list[float]:
    noise = random.Random(seed)
    return [level * math.exp(noise.gauss(0, 0.004)) for count, level in parts for _ in range(count)]


def measured(value: float, **named: str) -> ScenarioResult:
    """One build's scenario, whose PDR and cost move together."""
    one = scenario("PASS", **named)
    pdr = dataclasses.replace(one.findings.measurands[0], value=value, lower=0.99 * value, upper=1.01 * value)
    cost = MeasurandResult(name="cost", unit="instructions/packet", better="lower", value=5e9 / value)
    counted = CostResult(instructions=cost.value, batch=None, trials=3, functions=tuple(
        FunctionResult(name=name, instructions=part, calls=1.0, deviation=0.1)
        for name, part in (("ip6_forward", 4000.0), ("slow<path>", cost.value - 4000))
    ))  # fmt: skip
    return changed(one, measurands=(pdr, cost), pdr=None, cost=counted)


def runs(values: list[float], **named: str) -> list[RunResult]:
    return [
        result(
            measured(value, kernel=f"6.1.{number}", kernel_version="unknown", **named),
            started=number * DAY,
            run=f"r{number}",
            command=f"./ci/gate --kernel 'linux 6.1.{number}.deb' --against old",
        )
        for number, value in enumerate(values)
    ]


def written(folder: Path, found: list[RunResult]) -> Path:
    for one in found:
        (folder / one.run).mkdir(parents=True)
        write_result(folder / one.run / RESULT_FILE, one)
    return folder


def told(found: list[RunResult], **options: int | float) -> tuple[Move, ...]:
    return moves(series_of(found), **options)  # type: ignore[arg-type]


STEP = levels((20, 1e6), (8, 0.95e6))


def test_a_step_names_the_builds_around_it_and_what_to_type() -> None:
    pdr, cost = sorted(told(runs(STEP)), key=lambda move: move.series.measurand)
    assert (pdr.series.measurand, pdr.worse, cost.worse) == ("PDR", True, True)
    assert (pdr.before.build, pdr.after.build, pdr.builds) == ("6.1.19", "6.1.20", ("6.1.19", "6.1.20"))
    assert pdr.sentence == "PDR went down by 4.8% (-5.2% to -4.4%) between 6.1.19 and 6.1.20"
    assert cost.sentence.startswith("cost went up by 5.")
    assert shlex.split(pdr.command) == ["./ci/gate", "--kernel", "linux 6.1.20.deb", "--against", "linux 6.1.19.deb"]


def test_what_got_better_is_told_as_that() -> None:
    assert [move.worse for move in told(runs(levels((20, 1e6), (8, 1.05e6))))] == [False, False]


@pytest.mark.parametrize("verdict", sorted(LEFT_OUT))
def test_runs_whose_numbers_mean_nothing_are_left_out(verdict: Verdict) -> None:
    found = runs(levels((30, 1e6)))
    for number in range(15, 22):
        (one,) = found[number].scenarios
        slow = measured(0.8e6, kernel=f"6.1.{number}", kernel_version="unknown")
        found[number] = dataclasses.replace(found[number], scenarios=(dataclasses.replace(slow, verdict=verdict),))
        assert one.verdict is Verdict.PASS
    assert told(found) == ()


def test_a_range_names_the_number_of_builds_within_it_but_not_those_left_out() -> None:
    series = series_of(runs(STEP))[0]
    points = list(series.points)
    points.insert(
        20, dataclasses.replace(points[0], verdict=Verdict.UNSTABLE, value=1.0, build="broken", time=19.5 * DAY)
    )
    (move,) = moves([dataclasses.replace(series, points=tuple(points))])
    assert move.builds == ("6.1.19", "6.1.20")
    wide = dataclasses.replace(move, between=(points[3], points[4]))
    assert wide.sentence.endswith("between 6.1.19 and 6.1.20, 2 builds between them")
    assert "docs/bisect.md" in list(trend_lines([wide]))[-1]


def test_a_move_on_one_build_is_the_testbeds() -> None:
    found = [
        dataclasses.replace(one, scenarios=(measured(value),)) for one, value in zip(runs(STEP), STEP, strict=True)
    ]
    move = told(found)[0]
    assert move.command == ""
    assert move.sentence.endswith("on one and the same build, 6.18.44 #1 SMP: the testbed moved, not the build")


def test_what_must_be_equal_splits_a_series_and_what_a_build_chooses_does_not() -> None:
    before, after = runs(levels((20, 1e6))), runs(levels((8, 0.95e6)), cpu_model="another CPU")
    later = [dataclasses.replace(one, started=one.started + 30 * DAY) for one in after]
    assert told([*before, *later]) == ()
    assert len(series_of([*before, *later])) == 4
    chosen = runs(levels((8, 0.95e6)), mitigations="others", config="another")
    later = [dataclasses.replace(one, started=one.started + 30 * DAY) for one in chosen]
    assert len(told([*before, *later])) == 2


def test_of_two_builds_the_candidate_is_the_one() -> None:
    sides = (SideResult(side="baseline", build="old"), SideResult(side="candidate", build="new"))
    one = changed(measured(1e6), sides=sides)
    assert {point.build for series in series_of([result(one)]) for point in series.points} == {"new"}


def test_a_result_that_tells_the_pdr_only_beside_its_measurands_has_it_in_a_series() -> None:
    one = changed(scenario("PASS"), measurands=())
    (series,) = series_of([result(one)])
    assert (series.measurand, series.points[0].value) == ("PDR", 1e6)


def test_only_what_moved_lately_is_told_when_asked() -> None:
    found = runs(levels((20, 1e6), (20, 0.95e6), (10, 1e6)))
    assert len(told(found)) == 4
    assert {move.after.build for move in told(found, last=15)} == {"6.1.40"}
    assert told(found, last=5) == ()


def test_times_decide_the_order() -> None:
    found = runs(STEP)
    random.Random(3).shuffle(found)
    assert told(found) == told(runs(STEP))


def test_points_that_are_no_numbers_are_left_out() -> None:
    points = tuple(
        Point(build=str(n), time=float(n), value=(0.0, math.nan)[n % 2] if n % 5 == 0 else 1e6, verdict=Verdict.PASS)
        for n in range(40)
    )
    series = Series(
        scenario="s", title="S", testbed="t", fingerprint="f", measurand="PDR", unit="", better="higher", points=points
    )
    assert moves([series]) == ()


# --- the command ---


def test_the_command_tells_what_got_worse_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "results", runs(STEP))
    assert main(["trend", str(folder), str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line[:11] for line in lines[::3]] == ["WORSE: PDR ", "WORSE: cost"]
    assert lines[1].startswith("  IPv6 routing on local-netns (") and lines[1].endswith("20 runs before, 8 since")
    assert lines[2] == "  ./ci/gate --kernel 'linux 6.1.20.deb' --against 'linux 6.1.19.deb'"


def test_a_history_tells_the_same_as_the_folders_that_it_was_made_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path / "results", runs(levels((20, 1e6), (20, 0.9e6))))
    history = str(tmp_path / "runs.db")
    assert main(["history", "import", str(folder), "--history", history]) == 0
    told = []
    for source in ([str(folder)], ["--history", history]):
        capsys.readouterr()
        assert main(["trend", *source, "--format", "json"]) == 1
        record = json.loads(capsys.readouterr().out)
        told.append([{name: move[name] for name in move if name != "command"} for move in record["moves"]])
    assert told[0] == told[1] != []
    (cost,) = (move for move in told[0] if move["measurand"] == "cost")
    (function,) = cost["functions"]
    assert (function["function"], round(function["after"] - function["before"] - function["change"], 6)) == (
        "slow<path>",
        0,
    )
    assert f", most of it in slow<path> ({function['change']:+.0f})" in cost["sentence"]
    assert main(["history", "pin", "r3", "--name", "<v6>", "--history", history]) == 0
    for form in ("text", "markdown"):
        assert main(["trend", "--history", history, "--format", form, "--page", str(tmp_path / "trend.html")]) == 1
        assert "most of it in slow" in capsys.readouterr().out
    page = Page((tmp_path / "trend.html").read_text())
    assert page.tags.count("circle") == 2 and "ring: a pinned baseline" in page.text
    assert page.text.count("6.1.3, 1970-01-04: ") == page.text.count("PASS; baseline <v6>") == 2


@pytest.mark.parametrize("source", [[], [".", "--history", "runs.db"]])
def test_one_source_is_named(source: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trend", *source]) == 64
    assert "name folders of runs, or a history" in capsys.readouterr().err


def test_the_command_is_silent_where_nothing_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "results", runs(levels((30, 1e6))))
    for form in ("text", "markdown"):
        assert main(["trend", str(folder), "--format", form]) == 0
        assert capsys.readouterr() == ("", "")


def test_better_alone_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "results", runs(levels((20, 1e6), (8, 1.05e6))))
    assert main(["trend", str(folder), "--last", "10"]) == 0
    assert capsys.readouterr().out.startswith("BETTER: ")


def test_json_has_both_ends_and_how_much_was_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "results", runs(STEP))
    assert main(["trend", str(folder), "--format", "json", "--least", "2%"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["series"], record["points"], record["left_out"], len(record["moves"])) == (2, 56, 0, 2)
    one = record["moves"][0]
    assert (one["before"]["build"], one["after"]["build"], one["worse"]) == ("6.1.19", "6.1.20", True)
    assert one["lower"] < one["change"] < one["upper"] < 0


@pytest.mark.parametrize("evil", ["<script>x</script>", "a | b", "`x`", "a\n# b", "x" * 300, "\u202eядро", "@all"])
def test_a_hostile_build_is_harmless(evil: str) -> None:
    (move, *_) = told(runs(STEP))
    series = dataclasses.replace(move.series, title=evil, testbed=evil, measurand=evil)
    ends = {name: dataclasses.replace(getattr(move, name), build=evil + name) for name in ("before", "after")}
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(
        trend_markdown([dataclasses.replace(move, series=series, **ends)])
    )  # fmt: skip
    kinds = {one.type for token in tokens for one in (token, *(token.children or ()))}
    assert not {"html_block", "html_inline", "heading_open", "link_open", "em_open"} & kinds
    assert sum(token.type == "td_open" for token in tokens) == 7


def test_no_result_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trend", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"pdrgate: there is no result in {tmp_path}; name a folder of runs\n"


# --- the page ---


class Page(HTMLParser):
    """Tags, attributes and text; every tag that is not void is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("meta", "br", "input", "wbr"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self._open):
            self.text += data


def page_of(found: list[RunResult]) -> Page:
    series = series_of(found)
    return Page(trend_page(series, moves(series), len(found)))


def test_the_page_draws_each_series_with_its_points_and_tells_what_moved_in_words() -> None:
    page = page_of(runs(STEP))
    assert page.text.count("PDR went down by 4.8% (-5.2% to -4.4%) between 6.1.19 and 6.1.20") == 1
    assert "1 scenario got slower (2 measurands)" in page.text and "▼ -4.8%" in page.text
    drawn = [value for name, value in page.attributes if name == "href" and value == "#PASS"]
    assert len(drawn) == 2 * len(STEP) + 1  # and one in the legend
    told = [value for name, value in page.attributes if name == "aria-label"]
    assert [one.split(",")[0] for one in told] == ["PDR of 28 runs", "cost of 28 runs"]
    assert all("between 6.1.19 and 6.1.20" in one for one in told)


def test_the_page_needs_nothing_else() -> None:
    page = page_of(runs(STEP))
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert page.tags.count("script") == 1  # zooms, where it may
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert all(value.startswith("#") for name, value in page.attributes if name in ("href", "src"))


def test_each_verdict_has_a_shape_of_its_own() -> None:
    found = [
        dataclasses.replace(one, scenarios=(dataclasses.replace(one.scenarios[0], verdict=verdict),))
        for one, verdict in zip(runs(levels((len(Verdict), 1e6))), Verdict, strict=True)
    ]
    page = page_of(found)
    used = {value for name, value in page.attributes if name == "href"}
    assert used == {f"#{verdict}" for verdict in Verdict}
    shapes = [value for name, value in page.attributes if name == "d" and not value.startswith("M8")][: len(Verdict)]
    classes = [value for name, value in page.attributes if name == "class" and value.startswith("mark")]
    # PASS and NO_BASELINE are a full disc and an empty one.
    assert len(set(zip(shapes, classes, strict=True))) == len(Verdict)


def test_points_stay_within_their_chart_whatever_they_are() -> None:
    found = runs([*levels((10, 1e6)), 1.0, 1e12, *levels((10, 1e6))])
    page = page_of(found)
    places = [value for name, value in page.attributes if name == "transform" and "scale" in value]
    assert len(places) == 2 * len(found)
    for place in places:
        x, y = map(float, place.removeprefix("translate(").partition(")")[0].split())
        assert 0 <= x <= 480 and 0 <= y <= 190


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_short_history_has_a_page(count: int) -> None:
    assert "No level moved" in page_of(runs(levels((count, 1e6)))).text


@pytest.mark.parametrize(
    ("count", "headline"), [(1, "The newest run is a REGRESSION"), (2, "The newest 2 runs are a REGRESSION")]
)
def test_a_page_whose_newest_runs_failed_does_not_say_that_nothing_got_worse(count: int, headline: str) -> None:
    found = runs(levels((10, 1e6)))
    for one in range(count):
        scenario = dataclasses.replace(found[-1 - one].scenarios[0], verdict=Verdict.REGRESSION)
        found[-1 - one] = dataclasses.replace(found[-1 - one], scenarios=(scenario,))
    text = page_of(found).text
    assert f"{headline}; no level moved" in text and "got slower" not in text


def test_a_regression_at_the_end_of_a_series_that_another_one_followed_is_not_the_newest_run() -> None:
    found = runs(levels((10, 1e6)))
    failed = dataclasses.replace(found[4].scenarios[0], verdict=Verdict.REGRESSION)
    found[4] = dataclasses.replace(found[4], scenarios=(failed,))
    for number in range(5):
        scenario = found[number].scenarios[0]
        found[number] = dataclasses.replace(found[number], scenarios=(changed(scenario, name="as it was set up then"),))
    text = page_of(found).text
    assert "The newest run is" not in text and "No level moved" in text


def test_nothing_in_a_history_becomes_html() -> None:
    evil = "<script>alert('x')</script>\" onload=\"'&amp;"
    found = [
        dataclasses.replace(
            one,
            run=evil,
            command=f"./ci/gate --kernel {shlex.quote(evil)}",
            scenarios=(changed(one.scenarios[0], title=evil, sides=(
                SideResult(side="candidate", build=evil + str(number)),)),),
        )
        for number, one in enumerate(runs(STEP, testbed=evil))
    ]  # fmt: skip
    page = page_of(found)
    assert page.tags.count("script") == 1
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert page.text.count(evil) > 5


def test_builds_are_named_below_a_chart_without_what_all_have_in_common() -> None:
    found = [
        dataclasses.replace(one, scenarios=(changed(one.scenarios[0], sides=(
            SideResult(side="candidate", build=f"linux-image-6.1.{number}"),)),),)
        for number, one in enumerate(runs(STEP))
    ]  # fmt: skip
    page = trend_page(series_of(found), (), len(found))
    assert page.count('class="build"') == 2 * 6 and ">6.1.27</text>" in page


def test_the_level_of_a_baseline_is_drawn() -> None:
    found = runs(STEP)
    assert 'class="level"' not in trend_page(series_of(found), (), 1)
    first = dataclasses.replace(found[0].scenarios[0], verdict=Verdict.NO_BASELINE)
    found[0] = dataclasses.replace(found[0], scenarios=(first,))
    assert trend_page(series_of(found), (), 1).count('class="level"') == 2
    pinned = [one for one in series_of(runs(STEP)) if one.measurand == "PDR"]
    points = tuple(dataclasses.replace(point, digest=point.build) for point in pinned[0].points)
    page = trend_page([dataclasses.replace(pinned[0], points=points)], (), 1, {points[3].build: "release"})
    assert f"baseline {points[3].build}, " in page and 'class="level"' in page


def test_an_acknowledged_alarm_is_silent_and_still_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, page = written(tmp_path / "results", runs(STEP)), tmp_path / "trend.html"
    seen = tmp_path / "seen"
    command = ["trend", str(folder), "--acknowledged", str(seen), "--page", str(page)]
    seen.write_text("6.1.20: cost  # the new allocator\n\n# nothing else\n")
    assert main(command) == 1
    told = capsys.readouterr().out
    assert "PDR went down" in told and "cost went up" not in told
    assert "1 scenario got slower (1 measurand)" in page.read_text()
    seen.write_text("6.1.20\n")
    assert main(command) == 0
    assert capsys.readouterr().out == ""
    drawn = page.read_text()
    assert "No level moved but those acknowledged" in drawn and "2 acknowledged" in drawn
    assert drawn.count('class="band quiet"') == 2 and "WORSE" not in drawn
    seen.write_text("6.1.19\n")
    assert main(command) == 1
    capsys.readouterr()
    assert main(["trend", str(folder), "--acknowledged", str(tmp_path / "none")]) == 2
    assert "name a file with a build on each line" in capsys.readouterr().err


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "results", runs(levels((30, 1e6))))
    assert main(["trend", str(folder), "--page", str(tmp_path / "trend.html")]) == 0
    assert capsys.readouterr().out == ""
    assert "No level moved" in (tmp_path / "trend.html").read_text()


# --- The matrix ---


def made(title: str, values: Sequence[float], measurand: str = "cost", **changes: Any) -> Series:
    points = tuple(
        Point(build=f"linux-7.{number}", time=86400.0 * number, value=value, verdict=Verdict.PASS, run=f"r{number}")
        for number, value in enumerate(values)
    )
    return Series(
        scenario=title.lower(), title=title, testbed="vm", fingerprint="f", measurand=measurand,
        unit="instructions/packet", better="lower", points=changes.get("points", points),
    )  # fmt: skip


def test_matrix_has_a_row_for_each_path_the_worst_first_and_a_cell_for_each_run() -> None:
    all_series = [
        made("NAT", (1000, 1000, 1001)),
        made("A Bridge", (1000, 1030, 1060)),
        made("WireGuard", (1000, 990, 980)),
    ]
    matrix = trend_matrix(all_series, {("nat", "vm", "f"): "#path-2"})
    assert matrix is not None
    rows = [row for _, own in matrix.groups for row in own]
    assert [(row.name, row.latest, row.link) for row in rows] == [
        ("A Bridge", "+6.0%", ""), ("NAT", "+0.1%", "#path-2"), ("WireGuard", "-2.0%", "")
    ]  # fmt: skip
    assert [[cell.tone for cell in row.cells] for row in rows] == [
        ["same", "worse-3", "worse-4"], ["same", "same", "same"], ["same", "better-2", "better-3"]
    ]  # fmt: skip
    assert rows[0].cells[2].title == "linux-7.2, 1970-01-03: 1060; +6.0%; +2.9% at once"


def test_matrix_marks_regressions_and_what_counts_for_nothing() -> None:
    nat = made("NAT", (1000, 1030, 500))
    verdicts = (Verdict.PASS, Verdict.REGRESSION, Verdict.DISTURBED)
    points = tuple(dataclasses.replace(one, verdict=verdict) for one, verdict in zip(nat.points, verdicts, strict=True))
    matrix = trend_matrix([dataclasses.replace(nat, points=points), made("A Bridge", (1000,))], {})
    assert matrix is not None
    rows = {row.name: [cell.tone for cell in row.cells] for _, own in matrix.groups for row in own}
    assert rows == {"NAT": ["same", "worse-3 red", "out"], "A Bridge": ["same", "", ""]}


def test_matrix_is_of_the_cost_where_a_path_has_several_measurands() -> None:
    both = [made("NAT", (9, 9), "calls"), made("NAT", (1000, 1100)), made("A Bridge", (5, 5), "calls")]
    assert [one.measurand for one in series_of_matrix(both)] == ["cost", "calls"]


def test_one_path_or_one_run_has_no_matrix() -> None:
    assert trend_matrix([made("NAT", (1, 2, 3))], {}) is None
    assert trend_matrix([made("NAT", (1,)), made("A Bridge", (1,))], {}) is None


def test_page_of_many_paths_draws_what_the_matrix_shows_and_what_moved() -> None:
    paths = [made(f"Path {number}", (1000.0, 1000.0)) for number in range(20)]
    calls = [made(f"Path {number}", (10.0, 10.0), "calls") for number in range(20)]
    page = trend_page([*paths, *calls], (), 2)
    assert (page.count("<figure>"), "of which 20 are drawn" in page) == (20, True)
    links = set(re.findall(r'href="(#path-\d+)"', page))
    assert len(links) == 20
    assert all(f'id="{link[1:]}"' in page for link in links)


def test_matrix_groups_paths_by_what_they_are_set_up_on_the_worst_group_first() -> None:
    named = [("ipv4-routing-1cpu", "Many Flows", 1001), ("ip-routing-set_up_1-1cpu", "NAT", 1100), ("own", "Mine", 990)]
    found = [dataclasses.replace(made(title, (1000, last)), scenario=name) for name, title, last in named]
    matrix = trend_matrix(found, {})
    assert matrix is not None
    assert [[row.name for row in rows] for _, rows in matrix.groups] == [["NAT"], ["Many Flows"], ["Mine"]]
    assert [name for name, _ in matrix.groups][2] == "Others"


def test_cell_names_the_functions_of_what_changed_at_once_and_its_run_has_an_address() -> None:
    found = [made("NAT", (1000, 1000, 1030)), made("A Bridge", (1000, 1000, 1000))]
    asked: list[tuple[float, float]] = []

    def functions(series: Series, before: Point, after: Point) -> str:
        asked.append((before.value, after.value))
        return "<fib> +30"

    first = found[0].points[0]
    page = trend_page(found, (), 3, addresses={(first.time, first.run): "runs/a b"}, functions=functions)
    assert asked == [(1000, 1030)]
    assert "&lt;fib&gt; +30" in page and 'href="runs/a%20b/summary.html"' in page


def test_two_runs_have_a_table_with_a_row_for_each_path_and_a_column_for_each_measurand() -> None:
    found = [made("NAT", (1, 1000, 1030)), made("NAT", (1, 9, 9), "calls"), made("A Bridge", (1, 1000, 900))]
    page = runs_page(found, {}, lambda series, before, after: "<fib> +30")
    assert re.findall(r'<th scope="row">(.*?)</th>', page) == ["NAT", "A Bridge"]
    assert re.findall(r'<td class="number (\S+)" [^>]*>(.*?)</td>', page) == [
        ("worse-3", "+3.0%"), ("same", "+0.0%"), ("better-4", "-10.0%")  # no calls of A Bridge
    ]  # fmt: skip
    assert "cost: 1000 instructions/packet, then 1030 instructions/packet" in page
    assert page.count("&lt;fib&gt; +30") == 2


def test_one_run_has_no_table_of_two() -> None:
    with pytest.raises(DataError, match="there are not two; name the folders of both"):
        runs_page([made("NAT", (1000,))], {}, lambda *_: "")


def test_the_command_writes_the_page_of_two_runs_with_links_to_them(tmp_path: Path) -> None:
    written(tmp_path / "runs", runs([1e6, 0.95e6]))
    table = tmp_path / "pages" / "two.html"
    table.parent.mkdir()
    assert main(["trend", str(tmp_path / "runs"), "--table", str(table)]) == 0
    page = table.read_text()
    assert 'href="../runs/r0/summary.html"' in page and 'href="../runs/r1/summary.html"' in page
    assert "slow&lt;path&gt; +" in page
