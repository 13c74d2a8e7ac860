"""Builds the compiled parts from the C sources in this folder: the generator's, the heartbeat that watches a CPU,
the counts of what one executes and of what a kernel drops, the receivers of an end host and what a
program there sends on, what sets many routes and looks at a network, the loader of eBPF programs, and what runs one on
a packet.

The programs and the BPF object are compiled once per version of their sources, with the machine's own compilers, into a
cache folder; nothing is compiled where no data path is measured.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.child_environment import run_program
from pdrgate.this_process.compiled import NO_BPF_HEADER, compile_to, compiling

_SOURCES = Path(__file__).parent
_COMPILERS = {"gcc": "gcc libc6-dev libbpf-dev", "clang": "clang libbpf-dev"}


@dataclass(frozen=True, slots=True)
class NativeParts:
    """Paths of what is built. Each part from `receiver` on is linked statically: it runs on any host of this machine's
    architecture."""

    worker: Path
    bpf: Path
    """The worker's BPF object."""
    heartbeat: Path
    receiver: Path
    counts: Path
    drops: Path
    bpf_load: Path
    vectors: Path
    relay: Path
    routes: Path
    requests: Path
    network: Path

    @property
    def for_steps(self) -> Mapping[str, Path]:
        """Programs that the steps of a scenario may start, by their names."""
        return {one.name: one for one in (self.relay, self.routes)}


_NAMES = (
    "pdrgate-traffic", "traffic.bpf.o",
    *(f"pdrgate-{field.name.replace('_', '-')}" for field in fields(NativeParts)[2:]),
)  # fmt: skip
"""Files of `NativeParts`, in its order."""


@dataclass(frozen=True, slots=True)
class ForeignCompiler:
    """Compiler of programs that do not run on this machine."""

    program: str
    """The C compiler, such as aarch64-linux-gnu-gcc."""
    packages: str
    """Packages that it comes with."""
    machine: str
    """Output of ``uname -m`` where the programs run."""
    root: Path
    """Folder with headers and static libraries of libc, libbpf, libelf and zlib, as packages have them."""


def build_foreign(compiler: ForeignCompiler, cache: Path | None = None) -> Mapping[Path, Path]:
    """Compile what runs on a SUT of another architecture, unless that was done.

    Returns:
        Each part by the path that this machine's own build of it has: code that starts one need not know which it is.

    Raises:
        TestbedError: a compiler is missing, or compiling failed.
    """
    own = build(cache)
    folder = (cache or cache_folder()) / f"native-{_digest(compiler.machine)}"
    at_home: Sequence[Path] = [getattr(own, field.name) for field in fields(NativeParts)[3:]]
    made = {one: folder / one.name for one in at_home}
    if all(one.exists() for one in made.values()):
        return made
    options = (f"--sysroot={compiler.root}",)
    with compiling(f"programs for guests of {compiler.machine}", folder, {compiler.program: compiler.packages}):
        for field, output in zip(fields(NativeParts)[3:], made.values(), strict=True):
            compile_to(output, _static(compiler.program, field.name, options))
    return made


_MORE = {"relay": "relay_xdp", "bpf_load": "bpf_sockets"}
"""Further source of a part, by the part's name."""


def _static(compiler: str, name: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The words that compile a part that is linked statically."""
    more = _sources(_MORE[name]) if name in _MORE else ()
    libraries = _libbpf(compiler, options) if name == "bpf_load" else ()
    return (compiler, "-Os", "-Wall", "-static", "-s", *options, *_sources(name), *more, *libraries)


def _digest(machine: str) -> str:
    """Digest of the sources, and of the machine that they are compiled for."""
    digest = hashlib.sha256(machine.encode())
    for source in sorted([*_SOURCES.glob("*.c"), *_SOURCES.glob("*.h")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def build(cache: Path | None = None) -> NativeParts:
    """Return the built parts, compiling them unless this version of the sources is built already.

    Raises:
        TestbedError: a compiler or a header is missing, or compiling failed.
    """
    folder = (cache or cache_folder()) / f"native-{_digest(platform.machine())}"
    parts = NativeParts(*(folder / name for name in _NAMES))
    if all((folder / name).exists() for name in _NAMES):
        return parts
    headers = f"-I/usr/include/{platform.machine()}-linux-gnu"
    with compiling("the traffic generator", folder, _COMPILERS, NO_BPF_HEADER):
        compile_to(
            parts.bpf, ("clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", headers, "-c", *_sources("traffic.bpf"))
        )
        compile_to(parts.worker, ("gcc", "-O2", "-Wall", *_sources("worker"), "-lbpf", "-pthread"))
        compile_to(parts.heartbeat, ("gcc", "-O2", "-Wall", *_sources("heartbeat"), "-pthread"))
        for field in fields(NativeParts)[3:]:
            compile_to(getattr(parts, field.name), _static("gcc", field.name))
    return parts


def _sources(name: str) -> tuple[str, ...]:
    return (str(_SOURCES / f"{name}.c"),)


def _libbpf(compiler: str, options: Sequence[str]) -> tuple[str, ...]:
    """The libraries that libbpf takes where all is linked into one file; libelf takes zstd since 0.189."""
    zstd = run_program(compiler, *options, "-print-file-name=libzstd.a").stdout.strip()
    return ("-lbpf", "-lelf", "-lz", *(("-lzstd",) if Path(zstd).is_absolute() else ()))
