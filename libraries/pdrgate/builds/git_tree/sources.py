"""The sources of a revision: a repository and a folder of pdrgate's own, which no build can write to.

The commit is fetched from its tree, whose git runs confined. It comes as a pack, of which our git computes the digest
of each object: so the checkout matches the commit's digest, whatever the tree's files hold. Our repository has no
configuration, no hooks and no filters: a checkout has the commit's bytes, its links and its modes.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
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

    def check_out(self, revision: Revision) -> None:
        """Make the folder of sources the revision's; files that are the same stay as old as they are.

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
        kept = f"refs/kept/{revision.commit}"
        if self._run("rev-parse", "--verify", "--quiet", kept).returncode:
            self._fetch(revision, kept)
        index = self.folder / "index"
        # We have the lock: whoever left it is dead.
        index.with_name("index.lock").unlink(missing_ok=True)
        self._git(
            f"--work-tree={self.checked_out}", "read-tree", "--reset", "-u", revision.commit,
            variables={"GIT_INDEX_FILE": str(index)}, held=(self.lock,),
        )  # fmt: skip

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
