"""SECURITY.md names a test for what it says, and each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_test_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text())
    assert len(named) > 20
    lacking = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert lacking == []
