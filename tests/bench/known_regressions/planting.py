"""A branch with a known change, in a tree of which nothing is checked out."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

BRANCHES = "pdrgate-known"
"""Branches are called so, and as the change's file."""
_WHO = {f"GIT_{who}_{what}": "bench@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class PlantingError(Exception):
    """A change does not fit the sources."""


class Patch(Protocol):
    """A change of sources."""

    @property
    def name(self) -> str:
        """The name of the branch that it becomes."""

    @property
    def title(self) -> str:
        """The subject of the commit."""

    @property
    def patch(self) -> str:
        """What `git apply` takes."""


def planted(tree: Path, base: str, change: Patch) -> str:
    """The commit with the change on top of ``base``, which is that of a branch from now on.

    The same change of the same base is the same commit each time, so that its build is found again.

    Raises:
        PlantingError: the patch does not apply to these sources, or the tree is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git(tree, "read-tree", base, variables=index)
        try:
            git(tree, "apply", "--cached", "-", variables=index, given=change.patch)
        except PlantingError as error:
            raise PlantingError(f"{change.name}: does not apply to {base}: {error}") from error
        sources = git(tree, "write-tree", variables=index)
    when = git(tree, "show", "--no-patch", "--format=%cI", base)
    dates = {f"GIT_{who}_DATE": when for who in ("AUTHOR", "COMMITTER")}
    commit = git(tree, "commit-tree", sources, "-p", base, "-m", change.title, variables=_WHO | dates)
    git(tree, "branch", "--force", f"{BRANCHES}/{change.name}", commit)
    return commit


def release(tree: Path, revision: str) -> str:
    """The line of releases that a revision's Makefile names, such as 7.3. Raises PlantingError where it names none."""
    lines = git(tree, "show", f"{revision}:Makefile").splitlines()[:6]
    words = dict(line.split(" = ") for line in lines if " = " in line)
    if not {"VERSION", "PATCHLEVEL"} <= words.keys():
        raise PlantingError(f"{tree}: the Makefile of {revision} names no release of Linux")
    return f"{words['VERSION']}.{words['PATCHLEVEL']}"


def git(tree: Path, *words: str, variables: Mapping[str, str] | None = None, given: str | None = None) -> str:
    """What git says in that tree. Raises PlantingError with its last line where it fails."""
    done = subprocess.run(
        ("git", "-C", str(tree), *words), input=given, capture_output=True, text=True, check=False,
        env=os.environ | dict(variables or {}),
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"git {words[0]} failed"]
        raise PlantingError(lines[-1])
    return done.stdout.strip()
