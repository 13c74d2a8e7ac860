"""The sources of a revision: a repository and a folder of pdrgate's own, which no build can write to.

The commit is fetched from its tree, whose git runs confined. It comes as a pack, of which our git computes the digest
of each object: so the checkout matches the commit's digest, whatever the tree's files hold. Our repository has no
configuration, no hooks and no filters: a checkout has the commit's bytes, its links and its modes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pdrgate.builds.git_tree.revision import Revision
from pdrgate.builds.git_tree.tree_git import CLEAN_GIT
from pdrgate.builds.handed_over import BuildError
from pdrgate.hosts.sandbox import DIES_WITH_PARENT
from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import StorageError

_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "protocol.file.allow=always",
    "core.autocrlf=false", "core.eol=lf", "core.symlinks=true", "core.fileMode=true", "core.ignoreCase=false",
    "core.attributesFile=/dev/null",
)  # fmt: skip
_OLDER_THAN_OBJECTS = 978_307_200
"""A time, in seconds since 1970, before that of any object."""
_AS_COMMITTED = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Attributes that come before those of a tree, a user and a machine: files have the bytes of the commit."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of one revision after the other, in a folder that the caller has locked.

    Args:
        lock: descriptor of the lock, which git holds too while it writes sources: who gets the lock finds it dead.
    """

    folder: Path
    lock: int

    @property
    def checked_out(self) -> Path:
        """The folder with the sources."""
        return self.folder / "source"

    def check_out(self, revision: Revision, ancestor: str | None = None) -> None:
        """Make the folder of sources the revision's; files that are the same stay as old as they are.

        Args:
            ancestor: the commit whose objects are taken over, if any. Files that differ from it are made new, and those
                that came back to what it had are made old, for make compiles what is newer than its object.

        Raises:
            BuildError: the tree does not hand over the commit.
            StorageError: there is no room for it.
        """
        self.checked_out.mkdir(exist_ok=True)
        if not self._repository.exists():
            self._git("init", "--quiet", "--bare", "--template=")
        attributes = self._repository / "info/attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text(_AS_COMMITTED)
        for commit in filter(None, (revision.commit, ancestor)):
            kept = f"refs/kept/{commit}"
            if self._run("rev-parse", "--verify", "--quiet", kept).returncode:
                self._fetch(replace(revision, commit=commit), kept)
        index = self.folder / "index"
        # We have the lock: whoever left it is dead.
        index.with_name("index.lock").unlink(missing_ok=True)
        on_index = {"GIT_INDEX_FILE": str(index)}
        # Only names that the revision has: another one may lead through a link, and out of the folder.
        of_revision = ("diff-index", "--cached", "--diff-filter=a", revision.commit)
        written = self._names(*of_revision, variables=on_index) if index.exists() else ()
        tree = f"--work-tree={self.checked_out}"
        self._git(tree, "read-tree", "--reset", "-u", revision.commit, variables=on_index, held=(self.lock,))
        if ancestor is not None:
            differ = frozenset(self._names("diff-tree", "-r", "--diff-filter=d", ancestor, revision.commit))
            self._date([name for name in written if name not in differ], _OLDER_THAN_OBJECTS)
            self._date(differ.difference(written), None)
            # Files whose dates are others than in the index would be written anew by the next checkout.
            self._git(tree, "update-index", "-q", "--refresh", variables=on_index, held=(self.lock,))

    def _date(self, names: Iterable[str], when: int | None) -> None:
        """Date files of the sources that are there: seconds since 1970; None: now."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.utime(self.checked_out / name, None if when is None else (when, when), follow_symlinks=False)

    def _names(self, command: str, *words: str, variables: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
        """The names of files that git says differ."""
        said = self._git(command, "--name-only", "--no-renames", "-z", *words, variables=variables)
        return tuple(filter(None, said.split("\0")))

    def time(self, revision: Revision) -> str:
        """When a revision that was checked out was committed, in ISO 8601."""
        return self._git("show", "--no-patch", "--format=%cI", revision.commit)

    @property
    def _repository(self) -> Path:
        return self.folder / "repository.git"

    def _fetch(self, revision: Revision, kept: str) -> None:
        for left in ("shallow.lock", "packed-refs.lock", f"{kept}.lock"):
            (self._repository / left).unlink(missing_ok=True)
        done = self._run(
            "fetch", "--quiet", "--depth=1", "--update-shallow", "--no-tags", "--no-write-fetch-head",
            "--no-auto-maintenance", "--no-recurse-submodules",
            f"--upload-pack={shlex.join(revision.repository.command('upload-pack'))}",
            str(revision.tree), f"+{revision.commit}:{kept}",
        )  # fmt: skip
        if done.returncode:
            _check_room(self.folder, done.stderr)
            raise BuildError(
                f"{revision.text}: its sources cannot be had of the tree: {revision.repository.reason(done.stderr)}; "
                "is all of the commit there (git fsck)?"
            )

    def _git(self, *words: str, variables: Mapping[str, str] = MappingProxyType({}), held: tuple[int, ...] = ()) -> str:
        done = self._run(*words, variables=variables, held=held)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason is given"]
            _check_room(self.folder, done.stderr)
            raise BuildError(f"{self.folder}: `git {shlex.join(words[:2])}` failed: {lines[-1]}")
        return done.stdout.strip()

    def _run(
        self, *words: str, variables: Mapping[str, str] = MappingProxyType({}), held: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        options = [word for one in _SETTINGS for word in ("-c", one)]
        command = (*DIES_WITH_PARENT, "git", *options, f"--git-dir={self._repository}", *words)
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            pass_fds=held, env=child_environment() | CLEAN_GIT | {**variables},
        )  # fmt: skip


def _check_room(folder: Path, said: str) -> None:
    if "No space left on device" in said:
        raise StorageError(f"{folder}: No space left on device for sources; make room there")
