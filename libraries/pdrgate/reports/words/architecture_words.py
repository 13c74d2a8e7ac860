"""What one change came to on several architectures: a column for each."""

from __future__ import annotations

from pdrgate.builds.architecture import PEOPLES_NAMES
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.reports.words.measurands import verdict_in_words
from pdrgate.reports.words.path_table import path_lines
from pdrgate.results.merging import architecture_of
from pdrgate.results.model import RunResult


def architectures_table(result: RunResult) -> Table | None:
    """A row for each path with what each architecture came to; None where the run is of one architecture."""
    paths: dict[str, dict[str, str]] = {}
    known: dict[str, None] = {}
    for line in path_lines(result):
        name = PEOPLES_NAMES.get(architecture_of(result.scenarios[line.number]), "")
        known |= {name: None} if name else {}
        verdict = verdict_in_words(line.verdict)
        path = line.path.removesuffix(f" on {name}")
        paths.setdefault(path, {})[name] = f"{verdict}: {line.change}" if line.change else verdict
    if len(known) < 2:
        return None
    names = sorted(known)
    columns = (Column("path", heads=True, wraps=True), *(Column(name, wraps=True) for name in names))
    rows = [[Cell(path), *(Cell(found.get(name, "not measured")) for name in names)] for path, found in paths.items()]
    return Table("By architecture", columns, rows)
