"""Benches find what they import when they are started as their first lines say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
_FAKES = {one.stem for one in (_TESTS / "fakes").glob("*.py")}


def _imported(code: ast.Module) -> set[str]:
    found: set[str] = set()
    for one in ast.walk(code):
        if isinstance(one, ast.ImportFrom) and one.module and not one.level:
            found.add(one.module.partition(".")[0])
        elif isinstance(one, ast.Import):
            found |= {name.name.partition(".")[0] for name in one.names}
    return found


@pytest.mark.parametrize("bench", sorted((_TESTS / "bench").glob("*.py")), ids=lambda one: one.stem)
def test_a_bench_that_imports_from_the_fakes_says_where_they_are(bench: Path) -> None:
    text = bench.read_text(encoding="utf-8")
    if not _imported(ast.parse(text)) & _FAKES:
        return
    by_itself = any("sys.path" in line and "fakes" in line for line in text.splitlines())
    assert by_itself or "PYTHONPATH=libraries:tests/fakes" in text
