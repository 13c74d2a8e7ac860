"""The paths of the portfolio: what their files describe, and the fault that each of them names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pdrgate.gate.run.scenario import Scenario
from pdrgate.launch.described import described_tests
from pdrgate.launch.path_files import PathFile, path_files

ROOT = Path(__file__).parents[2]
FILES: Mapping[str, PathFile] = {one.file.stem: one for one in path_files()}
"""The file of each path, by its name."""
REPLACED = "replaced with: "
"""Begins a fault that happens at each replacement, and not before all of them."""


@cache
def _scenarios() -> Mapping[str, Scenario]:
    return {tag: one.scenario for one in described_tests(patterns=("path-*",)) for tag in one.tags}


def scenario_of_path(name: str) -> Scenario:
    """The scenario of a path's own test."""
    return _scenarios()[FILES[name].tag]
