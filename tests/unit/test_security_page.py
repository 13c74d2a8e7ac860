"""SECURITY.md names a test for what it says, and each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
TEST = re.compile(r"`(tests/\S+\.py)::(\w+)`")


def test_each_test_that_the_page_names_is_there() -> None:
    named = TEST.findall(PAGE)
    assert len(named) > 20
    lacking = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert lacking == []


def test_each_line_of_who_is_trusted_with_what_names_what_shows_it() -> None:
    section = PAGE.partition("## Who is trusted with what")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    assert {"author of a change", "owner of the runner", "other users of the machine", "reader of a report"} <= {
        row[0] for row in rows
    }
    assert [row for row in rows if not (TEST.search(row[-1]) or "](docs/" in row[-1])] == []
