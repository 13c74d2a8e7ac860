"""Testbeds as the gate sees them, whatever they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Literal, Self

from pdrgate.data_paths.catalogue import Hop
from pdrgate.hosts.cpus import format_cpu_list
from pdrgate.hosts.host import Host
from pdrgate.observers.environment import Environment
from pdrgate.observers.reading import Reading
from pdrgate.observers.watching import Counting, Observer
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


class Testbed(ABC):
    """A generator and a SUT that are ready to be set up for a scenario. All methods raise TestbedError."""

    __test__ = False  # pytest takes what is called so for a test

    @property
    @abstractmethod
    def hops(self) -> tuple[Hop, ...]:
        """The routers of the SUT, in the order of forward traffic."""

    @property
    @abstractmethod
    def machine(self) -> Host:
        """The machine whose kernel is the SUT's: what is asked of the kernel as a whole is asked there."""

    @property
    @abstractmethod
    def boot_id(self) -> str:
        """Identity of this start of the SUT among all others."""

    @property
    @abstractmethod
    def sut_cpus(self) -> tuple[int, ...]:
        """The CPUs of `counters` that route: what else runs there disturbs."""

    @property
    def steady(self) -> bool:
        """Whether the SUT's speed is constant by itself, whatever else this machine does."""
        return False

    @property
    def disposable(self) -> bool:
        """Whether the SUT ends with the testbed: nothing of it need be put back."""
        return False

    @property
    def boots(self) -> bool:
        """Whether the SUT comes up after the testbed was made, see `ready`."""
        return False

    @property
    def executed(self) -> Counting | None:
        """Counting of the SUT's kernel; None if nothing can count it."""
        return None

    @abstractmethod
    def sentence(self) -> str:
        """The testbed in words."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Properties that results of this testbed need in common to be comparable: part of the fingerprint."""

    @abstractmethod
    def environment(self) -> Environment:
        """Environment of the SUT."""

    @abstractmethod
    def counters(self) -> Reading:
        """The SUT's counters now."""

    @abstractmethod
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
        return ()

    @abstractmethod
    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait at the SUT's receive side before they are dropped."""

    @abstractmethod
    def pin(self, pinning: Pinning) -> None:
        """Choose the CPUs that do the SUT's packet work."""

    @abstractmethod
    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""

    @abstractmethod
    def close(self) -> None:
        """Put everything back. Calling it twice is harmless."""

    def ready(self) -> Self:
        """Wait until the SUT is up. Raises TestbedError when it does not come up; it is closed then."""
        return self

    def stand_back(self) -> None:  # noqa: B027 - where nothing boots, nobody waits
        """Keep the SUT behind others, which are measured while it comes up and is set up, until `hurry`."""

    def hurry(self) -> None:  # noqa: B027
        """Let the SUT go before whatever else runs on this machine: nothing is measured until it is set up."""

    def take_place(self) -> None:  # noqa: B027
        """Move the SUT to where it is measured, now that it is set up, if it stood back."""

    def standing(self) -> Testbed:
        """The testbed for scenarios that are counted and not timed, while its SUT stays up. Closing it closes both.

        It raises nothing: the SUT may be coming up still.
        """
        return self

    def furnish(self, programs: Collection[str], words: Collection[str]) -> None:  # noqa: B027 - most have them all
        """Put programs of this machine there, and modules of the SUT's kernel for what ``words`` name.

        Missing ones are left out: a step that needs one reports it when it fails. Raises TestbedError.
        """

    def pace(self, short: bool) -> str:
        """Hold the SUT slower from now on if its data path is short, or at the speed that was chosen for all others.

        A guest forwards more packets by a short path than this machine can hand it without being late.

        Returns:
            what changed, in words; empty where the speed is what it was, or nothing holds it.
        """
        return ""

    def end_generator(self) -> None:  # noqa: B027 - others close theirs
        """Leave the ports to others, where the generator stays from scenario to scenario. The next one is new."""
