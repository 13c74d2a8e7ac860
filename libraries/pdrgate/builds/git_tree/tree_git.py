"""Asks git about a tree that a stranger may have made.

A repository's own configuration names programs that git runs: filters, ``gpg.program``, helpers of remotes. No list of
settings turns all of them off. So git runs in a sandbox, in which the tree can be read and nothing else is. Where none
can be had git runs as the caller, who is not root, as their own git would.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.handed_over import BuildError
from pdrgate.hosts.sandbox import Sandbox, User, confines, nobody
from pdrgate.this_process.child_environment import child_environment

_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "log.showSignature=false", "gc.auto=0", "safe.directory=*",
    # What is handed over goes through a pipe of this machine: to look for differences between files takes minutes.
    "uploadpack.allowAnySHA1InWant=true", "pack.window=0", "pack.compression=1",
)  # fmt: skip
"""Settings that hold whatever the tree's say; the tree may be somebody else's."""
CLEAN_GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
"""Variables of a git that reads no settings but those of a repository."""
_OF_A_TREE = CLEAN_GIT | {"GIT_PROTOCOL": "version=2"}
"""Variables of a git that hands commits over. By an older protocol it hands over none that no branch leads to."""
_MOST_SAID = 64 << 20
"""Bytes that git may say."""
_PATIENCE = 600.0
"""Seconds for an answer: the first look at a large history reads gigabytes."""
_DEEPEST = 5
"""Repositories that borrow objects of one another in a row, as git allows."""
_LARGEST = 1 << 16
"""Bytes of a file that names another place."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A git tree."""

    top: Path
    """Its top folder, as a real path; or a bare repository."""

    @classmethod
    def around(cls, path: Path) -> Tree | None:
        """The tree that a folder lies in; None if there is none."""
        real = path.resolve()
        for one in (real, *real.parents):
            if (one / ".git").exists() or all((one / name).exists() for name in ("HEAD", "objects", "refs")):
                return cls(one)
        return None

    def command(self, *words: str) -> list[str]:
        """The words that run git in it. Raises BuildError if it is not installed, or may not read the tree."""
        if shutil.which("git") is None:
            raise BuildError(f"{self.top}: git is not installed; install it, or name a build of the kernel")
        options = ["--no-optional-locks", "--no-replace-objects", *(word for one in _SETTINGS for word in ("-c", one))]
        command = ("git", "-C", str(self.top), *options, *words)
        if not confines(f"{self.top}: to read a git tree"):
            return ["env", *(f"{name}={value}" for name, value in _OF_A_TREE.items()), *command]
        places = {str(place): place for place in self._places()}
        return Sandbox(self._reader(), readable=places, variables=_OF_A_TREE).command(*command)

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[bytes]:
        """Run git in it, and return what it said.

        Args:
            given: its standard input.

        Raises:
            BuildError: git is not installed, falls silent, or may not read the tree.
        """
        bounds = ("prlimit", f"--fsize={_MOST_SAID}", "--core=0")
        with tempfile.TemporaryFile() as said:
            try:
                done = subprocess.run(
                    (*bounds, *self.command(*words)), input=given.encode(), stdout=said, stderr=subprocess.PIPE,
                    check=False, env=child_environment(), timeout=_PATIENCE, start_new_session=True,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise BuildError(
                    f"{self.top}: git does not answer within {_PATIENCE:g} s; is the tree whole?"
                ) from error
            said.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, said.read(), done.stderr)

    def git(self, *words: str) -> str:
        """Output of git in the tree. Raises BuildError also if git fails."""
        done = self.run(*words)
        if done.returncode:
            reason = self.reason(done.stderr.decode(errors="replace"))
            raise BuildError(f"{self.top}: `git {shlex.join(words[:2])}` failed: {reason}")
        return done.stdout.decode(errors="replace").strip()

    def reason(self, said: str) -> str:
        """Why git failed: its last line; in a clone that left a part with its remote, the first one too, and a
        remedy."""
        lines = [line.strip() for line in said.splitlines() if line.strip()] or ["no reason is given"]
        if not self.asked("config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"):
            return lines[-1]
        why = f" ({lines[0]})" if lines[0] != lines[-1] else ""
        return (
            f"{lines[-1]}{why}; the clone is partial, and to read it takes a network, a proxy or an agent that pdrgate "
            "gives no tree's git: complete it with git fetch --refetch --no-filter"
        )

    def asked(self, *words: str) -> str | None:
        """Output of git in the tree; None if git says that there is no such thing.

        Raises:
            BuildError: as `run`, or it cannot be known of a partial clone.
        """
        done = self.run(*words)
        if done.returncode and b"promisor remote" in done.stderr:
            raise BuildError(f"{self.top}: {self.reason(done.stderr.decode(errors='replace'))}")
        return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None

    def _reader(self) -> User | None:
        """User that git runs as: the tree's owner, or nobody if that is root."""
        user, about = nobody(), self._folder.stat()
        if user is None or about.st_uid:
            return None if user is None else User(about.st_uid, about.st_gid)
        closed = (
            path
            for path in (self.top, self._folder, self._folder / "HEAD", self._folder / "objects")
            if not _open(path)
        )
        if (one := next(closed, None)) is not None:
            raise BuildError(f"{one}: only root may read it, and root runs no git of a tree: chmod -R o+rX {self.top}")
        return user

    @property
    def _folder(self) -> Path:
        """The repository."""
        inside = self.top / ".git"
        if inside.is_file() and (named := re.match(r"gitdir: (.+)", _text(inside))) is not None:
            return (self.top / named[1].strip()).resolve()
        return inside if inside.exists() else self.top

    def _places(self) -> Iterator[Path]:
        """Folders of this machine that make up the tree: itself, and repositories that it is a worktree of or borrows
        from."""
        owner = self._folder.stat().st_uid
        common = self._folder / _text(self._folder / "commondir").strip()
        found, objects = [self.top, self._folder.resolve(), common.resolve()], [(common / "objects").resolve()]
        for _ in range(_DEEPEST):
            named = [(one, line) for one in objects for line in _text(one / "info/alternates").splitlines()]
            objects = [(one / line).resolve() for one, line in named if line and not line.startswith("#")]
            found += objects
        for number, place in enumerate(dict.fromkeys(found)):
            inside = any(place.is_relative_to(one) for one in found[:number])
            if place.is_dir() and not inside and (place == self.top or _may_be_borrowed(place, owner)):
                yield place


def _may_be_borrowed(place: Path, owner: int) -> bool:
    """Whether a tree of that owner may name a place: the sandbox shows it however the folders above it are closed."""
    if place.stat().st_uid == owner:
        return True
    return all(one.stat().st_mode & stat.S_IXOTH for one in place.parents)


def _open(path: Path) -> bool:
    if not path.exists():
        return True
    mode = path.stat().st_mode
    wanted = 0o005 if stat.S_ISDIR(mode) else 0o004
    return mode & wanted == wanted


def _text(file: Path) -> str:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return ""
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode(errors="replace")
    except OSError:
        return ""
