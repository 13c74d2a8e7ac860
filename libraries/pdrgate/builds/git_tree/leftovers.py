"""Leftovers of builds for later ones: their folders of objects, so that only what differs is compiled again.

A build takes over what one of its own ancestors left, and nothing else: whoever wrote the ancestor is in its history
anyway, while a commit beside it, or of another tree, may be anybody's. The tree's word that a commit is an ancestor is
untrusted: the digests of the commits between them prove it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.git_tree.revision import Revision

_KEPT = 4
"""Folders of objects that stay, each of 0.5 to 3 GB."""
_MOST_BETWEEN = 20_000
"""Commits between a build and the ancestor that it goes on from."""
_NAME = re.compile(r"([0-9a-f]{40,64})-([0-9a-f]{64})")
_BEGIN = re.compile(rb"([0-9a-f]{40,64}) commit (\d{1,9})\n")
_PARENT = re.compile(rb"parent ([0-9a-f]{40,64})")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Folders of objects, by the names of the builds that left them."""

    folder: Path

    def of_ancestor(self, revision: Revision, options: str) -> Path | None:
        """The folder of the nearest ancestor that left one, of those with the same options if there are such.

        Args:
            options: digest of what else a build depends on.
        """
        found: list[tuple[bool, int, Path]] = []
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if (named := _NAME.fullmatch(path.name)) is None:
                continue
            if (between := generations(revision, named[1])) is not None:
                found.append((named[2] != options, between, path))
        if not found:
            return None
        nearest = min(found)[2]
        os.utime(nearest)
        return nearest

    def leave(self, objects: Path, name: str) -> None:
        """Keep a folder of objects by the name of its build; those that were not used for longest go."""
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / name).exists():
            objects.rename(self.folder / name)
        by_use = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_ctime)
        for path in by_use[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)


def generations(revision: Revision, ancestor: str) -> int | None:
    """Number of commits between a revision and its ancestor; None if it does not come from that commit."""
    if revision.commit == ancestor:
        return 0
    between = f"{ancestor}..{revision.commit}"
    named = revision.repository.asked("rev-list", "--ancestry-path", f"--max-count={_MOST_BETWEEN}", between)
    if not named:
        return None
    commits = revision.repository.run("cat-file", "--batch", given=named + "\n")
    parents = true_parents(commits.stdout)
    reached, ways = {revision.commit}, [revision.commit]
    while ways:
        for parent in parents.get(ways.pop(), frozenset()) - reached:
            reached.add(parent)
            ways.append(parent)
    return len(parents) if ancestor in reached else None


def true_parents(commits: bytes) -> Mapping[str, frozenset[str]]:
    """The parents of commits that ``git cat-file --batch`` prints, of those whose content has the digest they have."""
    found: dict[str, frozenset[str]] = {}
    at = 0
    while (begin := _BEGIN.match(commits, at)) is not None:
        end = begin.end() + int(begin[2])
        content, name = commits[begin.end() : end], begin[1].decode()
        digest = hashlib.sha256 if len(name) == 64 else hashlib.sha1
        if digest(b"commit %d\0" % len(content) + content).hexdigest() == name:
            lines = content.partition(b"\n\n")[0].splitlines()
            parents = (_PARENT.fullmatch(line) for line in lines)
            found[name] = frozenset(one[1].decode() for one in parents if one is not None)
        at = end + 1
    return found
