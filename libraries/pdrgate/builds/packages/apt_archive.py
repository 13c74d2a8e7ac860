"""Packages of the distribution's archive: found and downloaded by apt, which checks their signatures.

A package of the machine's own suite is found in the machine's lists. One of another suite, or for another architecture,
is found in lists of its own, in the cache: neither the machine's lists nor its sources change.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.architecture import Architecture, of_package, this_machines
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.packages.apt_sources import machine_sources, sources_of_suite
from pdrgate.this_process.cache import alone
from pdrgate.this_process.child_environment import PROXIES, run_program
from pdrgate.values.errors import StorageError

_NAME = r"[a-z0-9][a-z0-9+.-]+(?:=[A-Za-z0-9.+:~-]+)?"
_SUITE = r"[a-z][a-z0-9.+-]*"
_WANTED = re.compile(rf"(?:(?P<suite>{_SUITE})/(?=linux-))?(?P<name>{_NAME})")
_PATTERN = re.compile(rf"(?:(?P<suite>{_SUITE})/(?=linux-))?(?P<name>[^/]*[*?\[][^/]*)")
_FILES = (".deb", ".rpm")
"""Ends of names that are files' and no packages'."""
_OLD = 86_400.0
"""Seconds after which the lists of a suite are fetched anew."""
_AGAIN = 3_600.0
"""Seconds after which that is tried again where it failed."""
_MOST_MIRRORS = 3
"""Archives that are asked for a suite."""
_CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "{folder}/suite.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::status "/dev/null";
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "";
APT::Default-Release "";
APT::Architecture "{architecture}";
APT::Update::Error-Mode "any";
"""


@dataclass(frozen=True, slots=True)
class ArchivePackage:
    """A package as apt would download it."""

    digest: str
    """The SHA-256 of its content."""
    filename: str


@dataclass(frozen=True, slots=True)
class NamedPackage:
    """Package that a person names, or a pattern of packages, of the machine's own suites or of another suite."""

    name: str
    suite: str = ""

    def __str__(self) -> str:
        return f"{self.suite}/{self.name}" if self.suite else self.name

    def archive(self, cache: Path) -> AptArchive:
        """The archive that has it; the cache is where what apt needs is kept. Raises BuildError."""
        return AptArchive(self.suite, cache, of_package(self.name))


def named_package(text: str) -> NamedPackage | None:
    """The package that ``NAME``, ``NAME=VERSION`` or ``SUITE/linux-…`` names; None if it is no such text.

    A file or a folder of that name comes first.
    """
    return None if text.endswith(_FILES) else _named(_WANTED, text)


def named_pattern(text: str) -> NamedPackage | None:
    """The packages that a pattern such as ``SUITE/linux-image-6.*`` names; None if it is no such text."""
    return _named(_PATTERN, text)


def _named(form: re.Pattern[str], text: str) -> NamedPackage | None:
    match = None if os.path.lexists(text) else form.fullmatch(text)
    return None if match is None else NamedPackage(match["name"], match["suite"] or "")


