"""A guest that stays up while many scenarios are counted on it, one after the other.

Counts do not depend on how fast a guest is. So it is not held, does not go before other processes, and runs on any CPU
of the testbed; what no scenario changes is asked once, and the generator stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Self

from pdrgate.data_paths.catalogue import Hop
from pdrgate.guests.metering import VcpuMeter
from pdrgate.hosts.host import Host
from pdrgate.observers.environment import Environment
from pdrgate.observers.reading import Reading
from pdrgate.observers.watching import CounterObserver, Counting, Observer
from pdrgate.record.trial import Trial
from pdrgate.testbeds.testbed_base import Pinning, Testbed
from pdrgate.traffic.embedded import Bursts, EmbeddedGenerator
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator

if TYPE_CHECKING:
    from pdrgate.testbeds.vm.vm_testbed import VmTestbed


_QUIET = 0.5
"""Seconds without a packet that end a drain.

All packets that were not refused come back, however long nobody runs the guest, and later ones would be counted without
their trial.
"""


BURST = 192
"""Packets of a burst: three times as many as a kernel takes from a device in a turn, and fewer than a ring has room
for."""
FLOOD = 100e3
"""Packets/s from which on they are sent in bursts."""
_CRAWL = 200_000
"""Instructions/s of a CPU that waits: a thousandth of what it executes for a burst, while one is handed over."""
_PATIENCE = 1.0
"""Seconds for a CPU to come to rest, and for a burst to be handed over, on a machine however busy."""
_TICKS = 4
"""Times that a CPU halts after which all of a burst is done. It does not halt before it has done what is in its ring;
then it is woken by ticks, and for what QEMU has sent. Until it halts once, it may still rest from the burst before."""
_LOOK = 0.001
"""Seconds between looks at what was handed over."""


class StandingGuest(Testbed):
    """A testbed for scenarios that follow each other, which ends the guest with it.

    It always stands back, is in no hurry, and runs wherever there is room: its speed is whatever others leave.
    """

    disposable = boots = True
    sut_cpus = ()
    """What else runs on a CPU disturbs no count."""

    def __init__(self, guest: VmTestbed) -> None:
        self.testbed = guest
        """The guest that stays up."""
        self._generator: tuple[int, _Kept] | None = None
        """Generator by the IP version of its packets."""
        self._buffer = 0
        self._pinning: Pinning | None = None

    def ready(self) -> Self:
        """Wait until the guest is up; see `VmTestbed.ready`."""
        self.testbed.stand_back()
        self.testbed.ready()
        self.testbed.hurry()
        self.testbed.guest.count()
        return self

    @property
    def machine(self) -> Host:
        """The guest, as the machine that is the SUT."""
        return self.testbed.machine

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The guest, as the only router."""
        return self.testbed.hops

    @property
    def boot_id(self) -> str:
        """Identity of this boot among others."""
        return self.testbed.boot_id

    @property
    def executed(self) -> Counting | None:
        """Counting of the guest's kernel, once the guest is up."""
        counting = self.testbed.executed
        return None if counting is None else counting.stay()

    def sentence(self) -> str:
        """The testbed in words."""
        guest = self.testbed.guest
        return (
            f"{guest.build.name} ({guest.build.release}) in a guest by {guest.accelerator.name.upper()} "
            f"({guest.accelerator.why}), which stays up for all paths, booted in {guest.boot_time or 0:.1f} s"
        )

    def describe(self) -> dict[str, str]:
        """The guest's, but for the speed: it is not held."""
        return self.testbed.describe() | {"cpu_speed": "full"}

    def environment(self) -> Environment:
        """Environment of the guest when it came up."""
        return self._environment

    @cached_property
    def _environment(self) -> Environment:
        return self.testbed.environment()

    def furnish(self, programs: Collection[str], words: Collection[str]) -> None:
        """Put programs of this machine there."""
        self.testbed.furnish(programs, words)

    def generator(self, family: int) -> Generator:
        """The generator that stays; it is another one when the IP version changes."""
        if self._generator is not None and self._generator[0] == family:
            return self._generator[1]
        self.end_generator()
        made = _Kept(self.testbed.generator(family, _QUIET, self._bursts()))
        self._generator = family, made
        return made

    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait, where it is another number than before."""
        if packets != self._buffer:
            self.testbed.set_buffer(packets)
            self._buffer = packets

    def pin(self, pinning: Pinning) -> None:
        """Choose the guest's CPUs, where they are others than before."""
        if pinning != self._pinning:
            self.testbed.pin(pinning)
            self._pinning = pinning
        else:
            self.testbed.take_first_queues()

    def check(self) -> tuple[str, ...]:
        """New faults that the guest survived; see `VmTestbed.check`."""
        return self.testbed.check()

    def counters(self) -> Reading:
        """The guest's counters, and the TAPs'."""
        return self.testbed.counters()

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The TAPs' counters around each trial. The guest's own are work for it, and say nothing about a cost."""
        return (CounterObserver(self.testbed.outer_counters),)

    def close(self) -> None:
        """End the generator and the guest. Calling it twice is harmless."""
        self.end_generator()
        self.testbed.close()

    def _bursts(self) -> Bursts | None:
        meter = self.testbed.guest.meter
        if meter is None:
            return None
        waiting = WaitingCpu(meter, self.testbed.taken)
        return Bursts(BURST, FLOOD, waiting.stop, waiting.go_on)

    def end_generator(self) -> None:
        """End the generator, so that programs can use its ports."""
        if self._generator is not None:
            self._generator[1].end()
            self._generator = None


class WaitingCpu:
    """A guest's CPU that all packets of a burst wait for.

    A CPU that begins with the first of them takes as many at a time as QEMU has handed over by then, which is another
    number each time, and a packet costs more or less for it.
    """

    def __init__(self, meter: VcpuMeter, taken: Callable[[], int]) -> None:
        self._meter = meter
        self._taken = taken
        self._before = 0
        self._halts = meter.halts
        """Number of halts when it was let go on."""

    def stop(self) -> None:
        """Let the CPU do next to nothing from now on, once it has done all that there was to do."""
        deadline = time.monotonic() + _PATIENCE
        while self._meter.halts - self._halts < _TICKS and time.monotonic() < deadline:
            time.sleep(_LOOK)
        self._meter.hold(_CRAWL)
        self._before = self._taken()

    def go_on(self) -> None:
        """Let it go on as fast as it can, once QEMU has handed over a burst."""
        deadline = time.monotonic() + _PATIENCE
        while self._taken() - self._before < BURST and time.monotonic() < deadline:
            time.sleep(_LOOK)
        time.sleep(_LOOK)  # the last of them is in the ring by then
        self._halts = self._meter.halts
        self._meter.hold(0)


class _Kept:
    """Generator that outlives the scenarios that use it; satisfies `Generator` and `ShowsFrames`."""

    def __init__(self, generator: EmbeddedGenerator) -> None:
        self._generator = generator

    def describe(self) -> dict[str, str]:
        return self._generator.describe()

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        return self._generator.trial(load, duration, frames)

    def sample(self, frames: Frames) -> bytes:
        return self._generator.sample(frames)

    def close(self) -> None:
        """Do nothing; see `end`."""

    def end(self) -> None:
        """Close it in fact."""
        self._generator.close()
