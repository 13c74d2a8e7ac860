"""Makes the build of a revision, and keeps it.

Each line of releases, such as 6.12, has one folder of sources and one of objects, which go from revision to revision,
whichever tree these are of: what a change leaves alone is not compiled again, and both sides of a comparison are
compiled in the same place. Images that are done are kept by commit and .config, so that none is made twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.git_tree.configuration import KernelConfiguration, kernel_configuration
from pdrgate.builds.git_tree.revision import Revision, caller, caller_s_group, git, uncommitted
from pdrgate.builds.handed_over import BuildError
from pdrgate.cache import cache_folder
from pdrgate.checkout import FROM_CHECKOUT
from pdrgate.child_environment import child_environment
from pdrgate.errors import StorageError, UsageError

Tell = Callable[[str], None]


class DoesNotCompileError(BuildError):
    """The sources of a revision do not compile, with the compiler's first error."""


_TOOLS = {"make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc", "perl": "perl"}
_HEADERS = {"libelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev"}
_KEPT = 16
"""Builds that stay in the cache, each of about 60 MB, though more were not used for a day."""
_LINES = 5
"""Folders that stay in the cache, one of them that of the builds; others are of 3 GB, and may be made again."""
_DAY = 86_400.0
_WORD_AGAIN = 60.0
"""Seconds between two words of how far a build is."""
_FIRST_ERROR = re.compile(
    r"^(?:\S+:\d+(?::\d+)?: (?:fatal )?error: .*|.*undefined reference to .*|\S+: error: .*)", re.M
)
_LAST_RESORT = re.compile(r"^(?:make\S*: \*\*\* .*|.*\berror\b.*)", re.M | re.I)
_PARTS = {"vmlinuz": "arch/x86/boot/bzImage", "System.map": "System.map", "config": ".config"}
"""What is kept as boot/NAME-RELEASE, and where a build has it."""


def built(revision: Revision, config: Path | None = None, cache: Path | None = None, tell: Tell | None = None) -> Path:
    """The folder with the build of a revision, as packages have it; it is made where it is not there yet.

    Args:
        config: a .config of one's own; else one with all that guests and data paths need, built in.
        tell: gets sentences of how far it is.

    Raises:
        DoesNotCompileError: it does not compile.
        BuildError: the .config is none.
        MissingToolError: what compiles it is not installed.
        StorageError: the cache cannot be written.
    """
    configuration = kernel_configuration(config)
    _check_tools(revision)
    top = (cache or cache_folder()) / "trees"
    place, kept = top / _line(revision), top / "builds" / _key(revision, configuration)
    if not kept.exists():
        _folder(kept.parent)
        _folder(place)
        with _alone(place, tell):
            if not kept.exists():
                _TreeBuild(place, revision, configuration, tell or (lambda _: None)).make(kept)
                _forget(kept.parent, _KEPT)
                _forget(top, _LINES)
    os.utime(kept)
    return kept


