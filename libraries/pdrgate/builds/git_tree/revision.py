"""A revision of a git tree, as a person names one: ``TREE@REV``, such as ``~/linux@main``.

The tree is only read. Nothing of it is checked out, no worktree is added, and its hooks do not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.handed_over import BuildError
from pdrgate.child_environment import child_environment

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_BRANCHES = ("@{upstream}", "origin/HEAD", "main", "master", "origin/main", "origin/master")
"""Where a branch may have come from, in the order in which that is asked."""
_MOST_COMMITS = 10_000
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.sparseCheckout=false", "gc.auto=0", "safe.directory=*"
)  # fmt: skip
"""Settings that keep git from running a tree's own programs and from leaving out files, and let root read the tree of
somebody else."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of a tree."""

    tree: Path
    """The tree's top folder, as a real path; or a bare repository."""
    commit: str
    """The whole digest."""

    @property
    def text(self) -> str:
        """The words that name just this commit, whatever becomes of branches."""
        return f"{self.tree}@{self.commit}"

    @property
    def name(self) -> str:
        """The tree and what git describes the commit as, such as ``linux@v6.12-3-g0123456789ab``."""
        told = git(self.tree, "describe", "--tags", "--always", "--abbrev=12", self.commit)
        return f"{self.tree.name}@{told}"

    @property
    def time(self) -> str:
        """When it was committed, in ISO 8601."""
        return git(self.tree, "show", "--no-patch", "--format=%cI", self.commit)


def named_revision(text: str) -> tuple[Path, str] | None:
    """The tree and the revision that ``TREE@REV`` names; None where the text is no such thing.

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
    """The commit that ``TREE@REV`` stands for now.

    Raises:
        BuildError: there is no such tree or no such commit, or the tree holds no Linux sources.
    """
    named = named_revision(text)
    if named is None:
        raise BuildError(f"{text}: names no revision of a tree; write TREE@REV, such as ~/linux@main")
    tree, word = named
    top = _top(tree, text)
    commit = _commit(top, word)
    if commit is None:
        raise BuildError(f"{text}: {tree} knows no commit {word}{_shallow(top)}; name another, or git fetch it")
    if not git(top, "ls-tree", commit, "Kbuild", "arch").count("\n"):
        raise BuildError(f"{text}: holds no Linux sources (no Kbuild, no arch/); name a kernel's tree")
    return Revision(top, commit)


def merge_base(of: Revision) -> Revision:
    """The commit at which a branch has left the one that it came from.

    Raises:
        BuildError: the tree does not tell it: nothing to come from, no commit in common, a history that is cut off.
    """
    others = [(name, found) for name in _BRANCHES if (found := _commit(of.tree, name)) is not None]
    bases = [(name, base) for name, other in others if (base := _asked(of.tree, "merge-base", of.commit, other))]
    for _, base in bases:
        if base != of.commit:
            return Revision(of.tree, base)
    why = "no upstream, no origin/HEAD, no main and no master are there"
    if bases:
        why = f"it is part of {bases[0][0]} itself"
    elif others:
        why = f"it has no commit in common with {others[0][0]}{_shallow(of.tree)}"
    raise BuildError(f"{of.text}: what it came from is not known: {why}; name it with --against {of.tree}@REV")


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
    told = git(first.tree, "rev-list", "--first-parent", "--reverse", f"{first.commit}..{last.commit}").split()
    if not told or _asked(first.tree, "merge-base", first.commit, last.commit) != first.commit:
        raise BuildError(f"{text}: {bad or 'HEAD'} does not come from {good}; name a commit before it")
    if len(told) > _MOST_COMMITS:
        raise BuildError(f"{text}: has {len(told)} commits, and {_MOST_COMMITS} are the most; name a later one")
    return (first, *(Revision(first.tree, commit) for commit in told))


def uncommitted(tree: Path) -> int:
    """How many files of the tree have changes that no commit has, and that no build of a revision holds."""
    if _asked(tree, "rev-parse", "--is-inside-work-tree") != "true":
        return 0
    return len((_asked(tree, "status", "--porcelain", "--untracked-files=no") or "").splitlines())


def git(tree: Path, *words: str, settings: Sequence[str] = ()) -> str:
    """What git says in that tree.

    Args:
        settings: variables of the environment, as ``NAME=VALUE``.

    Raises:
        BuildError: git is not installed, or fails.
    """
    done = _run(tree, words, settings)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason told"]
        raise BuildError(f"{tree}: `git {shlex.join(words[:2])}` failed: {lines[-1]}")
    return done.stdout.strip()


def _asked(tree: Path, *words: str) -> str | None:
    """What git says; None where it says that there is no such thing."""
    done = _run(tree, words)
    return done.stdout.strip() if done.returncode == 0 else None


def _run(tree: Path, words: Sequence[str], settings: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    options = ["--no-optional-locks", *(word for one in _SETTINGS for word in ("-c", one))]
    variables = dict(one.split("=", 1) for one in settings)
    try:
        return subprocess.run(
            ("git", "-C", str(tree), *options, *words), capture_output=True, text=True, errors="replace", check=False,
            env=child_environment() | variables, user=caller(), group=caller_s_group(),
        )  # fmt: skip
    except FileNotFoundError as error:
        raise BuildError(f"{tree}: git is not installed; install it, or name a build of the kernel") from error


def caller() -> int | None:
    """The user that root works for here: who has called sudo. Their tree is read and built as them."""
    return _of_sudo("SUDO_UID")


def caller_s_group() -> int | None:
    """The group of `caller`."""
    return _of_sudo("SUDO_GID")


def _of_sudo(name: str) -> int | None:
    told = os.environ.get(name, "")
    return int(told) if os.geteuid() == 0 and told.isdecimal() else None


def _top(tree: Path, text: str) -> Path:
    real = tree.resolve()
    top = _asked(real, "rev-parse", "--show-toplevel") or _asked(real, "rev-parse", "--absolute-git-dir")
    if top is None:
        raise BuildError(f"{text}: {tree} is no git tree; name one, or a build tree without @")
    return Path(top)


def _commit(tree: Path, word: str) -> str | None:
    if word.startswith("-"):
        return None
    told = _asked(tree, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    return told if told is not None and _COMMIT.fullmatch(told) else None


def _shallow(tree: Path) -> str:
    """A hint for a tree whose history is cut off."""
    cut = _asked(tree, "rev-parse", "--is-shallow-repository") == "true"
    return ", whose history is cut off (git fetch --unshallow brings the rest)" if cut else ""