class AptArchive:
    """The archive of the machine's own suites, or of one suite by its name.

    Args:
        cache: the folder where what apt needs is kept.
        architecture: the packages' own; of another one than this machine's the suite is the machine's if none is named.

    Attributes:
        suite: empty where it is all of the machine's own.

    Raises:
        BuildError: the machine's suite is not known.
    """

    def __init__(self, suite: str, cache: Path, architecture: Architecture | None = None) -> None:
        for_architecture = architecture or this_machines()
        is_foreign = for_architecture != this_machines()
        self.suite = suite or (_own_suite() if is_foreign else "")
        folder = f"{self.suite}.{for_architecture.debian}" if is_foreign else self.suite
        self._folder = (cache / "suites" / folder if folder else cache).absolute()
        self._architecture = for_architecture.debian

    def entry(self, package: str) -> ArchivePackage:
        """The file that apt would download as a package.

        Raises:
            BuildError: apt has no such package, or cannot fetch the suite's lists.
            StorageError: the cache cannot be written.
        """
        found, why = self._looked_up(package)
        if found is None and self._refresh(oldest=0.0):
            found, why = self._looked_up(package)
        if found is not None:
            return found
        says, update = (f" of {self.suite}", "") if self.suite else ("", "run apt-get update, ")
        raise BuildError(
            f"{self._called(package)}: there is no such file, and apt-get says{says}: {why}; {update}name another "
            f"one, its .deb files, or a suite that has it, as in SUITE/{package}"
        )

    def find(self, package: str) -> ArchivePackage | None:
        """The file that apt would download as a package; None if apt has none of that name. Raises as `entry` does."""
        return self._looked_up(package)[0]

    def download(self, package: str, folder: Path) -> None:
        """Put the package's file into a folder. Raises BuildError, or StorageError if there is no room."""
        done = self._apt("download", package, folder=folder)
        if done.returncode:
            error = StorageError if "No space left" in done.stderr else BuildError
            raise error(
                f"{self._called(package)}: apt-get download failed: {_reason(done.stderr, 'no reason given')}; is "
                "the archive in reach? .deb files can be named instead"
            )

    def download_with_dependencies(self, packages: Sequence[str], folder: Path) -> list[Path]:
        """Put packages and all that they depend on into a folder, and return the files. Raises as `download`."""
        self._check_apt(packages[0])
        self._refresh()
        folder.mkdir(parents=True, exist_ok=True)
        done = self._apt("install", "-y", "--no-install-recommends", "--print-uris", *packages)
        if not done.returncode:
            # What lies in a folder would not be copied by an installation.
            done = self._apt("download", *_names(done.stdout), folder=folder)
        if done.returncode:
            error = StorageError if "No space left" in done.stderr else BuildError
            raise error(
                f"{self._called(packages[0])} and {len(packages) - 1} more: apt-get download failed: "
                f"{_reason(done.stderr, 'no reason given')}; is the archive in reach?"
            )
        return sorted(folder.glob("*.deb"))

    def names(self, beginning: str) -> list[str]:
        """The names of packages that begin so. Raises BuildError if apt cannot list them."""
        called = f"{self._called(beginning)}…"
        self._refresh()
        try:
            done = self._run("apt-cache", "pkgnames", beginning)
        except OSError as error:
            raise BuildError(f"{called}: apt-cache cannot list packages: {error.strerror}; name one") from error
        if done.returncode:
            raise BuildError(f"{called}: apt-cache cannot list packages: {_reason(done.stderr, 'it failed')}; name one")
        return done.stdout.split()

    def _looked_up(self, package: str) -> tuple[ArchivePackage | None, str]:
        """The package, or the reason why there is none."""
        self._check_apt(package)
        self._refresh()
        done = self._apt("download", "--print-uris", package)
        return _printed(done.stdout), _reason(done.stderr, "no such package")

    def _called(self, package: str) -> str:
        return str(NamedPackage(package, self.suite))

    def _check_apt(self, package: str) -> None:
        if shutil.which("apt-get") is None:
            raise BuildError(
                f"{package}: there is no such file, and no apt-get here to download a package; name the files of one"
            )

    def _refresh(self, oldest: float = _OLD) -> bool:
        """Fetch the lists of the suite if they are older than ``oldest`` seconds. Returns whether that was done.

        Raises:
            BuildError: there are no lists, and they cannot be fetched.
            StorageError: the cache cannot be written.
        """
        if not self.suite:
            return False
        self._check_apt(f"{self.suite}/…")
        with self._locked():
            sources = sources_of_suite(self.suite, machine_sources())[:_MOST_MIRRORS]
            wanted = [source.of_suite(self.suite, self._architecture) for source in sources]
            stamp = self._folder / "suite.sources"
            kept = stamp.exists() and stamp.read_text() in wanted
            if kept and time.time() - stamp.stat().st_mtime < oldest:
                return False
            failed: list[str] = []
            for text in wanted:
                if not (why := self._fetched(text, stamp)):
                    return True
                failed.append(why)
            if kept:
                # What was fetched before still serves, also where the archive is out of reach.
                os.utime(stamp, (time.time() - _OLD + _AGAIN,) * 2)
                return False
        failed.append("this machine's sources name no archive with such suites")
        raise BuildError(
            f"{self.suite}/…: there is no such folder, and apt-get cannot fetch the lists of a suite "
            f"{self.suite}: {failed[0]}; name a suite of this machine's distribution, or .deb files"
        )

    def _fetched(self, sources: str, stamp: Path) -> str:
        """Fetch the lists by these sources, which are kept where that succeeds; return why it did not."""
        made = self._folder / "new.sources"
        made.write_text(sources)
        done = self._apt("-o", f"Dir::Etc::sourcelist={made}", "update")
        if done.returncode:
            return _reason(done.stderr, "apt-get update failed")
        made.replace(stamp)
        return ""

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The suite's folder, for one process at a time."""
        try:
            for name in ("lists/partial", "cache/archives/partial"):
                (self._folder / name).mkdir(parents=True, exist_ok=True)
            configuration = _CONFIGURATION.format(folder=self._folder, architecture=self._architecture)
            with alone(self._folder):
                (self._folder / "apt.conf").write_text(configuration)
                yield
        except OSError as error:
            raise StorageError(
                f"cannot write {self._folder}: {error.strerror}; make room there, or set XDG_CACHE_HOME"
            ) from error

    def _apt(self, *words: str, folder: Path = Path("/")) -> subprocess.CompletedProcess[str]:
        return self._run("apt-get", "-q", "-o", "APT::Sandbox::User=root", *words, folder=folder)

    def _run(self, program: str, *words: str, folder: Path = Path("/")) -> subprocess.CompletedProcess[str]:
        # Container images have apt keep no cache of its lists: then it reads all of them anew, for seconds.
        kept = ("-o", f"Dir::Cache::pkgcache={self._folder / 'pkgcache.bin'}")
        own = ("-c", str(self._folder / "apt.conf")) if self.suite else kept
        return run_program(program, *own, *words, more=PROXIES, folder=folder)


def _own_suite() -> str:
    """The suite that this machine was installed from. Raises BuildError."""
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError) as error:
        raise BuildError(
            "packages for another architecture are looked for in this machine's suite, and /etc/os-release names none "
            "(VERSION_CODENAME); name one, as in SUITE/linux-image-…"
        ) from error


def _printed(output: str) -> ArchivePackage | None:
    """The package in apt-get's output on a download."""
    match = re.search(r"^'\S+' (\S+) \d+ [A-Z0-9]+:([0-9a-f]{32,})", output, re.MULTILINE)
    return None if match is None else ArchivePackage(match[2], Path(match[1]).name)


def _names(output: str) -> list[str]:
    """Names of the packages in apt-get's output on an installation."""
    return re.findall(r"^'\S+' ([^\s_]+)_\S+ \d+ ", output, re.MULTILINE)


def _reason(output: str, otherwise: str) -> str:
    """The error in apt-get's output, in a line, without passwords in addresses."""
    said = [line.strip() for line in output.splitlines()]
    errors = [line for line in said if line.startswith(("E:", "Err"))] or [line for line in said if line[:2] == "W:"]
    return re.sub(r"//[^/@\s]+@", "//", errors[0].partition(":")[2].strip()) if errors else otherwise
