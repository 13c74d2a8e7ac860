"""An observer: what each function of a guest's kernel executed while a trial was measured."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from pdrgate.guests.metering.meter import Executed, VcpuMeter
from pdrgate.guests.metering.symbols import Symbols
from pdrgate.hosts.host import Host
from pdrgate.observers.functions import condensed
from pdrgate.observers.watching import Observation

LEAST = 2e-6
"""Share of a trial's instructions: a hundredth of an instruction per packet. What has less is not kept by itself."""

_SETTLED = 0.15
"""Seconds after the start of a program in which the kernel still has work of it: three times of what its ticks take."""


class FunctionObserver:
    """Reads what the guest's CPU has executed before and after each trial, which costs the guest nothing.

    Args:
        symbols: of the guest once its data path is set up; BPF programs that come later are code without a name.
    """

    def __init__(self, meter: VcpuMeter, symbols: Symbols) -> None:
        self._meter = meter
        self._symbols = symbols
        self._before: Executed | None = None
        self._since = 0.0

    def begin(self) -> None:
        self._since = time.monotonic()
        self._before = self._meter.executed()

    def end(self) -> Observation:
        before, self._before = self._before, None
        if before is None:
            return Observation()
        counted, after = time.monotonic() - self._since, self._meter.executed()
        functions = condensed(self._symbols.functions(after.since(before)), LEAST)
        return Observation(functions=functions, counted=counted)


@contextlib.contextmanager
def busy(guest: Host) -> Iterator[None]:
    """Have a program use the guest's CPU all the time, without a system call. Raises TestbedError."""
    with guest.start("sh", "-c", "while :; do :; done"):
        time.sleep(_SETTLED)
        yield


def why_unmetered(accelerator: str, vcpus: int) -> str:
    """Why what a guest executes is not counted."""
    if accelerator != "tcg":
        return f"the guest runs by {accelerator.upper()}, and only emulated ones show what they execute"
    if vcpus > 1:
        return f"the guest has {vcpus} virtual CPUs, and only one can be counted"
    return "the testbed file does not ask for it, see sut.cpu_speed"
