"""What a terminal shows of a run, and what the log of a CI has of it."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from causes import because
from flat_values import changed
from made_results import compared, result, scenario, trial

from pdrgate.gate.run.progress import Estimate, Progress
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Latency, Occasion
from pdrgate.record.trial import Trial
from pdrgate.reports.console.ending import show_files, show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.console.trial_lines import left_in_words, status_line, trial_line
from pdrgate.results.model import CostResult, RunResult

LEFT = Estimate(80.0, 181.0)
HOSTILE = "<script>'\"[red]\x1b[31m\x07\r\n\u202eÄ漢" + 300 * "x"


class Stream(io.StringIO):
    """A stream that says it is a terminal, or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(autouse=True)
def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")


def shown(run: RunResult, *, terminal: bool) -> list[str]:
    stream = Stream(terminal=terminal)
    show_verdict(run, Screen(stream))
    return stream.getvalue().splitlines()


def plain(lines: list[str]) -> list[str]:
    return [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]


def progress(of: Trial, lower: float | None = 997.7e3, upper: float | None = 1.008e6, **changes: object) -> Progress:
    known = {"replayed": False, "left": LEFT} | changes
    return Progress(Scenario(), of, 102, known["replayed"], lower, upper, known["left"])  # type: ignore[arg-type]


def test_a_trial_in_bursts_is_told_by_counts_and_has_no_bounds() -> None:
    one = Trial(
        intended_load=250e3, intended_duration=2304 / 250e3, offered=2304, forwarded=2303, drained=2303,
        sending_time=0.2, occasion=Occasion(phase=Phase.SATURATION),
    )  # fmt: skip
    line = trial_line(progress(one, None, None)).plain
    assert "2303 of 2304 in bursts" in line
    assert "generator" not in line
    assert "bounds" not in line
    assert "2303 in bursts" in trial_line(progress(one, None, None), 60).plain


QUEUED = trial(
    offered=10_000,
    forwarded=10_000,
    drained=500,
    under_way=tuple(range(0, 160, 10)),
    side="candidate",
    phase=Phase.REPEAT,
)
TRIALS = {
    "whole": trial(offered=1000, forwarded=1000),
    "lossy": trial(),
    "queued": QUEUED,
    "limited": trial(unsent=300, phase=Phase.SATURATION, side="baseline"),
    "disturbed": trial(disturbed=because(HOSTILE), side="candidate", phase=Phase.SATURATION),
    "late": trial(latency=Latency(1e-6, 2e-6, 123e-6, 4e-3, 10), side="candidate"),
}


@pytest.mark.parametrize("name", TRIALS)
def test_a_trial_is_one_line_of_80_columns_and_tells_its_build(name: str) -> None:
    stream = Stream(terminal=True)
    Screen(stream).line(trial_line(progress(TRIALS[name]), 80), cut=True)
    (line,) = plain(stream.getvalue().splitlines())
    assert len(line) <= 80
    assert line.split()[:2] == ["102", TRIALS[name].belonging.side or TRIALS[name].occasion.phase]
    assert line.endswith("997.7 kpps .. 1.008 Mpps")


def test_wider_lines_have_words_and_then_the_time_left() -> None:
    for width, said in (
        (80, ("1 kpps  steady 1.60%", "997.7 kpps .. 1.008 Mpps")),
        (110, ("steady loss 1.60%", "  bounds 997.7 kpps .. 1.008 Mpps")),
        (140, ("steady loss 1.60%", "  bounds 997.7 kpps .. 1.008 Mpps", "  about 1:20 to 3:00 left")),
    ):
        line = trial_line(progress(QUEUED), width).plain
        assert all(words in line for words in said) and line.endswith(said[-1]), line
        assert len(line) <= width
    whole = trial_line(progress(QUEUED)).plain
    assert "bounds 997.7 kpps .. 1.008 Mpps" in whole and whole.endswith("about 1:20 to 3:00 left")


