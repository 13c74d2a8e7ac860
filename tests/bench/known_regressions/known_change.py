"""A regression that happened, as a patch of our own with the same effect: a file of `changes/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent / "changes"
_LINE = re.compile(r"([A-Z][a-z]*): (\S.*)")
_NEEDED = frozenset({"Regression", "Title", "Class", "Kernels", "Expected", "Change"})
_KNOWN = _NEEDED | {"Introduced", "Path", "Measurand", "Names", "Side"}
_VERDICTS = ("REGRESSION", "PASS")

Planted = Literal["candidate", "baseline"]


@dataclass(frozen=True, slots=True)
class KnownChange:
    """What a file says: lines of ``Key: value``, an empty one, and a patch that `git apply` takes."""

    name: str
    """The name of the file, such as ``04-source-checked-in-full``, and of the branch."""
    number: int
    """The number in the catalogue of documented regressions; 0 where builds are equal."""
    title: str
    introduced: str
    """The commits that brought and mended it; empty where there was none."""
    class_: str
    """A letter of the catalogue."""
    kernels: tuple[str, ...]
    """Lines of releases that the patch is written for, such as 6.1."""
    expected: str
    """The verdict that the gate owes."""
    path: str
    measurand: str
    names: tuple[str, ...]
    """Functions that lead to the cause; one of them is to be named."""
    side: Planted
    """The build that is patched: of a tree that has a regression for good, the baseline is without it."""
    change: str
    """What the patch does, in words."""
    patch: str

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are patched."""
        return tuple(re.findall(r"^\+\+\+ b/(\S+)$", self.patch, re.M))

    @property
    def lines(self) -> int:
        """How many lines are taken away or added."""
        return len(re.findall(r"^[-+](?!--|\+\+)", self.patch, re.M))


def known_change(file: Path) -> KnownChange:
    """The change that a file has.

    Raises:
        ValueError: a line of its head is no ``Key: value``, one is lacking or unknown, or there is no patch.
    """
    head, _, patch = file.read_text().partition("\n\n")
    told: dict[str, str] = {}
    for line in head.splitlines():
        found = _LINE.fullmatch(line)
        if found is None or found[1] not in _KNOWN or found[1] in told:
            raise ValueError(f"{file}: {line!r} is no line of its head: {', '.join(sorted(_KNOWN))}, each once")
        told[found[1]] = found[2]
    if lacking := sorted(_NEEDED - told.keys()):
        raise ValueError(f"{file}: its head lacks {', '.join(lacking)}")
    if told["Expected"] not in _VERDICTS:
        raise ValueError(f"{file}: expects {told['Expected']}; {' or '.join(_VERDICTS)}")
    side = told.get("Side", "candidate")
    if side not in ("candidate", "baseline"):
        raise ValueError(f"{file}: is planted in the {side}; candidate or baseline")
    if not re.search(r"^--- a/\S+\n\+\+\+ b/\S+\n@@ ", patch, re.M):
        raise ValueError(f"{file}: has no patch below its head")
    return KnownChange(
        name=file.stem, number=int(told["Regression"]), title=told["Title"], introduced=told.get("Introduced", ""),
        class_=told["Class"], kernels=_words(told["Kernels"]), expected=told["Expected"], path=told.get("Path", "any"),
        measurand=told.get("Measurand", ""), names=_words(told.get("Names", "")),
        side="baseline" if side == "baseline" else "candidate", change=told["Change"], patch=patch,
    )  # fmt: skip


def known_changes(folder: Path = FOLDER) -> Sequence[KnownChange]:
    """All that there are, by number. Raises ValueError as `known_change` does."""
    return sorted(map(known_change, folder.glob("*.patch")), key=lambda one: (one.number, one.name))


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in text.split(","))))
