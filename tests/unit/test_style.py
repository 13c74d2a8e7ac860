"""Style, types and the arrows between modules, by the tools that an editor has too; on all of the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROBOT = ("robot", "resources", "tests")


@pytest.mark.parametrize(
    "words",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
        ("lint-imports", "--no-cache"),
        ("robocop", "check", *_ROBOT),
        ("robocop", "format", "--check", "--diff", *_ROBOT),
    ],
    ids=" ".join,
)
def test_nothing_is_found(words: tuple[str, ...]) -> None:
    tool = Path(sys.executable).with_name(words[0])
    done = subprocess.run((tool, *words[1:]), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
