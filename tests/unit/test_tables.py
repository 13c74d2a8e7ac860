import dataclasses
import re
from html.parser import HTMLParser

import pytest
from simulated_sut import Ceiling, IdealCurve, RealisticCurve, SimulatedSut

from pdrgate.reports.pages.blocks import block_html
from pdrgate.reports.tree import ReportPart
from pdrgate.reports.words.assessment_words import assessment_part
from pdrgate.results.model import AssessmentResult, CheckResult, Findings, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.stability import assess

AROUND = (7e5, 9e5, 1e6, 1.1e6, 1.2e6)


class _Rows(HTMLParser):
    """The cells' texts, row by row; every tag must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.caption = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.open[-1] == "caption":
            self.caption += data


def simulated(runs: int = 5, ceiling: Ceiling | None = None, saturation: float = 1e6) -> AssessmentResult:
    sut = SimulatedSut(RealisticCurve(saturation), seed=3, ceiling=ceiling)
    return assess(sut.repeat(AROUND, 1.0, runs)).result()


def _part(found: AssessmentResult) -> ReportPart:
    """What is said of a build alone."""
    findings = Findings(assessment=found)
    return assessment_part(ScenarioResult(name="", title="", verdict=Verdict.PASS, reason="", findings=findings))


def checks_html(found: AssessmentResult) -> str:
    """The table of its checks."""
    return block_html(_part(found).whole[0])


def loads_html(found: AssessmentResult) -> str:
    """The table of its loads."""
    return block_html(_part(found).further[0])


def test_each_check_has_its_outcome_and_sentence() -> None:
    found = simulated(runs=3)  # too few for the checks over time
    table = _Rows(checks_html(found))
    assert table.rows[0] == ["check", "outcome", "why"]
    words = {True: "✓ ok", False: "✗ failed", None: "? undecided"}
    assert table.rows[1:] == [[check.name, words[check.passed], check.sentence] for check in found.checks]
    assert {row[1] for row in table.rows[1:]} >= {"✓ ok", "? undecided"}
    assert table.caption == "STABLE (GOOD in the strict reading)"


def test_a_failed_check_is_in_the_caption() -> None:
    found = simulated(runs=1)
    assert found.reason in _Rows(checks_html(found)).caption
    assert "✗ failed" in checks_html(found)


def test_each_load_has_its_numbers() -> None:
    found = simulated()
    table = _Rows(loads_html(found))
    assert table.rows[0][:9] == ["load", "runs", "PLR", "sd", "UCL95", "ΔUCL95", "delivery ratio", "throughput", "TIR"]
    assert [row[0] for row in table.rows[1:]] == ["700 kpps", "900 kpps", "1 Mpps", "1.1 Mpps", "1.2 Mpps"]
    point = found.loads[3]
    tir = point.tir
    assert point.plr_sd is not None and point.ucl is not None
    assert table.rows[4][1:9] == [
        "5",
        f"{100 * point.plr:.4f} %",
        f"{100 * point.plr_sd:.4f} %",
        f"{100 * point.ucl:.4f} %",
        f"{point.delta_ucl:.3f}",
        f"{100 * (1 - point.plr):.4f} %",
        f"{point.throughput / 1e3:.4g} kpps",
        f"{tir:.3f}".replace("-", "−"),
    ]
    assert [row[8] != "" for row in table.rows[1:]] == [False, True, True, True, True]
    assert table.rows[3][9] == "first past the PDR"
    assert table.rows[4][9] == "potential saturation, saturated from here"
    assert found.pdr.load is not None
    assert (
        "PLR crosses 0.5 % at" in table.caption and f"{found.pdr.load / 1e3:.4g} kpps, 95 % interval" in table.caption
    )


def test_one_run_leaves_what_it_cannot_tell_empty() -> None:
    table = _Rows(loads_html(simulated(runs=1)))
    assert all(row[3:6] == ["", "", ""] for row in table.rows[1:])
    assert "no interval" in table.caption


def test_no_loss_is_0_and_tiny_loss_is_not() -> None:
    sut = SimulatedSut(IdealCurve(1e9), seed=1)
    found = assess(sut.repeat(AROUND, 1.0, 3)).result()
    assert {row[2] for row in _Rows(loads_html(found)).rows[1:]} == {"0 %"}
    assert "above 1.2 Mpps" in loads_html(found)
    points = tuple(dataclasses.replace(point, plr=1e-9, steady_plr=None) for point in found.loads)
    tiny = dataclasses.replace(found, loads=points)
    assert {row[2] for row in _Rows(loads_html(tiny)).rows[1:]} == {"< 0.0001 %"}


def test_generator_limited_loads_stand_among_the_others() -> None:
    rows = _Rows(loads_html(simulated(ceiling=Ceiling(9.5e5)))).rows
    assert [row[0] for row in rows[1:]] == ["700 kpps", "900 kpps", "1 Mpps", "1.1 Mpps", "1.2 Mpps"]
    assert rows[3] == ["1 Mpps", "every trial was generator-limited"]
    assert _Rows(loads_html(simulated(ceiling=Ceiling(1e5)))).caption.endswith("nowhere")


def test_left_out_repeats_are_said() -> None:
    found = simulated()
    points = tuple(dataclasses.replace(point, generator_limited=2) for point in found.loads)
    limited = dataclasses.replace(found, loads=points)
    assert _Rows(loads_html(limited)).rows[1][1] == "5 (−2 generator-limited)"


def test_everything_is_escaped() -> None:
    evil = "<script>alert('&')</script> \"quoted\""
    check = CheckResult(name=evil, passed=False, value=1.0, bound=0.0, sentence=evil)
    found = dataclasses.replace(simulated(runs=1), checks=(check,), reason=evil)
    html = checks_html(found)
    assert "<script" not in html
    assert _Rows(html).rows[1] == [evil, "✗ failed", evil]
    assert evil in _Rows(html).caption


@pytest.mark.parametrize("table", [checks_html, loads_html])
def test_it_fits_a_dark_log(table) -> None:  # type: ignore[no-untyped-def]
    html = table(simulated(ceiling=Ceiling(9.5e5)))
    assert "background" not in html
    assert "class=" not in html and "<style" not in html
    for colour in re.findall(r"[^-]color:([^;]+);", html):
        assert colour.startswith("var(--") and colour.endswith("inherit)")
    assert "\n" not in html  # one message of Robot's log
