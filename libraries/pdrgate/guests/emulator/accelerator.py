"""KVM or emulation (TCG): whichever is the faster one here.

/dev/kvm may be there, open, and be worse than nothing: if this machine is itself a guest, a boot sector was seen to
take twenty times as long by KVM as by emulation, and kernels never to print a word. No number of seconds distinguishes
such a KVM from a busy machine; doing the same work both ways does. Only a kernel shows the rest: it is learnt from the
first guest that KVM was chosen for, see `pdrgate.testbeds.vm.vm_testbed`, and kept for as long as this machine stays
up.
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pdrgate.builds.architecture import X86_64, Architecture
from pdrgate.guests.emulator.qemu import Accelerator, find_qemu
from pdrgate.guests.remembered import Remembered
from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import TestbedError

DEVICE = "/dev/kvm"

PROBE_LIMIT = 60.0
"""Seconds in which the probe must end by emulation; it takes 0.5 s on a quiet machine."""

_KVM_MULTIPLE, _KVM_LEAST = 4.0, 2.0
"""Patience with KVM: a multiple of the time that emulation took, and a least number of seconds, enough to measure how
slow it is."""

_PATIENCE_MULTIPLE, _LEAST_PATIENCE = 40.0, 10.0
"""Silence after which a guest by KVM counts as dead: a multiple of the probe's time by emulation, and a least number of
seconds.

An emulated kernel says its first word within ten times the probe's time.
"""

_LOOPS = 20_000_000
_PROBE_CODE = (
    bytes.fromhex("b80020 8ed8 66b9") + _LOOPS.to_bytes(4, "little")  # mov ax, 0x2000; mov ds, ax; mov ecx, LOOPS
    + bytes.fromhex("6601c8 3007 83c340 6649 75f4")  # add eax, ecx; xor [bx], al; add bx, 64; dec ecx; jnz add
    + bytes.fromhex("baf400 b010 ee f4 ebfd")  # mov dx, 0xf4; mov al, 0x10; out dx, al; hlt; jmp hlt
).ljust(510, b"\0") + b"\x55\xaa"  # fmt: skip
"""A boot sector: work in registers and memory, by which KVM beats emulation; the device at 0xf4 then ends QEMU. The
firmware before it has touched memory and devices enough to show a KVM that is slow at that."""
_PROBED = X86_64
"""Architecture that the boot sector is for."""
_PROBE_EXIT = 0x10 << 1 | 1


@dataclass(frozen=True, slots=True)
class AcceleratorChoice:
    """The accelerator that a guest runs by, and why."""

    name: Accelerator
    why: str
    patience: float | None = None
    """Seconds of silence after which a guest is to be booted by emulation instead; None: it is not. Only for KVM that
    was chosen without being asked for and has not booted a guest yet."""


@dataclass(frozen=True, slots=True)
class KvmRecord:
    """Record of how KVM has worked for guests since this machine was started, for the runs after them."""

    folder: Path
    """A place that a reboot empties, such as the journal's."""

    @property
    def path(self) -> Path:
        return self._file.path

    def read(self) -> tuple[bool, str] | None:
        """Whether KVM boots guests, and the sentence on it; None when nothing is known since the last reboot."""
        record = self._file.read()
        return None if record is None or "boots" not in record else (bool(record["boots"]), str(record.get("why", "")))

    def write(self, boots: bool, why: str) -> None:
        """Note it. Raises StorageError as `Remembered.write`."""
        self._file.write({"boots": boots, "why": why})

    @property
    def _file(self) -> Remembered:
        return Remembered(self.folder, "kvm")


