"""Traffic that ends at the SUT. Its receivers there count the packets, and not the generator's own port.

The generator marks and numbers its packets. The receivers count by their own clock what was delivered while sending
went on (`traffic/native/receiver.c`), so that no message is under way while the SUT is at its limit.

These counts are the SUT's own word, and therefore untrusted: no count above what was put in front of it is accepted.
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from pdrgate.record.stretch import Readings
from pdrgate.record.trial import LOOKS, Trial
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator, packets_of_trial
from pdrgate.values.errors import SutError

_MARKS = 1 << 32


@dataclass(frozen=True, slots=True)
class Delivered:
    """Counts of a trial's packets by their receivers."""

    received: int
    """Packets of this trial, each counted once."""
    by_look: tuple[int, ...]
    """The packets that had been received at each of the generator's looks (`LOOKS`), the last when sending ended."""
    stray: int
    """Packets of others."""
    counters: Readings
    """The counts of each receiver, from 0 on."""
    twice: int = 0
    """Packets of this trial that were received once more."""

    def check(self, handed: int) -> None:
        """Raise SutError where it cannot be true of a trial that put ``handed`` packets in front of the SUT."""
        looks = (0, *self.by_look, self.received)
        falls = any(later < look for look, later in pairwise(looks))
        if len(self.by_look) != LOOKS or min(self.stray, self.twice) < 0 or falls:
            raise SutError(
                f"the SUT's receivers report what cannot be: {self.received} packets in the end, {list(self.by_look)} "
                f"before, {self.stray} of others; is its kernel to be trusted?"
            )
        if self.received > handed:
            raise SutError(
                f"the SUT's receivers report {self.received} packets in a trial that put {handed} in front of it: "
                "that is not true; is its kernel to be trusted?"
            )


class Arrivals(Protocol):
    """Receivers of packets at the SUT. Both methods raise TestbedError when nobody receives any more."""

    def begin(self, mark: int, count: int, duration: float) -> None:
        """Count the packets of a trial from here on: ``count`` packets with this mark, to be sent in ``duration``
        seconds."""

    def end(self, sending_time: float) -> Delivered:
        """Wait until no more packets come, and return the counts. Sending took ``sending_time`` seconds."""


def counted_by(arrivals: Arrivals | None, generator: Generator) -> Generator:
    """The generator with its packets counted by receivers at the SUT; the generator itself if there are none."""
    return generator if arrivals is None else DeliveredTraffic(generator, arrivals)


class DeliveredTraffic:
    """A generator whose packets end at the SUT; satisfies `Generator`.

    Args:
        generator: one that can mark packets; it is closed with this one.
    """

    def __init__(self, generator: Generator, arrivals: Arrivals) -> None:
        self._generator = generator
        self._arrivals = arrivals
        self._marks = itertools.count(secrets.randbelow(_MARKS))
        """Marks that differ in each run: packets that an earlier run left on the way are foreign."""

    def describe(self) -> dict[str, str]:
        return self._generator.describe()

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        mark = next(self._marks) % _MARKS
        self._arrivals.begin(mark, packets_of_trial(load, duration), duration)
        sent = self._generator.trial(load, duration, dataclasses.replace(frames, mark=mark))
        delivered = self._arrivals.end(max(duration, sent.sending_time))
        delivered.check(sent.offered - sent.aside.refused)
        # Of bursts, each of which is delivered before the next, nothing comes while one is sent.
        looks = delivered.by_look if sent.under_way else ()
        return dataclasses.replace(
            sent,
            forwarded=delivered.received,
            drained=delivered.received - (looks[-1] if looks else 0),
            # Nothing has come back to the generator: all that it had sent at a look it takes to be under way.
            under_way=tuple(max(0, sent - got) for sent, got in zip(sent.under_way, looks, strict=True)),
            aside=dataclasses.replace(
                sent.aside, stray=sent.aside.stray + delivered.stray, twice=sent.aside.twice + delivered.twice
            ),
            seen=dataclasses.replace(
                sent.seen,
                counters_before={place: dict.fromkeys(counters, 0) for place, counters in delivered.counters.items()},
                counters_after=delivered.counters,
            ),
        )

    def close(self) -> None:
        self._generator.close()
