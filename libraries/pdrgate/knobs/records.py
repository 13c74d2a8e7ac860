"""Knobs on paper: what the journal writes of a knob, and the knob that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pdrgate.knobs.cpu import Governor, IdleLatency, Smt, Turbo
from pdrgate.knobs.egress_filter import EgressFilter
from pdrgate.knobs.ethtool import EthtoolSettings
from pdrgate.knobs.file_knob import NETWORK_FILES, FileKnob
from pdrgate.knobs.firewall import FirewallRules
from pdrgate.knobs.interrupts import InterruptAffinity
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.knob import Knob
from pdrgate.knobs.neighbours import StaticNeighbours
from pdrgate.knobs.offloads import EthtoolFeatures
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.knobs.qdisc import RootQdisc
from pdrgate.knobs.queues import QueueFiles
from pdrgate.knobs.rss import FlowHash, IndirectionTable
from pdrgate.knobs.side_routes import SideRoutes
from pdrgate.knobs.threads import KernelThreadNice

_KINDS: dict[str, type[Any]] = {
    one.kind: one
    for one in (
        FileKnob, EthtoolFeatures, EthtoolSettings, IndirectionTable, FlowHash, QueueFiles, InterruptAffinity,
        RootQdisc, StaticNeighbours, PortNetwork, FirewallRules, EgressFilter, SideRoutes, KernelThreadNice,
        Governor, IdleLatency, Turbo, Smt, Irqbalance,
    )
}  # fmt: skip
_OF_MACHINE = frozenset({"interrupts", "kernel-thread-nice", "governor", "idle-latency", "turbo", "smt", "irqbalance"})

_FORMER = "form"
"""A part of the records of files that earlier versions wrote, whose journals are undone too."""


def knob_from_record(record: Mapping[str, str], value: str) -> Knob:
    """The knob of a record by `Knob.to_record`, wanting ``value``. Raises ValueError if the record is invalid."""
    parts = {name: part for name, part in record.items() if name != _FORMER}
    kind = _KINDS.get(parts.pop("kind", ""))
    try:
        if kind is not None:
            return cast(Knob, kind(value=value, **parts))
    except TypeError:
        pass
    raise ValueError(f"{dict(record)!r} is no knob that this version of pdrgate knows")


def of_whole_machine(record: Mapping[str, str]) -> bool:
    """Whether a knob's setting is the machine's, also when it is set from within a network namespace."""
    kind = record.get("kind", "")
    return kind in _OF_MACHINE or (kind == "file" and not record.get("path", "").startswith(NETWORK_FILES))
