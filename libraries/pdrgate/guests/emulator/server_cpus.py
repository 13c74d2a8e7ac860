"""The CPUs that an emulated guest can have: as servers have them, for what a kernel patches into itself.

A kernel chooses by a CPU's vendor, family and flags how it copies and clears memory, calls through pointers and
returns. QEMU emulates the instructions of all of them, and offers few of the flags by itself. Flags of string
instructions and of registers that steer speculation change no instruction that it executes, so these are forced on.
Flags that its version does not know stay off, and are reported. A kernel prints in its own words what it made of the
rest.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pdrgate.builds.architecture import Architecture
from pdrgate.this_process.child_environment import run_program
from pdrgate.values.errors import TestbedError

ServerCpu = Literal[
    "server", "amd-milan", "amd-genoa", "intel-skylake", "intel-sapphire-rapids", "neoverse-n1", "cortex-a76"
]  # fmt: skip

_SHARED = ("fsrm",)
_AMD = ("ibpb", "ibrs", "stibp", "amd-ssbd", "null-sel-clr-base", "lfence-always-serializing", "ibpb-brtype", "sbpb")
_INTEL = ("spec-ctrl", "stibp", "ssbd", "md-clear")
_NO_SERVER_HAS = ("3dnow", "3dnowext", "mpx")
_RIGHT_FLAGS = 8
"""QEMU's first version whose TCG gets the flags of cmpxchg16b right.

Before it an interrupt behind one saves flags that are made of an address, and kernels which branch on them (Linux 6.12
in each kmalloc) die of a double fault when it returns. Without the instruction they emulate it: +0.2 % of what a packet
costs.
"""
_MUST = frozenset({"fsrm", "fsrs", "auto-ibrs"})
"""Flags that decide what a packet executes. A flag that QEMU does not know is reported."""


class ServerModel(Protocol):
    """A CPU that an emulated guest can have."""

    @property
    def words(self) -> str:
        """Words for the kernel's command line."""

    def text(self, known: frozenset[str], version: str = "") -> str:
        """Value of ``-cpu`` for it.

        Args:
            known: flags that the QEMU knows.
            version: the QEMU's version.
        """

    def lacking(self, known: frozenset[str]) -> tuple[str, ...]:
        """The flags that decide what a packet executes, and that such a QEMU cannot offer."""


@dataclass(frozen=True, slots=True)
class NamedCpu:
    """A CPU that QEMU has by itself, with all that a kernel asks it for; satisfies `ServerModel`."""

    model: str
    words: str = ""

    def text(self, known: frozenset[str], version: str = "") -> str:
        return self.model

    def lacking(self, known: frozenset[str]) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class CpuModel:
    """An x86 CPU as its makers number it, and its flags that a kernel decides by; satisfies `ServerModel`."""

    vendor: str
    family: int
    model: int
    stepping: int
    title: str
    flags: tuple[str, ...]
    """Flags that are forced on."""
    without: tuple[str, ...] = ()
    """Flags of QEMU's own that the CPU has not."""
    words: str = ""
    """Words for the kernel's command line: facts that a kernel reads on hardware from registers that QEMU does not
    emulate."""

    def text(self, known: frozenset[str], version: str = "") -> str:
        number = version.partition(".")[0]
        broken = number.isdigit() and int(number) < _RIGHT_FLAGS
        return ",".join((
            "max", f"vendor={self.vendor}", f"family={self.family}", f"model={self.model}", f"stepping={self.stepping}",
            f"model-id={self.title}", "x-force-features=on", *(f"+{flag}" for flag in self.flags if flag in known),
            *(f"-{flag}" for flag in (*_NO_SERVER_HAS, *self.without) if flag in known),
            *(("-cx16",) if broken else ()),
        ))  # fmt: skip

    def lacking(self, known: frozenset[str]) -> tuple[str, ...]:
        return tuple(flag for flag in self.flags if flag in _MUST and flag not in known)


_MILAN = CpuModel(
    "AuthenticAMD", 25, 1, 1, "AMD EPYC 7003 (Milan)", (*_SHARED, *_AMD), without=("fsrs", "fzrm", "fsrc", "auto-ibrs")
)
_GENOA = CpuModel(
    "AuthenticAMD", 25, 17, 1, "AMD EPYC 9004 (Genoa)", (*_SHARED, *_AMD, "auto-ibrs"), without=("fsrs", "fzrm", "fsrc")
)
_SKYLAKE = CpuModel(
    "GenuineIntel", 6, 85, 4, "Intel Xeon Scalable (Skylake)", _INTEL,
    without=("svm", "fsrm", "fsrs", "fzrm", "fsrc", "auto-ibrs"),
)  # fmt: skip
_SAPPHIRE_RAPIDS = CpuModel(
    "GenuineIntel", 6, 143, 8, "Intel Xeon Scalable (Sapphire Rapids)",
    (*_SHARED, *_INTEL, "fsrs", "fzrm", "fsrc", "auto-ibrs", "bhi-ctrl"), without=("svm",),
    words="nopti mds=off l1tf=off",
)  # fmt: skip

_STEADY = replace(_MILAN, flags=_AMD, without=(*_MILAN.without, "erms", *_SHARED))
"""Without fast string instructions: QEMU moves their bytes one at a time, and falls behind its own clock by that."""

SERVER_CPUS: dict[ServerCpu, ServerModel] = {
    "server": _STEADY,
    "amd-milan": _MILAN,
    "amd-genoa": _GENOA,
    "intel-skylake": _SKYLAKE,
    "intel-sapphire-rapids": _SAPPHIRE_RAPIDS,
    "neoverse-n1": NamedCpu("neoverse-n1"),
    "cortex-a76": NamedCpu("cortex-a76"),
}
"""CPU models by name. ``server`` is the one that each version of QEMU from 7.2 on can offer, and keeps pace with."""
_DEFAULT: ServerCpu = "server"


def chosen_cpu(architecture: Architecture, cpu: ServerCpu) -> tuple[str, ServerModel]:
    """The name and the model of a guest's CPU; ``server`` is the default of each architecture.

    Raises:
        TestbedError: it is the CPU of another architecture.
    """
    names = {str(name): model for name, model in SERVER_CPUS.items() if name in architecture.cpus}
    name = architecture.cpus[0] if cpu == _DEFAULT else cpu
    if name not in names:
        raise TestbedError(
            f"{cpu} is no CPU for {architecture.name} kernels; write sut.cpu: server, or one of {', '.join(names)}"
        )
    return name, names[name]


@functools.cache
def known_flags(qemu: str) -> frozenset[str]:
    """The flags that a QEMU knows, whether it emulates what they stand for or not."""
    flags = run_program(qemu, "-cpu", "help").stdout.partition("Recognized CPUID flags:")[2]
    return frozenset(re.split(r"\s+", flags.strip()))