def put_into(folder: Path, build: Path) -> None:
    """Copy a build into a folder, which is made or must be empty.

    Raises:
        UsageError: it is not empty, or no folder.
        StorageError: it cannot be written.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{folder}: is there already, and is no empty folder; name another one")
    try:
        shutil.copytree(build, folder, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise StorageError(f"cannot write {folder}: {error}; make room there, or name another folder") from error


class _TreeBuild:
    """One build that is made.

    Args:
        place: the folder of its line of releases in the cache.
    """

    def __init__(self, place: Path, revision: Revision, configuration: KernelConfiguration, tell: Tell) -> None:
        self._revision, self._configuration, self._tell = revision, configuration, tell
        self._place, self._source, self._objects = place, place / "source", place / "objects"
        self._log = place / "make.log"

    def make(self, kept: Path) -> None:
        """Compile it, and leave it as the folder ``kept``, which appears only when it is complete."""
        begun = time.monotonic()
        name = self._revision.name
        first = not (self._objects / "vmlinux").exists()
        length = "some minutes, for the first time" if first else "what changed since the build before"
        self._tell(f"compiling {name} ({length})")
        if changed := uncommitted(self._revision.tree):
            self._tell(
                f"  {changed} files of {self._revision.tree} have changes that are not committed: they are not built"
            )
        self._log.write_bytes(b"")
        os.utime(self._place)
        self._check_out()
        self._configure()
        text = (self._objects / ".config").read_text(errors="replace")
        modules = "CONFIG_MODULES=y" in text
        self._run("-j", str(len(os.sched_getaffinity(0))), "bzImage", *(("modules",) if modules else ()))
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="part-", ignore_cleanup_errors=True) as part:
            made = Path(part) / "build"
            _folder(made / "boot")
            if modules:
                _give(Path(part))
                self._run("modules_install", f"INSTALL_MOD_PATH={made}", "INSTALL_MOD_STRIP=1", "DEPMOD=true")
            self._keep(made)
            made.rename(kept)
        self._tell(f"  compiled in {time.monotonic() - begun:.0f} s")

    def _check_out(self) -> None:
        """Make the folder of sources the revision's; files that are the same stay as old as they are."""
        _folder(self._source)
        git(
            self._revision.tree, f"--work-tree={self._source}", "read-tree", "--reset", "-u", self._revision.commit,
            settings=(f"GIT_INDEX_FILE={self._place / 'index'}",),
        )  # fmt: skip

    def _configure(self) -> None:
        _folder(self._objects)
        named = self._objects / (".config" if self._configuration.whole else "asked.config")
        named.write_text(self._configuration.text)
        _give(named)
        self._run(self._configuration.target, f"KCONFIG_ALLCONFIG={named}")

    def _run(self, *words: str) -> None:
        """Run make, and tell now and then how far it is. Raises DoesNotCompileError."""
        compiler = "ccache gcc" if shutil.which("ccache") else "gcc"
        stamp = f"KBUILD_BUILD_TIMESTAMP={self._revision.time}"
        command = (
            "nice", "-n", "19", "make", "-C", str(self._source), f"O={self._objects}", "ARCH=x86_64", "LOCALVERSION=",
            f"CC={compiler}", "KBUILD_BUILD_USER=pdrgate", "KBUILD_BUILD_HOST=pdrgate", "KBUILD_BUILD_VERSION=1", stamp,
            *words,
        )  # fmt: skip
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=child_environment(),
                user=caller(), group=caller_s_group(), start_new_session=True,
            )  # fmt: skip
        try:
            while True:
                try:
                    code = process.wait(_WORD_AGAIN)
                    break
                except subprocess.TimeoutExpired:
                    lines = sum(line.startswith(b"  CC") for line in self._log.read_bytes().splitlines())
                    self._tell(f"  {lines} files compiled")
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        if code:
            raise DoesNotCompileError(self._failure())

    def _failure(self) -> str:
        text = self._log.read_text(errors="replace")
        if "No space left on device" in text:
            raise StorageError(f"{self._place}: No space left on device for compiling; make room there")
        found = _FIRST_ERROR.search(text) or _LAST_RESORT.search(text)
        told = found[0].replace(f"{self._source}/", "") if found else "make failed without a word"
        return f"{self._revision.name}: does not compile: {told.strip()}; all that make said is in {self._log}"

    def _keep(self, made: Path) -> None:
        release = (self._objects / "include/config/kernel.release").read_text().strip()
        for name, where in _PARTS.items():
            shutil.copy2(self._objects / where, made / "boot" / f"{name}-{release}")
        # Without the sections of debug information: it is for addresses, by its table of symbols.
        vmlinux = ("objcopy", "--strip-debug", str(self._objects / "vmlinux"), str(made / "vmlinux"))
        if subprocess.run(vmlinux, check=False, env=child_environment(), capture_output=True).returncode:
            shutil.copy2(self._objects / "vmlinux", made / "vmlinux")


def _line(revision: Revision) -> str:
    """The line of releases that a revision belongs to, such as 6.12. Raises BuildError where no Makefile tells it."""
    makefile = git(revision.tree, "show", f"{revision.commit}:Makefile")
    found = [re.search(rf"^{name}\s*=\s*(\d+)\s*$", makefile, re.M) for name in ("VERSION", "PATCHLEVEL")]
    if None in found:
        raise BuildError(f"{revision.text}: its Makefile tells no version; is it a kernel's tree?")
    return ".".join(one[1] for one in found if one is not None)


def _key(revision: Revision, configuration: KernelConfiguration) -> str:
    """The name of a build: two of one name are made of the same sources, options and compiler."""
    compiler = subprocess.run(("gcc", "--version"), capture_output=True, check=False, env=child_environment()).stdout
    told = b"\0".join((configuration.text.encode(), compiler))
    return f"{revision.commit[:16]}-{hashlib.sha256(told).hexdigest()[:12]}"


def _check_tools(revision: Revision) -> None:
    lacking = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    lacking += [package for header, package in _HEADERS.items() if not Path("/usr/include", header).exists()]
    if lacking:
        raise MissingToolError(
            f"{revision.tree}: to compile a kernel, install what is missing: "
            f"{'./ci/bootstrap --compile, or: ' if FROM_CHECKOUT else ''}apt-get install {' '.join(lacking)}"
        )


def _folder(path: Path) -> None:
    """A folder of the caller's, with those above it that are missing. Raises StorageError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make {path}: {error.strerror}; set XDG_CACHE_HOME to where there is room"
        ) from error
    for one in missing:
        _give(one)


def _give(path: Path) -> None:
    if (user := caller()) is not None:
        os.chown(path, user, caller_s_group() or -1)


@contextmanager
def _alone(place: Path, tell: Tell | None) -> Iterator[None]:
    """One process compiles in a folder at a time; others wait."""
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tell is not None:
                tell("another run compiles a kernel of the same line of releases; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget(folder: Path, most: int) -> None:
    """Remove what was not used for longest in a folder; what was used on the last day may be in use just now."""
    by_age = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-most]:
        if time.time() - path.stat().st_mtime > _DAY:
            shutil.rmtree(path, ignore_errors=True)
