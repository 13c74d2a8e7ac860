"""Counting of a guest's kernel by its emulator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import partial

from pdrgate.guests.guest import Guest
from pdrgate.guests.metering.function_counts import BusyProgram, FunctionObserver, why_unmetered
from pdrgate.guests.metering.loaded_code import LoadedCode
from pdrgate.guests.metering.memory import GuestLineNames, MemoryObserver, read_areas, variable_values
from pdrgate.guests.metering.memory.line_areas import LineArea
from pdrgate.guests.metering.meter import Executed
from pdrgate.guests.metering.program_calls import observed_programs
from pdrgate.guests.metering.sharing import LockstepObserver, SharingObserver
from pdrgate.guests.metering.stacks import CallsObserver, observed_stacks
from pdrgate.guests.metering.symbols import KernelSymbols, read_symbols, shows_symbols
from pdrgate.observers.function_names import kernel_functions
from pdrgate.observers.kernel_roles import ROLES_OF_ONE_CPU, ROLES_OF_SEVERAL_CPUS, absent
from pdrgate.observers.watching import Counting, Observer
from pdrgate.record.phase import Phase


class GuestCounting(Counting):
    """The counting of a guest that is up.

    Args:
        program: what uses the guest's CPU when it is to be busy.
        vcpus: how many CPUs the guest has.
        lead: has packets come to so many of them, the first ones; 0: as the scenario has it.
    """

    exact = True
    """Equal packets cost equal numbers: an emulator sees one CPU and nothing else."""
    names_code = True

    def __init__(self, guest: Guest, program: BusyProgram, vcpus: int, lead: Callable[[int], None]) -> None:
        self._guest = guest
        self._program = program
        self._vcpus = vcpus
        self._lead = lead
        self._named = (guest.meter is not None or guest.config.shares) and shows_symbols(guest)
        """Whether its kernel shows the addresses of its functions."""
        self._symbols: KernelSymbols | None = None
        """Addresses of its functions when counting was last asked for."""
        self.unknown: tuple[str, ...] = ()
        """Sentences on what stays unknown of the guest's kernel, because it has no function of a known name."""
        self._observer: FunctionObserver | None = None
        """Observer that counts the functions."""
        self._stays = False
        self._loaded: LoadedCode | None = None
        self._begun: Executed | None = None
        """Blocks that had been executed when naming began."""

    def counting(self) -> tuple[Observer, ...]:
        """Observers that count the guest's kernel, by function."""
        guest = self._guest
        if guest.meter is None or self.uncounted:
            return ()
        if self._stays:
            self._code.begin()
            self._observer = FunctionObserver(guest.meter, self._code.naming)
        else:
            symbols = self._know(read_symbols(guest, guest.build.image))
            self._program.start()
            self._observer = FunctionObserver(guest.meter, lambda executed: symbols)
        return (self._observer,)

    def stay(self) -> GuestCounting:
        """Read symbols from now on only where something else was executed: many scenarios are counted on the guest."""
        self._stays = True
        return self

    def tracing(self) -> tuple[Observer, ...]:
        """Observers that follow calls, by the names that `counting` has read."""
        meter = self._guest.meter
        if meter is None or self._symbols is None:
            return ()
        return (CallsObserver(meter, self._symbols, observed_stacks),)

    def memory(self) -> tuple[Observer, ...]:
        """Observers of each access to memory, by the names that `counting` has read; of several CPUs, what they
        share."""
        guest = self._guest
        if guest.sharing_meter is not None and guest.memory is not None and self._named:
            symbols = self._know(read_symbols(guest, guest.build.image))
            return (
                SharingObserver(
                    guest.sharing_meter, partial(guest.exists, "/"), symbols, self._areas,
                    GuestLineNames(guest.memory, self._vcpus, guest.build),
                ),
            )  # fmt: skip
        meter, memory, counting = guest.memory_meter, guest.memory, self._observer
        if meter is None or memory is None or counting is None:
            return ()
        return (
            MemoryObserver(
                meter, guest.config.caches, partial(guest.exists, "/"), self._areas,
                GuestLineNames(memory, 1, guest.build), counting,
            ),
        )  # fmt: skip

    def in_lockstep(self) -> Mapping[Phase, tuple[Observer, ...]]:
        """Observers that have the CPUs of a guest that has several execute in turn, by the names that `memory` has
        read."""
        guest, symbols = self._guest, self._symbols
        if guest.sharing_meter is None or symbols is None:
            return {}
        lockstep = partial(LockstepObserver, guest.sharing_meter, partial(guest.exists, "/"), symbols, self._lead)
        return {Phase.ALL_CPUS: (lockstep(self._vcpus),), Phase.ONE_CPU: (lockstep(1),)}

    def programs(self) -> tuple[Observer, ...]:
        """Observers that count the programs that are loaded now, by function."""
        guest = self._guest
        if guest.meter is None or self.uncounted:
            return ()
        guest.count()
        return (CallsObserver(guest.meter, read_symbols(guest, guest.build.image), observed_programs),)

    @property
    def uncounted(self) -> str:
        """Why it is not counted what the guest's kernel executes; empty when it is."""
        guest = self._guest
        if guest.meter is None:
            return why_unmetered(guest.accelerator.name, self._vcpus)
        return "" if self._named else f"{guest.build.name} shows no addresses of its functions (CONFIG_KALLSYMS)"

    def _know(self, symbols: KernelSymbols) -> KernelSymbols:
        """Take the symbols of the guest's kernel; returns them."""
        if self._symbols is None:
            roles = ROLES_OF_SEVERAL_CPUS if self._vcpus > 1 else ROLES_OF_ONE_CPU
            self.unknown = absent(roles, symbols)
        self._symbols = symbols
        return symbols

    def busy(self) -> AbstractContextManager[object]:
        """Make a program use the guest's CPU all the time. One that stays up ticks while its CPU rests, too."""
        return contextlib.nullcontext() if self._stays else self._program.runs()

    def begin_naming(self) -> None:
        """Name from here on what the kernel executes."""
        meter = self._guest.meter
        self._begun = None if meter is None or self.uncounted else meter.executed()

    def named(self) -> frozenset[str]:
        """The functions that ran since `begin_naming`, of BPF programs none; none at all where nothing is counted."""
        meter = self._guest.meter
        if meter is None or self._begun is None:
            return frozenset()
        executed = meter.executed().since(self._begun)
        return kernel_functions(self._code.naming(executed).functions(executed))

    def values(self, names: Collection[str]) -> Mapping[str, bytes]:
        """The content of variables, read in the guest's memory; none where that is not to be seen."""
        guest = self._guest
        if guest.memory is None or self.uncounted:
            return {}
        return variable_values(guest.memory, self._code.loaded, self._areas(), names)

    def _areas(self) -> tuple[LineArea, ...]:
        return read_areas(self._guest, self._guest.build.architecture)

    @property
    def _code(self) -> LoadedCode:
        """Names of the code of a guest that stays up."""
        if self._loaded is None:
            self._loaded = LoadedCode(self._guest, self._guest.build)
            self._know(self._loaded.loaded)
        return self._loaded
