"""Style, types and the arrows between modules, by the tools that an editor has too; on all of the checkout."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from itertools import chain
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


def test_what_is_forbidden_is_forbidden_to_every_room_but_those_that_are_named() -> None:
    """Contracts that listed rooms once left out two that were made later; and an arrow for types is one too."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    forbidding = [contract for contract in tool["contracts"] if contract["type"] == "forbidden"]
    assert {tuple(contract["source_modules"]) for contract in forbidding} == {("pdrgate",)}
    assert not tool.get("exclude_type_checking_imports")


def test_no_two_modules_have_one_name() -> None:
    """A name in a traceback, a search or a talk says which file is meant. Packages and programs are called as they
    must be."""
    modules = (ROOT / "libraries/pdrgate").rglob("*.py")
    names = Counter(path.name for path in modules if path.name not in ("__init__.py", "__main__.py"))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_no_two_public_classes_have_one_name() -> None:
    """A class's name in an error, a search or an import says which thing is meant."""
    statements = chain.from_iterable(
        ast.parse(module.read_text()).body for module in (ROOT / "libraries/pdrgate").rglob("*.py")
    )
    classes = [one.name for one in statements if isinstance(one, ast.ClassDef) and not one.name.startswith("_")]
    assert len(classes) > 500
    assert {name: count for name, count in Counter(classes).items() if count > 1} == {}
