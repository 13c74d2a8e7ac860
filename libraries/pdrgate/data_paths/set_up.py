"""What a user's own scenario sets the SUT up with: commands, what undoes them, and files that they need."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pdrgate.data_paths.replacing import REPLACING_SHELL, Replacement
from pdrgate.values.errors import UsageError

UNDO = "undo:"
"""What begins the command that undoes the one before it."""
_LARGEST_FILE, _MOST_STEPS = 64 << 20, 200
_OF_THE_SYSTEM = ("/bin/", "/boot/", "/dev/", "/etc/", "/lib", "/proc/", "/run/", "/sbin/", "/sys/", "/usr/", "/var/")
"""Paths below which a file is the SUT's own, whatever this machine has there."""
_PATH = re.compile(r"(?<![\w./@:=-])(/[\w./@%+=~-]+)")
_COMMAND = re.compile(
    r"(?:^|[;&|(\n`])[ \t]*(?:(?:if|while|until|then|do|else|elif|exec|time|!)[ \t]+)*(?:\w+=\S*[ \t]+)*([\w./+-]+)"
)
_NAME = re.compile(r"[A-Za-z0-9][\w.]{0,59}", re.ASCII)
_WORD = re.compile(r"[\w.+-]+")
_PROGRAM = re.compile(r"\$BPF\b|\$\{BPF\b")
"""How steps name the object under test, which is put on the SUT for them."""


@dataclass(frozen=True, slots=True)
class SetUpStep:
    """A command of a shell on the SUT, and the one that undoes it."""

    command: str
    undo: str = ""
    """Command that undoes the step; empty where there is none.

    What the step made on a host that stays is then taken away by pdrgate, or reported.
    """


@dataclass(frozen=True, slots=True)
class SetUpFile:
    """A file that is put on the SUT, into the folder that the commands run in."""

    name: str
    content: bytes
    executable: bool = False

    @property
    def text(self) -> str:
        """What a person wrote; empty for a program."""
        return "" if b"\0" in self.content else self.content.decode(errors="replace")


@dataclass(frozen=True)
class SetUp:
    """The steps of a scenario, on top of its data path; what it was made of is read once."""

    steps: tuple[SetUpStep, ...]
    files: tuple[SetUpFile, ...] = ()
    name: str = ""
    """What the user calls it: letters, digits, dots and underscores."""
    replacement: Replacement | None = None
    """What replaces what the steps made, while packets pass; None: nothing does."""

    @cached_property
    def digest(self) -> str:
        """Names equal steps with equal files."""
        sum_ = hashlib.sha256()
        for step in self.steps:
            sum_.update(f"{step.command}\0{step.undo}\0".encode())
        if self.replacement:
            sum_.update(f"{self.replacement}\0replacement\0".encode())
        for file in self.files:
            sum_.update(f"{file.name}\0{file.executable}\0{len(file.content)}\0".encode() + file.content)
        return sum_.hexdigest()[:12]

    @property
    def label(self) -> str:
        """A word for it: its name, else its digest."""
        return self.name or self.digest

    def recorded(self) -> dict[str, str]:
        """What result.json has of it: steps by their numbers, files by their names."""
        steps = {
            f"step {number}": f"{step.command}{step.undo and f' ({UNDO} {step.undo})'}"
            for number, step in enumerate(self.steps, 1)
        }
        replaced = {"replacement": str(self.replacement)} if self.replacement else {}
        return (
            steps | replaced | {file.name: f"SHA-256 {hashlib.sha256(file.content).hexdigest()}" for file in self.files}
        )

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that commands and scripts begin with."""
        return tuple(
            dict.fromkeys(name for text in self._texts() for name in _COMMAND.findall(text) if "/" not in name)
        )

    @property
    def loads_program(self) -> bool:
        """Whether steps load the object under test themselves, by its name ``$BPF``."""
        return any(_PROGRAM.search(text) for text in self._texts())

    @property
    def words(self) -> frozenset[str]:
        """All words of commands and files: among them are kinds of devices and rules that a kernel has modules for."""
        return frozenset(word for text in self._texts() for word in _WORD.findall(text))

    def __str__(self) -> str:
        """The name of the set-up, else its commands, as a person reads them."""
        return self.name or "; ".join(step.command for step in self.steps)

    def _texts(self) -> Iterator[str]:
        for step in self.steps:
            yield from (step.command, step.undo)
        if self.replacement:
            yield from (REPLACING_SHELL, self.replacement.command)
        yield from (file.text for file in self.files)


def set_up_of(commands: Iterable[str], files: Iterable[Path | str] = (), put_before: Iterable[SetUpFile] = ()) -> SetUp:
    """The set-up that a person wrote: commands, some of them ``undo: COMMAND``, and files of this machine.

    A file of this machine that a command names by its absolute path is put on the SUT too, and named there.

    Raises:
        UsageError: a file cannot be read, two have one name, or an undo has no command before it.
    """
    put = {file.name: file for file in put_before}
    for path in files:
        _take(Path(path), put)
    steps: list[SetUpStep] = []
    for text in commands:
        command = _PATH.sub(lambda match: _named_there(match[1], put), text.strip())
        if not command.startswith(UNDO):
            steps.append(SetUpStep(command))
        elif not steps or steps[-1].undo:
            raise UsageError(f"`{command}` stands behind no step that it undoes; put it right behind one")
        else:
            steps[-1] = SetUpStep(steps[-1].command, command.removeprefix(UNDO).strip())
    if empty := [number for number, step in enumerate(steps, 1) if not step.command]:
        raise UsageError(f"step {empty[0]} of the set-up is empty; leave it out")
    if len(steps) > _MOST_STEPS:
        raise UsageError(f"{len(steps)} steps are too many to set a SUT up; put them into a script of at most one step")
    return SetUp(tuple(steps), tuple(put.values()))


def named_set_up(name: str, set_up: SetUp) -> SetUp:
    """Give a set-up a name. Raises UsageError for a name that no file or metric could have."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"a set-up cannot be called {name!r}; use letters, digits, dots and underscores, as nat.nft")
    return replace(set_up, name=name)


def _named_there(path: str, put: dict[str, SetUpFile]) -> str:
    """How a command names a file on the SUT; what is no file of a user's here stays as it is."""
    file = Path(path)
    if path.startswith(_OF_THE_SYSTEM) or not file.is_file():
        return path
    _take(file, put)
    return f"./{shlex.quote(file.name)}"


def _take(path: Path, put: dict[str, SetUpFile]) -> None:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        executable = bool(path.stat().st_mode & 0o111)
    except OSError as error:
        raise UsageError(f"cannot put {path} on the SUT: {error.strerror}; name a file of this machine") from error
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"cannot put {path} on the SUT: it has more than {_LARGEST_FILE >> 20} MiB; leave it out")
    made = SetUpFile(path.name, content, executable)
    if put.setdefault(path.name, made) != made:
        raise UsageError(f"two files that are put on the SUT are called {path.name}; rename one")
