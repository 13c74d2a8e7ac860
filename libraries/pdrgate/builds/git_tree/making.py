"""Runs make on a revision's sources, confined, and takes out of its folder what a kernel has.

A tree's Makefiles are a stranger's programs. They see the sources, which they cannot write to, and two folders that are
new for each build: the objects, and what is installed. What they leave there is looked at file by file.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pdrgate.builds.architecture import Architecture
from pdrgate.builds.git_tree.configuration import KernelConfiguration
from pdrgate.builds.handed_over import BuildError, content, files_below, opened_build_file
from pdrgate.hosts.sandbox import DIES_WITH_PARENT, Sandbox, User, confines, nobody
from pdrgate.this_process.child_environment import child_environment

Report = Callable[[str], None]

_MIB = 1 << 20
_SCRATCH = 2048 * _MIB
_LARGEST_FILE = 8192 * _MIB
_WORD_AGAIN = 60.0
"""Seconds between two words of how far a build is."""
_MOST_READ = 64 * _MIB
"""Bytes of what make says that are read."""
_RELEASE = re.compile(r"\d+\.\d+[\w.+~-]{0,58}")
_LEFTOVER = "work-"


@dataclass(frozen=True, slots=True)
class KindOfFile:
    """A file that a kernel has: the bytes that it may hold, and some that each of its kind holds at a place."""

    largest: int
    at: int = 0
    mark: bytes = b""
    text: bool = False

    def check(self, path: Path, begin: bytes) -> None:
        """Raise BuildError where a file that begins so is another thing."""
        if begin[self.at : self.at + len(self.mark)] != self.mark or (self.text and b"\0" in begin):
            raise BuildError(f"{path.name}: is no file of its kind; does the tree's Makefile make a kernel?")


TEXT = KindOfFile(64 * _MIB, text=True)
ELF = KindOfFile(4096 * _MIB, 0, b"\x7fELF")
LARGEST_IMAGE_FILE = 1024 * _MIB
_INSTALLED = {"modules.order": TEXT, "modules.builtin": TEXT, "modules.builtin.modinfo": KindOfFile(64 * _MIB)}


class MakeError(Exception):
    """The program make failed."""


@dataclass(frozen=True, slots=True)
class Making:
    """One build's folders, and the programs that run on them.

    Args:
        folder: gets the folders, and what the programs say; only its owner may enter it.
        source: the sources.
        objects, installed: the build's own folders, as this process sees them.
        user: whom the programs run as.
        confined: whether they run in a sandbox.
        lock: descriptor of the lock on ``folder``, which stays locked until all of them are dead.
        architecture: what the kernel is compiled for.
        about: files that it will compile, as far as is known; 0 where it is not.
    """

    folder: Path
    source: Path
    objects: Path
    installed: Path
    user: User | None
    confined: bool
    lock: int
    architecture: Architecture
    about: int

    @classmethod
    @contextmanager
    def begun(
        cls, folder: Path, source: Path, lock: int, left: Path | None, architecture: Architecture, about: int = 0
    ) -> Iterator[Self]:  # fmt: skip
        """New folders for a build, the objects with what an ancestor left; they are gone afterwards.

        Raises:
            TestbedError: programs cannot be confined here, and the caller is root.
        """
        confined = confines("to compile a kernel of a git tree")
        user = nobody() if confined else None
        for path in folder.glob(f"{_LEFTOVER}*"):  # of a process that was killed
            shutil.rmtree(path, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_LEFTOVER, ignore_cleanup_errors=True) as place:
            # Without a sandbox the objects' place is in their names: it must not change from build to build.
            objects = Path(place, "objects") if confined else folder / "objects"
            installed = Path(place, "installed")
            if not confined:
                shutil.rmtree(objects, ignore_errors=True)
            for path in (objects, installed):
                path.mkdir(mode=0o755)
                if user is not None:
                    os.chown(path, user.uid, user.gid)
            begun = cls(folder, source, objects, installed, user, confined, lock, architecture, about)
            for file in (begun.log, begun._asked):
                file.write_bytes(b"")
            if left is not None:
                begun._take_over(left)
            yield begun

    @property
    def log(self) -> Path:
        """All that the programs say."""
        return self.folder / "make.log"

    @property
    def compiled(self) -> int:
        """Number of files that have been compiled."""
        return len(re.findall(r"^  CC", self.said(), re.M))

    @property
    def _asked(self) -> Path:
        """The options that a build is to have."""
        return self.folder / "asked.config"

    def said(self) -> str:
        """Output so far; only begin and end of a very long one."""
        with self.log.open("rb") as file:
            begin = file.read(_MOST_READ)
            file.seek(max(file.tell(), self.log.stat().st_size - _MOST_READ))
            return (begin + file.read(_MOST_READ)).decode(errors="replace")

    @property
    def gave_up(self) -> bool:
        """Whether make ended by itself, at an error: then each object that is there is whole."""
        return re.search(r"^make\S*: \*\*\* ", self.said(), re.M) is not None

    def configure(self, configuration: KernelConfiguration, report: Report, *words: str) -> None:
        """Make the .config that is asked for. Raises MakeError."""
        self._asked.write_text(configuration.text)
        seen = "/asked.config" if self.confined else str(self._asked)
        if configuration.whole:
            self._run(report, "cp", "--remove-destination", seen, self._seen(self.objects / ".config"))
        self._run(report, *self._make(configuration.target, f"KCONFIG_ALLCONFIG={seen}", *words))

    def make(self, report: Report, *words: str) -> None:
        """Run make on the sources. Raises MakeError."""
        self._run(report, *self._make(*words))

    def install_modules(self, report: Report, *words: str) -> None:
        """Install the modules. Raises MakeError."""
        self.make(report, "modules_install", f"INSTALL_MOD_PATH={self._seen(self.installed)}", "DEPMOD=true", *words)

    def strip_vmlinux(self, report: Report) -> Path:
        """The kernel as an ELF file without debug information: it is for addresses, by its table of symbols."""
        whole = self.objects / "vmlinux"
        objcopy = f"{self.architecture.cross}objcopy"
        with suppress(MakeError):
            self._run(report, objcopy, "--strip-debug", self._seen(whole), f"{self._seen(self.installed)}/vmlinux")
            return self.installed / "vmlinux"
        return whole

    def text(self, name: str) -> str:
        """A text among the objects. Raises BuildError if it is no text."""
        read = content(self.objects / name, self.objects, TEXT.largest)
        TEXT.check(Path(name), read)
        return read.decode(errors="replace")

    def release(self) -> str:
        """Release of the kernel. Raises BuildError if it could be no name of a file."""
        release = self.text("include/config/kernel.release").strip()
        if not _RELEASE.fullmatch(release):
            raise BuildError(f"its release is {release[:80]!r}, which no kernel is called")
        return release

    def take_out(self, path: Path, kind: KindOfFile, to: Path) -> None:
        """Copy a file that a build has made. Raises BuildError if it is missing, or is no file of its kind."""
        within = self.installed if path.is_relative_to(self.installed) else self.objects
        with opened_build_file(path, within, kind.largest) as file, to.open("xb") as copy:
            begin = file.read(1 << 16)
            kind.check(path, begin)
            copy.write(begin)
            shutil.copyfileobj(file, copy, _MIB)

    def take_modules(self, release: str, to: Path) -> None:
        """Copy the modules that were installed, to a folder as packages have it. Raises BuildError."""
        place = Path("lib/modules", release)
        (to / place).mkdir(parents=True)
        for path in files_below(self.installed / place):
            kind = ELF if path.suffix == ".ko" else _INSTALLED.get(path.name)
            if kind is not None and not path.is_symlink():
                copy = to / place / path.relative_to(self.installed / place)
                copy.parent.mkdir(parents=True, exist_ok=True)
                self.take_out(path, kind, copy)

    def _take_over(self, left: Path) -> None:
        """Copy an ancestor's objects, as the user whose they are now. Where that fails all is compiled anew."""
        seen = "/left" if self.confined else str(left)
        copy = ("cp", "--archive", "--no-preserve=ownership", "--reflink=auto", f"{seen}/.", self._seen(self.objects))
        with suppress(MakeError):
            self._run(lambda _: None, *copy, readable={"/left": left})

    def _seen(self, path: Path) -> str:
        """Path of a file of ours as the programs see it."""
        if not self.confined:
            return str(path)
        for place in (self.objects, self.installed):
            if path.is_relative_to(place):
                return str(Path("/", place.name) / path.relative_to(place))
        return "/source"

    def _make(self, *words: str) -> tuple[str, ...]:
        # A sandbox has no ccache: what one change compiles is not handed to another one.
        before = "ccache " if not self.confined and shutil.which("ccache") else ""
        cross = self.architecture.cross
        return (
            "make", "-C", self._seen(self.source), f"O={self._seen(self.objects)}", f"ARCH={self.architecture.name}",
            f"CROSS_COMPILE={cross}", "LOCALVERSION=", f"CC={before}{cross}gcc", "KBUILD_BUILD_USER=pdrgate",
            "KBUILD_BUILD_HOST=pdrgate", "KBUILD_BUILD_VERSION=1", *words,
        )  # fmt: skip

    def _run(self, report: Report, *command: str, readable: dict[str, Path] | None = None) -> None:
        """Run a program, and report now and then how much it has compiled. Raises MakeError if it fails."""
        before = ("prlimit", f"--fsize={_LARGEST_FILE}", "--core=0", "nice", "-n", "19")
        held: tuple[int, ...] = (self.lock,)
        if self.confined:
            given = {"/source": self.source, "/asked.config": self._asked, **(readable or {})}
            box = Sandbox(
                self.user, given, {"/objects": self.objects, "/installed": self.installed}, scratch=_SCRATCH,
                variables={"HOME": "/tmp"},
            )  # fmt: skip
            # bwrap holds the lock, and nobody in the sandbox does.
            words = box.command(*command, options=("--sync-fd", str(self.lock)))
        else:
            words = [*DIES_WITH_PARENT, *command]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                (*before, *words), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=child_environment(), start_new_session=True, pass_fds=held,
            )  # fmt: skip
        try:
            while True:
                try:
                    code = process.wait(_WORD_AGAIN)
                    break
                except subprocess.TimeoutExpired:
                    count = self.compiled
                    known = f" of about {self.about}" if self.about > count else ""
                    report(f"  {count}{known} files compiled; {self.log} has what make says")
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        if code:
            raise MakeError
