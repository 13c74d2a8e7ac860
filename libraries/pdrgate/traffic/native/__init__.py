"""Builds the compiled parts from the C sources in this folder: the generator's, the heartbeat that watches a CPU,
the counts of what one executes and of what a kernel drops, the receivers of an end host and what a
program there sends on, what sets many routes and looks at a network, the loader of eBPF programs, and what runs one on
a packet.

The programs and the BPF object are compiled once per version of their sources, with the machine's own compilers, into a
cache folder; nothing is compiled where no data path is measured.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.checkout import how_to_install
from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import TestbedError

_SOURCES = Path(__file__).parent
_PACKAGES = {"gcc": "gcc libc6-dev", "clang": "clang"}


@dataclass(frozen=True, slots=True)
class NativeParts:
    """Paths of the generator's worker and its BPF object, of the heartbeat, the receivers, and of what counts."""

    worker: Path
    bpf: Path
    heartbeat: Path
    receiver: Path
    """Statically linked: it runs on any host of this machine's architecture."""
    counts: Path
    """Statically linked, for any host of this machine's architecture."""
    drops: Path
    """Statically linked, for any host of this machine's architecture."""
    bpf_load: Path
    """Statically linked, for any host of this machine's architecture."""
    vectors: Path
    """Statically linked, for any host of this machine's architecture."""
    relay: Path
    """Statically linked, for any host of this machine's architecture."""
    routes: Path
    """Statically linked, for any host of this machine's architecture."""
    requests: Path
    """Statically linked, for any host of this machine's architecture."""
    network: Path
    """Statically linked, for any host of this machine's architecture."""

    @property
    def all(self) -> tuple[Path, ...]:
        return (
            self.worker,
            self.bpf,
            self.heartbeat,
            self.receiver,
            self.counts,
            self.drops,
            self.bpf_load,
            self.vectors,
            self.relay,
            self.routes,
            self.requests,
            self.network,
        )

    @property
    def for_steps(self) -> Mapping[str, Path]:
        """Programs that the steps of a scenario may start, by their names."""
        return {one.name: one for one in (self.relay, self.routes)}


def build(cache: Path | None = None) -> NativeParts:
    """Return the built parts, compiling them unless this version of the sources is built already.

    Raises:
        TestbedError: a compiler or a header is missing, or compiling failed.
    """
    sources = sorted([*_SOURCES.glob("*.c"), *_SOURCES.glob("*.h")])
    digest = hashlib.sha256(platform.machine().encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = (cache or cache_folder()) / f"native-{digest.hexdigest()}"
    programs = (
        "heartbeat",
        "receiver",
        "counts",
        "drops",
        "bpf-load",
        "vectors",
        "relay",
        "routes",
        "requests",
        "network",
    )
    names = ("pdrgate-traffic", "traffic.bpf.o", *(f"pdrgate-{name}" for name in programs))
    parts = NativeParts(*(folder / name for name in names))
    if all(part.exists() for part in parts.all):
        return parts
    for compiler, packages in _PACKAGES.items():
        if shutil.which(compiler) is None:
            raise TestbedError(
                f"building the traffic generator needs {compiler}, which is not on PATH; "
                f"{how_to_install(f'{packages} libbpf-dev')}"
            )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        multiarch = f"/usr/include/{platform.machine()}-linux-gnu"
        _compile(
            [
                "clang",
                "-O2",
                "-g",
                "-target",
                "bpf",
                "-mcpu=v3",
                f"-I{multiarch}",
                "-c",
                str(_SOURCES / "traffic.bpf.c"),
            ],
            parts.bpf,
        )
        _compile(["gcc", "-O2", "-Wall", str(_SOURCES / "worker.c"), "-lbpf", "-pthread"], parts.worker)
        _compile(["gcc", "-O2", "-Wall", str(_SOURCES / "heartbeat.c"), "-pthread"], parts.heartbeat)
        for name, static, libraries in (
            ("receiver.c", parts.receiver, ()), ("counts.c", parts.counts, ()),
            ("vectors.c", parts.vectors, ()), ("drops.c", parts.drops, ()),
            ("bpf_load.c", parts.bpf_load, _libbpf()), ("routes.c", parts.routes, ()),
            ("requests.c", parts.requests, ()), ("network.c", parts.network, ()),
        ):  # fmt: skip
            _compile(["gcc", "-Os", "-Wall", "-static", "-s", str(_SOURCES / name), *libraries], static)
        relay = [str(_SOURCES / name) for name in ("relay.c", "relay_xdp.c")]
        _compile(["gcc", "-Os", "-Wall", "-static", "-s", *relay], parts.relay)
    return parts


def _libbpf() -> tuple[str, ...]:
    """The libraries that libbpf takes where all is linked into one file; libelf takes zstd since 0.189."""
    zstd = subprocess.run(
        ("gcc", "-print-file-name=libzstd.a"), capture_output=True, text=True, check=False, env=child_environment()
    ).stdout.strip()
    return ("-lbpf", "-lelf", "-lz", *(("-lzstd",) if Path(zstd).is_absolute() else ()))


def _compile(command: list[str], output: Path) -> None:
    partial = output.with_name(output.name + ".part")
    command = [*command, "-o", str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
        raise TestbedError(
            f"building the traffic generator failed: {command[0]}: {complaint}; "
            "a missing <bpf/…> header comes with: apt-get install libbpf-dev"
        )
    partial.rename(output)