def test_search_bounds_share_a_unit_and_are_never_called_a_pdr() -> None:
    for bounds, said in (
        ((None, None), "bounds unknown"), ((1e6, None), "bounds >= 1 Mpps"), ((None, 1e6), "bounds < 1 Mpps"),
        ((1e6, 1.1e6), "bounds 1 .. 1.1 Mpps"), ((9e5, 1.1e6), "bounds 900 kpps .. 1.1 Mpps"),
    ):  # fmt: skip
        line = trial_line(progress(trial(phase=Phase.SEARCH), *bounds)).plain
        assert said in line and "PDR" not in line


def test_a_resumed_trial_says_so() -> None:
    assert trial_line(progress(trial(), replayed=True)).plain.endswith("from the resumed run")


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        (80, 181, "about 1:20 to 3:00 left"),
        (44, 45.1, "about 0:45 left"),
        (0, 1.9, "a few seconds left"),
        (0, 40, "about 0:00 to 0:40 left"),
        (3590, 7300, "about 1:00:00 to 2:02:00 left"),
    ],
)
def test_an_estimate_says_how_little_it_knows(least: float, most: float, said: str) -> None:
    assert left_in_words(Estimate(least, most)) == said


def test_the_line_that_changes_tells_the_time_first_and_then_the_trial() -> None:
    running = Ask(33.95e3, 0.25, Phase.SATURATION)
    assert status_line(running, LEFT, "candidate", 3) == (
        "  about 1:20 to 3:00 left; pair 3, candidate: saturation at 33.95 kpps for 250 ms"
    )
    assert status_line(Ask(0.0, 1.0, Phase.IDLE), None) == "  idle for 1 s"
    assert status_line(Ask.of_window(65536, 1.0, Phase.REPEAT), None) == "  repeat by a window of 64 KiB for 1 s"
    assert status_line(None, None) == ""


def test_a_terminal_has_a_last_line_that_gives_way_to_what_scrolls() -> None:
    stream = Stream(terminal=True)
    screen = Screen(stream, live=True)
    screen.status("  " + 90 * "s")
    screen.line("  told")
    screen.status("")
    told = stream.getvalue()
    first, second, third = told.split("\r\x1b[2K")
    assert plain([first])[0] == "  " + 76 * "s" + "…"  # one column is the cursor's
    assert plain(second.splitlines()) == ["  told", plain([first])[0]]
    assert third == ""


@pytest.mark.parametrize("live", [True, False])
def test_a_log_has_each_line_as_a_whole_and_nothing_that_changes(live: bool) -> None:
    stream = Stream(terminal=False)
    screen = Screen(stream, live=live)
    screen.status("running")
    screen.line("  " + 50 * "word ")
    screen.line(trial_line(progress(QUEUED), screen.width), cut=True)
    assert stream.getvalue() == f"  {50 * 'word '}\n{trial_line(progress(QUEUED)).plain}\n"


