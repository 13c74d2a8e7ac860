"""The packets of a trial by their fate, if they are counted as the SUT takes them in.

The packets taken in were counted outside of the SUT, and the generator itself has seen those that left it. Only the SUT
knows the fate of packets inside it: that it delivered them to its own sockets (InDelivers), or routed them on. Its
report is trusted no further than the packets taken in: it can only reduce the number *dropped*, and *passed* is its
report within that. A pure function of counters.
"""

from __future__ import annotations

from dataclasses import replace

from pdrgate.observers.gains import Gains
from pdrgate.observers.reading import Place
from pdrgate.record.fate import INSIDE, Fate
from pdrgate.record.trial import Trial

_ROUTED = ("ForwDatagrams", "OutForwDatagrams")


def by_fate(trial: Trial, fate: Fate) -> Trial:
    """A trial as it was sent, with counters around it, as one of this fate: what had another was not handled."""
    if fate not in INSIDE:
        return replace(trial, aside=replace(trial.aside, fate=fate))
    gains = Gains({Place.parse(place): gained for place, gained in trial.seen.counter_changes.items()})
    taken = max(0, trial.forwarded - _overrun(gains))
    delivered, elsewhere = _delivered(gains), min(trial.aside.left, trial.aside.returned)
    match fate:
        case "dropped":
            handled, other = taken - trial.aside.left - delivered, trial.aside.left
        case "passed":
            handled, other = (
                min(taken, delivered - _full_sockets(gains) + _routed(gains, trial.aside.left - elsewhere)),
                elsewhere,
            )
        case _:
            handled, other = taken, 0
    handled = max(0, handled)
    aside = replace(trial.aside, fate=fate, returned=other)
    return replace(trial, forwarded=handled, drained=min(trial.drained, handled), aside=aside)


def _overrun(gains: Gains) -> int:
    """Packets that the SUT's own queues before its stack had no room for, where nobody outside has counted them."""
    missed = sum(gains.at(port, "rx_missed") for port in gains.ports() if port.node != "tg")
    return missed + (0 if gains.of_hops else sum(gained.get("dropped", 0) for _, gained in gains.of("backlog")))


def _delivered(gains: Gains) -> int:
    return sum(gained.get("InDelivers", 0) for kind in ("ip", "ip6") for _, gained in gains.of(kind))


def _full_sockets(gains: Gains) -> int:
    return sum(gained.get("RcvbufErrors", 0) for kind in ("udp", "udp6") for _, gained in gains.of(kind))


def _routed(gains: Gains, came: int) -> int:
    """Packets that came out and that the kernel's router has sent on, at the hop that routed most."""
    by_hop: dict[str, int] = {}
    for kind in ("ip", "ip6"):
        for place, gained in gains.of(kind):
            by_hop[place.node] = by_hop.get(place.node, 0) + sum(gained.get(name, 0) for name in _ROUTED)
    return min(came, max(by_hop.values(), default=0))
