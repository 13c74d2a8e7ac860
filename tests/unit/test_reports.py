"""Reports of stored results: whole and broken."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from causes import because
from flat_values import changed, flat_side
from html_fragments import fragments
from made_results import pdr, result, scenario, trial, written
from simulated_sut import RealisticCurve, SimulatedSut

from pdrgate.cli import main
from pdrgate.history.results import RESULT_FILE, read_result, write_result
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.junit import junit, retold
from pdrgate.reports.pages.icicle import icicle
from pdrgate.reports.pages.scenario_pictures import Picture, pictures, stem
from pdrgate.reports.pages.summary import stack_files, summary_page
from pdrgate.reports.pages.trial_chart import trial_chart
from pdrgate.reports.whole_runs.remake import UnmadeReport, remake
from pdrgate.reports.words.headline import fault_in_words, scenario_fault, scenario_headline, scenario_in_lines
from pdrgate.reports.words.measurands import MeasurandLine
from pdrgate.reports.words.packet_way import Way, callers_of, folded_stacks, tree_of
from pdrgate.results.merging import in_common
from pdrgate.results.model import (
    BootResult,
    ChangeResult,
    ComparisonResult,
    CostResult,
    FrameResult,
    FunctionChange,
    MeasurandResult,
    RunResult,
    ScenarioResult,
    SideResult,
)
from pdrgate.results.verdict import Verdict
from pdrgate.stability import assess
from pdrgate.values.errors import DataError

STORED_RUNS = Path(__file__).parents[1] / "data" / "stored_runs"
EVIL = "<script>alert('x')</script>\" onload=\"'&amp;"
SATURATION = MeasurandResult(
    name="saturation throughput", unit="packets/s", better="higher", value=0.9e6, lower=0.89e6, upper=0.91e6,
    samples=(0.9e6,),
)  # fmt: skip


def change(measurand: str, verdict: Verdict, **further: object) -> ChangeResult:
    return ChangeResult(
        measurand=measurand, change=-0.1, lower=-0.12, upper=-0.08, confidence=0.975, tolerance=0.02, baseline=1e6,
        candidate=0.9e6, unit="packets/s", better="higher", verdict=verdict, **further,
    )  # type: ignore[arg-type]  # fmt: skip


def compared(**further: object) -> ScenarioResult:
    """Two builds of which the candidate is slower."""
    curve = assess(SimulatedSut(RealisticCurve(1e6), seed=3).repeat((7e5, 9e5, 1e6, 1.1e6, 1.2e6), 1.0, 3)).result()
    sides = (
        flat_side(side="baseline", build="linux-a", measurands=(pdr(), SATURATION), assessment=curve),
        SideResult(side="candidate", build="linux-b"),
    )
    comparison = ComparisonResult(
        baseline="linux-a", tolerance=0.02, change=-0.1, lower=-0.12, upper=-0.08, confidence=0.975, pairs=3,
        changes=(change("PDR", Verdict.REGRESSION), change("saturation throughput", Verdict.INCONCLUSIVE)),
    )  # fmt: skip
    return changed(
        scenario("REGRESSION"), measurands=(SATURATION, pdr()), assessment=curve, sides=sides, comparison=comparison,
        **further,
    )  # type: ignore[arg-type]  # fmt: skip


class Page(HTMLParser):
    """What a page has: its tags, its attributes, its text; every tag that is not void is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in ("meta", "img", "link", "br", "wbr"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data


# --- stored runs ---


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("one-build", ["load-loss", "rates", "search"]),
        ("builds-compared", ["pairs", "candidate-load-loss", "candidate-rates"]),
    ],
)
def test_the_reports_of_a_stored_run_are_made_again(
    name: str, made: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(STORED_RUNS / name, tmp_path / name)
    assert main(["report", str(folder)]) == 0
    told = capsys.readouterr().out.splitlines()
    begin = folder / "plots" / "ipv6-routing-1-cpu-buffer-4096-packets-64-byte-frames"
    files = [f"{begin}-{end}.png" for end in made]
    files += [f"{folder}/{file}" for file in ("summary.html", "summary.md", "xunit.xml")]
    assert [line for line in told if line.startswith(str(folder))] == files
    assert all(Path(file).stat().st_size > 100 for file in files)
    assert told[-1] == (
        f"log.html and report.html are not made: they are Robot's, of output.xml, and there is none in {folder}"
    )
    assert not list(folder.rglob("*.part"))


# --- a run's reports made again ---


def test_robots_own_are_made_again_of_its_output(tmp_path: Path) -> None:
    import robot

    suite = tmp_path / "a.robot"
    suite.write_text("*** Test Cases ***\nOne\n    Fail    REGRESSION: slower\n")
    folder = written(tmp_path / "run", scenario())
    robot.run(str(suite), outputdir=str(folder), log=None, report=None, console="none", stdout=None)
    made = [path.name for path in remake(folder) if isinstance(path, Path)]
    assert made == ["summary.html", "summary.md", "log.html", "report.html", "xunit.xml"]
    (failure,) = ElementTree.parse(folder / "xunit.xml").iter("failure")
    assert failure.get("message") == "REGRESSION: slower"
    pages = [(folder / name).read_text() for name in ("log.html", "report.html")]
    assert [page.count("@media (max-width: 50em)") for page in pages] == [1, 1], "readable on a telephone"


def test_a_torn_output_is_told_and_the_rest_is_made(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", scenario())
    (folder / "output.xml").write_text("<robot><suite>")
    *files, last = remake(folder)
    assert isinstance(last, UnmadeReport)
    assert last.sentence.startswith("log.html, report.html and xunit.xml are not made again: ")
    assert "\n" not in last.sentence
    assert [path.name for path in files if isinstance(path, Path)] == ["summary.html", "summary.md"]


def test_trials_that_cannot_be_read_cost_the_search_only(tmp_path: Path) -> None:
    folder = shutil.copytree(STORED_RUNS / "one-build", tmp_path / "run")
    (folder / "trials.jsonl").write_text("no JSON\n")
    told, *made = remake(folder)
    assert isinstance(told, UnmadeReport) and told.sentence.startswith("trials are not drawn: ")
    assert (folder / "summary.html") in made
    assert not (folder / "plots" / "ipv6-routing-1cpu-4096-64B-search.png").exists()


@pytest.mark.parametrize("missing", [True, False])
def test_what_is_no_run_is_one_line(missing: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    if not missing:
        folder.mkdir()
    assert main(["report", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pdrgate: ") and str(folder) in line and "; name " in line


def test_a_result_that_contradicts_itself_is_one_line(tmp_path: Path) -> None:
    good = compared()
    assert good.findings.assessment is not None
    saturation = dataclasses.replace(good.findings.assessment.saturation, potential_index=99)
    bad = changed(good, assessment=dataclasses.replace(good.findings.assessment, saturation=saturation))
    folder = written(tmp_path / "run", bad)
    with pytest.raises(DataError, match="contradicts itself and cannot be drawn"):
        list(remake(folder))


def test_help_says_what_is_not_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--help"]) == 0
    assert "allure-results" in capsys.readouterr().out


# --- pictures and fragments ---


def test_both_builds_are_drawn_and_told() -> None:
    drawn = list(pictures(compared()))
    names = [picture.name.removeprefix("ipv6-routing-") for picture in drawn]
    # A run shows each in its log and on its page, and draws it once.
    assert next(pictures(compared())).png is drawn[0].png
    main = [f"{side}-{name}" for side in ("baseline", "candidate") for name in ("load-loss", "rates")]
    assert names == [*main, "baseline-repeats", "candidate-repeats"]
    text = " ".join(Page(fragment).text for fragment in fragments(compared()))
    assert "Baseline: STABLE" in text and "Candidate: STABLE" in text
    assert "saturation throughput" in text


def test_the_page_draws_nothing_again_that_the_log_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of boots and functions too, and from what was stored: drawing takes seconds."""
    changed = FunctionChange(function="ip6_rcv", before=5.0, after=9.0, change=4.0, sure=True)
    boots = tuple(
        BootResult(side=side, pair=pair, boot=f"{side}{pair}", kernel="6.1", values={"PDR": value + pair})
        for pair in (1, 2)
        for side, value in (("baseline", 1e6), ("candidate", 0.9e6))
    )  # fmt: skip
    found = compared(title=f"drawn once, {tmp_path.name}", boots=boots)
    assert found.comparison is not None
    found = dataclasses.replace(found, comparison=dataclasses.replace(found.comparison, functions=(changed,)))
    first = list(pictures(found))
    assert {picture.name.rpartition("-")[2] for picture in first} >= {"pairs", "functions", "rates"}
    (stored,) = read_result(written(tmp_path / "run", found)).scenarios
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: pytest.fail("drawn again"))
    assert list(pictures(stored)) == first


def test_pictures_of_scenarios_of_one_name_do_not_collide() -> None:
    one, other = scenario(), dataclasses.replace(scenario(), title="NAT")
    found = [stem(one), stem(one, [one]), stem(one, [one, other, one])]
    assert found == ["ipv6-routing", "ipv6-routing-2", "ipv6-routing-3"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", ".hidden", "a b\0c", EVIL])
def test_a_name_is_no_path(name: str) -> None:
    found = stem(dataclasses.replace(scenario(), title=name))
    assert Path(found).name == found and not found.startswith(".") and "\0" not in found


def test_only_the_scenarios_own_search_is_drawn() -> None:
    folder = STORED_RUNS / "one-build"
    (found,) = read_result(folder).scenarios
    trials = [Trial.from_mapping(json.loads(line)) for line in (folder / "trials.jsonl").read_text().splitlines()]
    others = [changed(trial, boot="another") for trial in trials]
    assert any("search" in picture.name for picture in pictures(found, trials))
    assert not any("search" in picture.name for picture in pictures(found, others))
    assert not any("search" in picture.name for picture in pictures(found))


# --- summary.html ---


def page_of(*scenarios: ScenarioResult, **changes: object) -> str:
    return summary_page(result(*scenarios, **changes), {0: [Picture("p", "A picture", b"\x89PNG")]})


def test_the_page_begins_with_verdict_and_reason_and_needs_nothing_else() -> None:
    html = page_of(compared(), verdict=Verdict.REGRESSION, reason="slower: numbers")
    page = Page(html)
    order = ["REGRESSION", "slower: numbers", "Against linux-a, 3 pairs of boots, tolerance 2 %", "A picture", "check"]
    assert [page.text.index(words) for words in order] == sorted(page.text.index(words) for words in order)
    assert [one for one in page.links if "/" in one] == ["data:image/png;base64,iVBORw=="]
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert "http:" not in html and "https:" not in html and "url(" not in html and "@import" not in html
    assert "color-scheme: light dark" in html and "prefers-color-scheme: dark" in html
    assert "-10.0% (-12.0% to -8.0%)" in page.text and "97.5 %" in page.text


def test_the_page_tells_of_each_build_what_it_ran_on_and_of_both_what_they_share() -> None:
    sides = tuple(
        changed(one, environment={"kernel_release": kernel, "cpu_model": "EPYC"})
        for one, kernel in zip(compared().builds.sides, ("6.18", "6.19"), strict=True)
    )
    page = Page(page_of(both := changed(compared(), sides=sides), environment=in_common([both])))
    facts, shared = page.text.partition("What all SUTs of the run have in common")[::2]
    assert "EPYC" in shared
    assert "6.18" not in shared and "6.19" not in shared
    for side in sides:
        ours = facts.partition(f"The {side.side}: {side.build}")[2].partition("The candidate:")[0]
        assert side.findings.environment["kernel_release"] in ours
    assert "The SUT's machine" not in facts


def path(*frames: tuple[str, int | None, float]) -> CostResult:
    found = tuple(
        FrameResult(function=name, caller=caller, instructions=each, own=1.0, calls=2.0)
        for name, caller, each in frames
    )
    return CostResult(instructions=1000.0, batch=None, trials=1, functions=(), path=found)


def test_stacks_of_a_build_are_collapsed_with_each_function_behind_its_callers() -> None:
    cost = path(("rx", None, 1000.0), ("poll me;now", 0, 600.0), ("lock", 1, 0.0), ("tick", 99, 1.0))
    lines = folded_stacks(cost).splitlines()
    assert lines == ["rx 1", "rx;poll_me:now 1", "rx;poll_me:now;lock 1", "tick 1"]
    assert all(re.fullmatch(r"[^ ]+ \d+", line) for line in lines)  # as readers of the format take it


def test_callers_are_listed_who_calls_most_often_first() -> None:
    frames = (
        ("rx", None, 9.0, 1.0),
        ("a", 0, 4.0, 1.0),
        ("lock", 1, 1.0, 2.0),
        ("b", 0, 4.0, 1.0),
        ("lock", 3, 1.0, 5.0),
    )
    found = tuple(
        FrameResult(function=name, caller=caller, instructions=each, own=1.0, calls=calls)
        for name, caller, each, calls in frames
    )
    cost = dataclasses.replace(path(), path=found, callers={"lock": ("c", "a")})
    assert callers_of(cost, None)["lock"] == ("b", "a", "c")


def test_a_worse_measurand_without_stacks_marks_its_functions_wherever_they_are_called() -> None:
    before = path(("rx", None, 1000.0), ("poll", 0, 600.0), ("lock", 1, 300.0))
    root = tree_of(path(("rx", None, 1000.0), ("poll", 0, 600.0), ("lock", 1, 300.0)), before)
    html = icicle(Way(root, True, "atomics", {"lock": 2.0, "poll": -1.5}))
    text = Page(html).text
    assert "lock +2" in text and "poll -1.5" in text and "Atomics on the way of a packet" in text
    assert [html.count(f'fill="{colour}"') for colour in ("#ef8b82", "#7fb5e8", "#e6e6e6")] == [1, 1, 1]


def test_stacks_are_files_of_what_does_not_pass() -> None:
    cost = path(("rx", None, 1000.0), ("poll", 0, 600.0))
    sides = tuple(changed(one, cost=cost) for one in compared().builds.sides)
    red = dataclasses.replace(changed(compared(), sides=sides), verdict=Verdict.REGRESSION)
    assert dict(stack_files(result(red, verdict=Verdict.REGRESSION))) == {
        f"paths/ipv6-routing-{side}.folded": "rx 1\nrx;poll 1\n" for side in ("baseline", "candidate")
    }
    assert 'href="paths/ipv6-routing-candidate.folded"' in page_of(red, verdict=Verdict.REGRESSION)
    green = dataclasses.replace(red, verdict=Verdict.PASS)
    assert dict(stack_files(result(green))) == {}


def test_the_way_of_a_packet_is_drawn_with_what_changed_in_words() -> None:
    before = path(("rx", None, 1000.0), ("poll", 0, 600.0), ("gone_now", 0, 400.0))
    after = path(("rx", None, 1100.0), ("poll", 0, 600.4), (EVIL, 1, 300.0), ("lock", 0, 500.0), ("tiny", 7, 0.5))
    page = Page(html := icicle(Way(tree_of(after, before), is_compared=True)))
    words = ["rx +100", "poll", "lock new", "gone_now gone"]
    assert [word for word in words if word in page.text] == words
    assert (
        "poll: 600.4 instructions per packet with all that it calls, 1.0 itself, called 2 times a packet; "
        "before 600.0, 1.0 and 2; +0.4" in page.text
    )
    assert "script" not in page.tags and EVIL in page.text
    assert html.count("<rect") == 5  # what is too narrow to be seen is not drawn
    lowest = max(float(y) + float(tall) for y, tall in re.findall(r'<rect[^>]* y="(\d+)"[^>]* height="(\d+)"', html))
    assert re.findall(r'viewBox="0 0 [\d.]+ (\d+)"', html) == [f"{lowest + 1:.0f}"]  # as high as what is drawn
    alone = Page(icicle(Way(tree_of(after), is_compared=False)))
    assert "new" not in alone.text and "before" not in alone.text and "rx: 1100.0 instr" in alone.text
    sides = [changed(one, cost=cost) for one, cost in zip(compared().builds.sides, (before, after), strict=True)]
    assert html in list(fragments(changed(compared(), sides=tuple(sides))))


def test_nothing_in_a_result_becomes_html() -> None:
    evil = changed(
        compared(), name=EVIL, title=EVIL, reason=EVIL, test=EVIL, carried=EVIL, interference=EVIL, complaints=(EVIL,),
        fingerprint={EVIL: EVIL}, environment={"kernel_release": EVIL},
        sides=tuple(changed(one, build=EVIL, environment={EVIL: [EVIL]}) for one in compared().builds.sides),
        measurands=(dataclasses.replace(SATURATION, name=EVIL, unit=EVIL),),
    )  # fmt: skip
    html = summary_page(
        result(evil, run=EVIL, reason=EVIL, profile=EVIL, command=EVIL),
        {0: [Picture(EVIL, EVIL, b"")]},
    )
    page = Page(html)
    assert "script" not in page.tags and page.handlers == []
    assert page.text.count(EVIL) > 12
    for fragment in fragments(evil):
        assert "script" not in Page(fragment).tags


def test_each_trial_is_a_mark_that_says_what_it_was_and_leads_to_its_line() -> None:
    counters = {"cpu1/heartbeat": {"beats": 480, "longest_wait": 3_000_000}, "hop1/in0": {"rx_dropped": 7}}
    none = {place: dict.fromkeys(names, 0) for place, names in counters.items()}
    trials = [
        trial(1, forwarded=1000, under_way=(), started=5.0),
        trial(2, offered=2000, forwarded=1000, started=6.5, counters_before=none, counters_after=counters),
        trial(3, disturbed=because(EVIL), boot=EVIL, latency=None),
        trial(4, sending_time=2.0), trial(5, scenario="another"),
    ]  # fmt: skip
    made = result(scenario(), scenario())
    html = summary_page(made, {}, [trial_chart(made.scenarios[0], trials), trial_chart(made.scenarios[1], ())])
    page = Page(html)
    for number in range(1, 5):
        assert html.count(f'<a href="#trial-1-{number}" ') == html.count(f'id="trial-1-{number}"') == 1
    assert "script" not in page.tags and page.handlers == []
    chart = trial_chart(made.scenarios[0], trials)
    assert chart is not None and trial_chart(made.scenarios[1], trials[4:]) is None
    assert [mark.shape for mark in chart.marks] == [
        "trial-no-loss", "trial-loss-beyond-the-goal", "trial-disturbed", "trial-generator-limited",
    ]  # fmt: skip
    _, title, *_ = (mark.title.splitlines() for mark in chart.marks)
    assert title[0].startswith("trial 2: repeat 2 of abcd, 2 kpps for 1 s, ") and title[0].endswith("(+1.5 s)")
    assert title[1] == "2 000 offered, 1 000 lost (50.000%), 3 came back late; forwarded at 997 pps"
    assert "CPU 1: 480 beats, the latest by 3.0 ms" in title[3]
    assert "lost: 7 " in title[3]


def test_a_run_that_came_to_nothing_has_a_page() -> None:
    page = Page(summary_page(result(finished=None), {}))
    assert "ERROR" in page.text and "did not come to its end" in page.text


# --- xunit.xml ---


def test_failures_are_the_builds_and_errors_the_testbeds() -> None:
    made = result(
        scenario("REGRESSION"),
        scenario("PASS"),
        scenario("ERROR"),
        changed(scenario("UNSTABLE"), test=EVIL),
    )
    suite = ElementTree.fromstring(junit(made))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "4", "failures": "2", "errors": "1"
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert cases[-1].get("name") == EVIL
    assert [(fault.tag, fault.get("type"), fault.get("message")) for case in cases for fault in case[1:]] == [
        ("failure", "REGRESSION", "REGRESSION: because"), ("error", "ERROR", "ERROR: because"),
        ("failure", "UNSTABLE", "UNSTABLE: because"),
    ]  # fmt: skip
    numbers = {one.get("name"): one.get("value") for one in cases[0].iter("property")}
    assert (numbers["pdr (packets/s)"], numbers["pdr.upper (packets/s)"], numbers["kernel"]) == (
        "1e+06", "1.01e+06", "6.18.44"
    )  # fmt: skip
    assert junit(result(run="\0\x1b"))


ROBOTS = b"""<?xml version="1.0"?><testsuite name="pdrgate" tests="3" errors="0" failures="2" skipped="1" time="1">
<testsuite name="Gate" tests="3" errors="0" failures="2" skipped="1" time="1">
<testcase classname="pdrgate.Gate" name="One" time="1"><skipped message="no builds"/></testcase>
<testcase classname="pdrgate.Gate" name="One" time="1"><failure message="DISTURBED: stolen" type="AssertionError"/>
</testcase>
<testcase classname="pdrgate.Gate" name="Setup" time="0"><failure message="Parent suite setup failed:
ERROR: no QEMU" type="AssertionError"/></testcase>
<testcase classname="pdrgate.Gate" name="Mine" time="0"><failure message="1 != 2" type="AssertionError"/></testcase>
</testsuite><properties><property name="Documentation" value="[data:image/png|x]"/></properties></testsuite>"""


def test_robots_message_of_many_lines_is_a_line_in_xunit_and_the_whole_below() -> None:
    found = changed(compared(), test="One", verdict=Verdict.UNSTABLE, reason=f"TIR 0.46; {'more ' * 60}; less")
    told = scenario_in_lines(found).replace("\n", "&#10;").encode()
    suite = ElementTree.fromstring(retold(ROBOTS.replace(b"DISTURBED: stolen", told), result(found)))
    (failure,) = (one for one in suite.iter("failure") if one.get("type") == "UNSTABLE")
    assert failure.get("message") == scenario_headline(found)
    assert failure.text == f"{scenario_fault(found)}\nUNSTABLE: {found.reason}"
    told_as_well = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert told_as_well["fault"] == scenario_fault(found) == fault_in_words(result(found))


def test_robots_own_file_gets_errors_and_numbers() -> None:
    found = changed(compared(), test="One", verdict=Verdict.DISTURBED, reason="stolen")
    suite = ElementTree.fromstring(retold(ROBOTS, result(found)))
    told = [(case.get("name"), one.tag) for case in suite.iter("testcase") for one in case if one.tag != "properties"]
    assert told == [("One", "skipped"), ("One", "error"), ("Setup", "error"), ("Mine", "failure")]
    for one in (suite, *suite.findall("testsuite")):
        assert {key: one.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
            "tests": "4", "failures": "1", "errors": "2", "skipped": "1"
        }  # fmt: skip
    numbers = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert "Documentation" not in numbers
    assert (numbers["testbed"], numbers["change.pdr (%)"], numbers["candidate"]) == ("local-netns", "-10", "linux-b")
    with pytest.raises(ValueError, match="no element"):
        retold(b"", result())


def test_a_stored_result_makes_the_same_page_twice(tmp_path: Path) -> None:
    made: RunResult = result(compared())
    write_result(tmp_path / RESULT_FILE, made)
    again = read_result(tmp_path)
    assert again == made
    assert summary_page(again, {}) == summary_page(made, {})


@pytest.mark.parametrize(
    ("name", "unit", "title"),
    [
        ("shared lines", "shared lines/packet", "shared lines (per packet)"),
        ("cache lines", "lines/packet", "cache lines (lines/packet)"),
        ("PDR", "", "PDR"),
    ],
)
def test_a_title_says_nothing_twice(name: str, unit: str, title: str) -> None:
    line = MeasurandLine(name=name, unit=unit, interval="", baseline="", change="", confidence="", verdict=None)
    assert line.title == title
