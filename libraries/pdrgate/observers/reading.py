"""Readings of an observer: counters by place and name, typed, and text only where they are stored."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

PlaceKind = Literal[
    "interface", "wire", "qdisc", "driver", "cpu", "vcpu", "backlog", "heartbeat", "ip", "ip6", "udp", "udp6",
    "conntrack", "drops", "receiver", "program", "replacement",
]  # fmt: skip

_OF_PORTS: tuple[PlaceKind, ...] = ("wire", "qdisc", "driver")
_OF_CPUS: tuple[PlaceKind, ...] = ("backlog", "heartbeat")
_OF_HOSTS: tuple[PlaceKind, ...] = ("ip", "ip6", "udp", "udp6", "conntrack", "drops", "program", "replacement")
_SHORT: tuple[PlaceKind, ...] = ("backlog", "qdisc", "conntrack")
"""Places whose counters the kernel keeps, or reports, in 32 bits: at 1 Mpps they begin anew every 71 minutes."""
_TURN = 1 << 32
_NODE = re.compile(r"(hop\d+|tg)/(.+)")
_CPU = re.compile(r"(v?cpu|receiver)(\d+)(?:/(\w+))?")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place where something is counted: an interface, the wire into it, its qdiscs or its driver; a CPU, its
    backlog or heartbeat; a guest's CPU; a layer of a host's protocols; a program that receives; an eBPF program under
    test, as it was loaded."""

    kind: PlaceKind
    name: str = ""
    """The interface, or the number of the CPU or the receiver."""
    node: str = ""
    """The machine of the place, where a testbed has several: ``hop2``, ``tg``. Empty for the SUT's."""

    def of(self, node: str) -> Self:
        """Place of the same name at a node."""
        return dataclasses.replace(self, node=node)

    @property
    def of_machine(self) -> bool:
        """Whether all network namespaces of a machine share it."""
        return self.kind in ("cpu", "backlog", "heartbeat")

    @property
    def of_port(self) -> bool:
        """Whether it is of one network interface."""
        return self.kind == "interface" or self.kind in _OF_PORTS

    def __str__(self) -> str:
        """``hop1/in0``, ``hop1/out0/qdisc``, ``cpu1``, ``cpu1/backlog``, ``hop2/ip6``: what trials.jsonl has."""
        own = {"interface": self.name, "cpu": f"cpu{self.name}", "vcpu": f"vcpu{self.name}"}
        own["receiver"] = f"receiver{self.name}"
        own |= {kind: f"cpu{self.name}/{kind}" for kind in _OF_CPUS}
        own |= {kind: f"{self.name}/{kind}" for kind in _OF_PORTS}
        text = own.get(self.kind, self.kind)
        return f"{self.node}/{text}" if self.node else text

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of ``str``; what is nothing else is an interface."""
        matched = _NODE.fullmatch(text)
        node, own = (matched[1], matched[2]) if matched else ("", text)
        if cpu := _CPU.fullmatch(own):
            kinds = {None: cpu[1]} | {kind: kind for kind in _OF_CPUS}
            if cpu[3] in kinds:
                return cls(kinds[cpu[3]], cpu[2], node)  # type: ignore[arg-type]
        port, _, last = own.rpartition("/")
        for kind in _OF_PORTS:
            if port and last == kind:
                return cls(kind, port, node)
        for kind in _OF_HOSTS:
            if own == kind:
                return cls(kind, "", node)
        return cls("interface", own, node)


@dataclass(frozen=True, slots=True, order=True)
class Counter:
    """A counter of a place. It grows from some start on; only differences mean anything."""

    place: Place
    name: str
    """``rx_dropped``, ``process_ticks``; of IP layers the kernel's own words, ``OutForwDatagrams``."""

    def __str__(self) -> str:
        return f"{self.place}.{self.name}"


Reading = Mapping[Counter, int]
"""Counters at one time."""


def nested(reading: Reading) -> dict[str, dict[str, int]]:
    """A reading as a trial keeps it: by place, then by name."""
    found: dict[str, dict[str, int]] = {}
    for counter, value in reading.items():
        found.setdefault(str(counter.place), {})[counter.name] = value
    return found


def signed(difference: int) -> int:
    """The difference of two counters of 32 bits: below half a turn it is a gain, else a loss."""
    gain = difference % _TURN
    return gain if gain < _TURN // 2 else gain - _TURN


def unwrapped(before: Reading, after: Reading) -> dict[Counter, int]:
    """The second reading, where a counter of 32 bits that began anew in between goes on.

    What is smaller than before nonetheless has been set back, as by a reset of the card.
    """
    found = dict(after)
    for counter, new in after.items():
        old = before.get(counter, 0)
        if new < old and counter.place.kind in _SHORT and (gain := signed(new - old)) > 0:
            found[counter] = old + gain
    return found


def gained(before: Reading, after: Reading) -> dict[Counter, int]:
    """Gains of the counters in both readings, without those that were set back meanwhile."""
    new = unwrapped(before, after)
    return {counter: new[counter] - old for counter, old in before.items() if new.get(counter, old) > old}


def without_zeros(before: Reading, after: Reading) -> tuple[dict[Counter, int], dict[Counter, int]]:
    """Both readings without the counters that are 0 in both, which on a machine of many CPUs are most of them."""
    counted = {counter for reading in (before, after) for counter, value in reading.items() if value}
    return (
        {counter: value for counter, value in before.items() if counter in counted},
        {counter: value for counter, value in after.items() if counter in counted},
    )
