"""Packets that the SUT's kernel dropped, each seen by a drop trace: what results store of them, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.results.losses import LossResult, thousands
from pdrgate.values.units import Rate

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPlace:
    """A function that dropped packets for a reason."""

    reason: str
    """The kernel's own, as NO_SOCKET; NOT_SPECIFIED where it gives none."""
    function: str
    """Empty where the collector had no room for stacks."""
    packets: int
    way: tuple[str, ...]
    """The functions that most of them went through, the outermost first."""
    by_way: int
    """Packets that went that way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPacket:
    """A packet that the kernel dropped."""

    reason: str
    packet: str
    """The packet's headers in a line."""
    device: str
    way: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropsResult:
    """A trial with loss of which each dropped packet was looked at. No verdict goes by it."""

    load: float
    """Packets/s."""
    duration: float
    """Seconds."""
    losses: LossResult | None = None
    """What became of its packets by all that counts; None where nothing was looked at."""
    seen: int = 0
    """Packets that the SUT's kernel was seen to drop."""
    bounded: bool = False
    """Whether there were more than are looked at in one trial: ``seen`` are the first ones then."""
    missed: int = 0
    """Dropped packets that the trace was too slow for, those of others on the SUT's machine among them."""
    places: tuple[DropPlace, ...] = ()
    """The largest first."""
    example: DroppedPacket | None = None
    """A packet of the largest place."""
    collector: str = ""
    """The tracer's name and version; in older results the version alone."""
    file: str = ""
    """The trace in the folder of the run, for the tools of who traced."""
    failure: str = ""
    """Why nothing was looked at; empty where it was."""

    def sentence(self) -> str:
        """``The SUT's network stack was seen to drop 9 packets at 4 kpps (9 packets lost: …): 9 by ip_rcv (NO_ROUTE)``

        All in one line; the same where nothing was looked at, and why.
        """
        if self.losses is None:
            return f"Nobody looked at what is dropped: {self.failure}"
        at = f"at {Rate(self.load)} ({self.losses.sentence()})"
        if not self.seen:
            return f"The SUT's network stack was seen to drop no packet{self._limits()} {at}"
        named = [
            f"{thousands(one.packets)} by {one.function or 'a function that is not known'} ({one.reason})"
            for one in self.places[:_NAMED]
        ]
        if further := sum(one.packets for one in self.places[_NAMED:]):
            named.append(f"{thousands(further)} by others")
        number = f"{thousands(self.seen)} packet{'s' * (self.seen != 1)}"
        return f"The SUT's network stack was seen to drop {number}{self._limits()} {at}: {', '.join(named)}"

    def _limits(self) -> str:
        words = []
        if self.bounded:
            words.append("among the first that a trace has room for")
        if self.missed:
            words.append(f"{thousands(self.missed)} others of the machine were missed")
        return f" ({'; '.join(words)})" if words else ""
