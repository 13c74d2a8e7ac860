"""Makes the build of a revision, and keeps it.

Each line of releases, such as 6.12, has one folder of sources, which goes from revision to revision, whichever tree
these are of. Objects are made in a new folder for each build, with what a build of an ancestor left: what a change
leaves alone is not compiled again. Images that are done are kept by commit and .config, so that none is made twice.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from pdrgate.builds.architecture import Architecture
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.git_tree.configuration import KernelConfiguration, kernel_configuration
from pdrgate.builds.git_tree.leftovers import Leftovers
from pdrgate.builds.git_tree.making import ELF, LARGEST_IMAGE_FILE, TEXT, KindOfFile, MakeError, Making, Report
from pdrgate.builds.git_tree.revision import Revision, uncommitted
from pdrgate.builds.git_tree.sources import Sources
from pdrgate.builds.handed_over import BuildError
from pdrgate.hosts.sandbox import confines
from pdrgate.this_process.cache import alone, appearing, cache_folder, forget
from pdrgate.this_process.checkout import FROM_CHECKOUT
from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import StorageError, UsageError


class DoesNotCompileError(BuildError):
    """The sources of a revision do not compile, with the compiler's first error."""


_TOOLS = {"make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc", "perl": "perl"}
_HEADERS = {"libelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev"}
_KEPT = 16
"""Builds that stay in the cache, each of about 60 MB, though more were not used for a day."""
_LINES = 5
"""Folders that stay in the cache, one of them that of the builds; others are of 3 GB, and may be made again."""
_WAITING = "another run compiles a kernel of the same line of releases; waiting for it"
_FIRST_ERROR = re.compile(
    r"^(?:\S+:\d+(?::\d+)?: (?:fatal )?error: .*|.*undefined reference to .*|\S+: error: .*)", re.M
)
_LAST_RESORT = re.compile(r"^.*\berror\b.*", re.M | re.I)
_STEP = re.compile(r"  [A-Z][\w+ ]{0,14} |make\S*: |.*\bwarning: ")
"""What make says of a step that it begins, or of itself; and warnings."""
_PARTS: Mapping[str, tuple[str, KindOfFile]] = {"System.map": ("System.map", TEXT), "config": (".config", TEXT)}
"""Files kept as boot/NAME-RELEASE beside the image, with their places in a build."""


