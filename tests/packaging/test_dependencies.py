"""What the library imports is what pyproject.toml declares: a machine that happens to have more shows nothing."""

from __future__ import annotations

import ast
import functools
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
TYPES_ONLY = "_typeshed"
"""A module that type checkers bring, and nobody imports at run time."""
OWN = {"pdrgate", "PdrGate"}
NOT_IMPORTED = {
    "allure-robotframework": "a listener, which Robot imports by its name",
    "psycopg": "SQLAlchemy imports it, where a history is on a server",
    "pyarrow": "an extra: imported where somebody exports Parquet",
    "robotframework-sshlibrary": "a suite imports it; connections are then handed to it",
    "trex-stl-lib": "an extra, and GPL: imported by its name, in a process of its own",
}
"""Declared, by name, and imported by no statement in the library: with the reason."""


def imported() -> dict[str, set[str]]:
    """The modules of others, by top-level name, and the files that import them; the test tools' are not among them."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "libraries").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in (name.partition(".")[0] for name in names):
                if name not in sys.stdlib_module_names | OWN | {TYPES_ONLY}:
                    found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [lines for name, lines in project["optional-dependencies"].items() if name != "dev"]
    lines = [*project["dependencies"], *chain.from_iterable(extras)]
    return {canonicalize_name(Requirement(line).name) for line in lines}


@functools.cache
def importers() -> dict[str, set[str]]:
    """The files of the library by the distribution package that they import from."""
    providers = packages_distributions()
    found: dict[str, set[str]] = {}
    for module, files in imported().items():
        for package in providers.get(module, [module]):
            found.setdefault(canonicalize_name(package), set()).update(files)
    return found


def test_what_is_locked_takes_the_first_python_that_a_supported_distribution_has() -> None:
    """Debian 12 has 3.11.2, and the lock is made with a later one."""
    asked = {one.metadata["Name"]: one.metadata["Requires-Python"] for one in distributions()}
    assert {name: asks for name, asks in asked.items() if asks and "3.11.2" not in SpecifierSet(asks)} == {}


def test_what_is_imported_is_declared() -> None:
    assert {package: files for package, files in importers().items() if package not in declared()} == {}


def test_what_is_declared_is_needed() -> None:
    assert declared() - set(importers()) - set(NOT_IMPORTED) == set()
