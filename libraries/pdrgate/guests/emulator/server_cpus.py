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
import subprocess
from dataclasses import dataclass, replace
from typing import Literal

from pdrgate.this_process.child_environment import child_environment

ServerCpu = Literal["server", "amd-milan", "amd-genoa", "intel-skylake", "intel-sapphire-rapids"]

_SHARED = ("fsrm",)
_AMD = ("ibpb", "ibrs", "stibp", "amd-ssbd", "null-sel-clr-base", "lfence-always-serializing", "ibpb-brtype", "sbpb")
_INTEL = ("spec-ctrl", "stibp", "ssbd", "md-clear")
_NO_SERVER_HAS = ("3dnow", "3dnowext", "mpx")
_MUST = frozenset({"fsrm", "fsrs", "auto-ibrs"})
"""Flags that decide what a packet executes. A flag that QEMU does not know is reported."""


@dataclass(frozen=True, slots=True)
class CpuModel:
    """A CPU as its makers number it, and its flags that a kernel decides by."""

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

    def text(self, known: frozenset[str]) -> str:
        """Value of ``-cpu`` for it, by a QEMU that knows these flags."""
        return ",".join((
            "max", f"vendor={self.vendor}", f"family={self.family}", f"model={self.model}", f"stepping={self.stepping}",
            f"model-id={self.title}", "x-force-features=on", *(f"+{flag}" for flag in self.flags if flag in known),
            *(f"-{flag}" for flag in (*_NO_SERVER_HAS, *self.without) if flag in known),
        ))  # fmt: skip

    def lacking(self, known: frozenset[str]) -> tuple[str, ...]:
        """The flags that decide what a packet executes, and that such a QEMU cannot offer."""
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

SERVER_CPUS: dict[ServerCpu, CpuModel] = {
    "server": _STEADY,
    "amd-milan": _MILAN,
    "amd-genoa": _GENOA,
    "intel-skylake": _SKYLAKE,
    "intel-sapphire-rapids": _SAPPHIRE_RAPIDS,
}
"""CPU models by name. ``server`` is the one that each version of QEMU from 7.2 on can offer, and keeps pace with."""


@functools.cache
def known_flags(qemu: str) -> frozenset[str]:
    """The flags that a QEMU knows, whether it emulates what they stand for or not."""
    done = subprocess.run((qemu, "-cpu", "help"), capture_output=True, text=True, check=False, env=child_environment())
    return frozenset(re.split(r"\s+", done.stdout.partition("Recognized CPUID flags:")[2].strip()))