def test_sentences_go_on_in_further_lines_set_in() -> None:
    stream = Stream(terminal=True)
    Screen(stream).line("  " + 30 * "word ")
    lines = stream.getvalue().splitlines()
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, 4]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("terminal", "variables", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_who_asks(
    terminal: bool, variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lines = shown(result(compared("REGRESSION")), terminal=terminal)
    assert plain(lines)[0] == "REGRESSION: because, on IPv6 routing"
    assert lines[0].startswith("\x1b[1;31mREGRESSION") is coloured
    assert ("\x1b" in "".join(lines)) is coloured


@pytest.mark.parametrize("terminal", [True, False])
def test_the_end_begins_with_the_verdict_and_says_each_thing_once(terminal: bool) -> None:
    cost = CostResult(instructions=5000.0, batch=None, trials=3, functions=())
    lines = plain(shown(result(changed(compared("REGRESSION"), cost=cost)), terminal=terminal))
    assert lines[0] == "REGRESSION: because, on IPv6 routing"
    assert "".join(lines[1:4]).startswith("  The build is at fault: ") and "IPv6 routing" in lines
    told = "\n".join(lines)
    assert (told.count("REGRESSION"), told.count("because"), told.count("\n\n\n")) == (1, 1, 0)
    assert "candidate linux-6.19, 3 boots; baseline linux-6.18.44, 3 boots" in " ".join(told.split())
    (head,) = (line.split() for line in lines if "MEASURAND" in line)
    (row,) = (line.split() for line in lines if line.startswith("  PDR"))
    assert head == ["MEASURAND", "BASE", "CANDIDATE", "CHANGE", "VERDICT"]
    assert " ".join(row).startswith("PDR 1 Mpps 990 kpps -1.0% (-1.2% to -0.8%)")


def test_of_several_scenarios_each_has_its_verdict_and_what_the_run_does_not_say() -> None:
    other = dataclasses.replace(scenario("PASS"), reason="not slower", title="IPv4 routing")
    lines = shown(result(compared("REGRESSION"), other), terminal=False)
    assert "IPv6 routing: REGRESSION" in lines
    at = lines.index("IPv4 routing: PASS")
    assert "  not slower" in lines[at + 1 :]


def test_without_a_baseline_there_are_no_columns_for_one() -> None:
    lines = shown(result(scenario()), terminal=False)
    assert lines[3].split() == ["MEASURAND", "VALUE", "95", "%", "INTERVAL"]


def test_a_change_that_the_verdict_does_not_rest_on_is_told_with_what_stands_against_it() -> None:
    doubtful = compared()
    assert doubtful.comparison is not None
    refused = dataclasses.replace(doubtful.comparison, accepted=False, why_not="the baseline drifts")
    lines = shown(result(dataclasses.replace(doubtful, comparison=refused)), terminal=False)
    assert "  the verdict does not rest on the change: the baseline drifts" in lines
    vetoed = dataclasses.replace(doubtful, comparison=refused, reason="the baseline drifts; and more")
    told = "\n".join(shown(result(vetoed, reason=vetoed.reason), terminal=False))
    assert told.count("the baseline drifts") == 1


def test_at_80_columns_a_comparison_leaves_out_units_and_no_table_wraps() -> None:
    wide = compared("REGRESSION")
    assert wide.comparison is not None
    long = dataclasses.replace(wide.comparison.changes[0], measurand="cost", unit="instructions/packet")
    throughput = dataclasses.replace(long, measurand="saturation throughput", unit="packets/s")
    comparison = dataclasses.replace(wide.comparison, changes=(*wide.comparison.changes, long, throughput))
    lines = plain(shown(result(dataclasses.replace(wide, comparison=comparison)), terminal=True))
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines if "MEASURAND" in line] == [
        ["MEASURAND", "BASE", "CANDIDATE", "CHANGE", "VERDICT"]
    ]
    assert "-1.0% (-1.2% to -0.8%)" in next(line for line in lines if "PDR (at the knee)" in line)


@pytest.mark.parametrize("terminal", [True, False])
def test_no_name_controls_the_terminal(terminal: bool) -> None:
    evil = changed(
        compared("UNSTABLE", candidate=HOSTILE), title=HOSTILE, reason=HOSTILE,
        cost=CostResult(instructions=1.0, batch=None, trials=1, functions=()),
    )  # fmt: skip
    told = "\n".join(plain(shown(result(evil, reason=HOSTILE), terminal=terminal)))
    assert told.startswith("UNSTABLE: <script>'\"[red]�[31m�")
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(told)
    if terminal:
        assert max(map(len, told.splitlines())) <= 80
    assert "Ä漢" in told


def test_the_folder_is_told_once_with_what_is_in_it(tmp_path: Path) -> None:
    for name in ("result.json", "summary.html", "other"):
        (tmp_path / name).touch()
    stream = Stream(terminal=False)
    show_files(tmp_path, Screen(stream))
    assert stream.getvalue() == f"results: {tmp_path}\n  summary.html  result.json\n"
