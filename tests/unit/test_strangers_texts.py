"""A name, a console or a reason may be a stranger's: no report shows one that is HTML, or that controls a terminal."""

from __future__ import annotations

import dataclasses
import enum
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_results import compared, result, scenario

from pdrgate.cli import main
from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.reports.ci.exports import EXPORTS
from pdrgate.results.model import RunResult
from pdrgate.values.printable import printable_lines, without_tags

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e<img src=x onerror=alert(1)>\x9b31m"
_CHOSEN = {"schema", "unit", "better", "side", "scenario", "name", "measurand"}
"""Fields whose texts others are found by."""


def hostile(value: Any, field: str = "") -> Any:
    """The same with a hostile text behind each text that is free."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            one.name: hostile(getattr(value, one.name), one.name) for one in dataclasses.fields(value) if one.init
        }
        return dataclasses.replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(hostile(one, field) for one in value)
    if isinstance(value, dict):
        return {f"{key}{EVIL}": hostile(one) for key, one in value.items()}
    free = isinstance(value, str) and not isinstance(value, enum.Enum) and field not in _CHOSEN
    return f"{value}{EVIL}" if free else value


def controls(text: str) -> set[str]:
    return {one for one in text if unicodedata.category(one) in ("Cc", "Cf") and one not in "\n\t"}


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        assert not any(name.startswith("on") for name in known), known
        if tag == "img":
            self.sources.append(str(known["src"]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evil = hostile(result(compared("REGRESSION"), scenario()))
    assert isinstance(evil, RunResult)
    assert EVIL in evil.reason and EVIL in evil.scenarios[0].title
    (tmp_path / "run").mkdir()
    write_result(tmp_path / "run" / RESULT_FILE, evil)
    return tmp_path / "run"


@pytest.mark.parametrize("form", ["markdown", *EXPORTS])
def test_nothing_that_is_printed_controls_who_shows_it(
    folder: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder), "--format", form]) == 0
    told = capsys.readouterr().out
    assert controls(told) == set()
    if form in ("markdown", "sentence"):
        assert "<img" not in re.sub(r"(?s)(`+)[^`].*?\1", "", told)


def test_no_page_holds_a_tag_or_an_escape_of_a_strangers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    assert main(["trend", str(folder), "--page", str(folder / "trend.html")]) in (0, 1)
    for name in ("summary.html", "trend.html"):
        page = (folder / name).read_text()
        assert controls(page) == set(), name
        assert all(source.startswith("data:image/") for source in Tags(page).sources)
    assert controls(capsys.readouterr().out) == set()
    assert (
        controls((folder / "summary.md").read_text() + (folder / "xunit.xml").read_text()) - set("\u202e\x9b") == set()
    )


def test_merging_prints_none_either(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(folder), "--into", str(tmp_path / "merged")]) != 0
    assert controls("".join(capsys.readouterr())) == set()
    assert controls((tmp_path / "merged/summary.html").read_text()) == set()


def test_signs_that_are_no_tag_stay() -> None:
    assert without_tags("TIR 0.46 < 0.10, a<b> <img </p <!-- <?") == "TIR 0.46 < 0.10, a‹b> ‹img ‹/p ‹!-- ‹?"
    assert printable_lines("Ä漢 a\tb\nc \N{NARROW NO-BREAK SPACE}1\x1b\r\x85") == (
        "Ä漢 a\tb\nc \N{NARROW NO-BREAK SPACE}1\ufffd\ufffd\ufffd"
    )
