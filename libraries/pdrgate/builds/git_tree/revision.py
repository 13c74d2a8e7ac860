"""A revision of a git tree, as a person names one: ``TREE@REV``, such as ``~/linux@main``.

The tree is only read, by a git that is confined (`tree_git`). Nothing of it is checked out, no worktree is added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.git_tree.tree_git import Tree
from pdrgate.builds.handed_over import BuildError

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_BRANCHES = ("@{upstream}", "origin/HEAD", "main", "master", "origin/main", "origin/master")
"""Branches that a branch may have come from, in the order in which they are tried."""
_MOST_COMMITS = 10_000


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of a tree."""

    repository: Tree
    commit: str
    """The whole digest."""

    @property
    def tree(self) -> Path:
        """The tree's top folder."""
        return self.repository.top

    @property
    def text(self) -> str:
        """The words that name just this commit, whatever becomes of branches."""
        return f"{self.tree}@{self.commit}"

    @property
    def name(self) -> str:
        """The tree and what git describes the commit as, such as ``linux@v6.12-3-g0123456789ab``."""
        description = self.repository.git("describe", "--tags", "--always", "--abbrev=12", self.commit)
        return f"{self.tree.name}@{description}"


def named_revision(text: str) -> tuple[Path, str] | None:
    """The tree and the revision that ``TREE@REV`` names; None if the text is no such thing.

    A file or a folder of the whole name comes first. No revision, as in ``~/linux@``, is HEAD.
    """
    if Path(text).exists():
        return None
    # A revision may hold @ itself, as in @{upstream}.
    for at in (found.start() for found in re.finditer("@", text)):
        tree = Path(text[:at] or ".").expanduser()
        if tree.is_dir():
            return tree, text[at + 1 :] or "HEAD"
    return None


def revision(text: str) -> Revision:
    """The commit that ``TREE@REV`` stands for now; of ``TREE@A...B`` the one at which B has left A.

    Raises:
        BuildError: there is no such tree or no such commit, or the tree holds no Linux sources.
    """
    named = named_revision(text)
    if named is None:
        raise BuildError(f"{text}: names no revision of a tree; write TREE@REV, such as ~/linux@main")
    tree, word = named
    top = Tree.around(tree)
    if top is None or top.asked("rev-parse", "--git-dir") is None:
        raise BuildError(f"{text}: {tree} is no git tree; name one, or a build tree without @")
    commit = _commit(top, word)
    if commit is None:
        raise BuildError(f"{text}: {tree} knows no commit {word}{_shallow(top)}; name another, or git fetch it")
    if not top.git("ls-tree", commit, "Kbuild", "arch").count("\n"):
        raise BuildError(f"{text}: holds no Linux sources (no Kbuild, no arch/); name a kernel's tree")
    return Revision(top, commit)


def merge_base(of: Revision) -> Revision:
    """The commit at which a branch has left the one that it came from.

    Raises:
        BuildError: the tree does not show it: nothing to come from, no commit in common, a history that is cut off.
    """
    tree = of.repository
    others = [(name, found) for name in _BRANCHES if (found := _commit(tree, name)) is not None]
    bases = [(name, base) for name, other in others if (base := tree.asked("merge-base", of.commit, other))]
    for _, base in bases:
        if base != of.commit and _COMMIT.fullmatch(base):
            return Revision(tree, base)
    why = "no upstream, no origin/HEAD, no main and no master are there"
    if bases:
        why = f"it is part of {bases[0][0]} itself"
    elif others:
        why = f"it has no commit in common with {others[0][0]}{_shallow(tree)}"
    raise BuildError(f"{of.text}: what it came from is not known: {why}; name it with --against {tree.top}@REV")


def commits_between(text: str) -> tuple[Revision, ...]:
    """The commits that ``TREE@A..B`` names, first parents only: A, and each after it up to B.

    Raises:
        BuildError: as `revision`, or B does not come from A.
    """
    named = named_revision(text)
    if named is None:
        raise BuildError(f"{text}: names no revisions of a tree; write TREE@A..B, such as ~/linux@v6.12..HEAD")
    tree, words = named
    good, _, bad = words.partition("..")
    first, last = revision(f"{tree}@{good}"), revision(f"{tree}@{bad}")
    known = first.repository
    commits = known.git("rev-list", "--first-parent", "--reverse", f"{first.commit}..{last.commit}").split()
    if not commits or known.asked("merge-base", first.commit, last.commit) != first.commit:
        raise BuildError(f"{text}: {bad or 'HEAD'} does not come from {good}; name a commit before it")
    if len(commits) > _MOST_COMMITS:
        raise BuildError(f"{text}: has {len(commits)} commits, and {_MOST_COMMITS} are the most; name a later one")
    return (first, *(Revision(known, commit) for commit in commits if _COMMIT.fullmatch(commit)))


def uncommitted(tree: Tree) -> int:
    """Number of files of the tree with uncommitted changes, which no build of a revision holds."""
    if tree.asked("rev-parse", "--is-inside-work-tree") != "true":
        return 0
    return len((tree.asked("status", "--porcelain", "--untracked-files=no") or "").splitlines())


def _commit(tree: Tree, word: str) -> str | None:
    """The commit that a word names, which may be ``A...B``: where B left A, as in ``git checkout A...B``."""
    if word.startswith("-"):
        return None
    if "..." in word:
        sides = [found for side in word.split("...", 1) if (found := _commit(tree, side or "HEAD")) is not None]
        commit = tree.asked("merge-base", *sides) if len(sides) == 2 else None
    else:
        commit = tree.asked("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    return commit if commit is not None and _COMMIT.fullmatch(commit) else None


def _shallow(tree: Tree) -> str:
    """A hint for a tree whose history is cut off."""
    cut = tree.asked("rev-parse", "--is-shallow-repository") == "true"
    if not cut:
        return ""
    return ", whose history is cut off (git fetch --unshallow brings the rest; in a CI: fetch-depth: 0, GIT_DEPTH: 0)"
