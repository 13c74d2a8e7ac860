"""HTML of a stranger's in what Robot makes pages of: what could harm their reader is shown as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import robot
from made_results import compared, trial, written
from test_reports import Page

from pdrgate.cli import main
from pdrgate.reports.markup.harmless_html import is_harmless
from pdrgate.reports.pages.evidence import evidence_html, fold_html, scenario_html, trials_fold
from pdrgate.reports.pages.scenario_pictures import pictures

HARMFUL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<img src="data:image/png;base64,AAAA" onerror="alert(1)">',
    '<img src="https://evil.example/x.png">',
    '<a href="javascript:alert(1)">x</a>',
    '<a href="&#106;avascript:alert(1)">x</a>',
    '<a href="java&#9;script:alert(1)">x</a>',
    '<a href="data:text/html;base64,AAAA">x</a>',
    '<a href="//evil.example/">x</a>',
    '<iframe src="data:image/png;base64,AAAA"></iframe>',
    "<svg/onload=alert(1)>",
    "<!-- --!><img src=x>",
    "<p style='x'>",
    '<p style="background:url(//evil.example/x)">x</p>',
    '<p style="background:u&#114;l(x)">x</p>',
    '<p style="background:\\75rl(x)">x</p>',
    '<input autofocus="x">',
    "<style>* {}</style>",
    "<P>x</P>",
    "<p\nid=x>",
    "a < b",
]


@pytest.mark.parametrize("text", HARMFUL)
def test_what_could_harm_is_not_harmless(text: str) -> None:
    assert not is_harmless(text)
    assert not is_harmless(f"<p>good</p>{text}")


def test_what_pdrgate_itself_has_in_robots_log_is() -> None:
    found = compared("REGRESSION")
    drawn = list(pictures(found))
    assert drawn
    trials = [trial(number, side="candidate", pair=1) for number in (1, 2)]
    for fragment in (evidence_html(found), scenario_html(found, drawn, trials), fold_html(trials_fold(trials))):
        assert "<" in fragment and is_harmless(fragment)
    assert is_harmless('<a href="https://example.org/a?b=c#d">x</a> &lt; <a href="log.html#s1-t1">y</a><br />')


SUITE = """*** Settings ***
Documentation    [javascript:doc|click]
Metadata    One    [javascript:meta|click]

*** Test Cases ***
One
    [Documentation]    [javascript:test|click]
    Log    <b>own</b>    html=True
    Log    ${MESSAGE}    html=True
    Log    ${MESSAGE}    level=WARN    html=True
    TRY
        Fail    *HTML* *HTML* ${MESSAGE}
    FINALLY
        No Operation
    END
"""


@pytest.mark.parametrize("text", [one for one in HARMFUL if "\n" not in one and one != "a < b"])
def test_no_page_of_robots_has_a_stranger_s_html(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path / "run", compared())
    suite = tmp_path / "a.robot"
    suite.write_text(SUITE)
    robot.run(
        str(suite), outputdir=str(folder), log=None, report=None, console="none", stdout=None, stderr=None,
        variable=f"MESSAGE:{text}",
    )  # fmt: skip
    assert main(["report", str(folder)]) == 0
    strings = strings_of((folder / "log.html").read_text())
    assert "<b>own</b>" in strings
    assert [one for one in strings if text in one] == []
    for page in map(Page, strings):
        assert page.handlers == [] and not {"script", "iframe", "svg"} & {*page.tags}
        assert [link for link in page.links if "javascript" in link] == []
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert any(escaped in one for one in strings)


def strings_of(log: str) -> list[str]:
    """What the page puts into itself, by its script, as HTML."""
    found: list[str] = []
    for line in log.splitlines():
        if 'window.output["strings"]' in line and ".concat(" in line:
            found += json.loads(line.partition(".concat(")[2].rpartition(");")[0].replace(r"\x3c", "<"))
    return [one.removeprefix("*") for one in found]
