"""Groups of changes that are drawn by chance, each a patch."""

from __future__ import annotations

import difflib
import io
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from drawing import FOLDERS, Place, changed_text, drawn
from planting import git

GROUP: Mapping[str, int] = {
    "function": 3, "inlined": 1, "default": 1, "set at boot": 1, "static key": 1, "fields swapped": 1,
}  # fmt: skip
"""How many changes of each kind a group has."""


@dataclass(frozen=True)
class Group:
    """Changes that are planted together."""

    name: str
    places: Sequence[Place]
    sources: Mapping[str, str]

    @property
    def title(self) -> str:
        """The subject of the commit."""
        return f"{len(self.places)} changes drawn by chance"

    @cached_property
    def patch(self) -> str:
        """What `git apply` takes."""
        files = {place.file for place in self.places}
        return "".join(line for file in sorted(files) for line in self._difference(file))

    def _difference(self, file: str) -> Iterator[str]:
        before = self.sources[file]
        after = changed_text(before, [place for place in self.places if place.file == file])
        return difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{file}", f"b/{file}")


def groups(sources: Mapping[str, str], compiled: frozenset[str], seed: int, number: int) -> Sequence[Group]:
    """So many groups, which have no file in common. Raises ValueError where the sources have not enough places."""
    chance = random.Random(seed)
    places = drawn(sources, compiled, {kind: count * number for kind, count in GROUP.items()}, chance)
    by_kind = {kind: iter([place for place in places if place.kind == kind]) for kind in GROUP}
    return [
        Group(
            f"random-{seed}-{index + 1}",
            [next(by_kind[kind]) for kind, count in GROUP.items() for _ in range(count)],
            sources,
        )
        for index in range(number)
    ]


def sources_of(tree: Path, base: str) -> Mapping[str, str]:
    """The C sources and headers of `FOLDERS` at a revision. Raises PlantingError as `git` does."""
    names = git(tree, "ls-tree", "-r", "--name-only", base, "--", *FOLDERS).splitlines()
    files = [name for name in names if name.endswith((".c", ".h"))]
    command = ("git", "-C", str(tree), "cat-file", "--batch")
    given = "".join(f"{base}:{name}\n" for name in files).encode()
    answer = io.BytesIO(subprocess.run(command, input=given, capture_output=True, check=True).stdout)
    texts: dict[str, str] = {}
    for name in files:
        size = int(answer.readline().split()[-1])
        texts[name] = answer.read(size + 1)[:-1].decode(errors="surrogateescape")
    return texts
