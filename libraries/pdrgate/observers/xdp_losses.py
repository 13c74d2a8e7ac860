"""Lost packets by the tracepoints of XDP, and which other counters have the same packets.

A packet that a program gives up (``XDP_ABORTED``), for which it returns no valid action, or whose redirect fails, is
counted by ``xdp:xdp_exception`` or ``xdp:xdp_redirect_err``. Others count it too:

* generic XDP: the kernel's reasons for drops, all of them as ``XDP``;
* veth: what a program gave up is among the driver's ``xdp_drops``, a failed redirect in the port's ``rx_dropped``;
* virtio_net: in its ``xdp_drops``, and in the port's ``rx_dropped`` besides; other drivers: in either, or in none;
* a cpumap: ``xdp:xdp_cpumap_kthread`` has failed redirects among what its program dropped;
* a devmap: ``xdp:xdp_devmap_xmit`` has what its program gave up among what was not sent, and so does a driver that had
  no room for it: of a veth its ``xdp_xmit_errors``, of virtio_net ``xdp_tx_drops``.

The kernel itself does the same everywhere. So does veth, and namespaces have no other driver. For other drivers nobody
knows, and a counter has the same packets as far as places would have more than were lost. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from pdrgate.observers.driver_statistics import by_kind
from pdrgate.observers.gains import Gains, beside, hop_name, port_name
from pdrgate.observers.reading import Place
from pdrgate.results.losses import PlaceLoss

GENERIC, BY_CPUMAP = "XDP", "CPUMAP_PROGRAM"
"""Names of reasons that have packets of the tracepoints too."""
_UNSENT = "DEVMAP_UNSENT"
_WORDS = {
    "XDP_ABORTED": ("by an XDP program that aborted{on}", "XDP_ABORTED"),
    "XDP_INVALID": ("by an XDP program that returned no valid action{on}", "xdp:xdp_exception"),
    "XDP_TX": ("by an XDP program that could not send back{on}", "XDP_TX"),
    "REDIRECT_FAILED": ("by a failed redirect of XDP{on}", "xdp:xdp_redirect_err"),
    _UNSENT: ("redirected by XDP and not sent{on}", "xdp:xdp_devmap_xmit"),
}
"""Meaning of a tracepoint's names: where packets were lost, and what it hints at."""
_NAME = re.compile(rf"(CPUMAP_|DEVMAP_)?({'|'.join(_WORDS)})")
_GIVEN_UP = ("XDP_ABORTED", "XDP_INVALID")
_DROPPED = re.compile(r"xdp.*(drop|aborted)")
_NOT_SENT = re.compile(r"tx.*xdp.*drop|xdp_tx.*drop|tx_xdp_(full|err)|xdp_tx_(full|err)")
_NOT_HANDED_OVER = re.compile(r"xdp_xmit_errors$")


@dataclass(frozen=True, slots=True)
class XdpLoss:
    """Packets that a tracepoint counted."""

    what: str
    program: str
    """Owner of the program: a port (empty), ``CPUMAP_``, ``DEVMAP_``."""
    node: str
    port: Place | None
    """The port; None if the kernel does not report it."""
    packets: int

    def place(self, packets: int) -> PlaceLoss:
        """Place of the loss, with ``packets`` of its packets."""
        words, hint = _WORDS[self.what]
        on = f" on {port_name(self.port)}" if self.port else hop_name(self.node)
        return PlaceLoss(where=words.format(on=on), hint=hint, packets=packets)


