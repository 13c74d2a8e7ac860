"""Programs for guests: this machine's own, or for another architecture those of the distribution's packages.

Packages for another architecture are found by lists of their own and unpacked in the cache; nothing is installed. Each
set of packages is fetched once, so that no later start needs the network.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from pdrgate.builds.architecture import Architecture
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.packages.apt_archive import AptArchive
from pdrgate.builds.packages.unpacked_package import temporary
from pdrgate.this_process.cache import alone, cache_folder, forget
from pdrgate.this_process.child_environment import run_program
from pdrgate.traffic import native
from pdrgate.traffic.native import ForeignCompiler
from pdrgate.values.errors import TestbedError

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGES = (
    "dash", "bash", "busybox-static", "iproute2", "ethtool", "bpftool", "iperf3", "nftables", "iptables", "ipset",
    "ipvsadm", "conntrack", "util-linux", "wireguard-tools", "libc6-dev", "libbpf-dev", "libelf-dev", "zlib1g-dev",
)  # fmt: skip
"""Packages of programs for guests, and of libraries that programs of ours for them are linked with."""
_ELF = b"\x7fELF"
_FIRST_APPLETS, _LARGEST_TABLE = b"\0[\0[[\0", 1 << 14
"""The begin of busybox's table of what it is, and the most bytes that it has."""
_KEPT = 2
"""Sets of packages that stay in the cache, each of about 150 MB, though more were not used for a day."""


class Programs(Protocol):
    """Programs that guests of one architecture can have."""

    def __hash__(self) -> int: ...

    def find(self, name: str) -> Path | None:
        """The file of a program; None if there is none."""

    def libraries(self, program: Path) -> Mapping[str, Path]:
        """The libraries of a program, each by the path at which its loader looks for it."""

    def plugins(self, folder: str) -> Mapping[str, Path]:
        """The libraries in a folder below that of all libraries, as `libraries` has them."""

    def applets(self) -> Sequence[str]:
        """Programs that busybox is."""

    def own(self) -> Mapping[Path, Path]:
        """Programs of ours that each guest has, by the path at which they are started there."""


