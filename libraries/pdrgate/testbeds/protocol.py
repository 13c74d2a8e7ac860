"""Protocol of a testbed for the gate, whatever it is made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol, runtime_checkable

from pdrgate.data_paths.catalogue import Hop
from pdrgate.hosts.cpus import format_cpu_list
from pdrgate.hosts.host import Host
from pdrgate.observers.environment import Environment
from pdrgate.observers.reading import Reading
from pdrgate.observers.watching import Observer
from pdrgate.record.phase import Phase
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import TestbedError

Pinning = Literal["unpinned", "1 cpu", "2 cpus"]


def first_cpus(cpus: tuple[int, ...], pinning: Pinning) -> tuple[int, ...]:
    """The SUT's CPUs that a pinning to one or two of them takes. Raises TestbedError when it has fewer."""
    if (wanted := int(pinning.split()[0])) > len(cpus):
        raise TestbedError(
            f"pinning to {pinning} needs {wanted} CPUs for the SUT, and it has CPU {format_cpu_list(cpus)}; "
            "give it more with sut.cpus in the testbed file, such as cpus: [1, 2]"
        )
    return cpus[:wanted]


class Testbed(Protocol):
    """A generator and a SUT that are ready to be set up for a scenario. All methods raise TestbedError."""

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The routers of the SUT, in the order of forward traffic."""

    @property
    def machine(self) -> Host:
        """The machine whose kernel is the SUT's: what is asked of the kernel as a whole is asked there."""

    @property
    def boot_id(self) -> str:
        """Identity of this start of the SUT among all others."""

    @property
    def sut_cpus(self) -> tuple[int, ...]:
        """The CPUs of `counters` that route: what else runs there disturbs."""

    @property
    def steady(self) -> bool:
        """Whether the SUT's speed is constant by itself, whatever else this machine does."""

    @property
    def disposable(self) -> bool:
        """Whether the SUT ends with the testbed: nothing of it need be put back."""

    @property
    def executed(self) -> Counting | None:
        """Counting of the SUT's kernel; None if nothing can count it."""

    def sentence(self) -> str:
        """The testbed in words."""

    def describe(self) -> dict[str, str]:
        """Properties that results of this testbed need in common to be comparable: part of the fingerprint."""

    def environment(self) -> Environment:
        """Environment of the SUT."""

    def counters(self) -> Reading:
        """The SUT's counters now."""

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """Observers of its trials, see `pdrgate.observers.watching`.

        Args:
            shared: whether programs of the SUT's own, such as receivers, share its CPUs. It is then no disturbance that
                packet work waits for them.
        """

    def check(self) -> tuple[str, ...]:
        """Faults of the SUT since the last call, in sentences, though it goes on; see each testbed.

        Raises:
            TestbedError: the SUT has died, or what it measures from here on means nothing.
        """

    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait at the SUT's receive side before they are dropped."""

    def pin(self, pinning: Pinning) -> None:
        """Choose the CPUs that do the SUT's packet work."""

    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""

    def close(self) -> None:
        """Put everything back. Calling it twice is harmless."""


class Counting(Protocol):
    """Counting of a SUT's kernel, and of who called whom in it, as far as the testbed is able to."""

    def counting(self) -> tuple[Observer, ...]:
        """Observers that count it in the trials of a packet's cost; empty if they cannot."""

    def tracing(self) -> tuple[Observer, ...]:
        """Observers that follow calls in a trial of its own, once `counting` was asked; empty if calls cannot be
        followed."""

    def memory(self) -> tuple[Observer, ...]:
        """Observers of each access to memory in a trial of its own, once `counting` was asked; empty if there are
        none."""

    def programs(self) -> tuple[Observer, ...]:
        """Observers that count BPF programs alone, with all that they call; empty if they cannot be separated."""

    @property
    def uncounted(self) -> str:
        """Why nothing is counted, in words, once `counting` was asked; empty when something is."""

    @property
    def exact(self) -> bool:
        """Whether equal packets cost equal numbers of instructions, but for a few of a thousand.

        An emulator sees one CPU and nothing else, a processor all that it is interrupted by.
        """

    def busy(self) -> AbstractContextManager[object]:
        """Make a program use the SUT's CPU all the time, so that only the kernel's own work comes between.

        An idle kernel stops its tick, one that forwards at saturation does not. Raises TestbedError.
        """


@runtime_checkable
class NamesCode(Protocol):
    """Counting that names all that a SUT's kernel executes, also between trials."""

    def begin_naming(self) -> None:
        """Begin anew. Raises TestbedError."""

    def named(self) -> frozenset[str]:
        """The functions of the kernel and its modules that ran since then. Raises TestbedError."""


@runtime_checkable
class ShowsVariables(Protocol):
    """Counting that shows what the variables of a SUT's kernel hold, without a word of the SUT."""

    def values(self, names: Collection[str]) -> Mapping[str, bytes]:
        """The content of static variables, and of per-CPU variables of the first CPU, as far as they are found."""


@runtime_checkable
class ExecutesInTurn(Protocol):
    """Testbed that can have the CPUs of a SUT execute in turn."""

    def in_lockstep(self) -> Mapping[Phase, tuple[Observer, ...]]:
        """Observers that do so in a trial, by its phase, once `Counting.memory` was asked; empty if nothing can."""


@runtime_checkable
class Furnishing(Protocol):
    """A testbed whose SUT has only what was put there."""

    def furnish(self, programs: Collection[str], words: Collection[str]) -> None:
        """Put programs of this machine there, and modules of the SUT's kernel for what ``words`` name.

        Missing ones are left out: a step that needs one reports it when it fails. Raises TestbedError.
        """


@runtime_checkable
class Booting(Protocol):
    """A testbed whose SUT comes up after it was made."""

    def ready(self) -> object:
        """Wait until it is up. Raises TestbedError when it does not come up; it is closed then."""

    def stand_back(self) -> None:
        """Keep the SUT behind others, which are measured while it comes up and is set up, until `hurry`."""

    def hurry(self) -> None:
        """Let the SUT go before whatever else runs on this machine: nothing is measured until it is set up."""

    def take_place(self) -> None:
        """Move the SUT to where it is measured, now that it is set up, if it stood back."""


@runtime_checkable
class Paced(Protocol):
    """A testbed whose SUT is held at a constant speed, which can be a lower one where packets need little work."""

    def pace(self, short: bool) -> str:
        """Hold the SUT slower from now on if its data path is short, or at the speed that was chosen for all others.

        A guest forwards more packets by a short path than this machine can hand it without being late.

        Returns:
            what changed, in words; empty where the speed is what it was.
        """


@runtime_checkable
class KeepsGenerator(Protocol):
    """Testbed whose generator stays from scenario to scenario, and takes all packets that come to its ports."""

    def end_generator(self) -> None:
        """Leave the ports to others; the next scenario that wants a generator gets another one."""


@runtime_checkable
class Stands(Protocol):
    """A testbed whose SUT can stay up for many scenarios that are counted and not timed."""

    def standing(self) -> Testbed:
        """The testbed for scenarios that are counted while it stays up. Closing it closes both.

        It raises nothing: the SUT may be coming up still.
        """
