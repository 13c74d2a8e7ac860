"""Gains of the counters of a trial, by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pdrgate.observers.reading import Place

_PORTS = ("interface", "wire", "driver")


@dataclass(frozen=True, slots=True)
class Gains:
    """Gains of the counters of a trial."""

    all: Mapping[Place, Mapping[str, int]]

    def of(self, kind: str) -> Iterator[tuple[Place, Mapping[str, int]]]:
        """The gains of places of a kind."""
        for place, gains in sorted(self.all.items()):
            if place.kind == kind:
                yield place, gains

    def ports(self) -> list[Place]:
        """All ports that anything is counted of."""
        return sorted({beside(place, "interface") for place in self.all if place.kind in _PORTS})

    def at(self, place: Place, name: str) -> int:
        """The gain of one counter; 0 if there is none."""
        return self.all.get(place, {}).get(name, 0)

    @property
    def wired(self) -> bool:
        """Whether of each wire between veths is counted what its sender could not hand over."""
        return any(True for _ in self.of("wire"))

    @property
    def of_hops(self) -> bool:
        """Whether the SUT is a row of namespaces of this machine, whose ports are veths."""
        return any(place.node.startswith("hop") for place in self.all)


def beside(place: Place, kind: str) -> Place:
    """The place of another kind that has the same name."""
    return Place(kind, place.name, place.node)  # type: ignore[arg-type]


def port_name(place: Place) -> str:
    """A port in words: ``in0 at hop2``."""
    owner = "the generator's " if place.node == "tg" else ""
    return f"{owner}{place.name}" + ("" if owner else hop_name(place.node))


def hop_name(node: str) -> str:
    """A node in words, with the space before them; empty if a testbed has one alone."""
    return f" at {node}" if node.startswith("hop") else ""
