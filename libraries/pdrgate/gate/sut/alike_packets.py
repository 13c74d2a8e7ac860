"""Whether two builds do the same to the same packet: what `Packets Should Leave Alike` asks.

A packet is known again in another boot by what its sender says of it, but for the generator's own marks. What a build
does otherwise to equal packets, such as a number that it counts up, is no property of the packet and not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pdrgate.traffic.frame_fields import Difference, fields

ALIKE_LOOKS, LOOK_DURATION = 30, 0.02
"""Short trials before anything is measured, and their seconds: each shows some packets whole, and others again."""
_SEEN = 2
"""Times that a packet is seen of each build before the two are compared."""
_TAGS = 0x8000
"""Least port that can be a mark of the generator's own packets, which have another one in each trial."""
LEFT_BY, SAME_PORT, OTHER_PORT = "port", "the one that they came in by", "the other one"
"""Name of the field for the port by which a packet leaves, and its values."""

_OF_FLOWS, _OR_MARKS = (
    ("source address", "source port", "protocol", "next header"),
    ("destination address", "destination port"),
)

PacketKey = tuple[str, ...]


@dataclass(slots=True)
class _Made:
    """What one build made of one packet."""

    times: int = 0
    found: dict[str, dict[str, str]] = field(default_factory=dict)
    """Values that came, each with the expected one, by field in which a packet was not as expected."""
    counts: dict[str, int] = field(default_factory=dict)

    def take(self, differences: Sequence[Difference], *, returned: bool) -> None:
        self.times += 1
        port = Difference(LEFT_BY, OTHER_PORT, SAME_PORT if returned else OTHER_PORT)
        for one in (port, *differences):
            self.found.setdefault(one.name, {})[one.got] = one.must_be
            self.counts[one.name] = self.counts.get(one.name, 0) + 1

    def value(self, name: str, otherwise: str) -> str | None:
        """A field's value; ``otherwise`` where it was as expected; None where it is no property of the packet."""
        if not self.counts.get(name):
            return otherwise
        values = self.found[name]
        return next(iter(values)) if len(values) == 1 and self.counts[name] == self.times else None


@dataclass
class PacketsMade:
    """What a build made of each packet that was looked at."""

    packets: dict[PacketKey, _Made] = field(default_factory=dict)

    def take(self, sent: bytes, direction: int, differences: Sequence[Difference], *, returned: bool) -> None:
        """Look at one more packet: at how it is not as a path of its name makes it."""
        self.packets.setdefault(_packet(sent, direction), _Made()).take(differences, returned=returned)

    def add(self, other: PacketsMade) -> None:
        """Take what was seen of another boot of the same build."""
        for packet, made in other.packets.items():
            mine = self.packets.setdefault(packet, _Made())
            mine.times += made.times
            for name, values in made.found.items():
                mine.found.setdefault(name, {}).update(values)
                mine.counts[name] = mine.counts.get(name, 0) + made.counts[name]


def first_unlike(baseline: PacketsMade, candidate: PacketsMade) -> str:
    """The first field that two builds make otherwise of a packet, in words; empty where there is none."""
    for packet, (before, after) in _of_both(baseline, candidate):
        names = dict.fromkeys((*after.found, *before.found))
        for name in names:
            expected = next(iter((after.found.get(name) or before.found[name]).values()))
            old, new = before.value(name, expected), after.value(name, expected)
            if old is not None and new is not None and old != new:
                return f"{name} {new}, the baseline's {old} (of a packet with {', '.join(packet[1:])})"
    return ""


def compared_packets(baseline: PacketsMade, candidate: PacketsMade) -> int:
    """How many packets both builds were seen with often enough."""
    return sum(1 for _ in _of_both(baseline, candidate))


def _of_both(baseline: PacketsMade, candidate: PacketsMade) -> Iterator[tuple[PacketKey, tuple[_Made, _Made]]]:
    for packet, after in candidate.packets.items():
        before = baseline.packets.get(packet)
        if before is not None and min(before.times, after.times) >= _SEEN:
            yield packet, (before, after)


def _packet(sent: bytes, direction: int) -> PacketKey:
    """Key that identifies a packet among those of its trial, and is equal in each trial."""
    values = {one.name: one.text(sent) for one in fields(sent)}
    port = values.get("destination port", "")
    # The generator's own packets have its marks there.
    names = _OF_FLOWS if port.isdecimal() and int(port) >= _TAGS else (*_OF_FLOWS, *_OR_MARKS)
    told = [f"{name} {values[name]}" for name in names if name in values]
    return (str(direction), *told, f"{len(sent)} bytes")
