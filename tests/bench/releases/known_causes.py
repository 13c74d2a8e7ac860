"""Causes that people found for what changed between two releases, as causes.yaml has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("causes.yaml")


@dataclass(frozen=True, slots=True)
class Causes:
    """Causes by step (``7.2 -> 7.3``) and function."""

    by_step: Mapping[str, Mapping[str, str]]

    def of(self, label: str, functions: Iterable[str]) -> str:
        """The causes that are known for a step's functions, the first function's first; empty where none is."""
        before, after = (_short(release) for release in label.split(" -> "))
        known = self.by_step.get(f"{before} -> {after}", {})
        return " ".join(dict.fromkeys(known[name] for name in functions if name in known))


def causes() -> Causes:
    """Read causes.yaml."""
    return Causes(yaml.safe_load(_FILE.read_text(encoding="utf-8")) or {})


def _short(release: str) -> str:
    return ".".join(release.split(".")[:2])