def choose_accelerator(
    architecture: Architecture, wanted: Literal["auto", "kvm", "tcg"] = "auto", record: KvmRecord | None = None
) -> AcceleratorChoice:
    """KVM if it is the faster of the two, else TCG. It is measured once per process, unless the record has it.

    KVM runs guests of this machine's own architecture only, and so far it is measured by a probe for x86.

    Raises:
        TestbedError: QEMU is not installed, or KVM was asked for and is no faster than emulation.
    """
    qemu = find_qemu(architecture)
    if wanted == "tcg":
        return AcceleratorChoice("tcg", "asked for")
    problem = _foreign_problem(architecture) or _access_problem()
    known = record.read() if record is not None and problem is None and wanted == "auto" else None
    if record is not None and known is not None:
        boots, why = known
        if boots:
            return AcceleratorChoice("kvm", why)
        return AcceleratorChoice("tcg", f"{why}; remembered in {record.path} until this machine is restarted")
    found = KvmFinding(False, problem) if problem is not None else compare_accelerators(qemu)
    if wanted == "auto":
        return (
            AcceleratorChoice("kvm", found.why, found.patience) if found.faster else AcceleratorChoice("tcg", found.why)
        )
    if found.faster:
        return AcceleratorChoice("kvm", "asked for")
    raise TestbedError(f"no guest can run by KVM here: {found.why}; use accelerator: auto or tcg in the testbed file")


@dataclass(frozen=True, slots=True)
class KvmFinding:
    """Result of the probe of KVM."""

    faster: bool
    why: str
    patience: float | None = None


class ProbeError(Exception):
    """The probe did not end as it should; the message says how."""


@functools.cache
def compare_accelerators(qemu: str) -> KvmFinding:
    """Run the probe both ways, emulation first: its time says how long KVM may take."""
    try:
        emulated = probe_time(qemu, "tcg", PROBE_LIMIT)
    except ProbeError as error:
        without, limit, least, patience = str(error), PROBE_LIMIT, PROBE_LIMIT, None
    else:
        without, limit = f"took {emulated:.2f} s", max(_KVM_LEAST, _KVM_MULTIPLE * emulated)
        least, patience = emulated, max(_LEAST_PATIENCE, _PATIENCE_MULTIPLE * emulated)
    try:
        accelerated = probe_time(qemu, "kvm", limit)
        if accelerated >= least:
            # Others may have had the CPU just then.
            accelerated = min(accelerated, probe_time(qemu, "kvm", limit))
    except ProbeError as error:
        return KvmFinding(False, f"{DEVICE} opens but runs nothing: a probe {error} by it and {without} by emulation")
    times = f"a probe took {accelerated:.2f} s by {DEVICE} and {without} by emulation"
    if accelerated >= least:
        return KvmFinding(False, f"KVM is no faster here: {times}")
    return KvmFinding(True, times, patience)


def probe_time(qemu: str, accelerator: Accelerator, limit: float) -> float:
    """Seconds that the probe takes from QEMU's start to its end. Raises ProbeError when it does not end well."""
    code = os.memfd_create("pdrgate-probe")
    try:
        os.write(code, _PROBE_CODE)
        began = time.monotonic()
        done = subprocess.run(
            (
                # A probe that hangs must not outlive a run that is killed.
                "setpriv", "--pdeathsig", "KILL",
                qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "pc",
                "-accel", accelerator, "-m", "16", "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
                "-drive", f"file=/proc/self/fd/{code},format=raw,if=floppy", "-boot", "order=a",
            ),
            capture_output=True, text=True, check=False, timeout=limit, pass_fds=(code,), start_new_session=True,
            env=child_environment(),
        )  # fmt: skip
        took = time.monotonic() - began
    except subprocess.TimeoutExpired as error:
        raise ProbeError(f"did not end within {limit:.2f} s") from error
    finally:
        os.close(code)
    if done.returncode != _PROBE_EXIT:
        said = done.stderr.strip().splitlines()
        raise ProbeError(f"ended QEMU with exit code {done.returncode}" + (f" ({said[-1]})" if said else ""))
    return took


def _foreign_problem(architecture: Architecture) -> str | None:
    if architecture.is_this_machines and architecture == _PROBED:
        return None
    return f"guests are {architecture.name}, and this machine is {platform.machine()}"


def _access_problem() -> str | None:
    if not os.path.exists(DEVICE):  # noqa: PTH110
        return f"there is no {DEVICE}"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} may not be opened by this user"
    return None