@dataclass(frozen=True, slots=True)
class MachinePrograms:
    """Programs of this machine; satisfies `Programs`."""

    def find(self, name: str) -> Path | None:
        found = shutil.which(name, path=_PATH)
        return None if found is None else Path(found)

    def libraries(self, program: Path) -> Mapping[str, Path]:
        printed = run_program("ldd", str(program)).stdout
        return {one: Path(one) for one in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", printed, re.MULTILINE)}

    def plugins(self, folder: str) -> Mapping[str, Path]:
        return {str(path): path for path in Path("/usr/lib").glob(f"*-linux-gnu/{folder}/*.so") if path.is_file()}

    def applets(self) -> Sequence[str]:
        return [name for name in run_program("busybox", "--list").stdout.split() if "/" not in name]

    def own(self) -> Mapping[Path, Path]:
        parts = native.build()
        # Where they lie on this machine: so they need not be sent.
        own = (parts.drops, parts.receiver, parts.bpf_load, parts.requests, parts.network, *parts.for_steps.values())
        return {path: path for path in own}


@dataclass(frozen=True, slots=True)
class ForeignPrograms:
    """Programs of another architecture, from unpacked packages; satisfies `Programs`."""

    architecture: Architecture
    root: Path
    """Folder with all that the packages hold."""

    def find(self, name: str) -> Path | None:
        folders = [self.root / one.lstrip("/") for one in _PATH.split(":")]
        kind, _, action = name.partition("-")
        names = (name, f"{name}-nft", f"{kind}-nft-{action}")  # links to the last two are made by an installation
        places = (folder / one for one in names for folder in folders)
        return next((real for place in places if (real := self._real(place)) is not None), None)

    def libraries(self, program: Path) -> Mapping[str, Path]:
        found: dict[str, Path] = {}
        waiting = [program]
        while waiting:
            with waiting.pop().open("rb") as file:
                if file.read(len(_ELF)) != _ELF:
                    continue  # a script needs none
                needed = ElfFile(file).libraries()
            for name in needed:
                place = name if name.startswith("/") else f"/lib/{self.architecture.triplet}/{name}"
                if place not in found:
                    found[place] = self._library(name)
                    waiting.append(found[place])
        return found

    def plugins(self, folder: str) -> Mapping[str, Path]:
        place = f"usr/lib/{self.architecture.triplet}/{folder}"
        return {f"/{place}/{path.name}": path for path in (self.root / place).glob("*.so") if path.is_file()}

    def applets(self) -> Sequence[str]:
        busybox = self.find("busybox")
        # It cannot be asked here. Its table of names begins with this one, and is sorted.
        names = b"" if busybox is None else _FIRST_APPLETS + busybox.read_bytes().partition(_FIRST_APPLETS)[2]
        found = [name.decode("ascii", "replace") for name in names[:_LARGEST_TABLE].split(b"\0")]
        last = next((number for number, (one, other) in enumerate(pairwise(found), 1) if other <= one), len(found))
        if "sh" not in found[1:last]:
            raise TestbedError(f"{busybox} shows no applets; is it busybox-static of {self.architecture.debian}?")
        return found[1:last]

    def own(self) -> Mapping[Path, Path]:
        one = self.architecture
        return native.build_foreign(ForeignCompiler(one.compiler, one.compiler_package, one.machine, self.root))

    def _library(self, name: str) -> Path:
        triplet, file = self.architecture.triplet, Path(name).name
        places = (self.root / top / file for top in (f"lib/{triplet}", f"usr/lib/{triplet}", "lib", "usr/lib"))
        found = next((real for place in places if (real := self._real(place)) is not None), None)
        if found is None:
            raise TestbedError(f"the packages for guests of {self.architecture.name} have no {name}")
        return found

    def _real(self, place: Path) -> Path | None:
        """The file at a place, where its links end; None if there is none, or they lead out of the packages."""
        for _ in range(8):
            if not place.is_symlink():
                break
            target = place.readlink()
            place = self.root / str(target).lstrip("/") if target.is_absolute() else place.parent / target
        inside = place.resolve().is_relative_to(self.root.resolve())
        return place.resolve() if inside and place.is_file() else None


@functools.cache
def programs_for(architecture: Architecture) -> Programs:
    """Programs for guests of an architecture; for another one than this machine's they are fetched once.

    Raises:
        TestbedError: they cannot be had.
        StorageError: the cache cannot be written.
    """
    if architecture.is_this_machines:
        return MachinePrograms()
    return ForeignPrograms(architecture, _unpacked(architecture, cache_folder() / "programs"))


def _unpacked(architecture: Architecture, cache: Path) -> Path:
    """The folder with what the packages hold, from the cache or put there."""
    wanted = hashlib.sha256("\n".join(_PACKAGES).encode()).hexdigest()[:16]
    with temporary(cache) as place, alone(cache):
        made = place / "root"
        made.mkdir()
        try:
            archive = AptArchive("", cache_folder() / "builds", architecture)
            folder = cache / f"{architecture.debian}-{archive.suite}-{wanted}"
            if folder.exists():
                folder.touch()
                return folder
            for package in archive.download_with_dependencies(_PACKAGES, place / "archives"):
                _unpack(package, made)
        except BuildError as error:
            raise TestbedError(f"guests of {architecture.name} need programs of packages: {error}") from error
        made.rename(folder)
        folder.touch()  # the packages' own time is that of an old folder, which would be forgotten
        forget(_kept(cache), _KEPT)
    return folder


def _unpack(package: Path, folder: Path) -> None:
    """Unpack a package that apt has checked."""
    done = run_program("dpkg-deb", "--extract", str(package), str(folder))
    if done.returncode:
        raise TestbedError(f"{package.name} cannot be unpacked: {done.stderr.strip()}")


def _kept(cache: Path) -> Iterator[Path]:
    return (path for path in cache.iterdir() if path.is_dir() and not path.name.startswith("part-"))
