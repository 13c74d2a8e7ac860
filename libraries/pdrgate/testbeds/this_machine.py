"""Prerequisites of a testbed on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pdrgate.builds.architecture import Architecture
from pdrgate.this_process.checkout import how_to_install
from pdrgate.values.errors import TestbedError

_ALWAYS = {"ip": "iproute2", "ethtool": "ethtool"}
_BUSYBOX = {"busybox": "busybox-static"}
_NAMED_BESIDE = {
    "gcc": "gcc",
    "clang": "clang",
    "/usr/include/stdio.h": "libc6-dev",
    "/usr/include/bpf/bpf.h": "libbpf-dev",
}
"""Files and programs that compile the generator. A compiled generator needs none of them."""
_UNPACKING = {"lz4": "lz4", "zstd": "zstd"}
"""Programs that some kernels are packed by."""


def _for_guests(architecture: Architecture) -> Mapping[str, str]:
    """What guests take: of another architecture than this machine's they have programs of packages."""
    emulator = {architecture.qemu: architecture.qemu_package}
    if architecture.is_this_machines:
        return emulator | _BUSYBOX
    return emulator | {architecture.compiler: architecture.compiler_package}


def check_this_machine(testbed: str, why: str, *, guests: Architecture | None = None) -> None:
    """Raise TestbedError unless this process is root's and the tools are installed.

    The message names all missing tools, and those that a later step may need.

    Args:
        why: what takes root.
        guests: architecture of the kernels that are booted here.
    """
    if os.geteuid() != 0:
        raise TestbedError(f"testbed {testbed} {why}, which takes root; run with sudo")
    needed = {**_ALWAYS, **(_for_guests(guests) if guests else {})}
    if missing := list(_missing(needed)):
        beside = _NAMED_BESIDE | (_UNPACKING if guests else {})
        packages = (
            *(needed[tool] for tool in missing),
            *(beside[name] for name in _missing(beside)),
        )
        verb = "is" if len(missing) == 1 else "are"
        option = "" if guests is None or guests.is_this_machines else f" --arch {guests.name}"
        raise TestbedError(f"{', '.join(missing)} {verb} not installed; {how_to_install(' '.join(packages), option)}")


def _missing(needed: Mapping[str, str]) -> Iterator[str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for name in needed:
        if not (Path(name).exists() if name.startswith("/") else shutil.which(name, path=path)):
            yield name
