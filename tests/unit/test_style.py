"""Style, types and the arrows between modules, by the tools that an editor has too; on all of the checkout."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
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


def test_no_two_public_things_have_one_name() -> None:
    """A name in an error, a search or an import says which class, alias, constant or function is meant.

    Some modules are called by others through a name that each must have: a program's `main`, a data path's `PATHS`, an
    export's `EXPORT`. A command has the name that its user types.
    """
    agreed = {"main", "PATHS", "EXPORT"}
    modules = (ROOT / "libraries/pdrgate").rglob("*.py")
    names = Counter(chain.from_iterable(_public_names(ast.parse(module.read_text())) for module in modules))
    assert len(names) > 1500
    assert {name: count for name, count in names.items() if count > 1 and name not in agreed} == {}


def _public_names(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        match statement:
            case ast.FunctionDef(decorator_list=[ast.Call(ast.Attribute(ast.Name("click"), "command")), *_]):
                continue
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AnnAssign(ast.Name(name)):
                names = [name]
            case ast.Assign(targets):
                found = chain.from_iterable(map(ast.walk, targets))
                names = [one.id for one in found if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
            case _:
                continue
        yield from (name for name in names if not name.startswith("_"))


def test_no_change_is_written_as_minus_nothing() -> None:
    """A format with a sign has the ``z`` of Python, by which what is rounded to nothing has no minus."""
    modules = (ROOT / "libraries/pdrgate").rglob("*.py")
    formats = [
        ast.unparse(one.format_spec)
        for module in modules
        for one in ast.walk(ast.parse(module.read_text()))
        if isinstance(one, ast.FormattedValue) and one.format_spec is not None
    ]
    signed = [one for one in formats if "+" in one]
    assert len(signed) > 30
    assert [one for one in signed if "+z" not in one] == []
