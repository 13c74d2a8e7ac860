"""An observer: what each function of a guest's kernel executed while a trial was measured."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pdrgate.guests.metering.meter import Executed, VcpuMeter
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.hosts.host import CommandError, Host
from pdrgate.observers.function_names import PROGRAM, condensed, is_thunk
from pdrgate.observers.reading import Counter, Reading
from pdrgate.observers.set_up_costs import PROGRAM_PLACE, REACHED
from pdrgate.observers.watching import Observation
from pdrgate.record.stretch import Callers, Functions

LEAST_FUNCTION = 2e-6
"""Share of a trial's instructions below which a function is not kept by itself: a hundredth of an instruction per
packet."""
LEAST_CALLER = 2e-4
"""Share of a trial's instructions, for callers of a function to be kept: half an instruction of a packet of 2 500."""
_FEW = 64
"""Instructions that keep a function in any trial: one that is called once for each replacement leads to a cause."""

_OURS = (f"{PROGRAM}drop_reasons", f"{PROGRAM}pdrgate_")
"""How names of pdrgate's own programs begin that run in the guest beside others."""
_SETTLED = 0.05
"""Seconds after a program was made to go on in which the kernel may still have work of that."""
_START = """\
sh -c 'kill -STOP $$; while :; do :; done' >/dev/null 2>&1 &
until grep -q '^State:.T' /proc/$!/status; do :; done
echo $!"""
"""The program stops itself; the script returns only once it has stopped."""


class FunctionObserver:
    """Reads what all CPUs of the guest have executed before and after each trial, which costs the guest nothing.

    Args:
        naming: gets what was executed and returns the symbols that name it.
    """

    def __init__(self, meter: VcpuMeter, naming: Callable[[Executed], KernelSymbols]) -> None:
        self._meter = meter
        self._naming = naming
        self._before: Executed | None = None
        self._since = 0.0
        self.latest: Functions = {}
        """Functions of the last trial."""
        self.symbols: KernelSymbols | None = None
        """Symbols that named the functions of the last trial; None before the first."""

    def begin(self) -> None:
        self._since = time.monotonic()
        self._before = self._meter.executed()

    def end(self) -> Observation:
        before, self._before = self._before, None
        if before is None:
            return Observation()
        counted, after = time.monotonic() - self._since, self._meter.executed()
        executed = after.since(before)
        return Observation(counted=counted, later=(partial(self._named, executed),))

    def _named(self, executed: Executed) -> Observation:
        self.symbols = self._naming(executed)
        named = self.symbols.functions(executed)
        whole = sum(instructions for instructions, _ in named.values())
        self.latest = functions = condensed(named, min(LEAST_FUNCTION, _FEW / max(whole, 1)))
        before, after = code_reached(self.symbols.reached(executed))
        return Observation(before, after, functions, callers=self._callers(executed, self.symbols, whole))

    def _callers(self, executed: Executed, symbols: KernelSymbols, whole: int) -> Callers:
        """Callers of each function, among functions that a packet has some instructions of."""
        least = LEAST_CALLER * whole
        known = {name for name, (own, _) in self.latest.items() if own >= least and not is_thunk(name)}
        found = {
            name: tuple(one for one in own if one in known)
            for name, own in symbols.callers(executed).items()
            if name in known
        }
        return {name: own for name, own in found.items() if own}


def code_reached(programs: Mapping[str, int]) -> tuple[Reading, Reading]:
    """What ran of all eBPF programs but pdrgate's own beside them, as readings before and after; none if none did."""
    size = sum(own for name, own in programs.items() if not name.startswith(_OURS))
    counter = Counter(PROGRAM_PLACE, REACHED)
    return ({counter: 0}, {counter: size}) if size else ({}, {})


class BusyProgram:
    """A program in a guest that can use its CPU all the time, without a system call.

    It is started once and stands still until it is wanted: to start one costs a guest 0.1 s, in which trials would
    wait, and leaves its kernel work for as long again. It ends with the guest.
    """

    def __init__(self, guest: Host) -> None:
        self._guest = guest
        self._pid = ""

    def start(self) -> None:
        """Start it, and have it stand still; once. Raises TestbedError."""
        if not self._pid:
            self._pid = self._run(_START)

    @contextlib.contextmanager
    def runs(self) -> Iterator[None]:
        """Make the program use the CPU. Raises TestbedError."""
        if self._pid and self._guest.script(f"kill -CONT {self._pid}").exit_code != 0:
            self._pid = ""  # the guest's shell was lost, and took it along
        if not self._pid:
            self.start()
            self._run(f"kill -CONT {self._pid}")
        time.sleep(_SETTLED)
        try:
            yield
        finally:
            self._run(f"kill -STOP {self._pid}")

    def _run(self, script: str) -> str:
        done = self._guest.script(script)
        if done.exit_code != 0:
            raise CommandError(self._guest.name, "having a program use the CPU", done)
        return done.stdout.strip()


def why_unmetered(accelerator: str, vcpus: int) -> str:
    """Why what a guest executes is not counted."""
    if accelerator != "tcg":
        return f"the guest runs by {accelerator.upper()}, and only emulated ones show what they execute"
    if vcpus > 1:
        return f"the guest has {vcpus} virtual CPUs, and only the counts of one are judged; give it one (sut.vcpus)"
    return "the testbed file does not ask for it, see sut.cpu_speed"
