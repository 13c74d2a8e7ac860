"""eBPF objects: those that come with pdrgate, compiled here, and a user's own, the builds under test.

An object is told by its ELF header and sections: what a program is for stands in its section's name (libbpf's
convention: ``xdp``, ``tc``, ``tc/ingress``, ``classifier``). Whether it loads, only a kernel can tell.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pdrgate.builds.elf_file import BPF, EXECUTABLE, GLOBAL_FUNCTION, ElfFile
from pdrgate.builds.handed_over import BuildError, content
from pdrgate.cache import cache_folder
from pdrgate.child_environment import child_environment
from pdrgate.errors import SutError, TestbedError

ProgramKind = Literal["xdp", "tc", "tp_btf"]

SOURCES = Path(__file__).parents[1] / "resources" / "bpf"
"""pdrgate's own programs."""

_LARGEST = 64 << 20
_MOST_PROGRAMS = 64
"""Names that a message lists."""
_SECTIONS: Mapping[str, ProgramKind] = {
    "xdp": "xdp", "xdp.frags": "xdp", "tc": "tc", "tcx": "tc", "classifier": "tc", "action": "tc",
    "tp_btf": "tp_btf",
}  # fmt: skip
"""The purpose of a program, by the part of its section's name before the first slash."""

_NO_PORT_PROGRAMS = ("xdp/cpumap", "xdp/devmap", "xdp.frags/cpumap", "xdp.frags/devmap")
"""XDP programs that no interface takes."""


class BpfBuildError(SutError):
    """What was handed over is no eBPF object that could be measured, or a kernel refuses it."""


@dataclass(frozen=True, slots=True)
class BpfBuild:
    """An eBPF object file that holds one program for a data path."""

    name: str
    """What a person calls it: the file's name."""
    path: Path
    sha256: str
    section: str
    """The section that the program stands in."""
    kind: ProgramKind

    def read(self) -> bytes:
        """The object. Raises BpfBuildError when it is not what it was when it was looked at."""
        try:
            found = content(self.path, self.path, _LARGEST)
        except BuildError as error:
            raise BpfBuildError(f"{error}; it was there when it was looked at") from error
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise BpfBuildError(f"{self.path}: is another one than when it was looked at; start again")
        return found

    @property
    def label(self) -> str:
        """Name and the first digits of the hash: two builds may well have one name."""
        return f"{self.name} ({self.sha256[:8]})"


def bpf_build(source: str | Path, kind: ProgramKind | None = None) -> BpfBuild:
    """The build in an object file; with ``kind``, it must be for such a data path.

    Raises:
        BpfBuildError: there is no such file, it is no eBPF object, or has no program, several, or one of another kind.
    """
    path = Path(source)
    try:
        read = content(path, path.resolve(), _LARGEST)
    except BuildError as error:
        raise BpfBuildError(f"{error}; name an eBPF object file") from error
    try:
        programs = _programs(read)
    except ValueError as error:
        raise BpfBuildError(f"{path}: is no eBPF object ({error}); compile one with clang -target bpf") from error
    found = {
        section: _SECTIONS[section.partition("/")[0]]
        for section, _ in programs
        if section.partition("/")[0] in _SECTIONS and section not in _NO_PORT_PROGRAMS
    }
    if not found:
        has = ", ".join(f"{name} in {section}" for section, name in programs) or "nothing to run"
        raise BpfBuildError(
            f'{path}: holds no program for a data path, but {has}; put one into SEC("xdp") or SEC("tc")'
        )
    if kind is not None and kind not in found.values():
        raise BpfBuildError(
            f"{path}: holds a program for {next(iter(found.values()))} (section {next(iter(found))}), and this data "
            f"path runs one for {kind}; choose the data path that goes with it"
        )
    if len(programs) > 1:
        several = ", ".join(f"{name} in {section}" for section, name in programs)
        raise BpfBuildError(f"{path}: holds several programs ({several}); leave one of them in the object")
    section, of_kind = next(iter(found.items()))
    return BpfBuild(path.name, path.resolve(), hashlib.sha256(read).hexdigest(), section, of_kind)


def own_build(name: str, defines: Sequence[str] = (), cache: Path | None = None) -> BpfBuild:
    """A program that comes with pdrgate, ``xdp_router`` for one, compiled unless this version of it is there already.

    Args:
        defines: macros for the compiler, such as ``LOOKUPS=3``.

    Raises:
        TestbedError: the sources, the compiler or a header are missing, or compiling failed.
    """
    source = SOURCES / f"{name}.bpf.c"
    if not source.is_file():
        raise TestbedError(f"{source} is not there; it is a part of pdrgate: install pdrgate again")
    text = b"\0".join(path.read_bytes() for path in (source, *sorted(SOURCES.glob("*.h"))))
    digest = hashlib.sha256("\0".join((platform.machine(), *defines)).encode() + b"\0" + text)
    folder = (cache or cache_folder()) / f"bpf-{digest.hexdigest()}"
    output = folder / f"{name}.bpf.o"
    if not output.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not output.exists():
                _compile(source, output, defines)
    return bpf_build(output)


OWN_BUILDS = ("xdp_router", "xdp_steer", "tc_redirect", "drop_reasons")


def compile_own_builds() -> None:
    """Compile all programs that come with pdrgate, for set-up. Raises as `own_build` does."""
    for name in OWN_BUILDS:
        own_build(name)


def _compile(source: Path, output: Path, defines: Sequence[str]) -> None:
    if shutil.which("clang") is None:
        raise TestbedError(
            "compiling eBPF programs takes clang, which is not on PATH; run ./ci/bootstrap, or: "
            "apt-get install clang libbpf-dev"
        )
    partial = output.with_name(output.name + ".part")
    done = subprocess.run(
        (
            "clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I/usr/include/{platform.machine()}-linux-gnu",
            *(f"-D{define}" for define in defines), "-c", str(source), "-o", str(partial),
        ),
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
        raise TestbedError(
            f"compiling {source} failed: {complaint}; a missing <bpf/…> header comes with: apt-get install libbpf-dev"
        )
    partial.rename(output)


def _programs(read: bytes) -> list[tuple[str, str]]:
    """Section and name of each program, in the file's order. Raises ValueError when it is no eBPF object.

    Programs are the global functions of executable sections; those in ``.text`` are only called by them.
    """
    elf = ElfFile(io.BytesIO(read))
    if elf.machine != BPF:
        raise ValueError(f"it is for machine {elf.machine} and not for BPF, {BPF}")
    found = []
    for symbol in elf.symbols(GLOBAL_FUNCTION):
        if symbol.section >= len(elf.sections):
            continue  # a reserved index, for what stands in no section
        section = elf.sections[symbol.section]
        if section.flags & EXECUTABLE and section.name != ".text":
            found.append((symbol.section, symbol.value, section.name, symbol.name))
        if len(found) > _MOST_PROGRAMS:
            raise ValueError(f"it has more than {_MOST_PROGRAMS} programs")
    return [(section, name) for _, _, section, name in sorted(found)]
