"""Packets that were lost, and where: what results store of them, and the words for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNEXPLAINED = 1e-4
"""Part of the offered packets that may be lost at no place that counts; more is a fault of the measurement."""
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLoss:
    """Packets that were lost at one place."""

    where: str
    """The words that follow their number in a sentence: ``in the backlog of CPU 1``, ``without a route``."""
    hint: str = ""
    """The knob or the fault that it hints at: ``netdev_max_backlog``."""
    packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LossResult:
    """The law of conservation for one or several trials: offered = forwarded + places + unexplained."""

    offered: int
    forwarded: int
    places: tuple[PlaceLoss, ...]
    """The largest first."""
    unexplained: int
    """Lost, and counted by no place; below 0 where places counted more than were lost, others' packets for one."""
    set_back: tuple[str, ...] = ()
    """Counters that were smaller after a trial than before it, as after a reset of a card: what they lost, none has."""

    @classmethod
    def of(cls, offered: int, forwarded: int, places: Iterable[PlaceLoss], set_back: Iterable[str] = ()) -> LossResult:
        """The losses with what is unexplained; places of the same words are one."""
        merged: dict[tuple[str, str], int] = {}
        for place in places:
            key = (place.where, place.hint)
            merged[key] = merged.get(key, 0) + place.packets
        found = [PlaceLoss(where=where, hint=hint, packets=packets) for (where, hint), packets in merged.items()]
        found = sorted((one for one in found if one.packets), key=lambda one: (-one.packets, one.where))
        unexplained = offered - forwarded - sum(one.packets for one in found)
        return cls(
            offered=offered, forwarded=forwarded, places=tuple(found), unexplained=unexplained,
            set_back=tuple(dict.fromkeys(set_back)),
        )  # fmt: skip

    @classmethod
    def summed(cls, parts: Sequence[LossResult]) -> LossResult:
        """The losses of several trials together."""
        return cls.of(
            sum(part.offered for part in parts),
            sum(part.forwarded for part in parts),
            (place for part in parts for place in part.places),
            (counter for part in parts for counter in part.set_back),
        )

    @property
    def lost(self) -> int:
        """Packets; never negative."""
        return max(0, self.offered - self.forwarded)

    @property
    def fault(self) -> str:
        """Why the account is not to be believed, in a sentence; empty when it is."""
        if self.set_back:
            others = f" and {len(self.set_back) - 1} other counters" if len(self.set_back) > 1 else ""
            return (
                f"{self.set_back[0]}{others} went back during a trial, as when a card or its driver is reset: what was "
                "lost there is not known; see the SUT's kernel log"
            )
        if abs(self.unexplained) <= UNEXPLAINED * self.offered:
            return ""
        share = f"{abs(self.unexplained) / self.offered:.2%} of the offered packets"
        if self.unexplained > 0:
            return (
                f"{thousands(self.unexplained)} lost packets ({share}) are counted nowhere: a place without a counter, "
                "such as a full cpumap, or a fault of the measurement"
            )
        return (
            f"places counted {thousands(-self.unexplained)} packets more than were lost ({share}): a fault of the "
            "measurement, or packets of others"
        )

    def at(self, words: str) -> int:
        """Packets lost at places whose words hold these."""
        return sum(place.packets for place in self.places if words in place.where)

    def sentence(self) -> str:
        """``12 840 packets lost: 12 700 in the backlog of CPU 1 (netdev_max_backlog), 140 without a route``."""
        if not self.lost:
            return "no packet lost"
        places = [
            f"{thousands(place.packets)} {place.where}" + (f" ({place.hint})" if place.hint else "")
            for place in self.places[:_MOST_NAMED]
        ]
        if further := sum(place.packets for place in self.places[_MOST_NAMED:]):
            places.append(f"{thousands(further)} at {len(self.places) - _MOST_NAMED} further places")
        if self.unexplained > 0:
            places.append(f"{thousands(self.unexplained)} unexplained")
        number = f"{thousands(self.lost)} packet{'s' * (self.lost != 1)} lost"
        return f"{number}: {', '.join(places) or 'at no place that counts'}"

    @property
    def most(self) -> PlaceLoss | None:
        """The place that lost most; None where none did, or nobody counted."""
        return self.places[0] if self.lost and self.places else None


def compared(baseline: LossResult | None, candidate: LossResult | None) -> str:
    """A clause on where two builds lose most packets; empty where no such place is known of one of them."""
    one, other = (found.most if found else None for found in (baseline, candidate))
    if baseline is None or candidate is None or one is None or other is None:
        return ""
    if one.where == other.where:
        return f"both lose {one.where}"
    return f"the baseline loses {one.where}, the candidate {other.where}"


def thousands(number: int) -> str:
    """A count with a space between its thousands."""
    return f"{number:,}".replace(",", " ")
