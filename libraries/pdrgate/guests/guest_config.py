"""The virtual machine that a kernel build is booted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdrgate.guests.emulator.server_cpus import ServerCpu
from pdrgate.guests.metering.memory.cache_levels import SERVER, CacheLevels


@dataclass(frozen=True, slots=True)
class GuestConfig:
    """The machine that a build is booted on."""

    cpus: tuple[int, ...]
    """CPUs of this machine that QEMU runs on; virtual CPUs get one of them each, in turn."""
    vcpus: int = 1
    memory: int = 512
    """Memory of the guest, MiB."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    cpu: ServerCpu = "server"
    """Model of an emulated CPU."""
    isolate: bool = True
    """Whether QEMU goes before other processes on its CPUs."""
    cmdline: str = ""
    """Further words for the kernel's command line."""
    pvh: bool = True
    """Whether the ELF image in the bzImage is booted where it can be, see `pdrgate.builds.boot_image`."""
    metered: bool = False
    """Whether what its CPUs execute is counted, and their speed can be held; by emulation only."""
    caches: CacheLevels = SERVER
    """Caches that memory trials model."""
    model: str = ""
    """The CPU whose prices give estimated cycles; empty: the one that is used where nothing else is asked for."""
    shares: bool = False
    """Whether its CPUs, two to four, can be observed to take lines from each other; by emulation only."""
    ticks: bool = False
    """Whether its clock goes on to tick while a CPU has nothing to do, so that each tick costs the same."""
    boot_cpus: tuple[int, ...] = ()
    """CPUs that QEMU runs on until the guest is up, so that two guests can boot at once; none: only ``cpus``."""