@dataclass(slots=True)
class Twice:
    """Packets of other counters that are the tracepoints' too, or each other's."""

    dropped: dict[Place, int] = field(default_factory=dict)
    """Packets counted twice, of those that a port's driver says XDP dropped."""
    received: dict[Place, int] = field(default_factory=dict)
    """Packets counted twice, of a port's ``rx_dropped``."""
    sent: dict[Place, int] = field(default_factory=dict)
    """Packets counted twice, of those that a port did not send."""
    reasons: dict[tuple[str, str], int] = field(default_factory=dict)
    """Packets counted twice, of the kernel's reasons, by name and node."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(any(found.values()) for found in (self.dropped, self.received, self.sent, self.reasons))


def is_of_xdp(reason: str) -> bool:
    """Whether a name among the reasons for drops is of a loss by XDP."""
    return _NAME.fullmatch(reason) is not None


def dropped_by_driver(gains: Gains, port: Place) -> int:
    """Packets that XDP dropped at a port, as its driver counts."""
    return _of_driver(gains, port, lambda name: bool(_DROPPED.search(name)) and not _NOT_SENT.search(name))


def unsent_by_driver(gains: Gains, port: Place) -> int:
    """Packets of XDP that a port did not send, as its driver counts beside ``tx_dropped``."""
    return _of_driver(gains, port, lambda name: bool(_NOT_SENT.search(name)))


def _of_driver(gains: Gains, port: Place, wanted: Callable[[str], bool]) -> int:
    driver = gains.all.get(beside(port, "driver"), {})
    return sum(by_kind({name: packets for name, packets in driver.items() if wanted(name)}).values())


def xdp_losses(gains: Gains) -> list[XdpLoss]:
    """Losses by the tracepoints. Packets that ports did not send are included if nobody else counts them there."""
    traced = list(_traced(gains))
    return [
        found for one in traced if (found := _uncounted(gains, traced, one) if one.what == _UNSENT else one).packets
    ]


def counted_twice(gains: Gains, traced: Iterable[XdpLoss], generic: dict[str, int], counted: int, lost: int) -> Twice:
    """Number of packets to leave out of other counters.

    Args:
        traced: losses that become places.
        generic: by node, packets that the kernel's reasons say XDP dropped.
        counted: packets that all counters have which are no reasons.
        lost: packets.
    """
    traced = list(traced)
    shares = _Shares(gains, max(0, counted + sum(one.packets for one in traced) - lost))
    left = dict(generic)
    for one in traced:
        if one.program == "CPUMAP_":
            _add(shares.twice.reasons, (BY_CPUMAP, ""), one.packets)
        if one.program or one.what == _UNSENT:
            continue
        seen = min(one.packets, left.get(one.node, 0))
        left[one.node] = left.get(one.node, 0) - seen
        _add(shares.twice.reasons, (GENERIC, one.node), seen)
        shares.take(one, one.packets - seen)
    if not gains.of_hops:
        shares.take_dropped_from_received()
    return shares.twice


class _Shares:
    """Packets found to be counted twice, of drivers and ports.

    Args:
        over: by how many packets there would be more at places than were lost.
    """

    def __init__(self, gains: Gains, over: int) -> None:
        self.twice = Twice()
        self._gains = gains
        self._over = over

    def take(self, one: XdpLoss, packets: int) -> None:
        """Take packets that a tracepoint counted from the counters of a driver that may have counted them too."""
        given_up, sure = one.what in _GIVEN_UP, self._gains.of_hops and one.port is not None
        ports = [one.port] if one.port else _own_ports(self._gains)
        if given_up or not self._gains.of_hops:
            self._take(
                self.twice.dropped, {port: dropped_by_driver(self._gains, port) for port in ports}, packets, sure
            )
        if not given_up or not self._gains.of_hops:
            self._take(self.twice.received, self._ports_have("rx_dropped", ports), packets, sure)
        if one.what == "XDP_TX" and not self._gains.of_hops:
            self._take(self.twice.sent, self._ports_have("tx_dropped", ports), packets, sure)

    def take_dropped_from_received(self) -> None:
        """Leave out packets that a driver counts both as dropped by XDP and on receipt."""
        for port in _own_ports(self._gains):
            dropped = dropped_by_driver(self._gains, port) - self.twice.dropped.get(port, 0)
            self._take(self.twice.received, self._ports_have("rx_dropped", [port]), dropped, False)

    def _ports_have(self, name: str, ports: Iterable[Place]) -> dict[Place, int]:
        return {port: self._gains.at(port, name) for port in ports}

    def _take(self, taken: dict[Place, int], have: dict[Place, int], packets: int, sure: bool) -> None:
        for port, pool in have.items():
            found = max(0, min(pool - taken.get(port, 0), packets, packets if sure else self._over))
            taken[port] = taken.get(port, 0) + found
            packets -= found
            self._over -= min(self._over, found)


def _traced(gains: Gains) -> Iterator[XdpLoss]:
    ports = set(_own_ports(gains))
    for place, gained in gains.of("drops"):
        for name, packets in gained.items():
            reason, _, where = name.partition(" ")
            if place.node != "tg" and (matched := _NAME.fullmatch(reason)):
                port = Place("interface", where).of(place.node)
                yield XdpLoss(matched[2], matched[1] or "", place.node, port if port in ports else None, packets)


def _uncounted(gains: Gains, traced: Iterable[XdpLoss], unsent: XdpLoss) -> XdpLoss:
    """Packets that were not sent and that neither a devmap's program nor the sender has counted."""
    known = sum(one.packets for one in traced if one.program == "DEVMAP_" and one.port == unsent.port)
    for port in [unsent.port] if unsent.port else _own_ports(gains):
        if gains.of_hops:
            driver = gains.all.get(beside(port, "driver"), {})
            known += sum(packets for name, packets in driver.items() if _NOT_HANDED_OVER.search(name))
        else:
            known += gains.at(port, "tx_dropped") + unsent_by_driver(gains, port)
    return XdpLoss(unsent.what, "", unsent.node, unsent.port, max(0, unsent.packets - known))


def _own_ports(gains: Gains) -> list[Place]:
    return [port for port in gains.ports() if port.node != "tg"]


def _add(sums: dict[tuple[str, str], int], key: tuple[str, str], packets: int) -> None:
    sums[key] = sums.get(key, 0) + packets
