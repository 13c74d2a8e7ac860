"""Properties of a testbed in chosen frames: its networks, its MAC addresses, its segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pdrgate.traffic.chosen.spans import Addresses, Span, SutSide
from pdrgate.traffic.frames import Path
from pdrgate.values.errors import UsageError

_SIDE_BITS = 16
"""Last bits of an address, which distinguish hosts of a side's network; see `Path`."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Properties of the testbed for the direction of packets that one side sends."""

    version: Literal[4, 6]
    """The IP version of the testbed's addresses."""
    networks: Mapping[int, tuple[int, int]]
    """First addresses of the network of the side that sends, and of the other one, by IP version."""
    sends: SutSide
    source_mac: bytes
    sut_mac: bytes
    far_mac: bytes | None
    """MAC address of the station behind the SUT; None if it is not known."""
    segments: tuple[int, ...]

    @classmethod
    def of(cls, paths: Sequence[Path], origin: SutSide) -> Surroundings:
        """Surroundings for the paths of a generator. Raises UsageError if none of them begins at ``origin``."""
        number = 1 if origin == "out" else 0
        if number >= len(paths):
            raise UsageError("traffic from=out needs a testbed with two paths; this one has one")
        path = paths[number]
        other = paths[1 - number] if len(paths) > 1 else None
        return cls(
            version=path.source.version,
            networks={
                ends[0].version: (_first(int(ends[0])), _first(int(ends[1])))
                for ends in ((path.source, path.destination), path.twin)
                if ends is not None
            },
            sends=origin,
            source_mac=_mac(path.source_mac),
            sut_mac=_mac(path.destination_mac),
            far_mac=None if other is None else _mac(other.source_mac),
            segments=tuple(int(one) for one in path.segments),
        )

    def span(self, asked: Addresses | None, version: int, *, source: bool) -> Span:
        """The addresses that are asked for; where none are, one of the testbed's network. Raises UsageError."""
        if asked is not None and asked.side is None:
            return asked.span
        if version not in self.networks:
            raise UsageError(f"the testbed has no IPv{version} address; give src and dst")
        side = asked.side if asked is not None and asked.side else self.sends if source else _OTHER[self.sends]
        first = self.networks[version][0 if side == self.sends else 1]
        wanted = Span(1, 1) if asked is None else asked.span
        return Span(first + wanted.low, first + wanted.high)

    def mac(self, side: SutSide) -> bytes:
        """MAC address of the station on that side. Raises UsageError if it is not known."""
        if side == self.sends:
            return self.source_mac
        if self.far_mac is None:
            raise UsageError("the testbed has no station behind the SUT; give dmac as a MAC address")
        return self.far_mac


_OTHER: dict[SutSide, SutSide] = {"in": "out", "out": "in"}


def _first(address: int) -> int:
    return address >> _SIDE_BITS << _SIDE_BITS


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
