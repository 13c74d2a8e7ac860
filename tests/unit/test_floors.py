"""The house: a room imports only from floors below its own (DESIGN.md, Floors)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "libraries" / "pdrgate"
FLOORS = {
    "units": 0, "trial": 0, "errors": 0, "cache": 0,
    "stats": 1,
    "traffic": 2, "sut": 2, "telemetry": 2,
    "search": 3, "stability": 3, "history": 3, "testbed": 3,
    "gate": 4, "doctor": 4,
    "report": 5,
    "keywords": 6, "launch": 6, "cli": 6,
}  # fmt: skip
NEIGHBOURS = {("units", "errors"), ("telemetry", "sut"), ("cli", "launch")}
"""Rooms of one floor of which the first may use the second: counters, for one, are read from hosts."""
ONLY_IN = {
    "robot": {"keywords", "launch"}, "robotlibcore": {"keywords"}, "assertionengine": {"keywords"},
    "matplotlib": {"report", "keywords"}, "allure_commons": {"report", "keywords"},
    "allure_robotframework": {"report", "keywords"},
    "MLRsearch": {"search"}, "click": {"cli"},
}  # fmt: skip

MODULES = sorted(PACKAGE.rglob("*.py"))


def room(module: str) -> str | None:
    """The room of ``pdrgate.ROOM…``; None for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every module or name imported anywhere in a file, also in functions."""
    here = dotted(path).split(".")
    package = here if path.name == "__init__.py" else here[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def test_every_room_has_a_floor() -> None:
    rooms = {found for path in MODULES if (found := room(dotted(path)))}
    assert rooms <= FLOORS.keys()
    assert {"units", "stats", "traffic", "search", "gate", "cli"} <= rooms


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_room_imports_only_from_below(path: Path) -> None:
    own = room(dotted(path))
    wrong = []
    for line, name in imports(path):
        other = room(name)
        if not name.startswith("pdrgate.") or own is None or other in (None, own, "__version__"):
            continue
        assert other in FLOORS, f"{path}:{line} imports {name}, a room without a floor"
        if FLOORS[other] >= FLOORS[own] and (own, other) not in NEIGHBOURS:
            wrong.append(f"{path}:{line}: {own} (floor {FLOORS[own]}) imports {name} (floor {FLOORS[other]})")
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_the_core_knows_no_robot_no_allure_and_no_plots(path: Path) -> None:
    own = room(dotted(path))
    wrong = [
        f"{path}:{line}: {name} belongs in {', '.join(sorted(ONLY_IN[top]))} only"
        for line, name in imports(path)
        if (top := name.partition(".")[0]) in ONLY_IN and own not in ONLY_IN[top]
    ]
    assert not wrong


def test_the_package_itself_imports_nothing_of_its_rooms() -> None:
    assert not [name for _, name in imports(PACKAGE / "__init__.py") if name.startswith("pdrgate.")]


def test_the_search_for_imports_finds_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_floors.PACKAGE", tmp_path / "pdrgate")
    path = tmp_path / "pdrgate" / "gate" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import pdrgate.cli\nfrom . import b\nfrom ..report import c\ndef f():\n    from robot.api import d\n"
    )
    assert list(imports(path)) == [
        (1, "pdrgate.cli"), (2, "pdrgate.gate.b"), (3, "pdrgate.report.c"), (5, "robot.api.d")
    ]  # fmt: skip