def built(
    revision: Revision, config: Path | None = None, cache: Path | None = None, report: Report | None = None,
    architecture: Architecture | None = None,
) -> Path:  # fmt: skip
    """The folder with the build of a revision, as packages have it; it is made if it is not there yet.

    Args:
        config: a .config of one's own; else one with all that guests and data paths need, built in.
        report: gets sentences of how far it is.
        architecture: what it is compiled for; None: that of the .config, else this machine's.

    Raises:
        DoesNotCompileError: it does not compile.
        BuildError: the .config is none.
        MissingToolError: what compiles it is not installed.
        StorageError: the cache cannot be written.
    """
    configuration = kernel_configuration(config, architecture)
    confined = confines(f"{revision.tree}: to compile a kernel")
    _check_tools(revision, configuration)
    top = _own_folder(cache or cache_folder(), confined)
    place, kept = top / _line(revision), top / "builds" / _key(revision, configuration)
    if not kept.exists():
        with alone(place, lambda: report and report(_WAITING)) as lock:
            if not kept.exists():
                _TreeBuild(place, lock, revision, configuration, report or (lambda _: None)).make(kept)
                for folder, most in ((kept.parent, _KEPT), (top, _LINES)):
                    forget((path for path in folder.iterdir() if path.is_dir()), most)
    os.utime(kept)
    if report is not None:
        for made in kept.glob("boot/config-*"):
            if lost := configuration.not_in(made.read_text(errors="replace")):
                report(f"  {revision.name}: {lost}")
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
        place: the folder of its line of releases in the cache, which is locked.
    """

    def __init__(
        self, place: Path, lock: int, revision: Revision, configuration: KernelConfiguration, report: Report
    ) -> None:
        self._revision, self._configuration, self._report = revision, configuration, report
        self._place, self._lock = place, lock
        one = configuration.architecture
        self._sources = Sources(place, lock)
        self._leftovers = Leftovers(place / ("left" if one.is_this_machines else f"left-{one.name}"))

    def make(self, kept: Path) -> None:
        """Compile it, and leave it as the folder ``kept``, which appears only when it is complete."""
        begun = time.monotonic()
        left = self._leftovers.of_ancestor(self._revision, kept.name.rpartition("-")[2])
        length = "some minutes, as no ancestor's objects are kept" if left is None else "what differs from an ancestor"
        self._report(f"compiling {self._revision.name} ({length}; what make says is in {self._place / 'make.log'})")
        if changed := uncommitted(self._revision.repository):
            self._report(
                f"  {changed} files of {self._revision.tree} have changes that are not committed: they are not built"
            )
        os.utime(self._place)
        self._sources.check_out(self._revision, None if left is None else left.name.partition("-")[0])
        one = self._configuration.architecture
        # A build from the start compiles about as many files as the last one with options of the same kind.
        whole = self._place / f"files-{self._configuration.target}-{one.name}"
        about = int(whole.read_text()) if left is None and whole.exists() else 0
        with Making.begun(self._place, self._sources.checked_out, self._lock, left, one, about) as making:
            try:
                self._make(making, kept)
            except (MakeError, BuildError) as error:
                # Of a make that was killed an object may be cut off.
                if making.compiled and (isinstance(error, BuildError) or making.gave_up):
                    self._leftovers.leave(making.objects, kept.name)
                if isinstance(error, MakeError):
                    raise DoesNotCompileError(self._failure(making)) from None
                raise BuildError(f"{self._revision.name}: {error}") from error
            if left is None:
                whole.write_text(str(making.compiled))
            self._leftovers.leave(making.objects, kept.name)
        self._report(f"  compiled in {time.monotonic() - begun:.0f} s")

    def _make(self, making: Making, kept: Path) -> None:
        stamp = f"KBUILD_BUILD_TIMESTAMP={self._sources.time(self._revision)}"
        configuration, lacking = self._configuration.with_files_of(self._sources.checked_out)
        for sentence in lacking:
            self._report(f"  {sentence}")
        making.configure(configuration, self._report, stamp)
        modules = "CONFIG_MODULES=y" in making.text(".config")
        jobs = ("-j", str(len(os.sched_getaffinity(0))))
        image = Path(making.architecture.tree_image)
        making.make(self._report, *jobs, stamp, image.name, *(("modules",) if modules else ()))
        if modules:
            making.install_modules(self._report, stamp, "INSTALL_MOD_STRIP=1")
        with appearing(kept) as made:
            (made / "boot").mkdir(parents=True)
            release = making.release()
            kind_of_image = KindOfFile(LARGEST_IMAGE_FILE, *making.architecture.image_mark)
            for name, (where, kind) in {"vmlinuz": (str(image), kind_of_image), **_PARTS}.items():
                making.take_out(making.objects / where, kind, made / "boot" / f"{name}-{release}")
            making.take_out(making.strip_vmlinux(self._report), ELF, made / "vmlinux")
            if modules:
                making.take_modules(release, made)

    def _failure(self, making: Making) -> str:
        text = making.said()
        if "No space left on device" in text:
            raise StorageError(f"{self._place}: No space left on device for compiling; make room there")
        error = re.sub(r"\S*/source/", "", first_error(text)).strip()
        return f"{self._revision.name}: does not compile: {error}; all that make said is in {making.log}"


def first_error(said: str) -> str:
    """The words of make's output that say why it failed: a compiler's first error, or what a program wrote just before
    make gave up."""
    if found := _FIRST_ERROR.search(said):
        return found[0]
    before: list[str] = []
    for line in said.splitlines():
        if line.startswith("make") and ": *** " in line:
            return line if "No rule to make target" in line or not before else before[0]
        before = [] if not line.strip() or _STEP.match(line) else [*before, line]
    return found[0] if (found := _LAST_RESORT.search(said)) else "make failed without a word"


def _line(revision: Revision) -> str:
    """The line of releases that a revision belongs to, such as 6.12. Raises BuildError if no Makefile has it."""
    makefile = revision.repository.git("cat-file", "blob", f"{revision.commit}:Makefile")
    found = [re.search(rf"^{name}\s*=\s*(\d{{1,6}})\s*$", makefile, re.M) for name in ("VERSION", "PATCHLEVEL")]
    if None in found:
        raise BuildError(f"{revision.text}: its Makefile has no version; is it a kernel's tree?")
    return ".".join(one[1] for one in found if one is not None)


def _key(revision: Revision, configuration: KernelConfiguration) -> str:
    """The name of a build: two of one name are made of the same sources, options and compiler."""
    cross = configuration.architecture.cross
    tools = ((f"{cross}gcc", "--version"), (f"{cross}ld", "--version"))
    versions = [subprocess.run(one, capture_output=True, check=False, env=child_environment()).stdout for one in tools]
    ingredients = b"\0".join((configuration.target.encode(), configuration.text.encode(), *versions))
    return f"{revision.commit}-{hashlib.sha256(ingredients).hexdigest()}"


def _check_tools(revision: Revision, configuration: KernelConfiguration) -> None:
    one = configuration.architecture
    tools = _TOOLS | configuration.packages
    if one.cross:
        tools |= {one.compiler: one.compiler_package}
    lacking = [package for tool, package in tools.items() if shutil.which(tool) is None]
    lacking += [package for header, package in _HEADERS.items() if not Path("/usr/include", header).exists()]
    option = f" --arch {one.debian}" if one.cross else ""
    if lacking:
        raise MissingToolError(
            f"{revision.tree}: to compile a kernel, install what is missing: "
            f"{f'./ci/bootstrap --compile{option}, or: ' if FROM_CHECKOUT else ''}apt-get install {' '.join(lacking)}"
            f"{' (in older releases pahole is in dwarves)' if 'pahole' in lacking else ''}"
        )


def _own_folder(cache: Path, confined: bool) -> Path:
    """The folder of builds that this user alone writes, and writes in this way alone.

    Raises:
        StorageError: it cannot be made, or may be written by others.
    """
    folder = cache / (f"trees-{os.geteuid()}" if confined else "trees")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        about = folder.lstat()
    except OSError as error:
        raise StorageError(
            f"cannot make {folder}: {error.strerror}; set XDG_CACHE_HOME to where there is room"
        ) from error
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise StorageError(f"{folder}: others may write there, or it is a link; remove it, and start again")
    return folder
