"""The law of conservation: each offered packet was forwarded, or was lost at a known place, or is unexplained.

Kernels count one packet at several places: one that a full backlog drops is in the CPU's ``dropped``, in the port's
``rx_dropped`` and, where a veth hands it over, in the sender's ``tx_dropped``. Here each packet is counted where it was
lost, and no second time:

* a receive ring has what the driver missed, and of a veth what its sender could not hand over;
* a backlog has what its CPU dropped, as far as the ports' ``rx_dropped`` show that these were the SUT's packets: CPUs
  are shared with all namespaces of a machine;
* a port has what is left of its ``rx_dropped``;
* a receiver at an end host has what its socket had no room for;
* a qdisc, an XDP program, IP, UDP and conntrack have what they alone count;
* a driver under names of its own has what the ports of its kernel do not count, and a cloud what is beyond its
  allowance: of what is left, and no more;
* the kernel's own reasons for drops, which count nearly all of them once more, explain what is left then, and no more.

A packet that a generator was refused is not counted again if a place of the SUT's has it. Pure functions of counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pdrgate.observers.counters import FILL
from pdrgate.observers.driver_statistics import by_kind, of_the_cloud
from pdrgate.observers.gains import Gains, beside, hop_name, port_name
from pdrgate.observers.reading import Place
from pdrgate.observers.xdp_losses import (
    BY_CPUMAP,
    GENERIC,
    Twice,
    counted_twice,
    dropped_by_driver,
    is_of_xdp,
    unsent_by_driver,
    xdp_losses,
)
from pdrgate.record.fate import Fate
from pdrgate.record.trial import Trial
from pdrgate.results.losses import LossResult, PlaceLoss

_UNSPECIFIED = "NOT_SPECIFIED"
_FULL, _RING, _BACKLOG, _TAP = "in full socket buffers", "in the receive ring", "in the backlog", "in the queue of TAP"
_REFUSED = "refused by the generator's own port"
_NEVER_GOT_THERE: Mapping[Fate, tuple[str, ...]] = {
    "dropped": (_RING, _BACKLOG, _TAP, _REFUSED),
    "handled": (_RING, _BACKLOG, _TAP, _REFUSED),
    "passed": (_FULL, _RING, _BACKLOG, _TAP, _REFUSED),
}
"""Prefixes of places that lose packets before their fate inside the SUT. Drops at other places are a fate."""
_PROGRAMS = ("clsact", "ingress")
"""Qdiscs that hold no packets, but tc programs and filters."""

_IP = (
    (("InNoRoutes",), "without a route", ""),
    (("OutNoRoutes",), "without a route", ""),
    (("InHdrErrors",), "with an expired hop limit or a bad header", "TTL"),
    (("InAddrErrors",), "for an address that is not forwarded to", "forwarding"),
    (("IPReversePathFilter",), "at the reverse path filter", "rp_filter"),
    # IPv6 counts a packet that is too big in both of them, IPv4 in the second.
    (("InTooBigErrors", "FragFails"), "too big for the next link", "MTU"),
    (("InTruncatedPkts",), "truncated", ""),
    (("InUnknownProtos",), "of a protocol that the host does not know", ""),
    (("InDiscards",), "discarded by IP on receipt", ""),
    (("OutDiscards",), "discarded by IP when sending", ""),
)
"""Counters of IP, of which the largest counts: where the packets were lost, and which knob or fault each hints at."""


_SHARE = "_permille"
"""Suffix of the name of a share, such as that of a TRex server's CPU, which is no count."""
_OF_TIME = ("cpu", "vcpu", "heartbeat")
"""Places that count no packets. Their values may be differences of two counters, or shares, and so may fall."""
_BY_XDP = "by the XDP program"
_NO_ROOM = "CONNTRACK_FULL"
_FULL_TABLE = 990
"""Thousandths of the table of connections from which on it has no room for more: some go while others come."""
_REASONS = {
    "CPU_BACKLOG": ("in the backlog", "netdev_max_backlog"),
    "FULL_RING": ("in the receive ring", ""),
    GENERIC: (_BY_XDP, ""),
    "CPUMAP_FULL": ("in the queue of a cpumap", "its size"),
    BY_CPUMAP: ("by the program of a cpumap", ""),
    "TC_INGRESS": ("by the tc program", ""),
    "TC_EGRESS": ("by the tc program", ""),
    "QDISC_DROP": ("in the qdisc", "limit"),
    "QDISC_OVERLIMIT": ("in the qdisc", "limit"),
    "QDISC_CONGESTED": ("in the qdisc", "limit"),
    "FQ_FLOW_LIMIT": ("in the qdisc", "limit"),
    "FQ_BAND_LIMIT": ("in the qdisc", "limit"),
    "CAKE_FLOOD": ("in the qdisc", "limit"),
    _NO_ROOM: ("in the connection table", "nf_conntrack_max"),
    "NETFILTER_DROP": ("by a rule of netfilter", "nft list ruleset"),
    "IP_INNOROUTES": ("without a route", ""),
    "IP_OUTNOROUTES": ("without a route", ""),
    "IP_INHDR": ("with an expired hop limit or a bad header", "TTL"),
    "IP_INADDRERRORS": ("for an address that is not forwarded to", "forwarding"),
    "IP_RPFILTER": ("at the reverse path filter", "rp_filter"),
    "PKT_TOO_BIG": ("too big for the next link", "MTU"),
    "SOCKET_RCVBUFF": (_FULL, "rmem"),
    "PROTO_MEM": ("for want of memory for sockets", "udp_mem"),
    "NO_SOCKET": ("for a UDP port without a socket", ""),
    "NEIGH_FAILED": ("without a neighbour", "ip neigh"),
    "NEIGH_QUEUEFULL": ("without a neighbour", "ip neigh"),
    "NEIGH_CREATEFAIL": ("without a neighbour", "ip neigh"),
    "NEIGH_DEAD": ("without a neighbour", "ip neigh"),
    "OTHERHOST": ("for another MAC address", ""),
    "UNHANDLED_PROTO": ("of a protocol that the host does not know", ""),
    "NOMEM": ("for want of memory", ""),
    "BLACKHOLE": ("by a blackhole route", "ip route"),
    "DEV_READY": ("at a port that is down", ""),
}
"""Reasons by the kernel's name (include/net/dropreason-core.h; blackholes and cpumaps have none): where packets were
lost, in the words of the places that count the same, and what each hints at."""


_FUNCTIONS = {
    "do_xdp_generic": GENERIC,
    "netif_receive_generic_xdp": GENERIC,
    "generic_xdp_tx": GENERIC,
    "dst_discard": "BLACKHOLE",
    "dst_discard_out": "BLACKHOLE",
    "nf_hook_slow": "NETFILTER_DROP",
    "nft_do_chain": "NETFILTER_DROP",
    "ndisc_error_report": "NEIGH_FAILED",
}
"""Reasons of functions that drop packets without giving a reason."""


def losses(trial: Trial) -> LossResult:
    """The losses of a trial's packets, by place."""
    gains = Gains({Place.parse(place): gained for place, gained in trial.seen.counter_changes.items()})
    lost, by_xdp = trial.offered - trial.forwarded, xdp_losses(gains)
    found = _by_counters(gains, trial, Twice())
    if begins := _NEVER_GOT_THERE.get(trial.aside.fate):
        found = [place for place in found if place.where.startswith(begins)]
        found.append(PlaceLoss(where="by leaving another way", packets=trial.aside.returned))
        return LossResult.of(trial.offered, trial.forwarded, found, _set_back(trial))
    twice = Twice()
    if by_xdp or not gains.of_hops:
        twice = counted_twice(gains, by_xdp, _generic(gains), sum(place.packets for place in found), lost)
        if twice:
            found = _by_counters(gains, trial, twice)
    left = lost - sum(place.packets for place in found)
    for one in by_xdp:
        if (packets := min(one.packets, left)) > 0:
            left -= packets
            found.append(one.place(packets))
    if not gains.of_hops:  # all that a veth counts is counted by now
        drivers = list(_by_driver(gains, left))
        left -= sum(place.packets for place in drivers)
        found += drivers
    found += _by_reason(gains, found, left, twice, _full_tables(trial))
    return LossResult.of(trial.offered, trial.forwarded, found, _set_back(trial))


def _by_counters(gains: Gains, trial: Trial, twice: Twice) -> list[PlaceLoss]:
    return [*_ports(gains, trial.offered, trial.aside.refused, twice), *_qdiscs(gains), *_protocols(gains)]


def _reasons(gains: Gains) -> Iterator[tuple[str, str, str, int]]:
    """The kernel's reasons for the SUT's drops: reason, function, node, packets."""
    for place, gained in gains.of("drops"):
        for name, packets in gained.items():
            reason, _, function = name.partition(" ")
            if reason == _UNSPECIFIED:
                reason = _FUNCTIONS.get(function, reason)
            if place.node != "tg" and not is_of_xdp(reason):
                yield reason, function, place.node, packets


def _generic(gains: Gains) -> dict[str, int]:
    """Packets that generic XDP dropped by the kernel's reasons, by node."""
    found: dict[str, int] = {}
    for reason, _, node, packets in _reasons(gains):
        if reason == GENERIC:
            found[node] = found.get(node, 0) + packets
    return found


def _full_tables(trial: Trial) -> set[str]:
    """Nodes whose table of connections was full at the end of a trial, and whose kernel does not count what that
    cost."""
    after = {Place.parse(place): values for place, values in trial.seen.counters_after.items()}
    return {place.node for place, values in after.items() if values.get(FILL, 0) >= _FULL_TABLE}


def _by_reason(
    gains: Gains, counted: Sequence[PlaceLoss], left: int, twice: Twice, full_tables: Set[str]
) -> Iterator[PlaceLoss]:
    """Losses for which the kernel gives reasons and that no place has counted, at most as many as are ``left``.

    Reasons that are known to be of packets on their way come first: a machine drops what is of others too.
    """
    by_place: dict[tuple[bool, str, str, str], int] = {}
    spare = dict(twice.reasons)
    for given, function, node, packets in _reasons(gains):
        # In newer kernels nft itself drops what a rule says, and its caller what conntrack says.
        tracked = given == "NETFILTER_DROP" and node in full_tables and function != "nft_do_chain"
        reason = _NO_ROOM if tracked else given
        where, hint = _REASONS.get(reason, (f"in {function}", "" if reason == _UNSPECIFIED else reason))
        known = min(packets, spare.get((reason, node), 0))
        if known:
            spare[reason, node] -= known
        key = (reason not in _REASONS, where, hint, hop_name(node))
        by_place[key] = by_place.get(key, 0) + packets - known
    for (_, where, hint, hop), packets in sorted(by_place.items(), key=lambda item: (item[0][0], -item[1])):
        same = sum(
            place.packets
            for place in counted
            if place.where.startswith(where) and (place.where.endswith(hop) or " at hop" not in place.where)
        )
        if (more := min(packets - same, left)) > 0:
            left -= more
            yield PlaceLoss(where=where + hop, hint=hint, packets=more)


def _by_driver(gains: Gains, left: int) -> Iterator[PlaceLoss]:
    """Losses that only drivers count, at most as many packets as are ``left``, a cloud's first."""
    counted = [(port, name, packets) for port in gains.ports() for name, packets in _driver_alone(gains, port)]
    for port, name, packets in sorted(counted, key=lambda one: (not of_the_cloud(one[1]), -one[2])):
        if (more := min(packets, left)) > 0:
            left -= more
            where = "beyond the cloud's allowance, at" if of_the_cloud(name) else "by the card or the driver of"
            yield PlaceLoss(where=f"{where} {port_name(port)}", hint=name, packets=more)


def _driver_alone(gains: Gains, port: Place) -> Iterator[tuple[str, int]]:
    """Packets that only a driver counts as lost, by kind: those of XDP and those of the port's own counters left out.

    Which of a driver's statistics are in ``rx_dropped`` or ``tx_dropped`` too differs from driver to driver.
    """
    driver = {} if port.node == "tg" else gains.all.get(beside(port, "driver"), {})
    counted = by_kind({name: packets for name, packets in driver.items() if "xdp" not in name})
    for way in ("tx", "rx"):
        known = gains.at(port, f"{way}_dropped")
        for name in [name for name in counted if ("tx" in name.split("_")) == (way == "tx")]:
            packets = counted[name]
            seen = 0 if of_the_cloud(name) else min(known, packets)
            known -= seen
            yield name, packets - seen


def _set_back(trial: Trial) -> tuple[str, ...]:
    """Counters that are smaller after a trial than before it."""
    return tuple(
        f"{name} of {place}"
        for place, before in trial.seen.counters_before.items()
        if Place.parse(place).kind not in _OF_TIME
        for name, value in before.items()
        if trial.seen.counters_after.get(place, {}).get(name, value) < value and not name.endswith(_SHARE)
    )


def _ports(gains: Gains, offered: int, refused: int, twice: Twice) -> Iterator[PlaceLoss]:
    """Rings, XDP programs, backlogs, and what ports dropped besides."""
    wired = gains.wired
    taps = [] if wired else [port for port in gains.ports() if port.node == "tg"]
    left: dict[Place, int] = {}
    for port in gains.ports():
        received = gains.at(port, "rx_dropped")
        missed = min(gains.at(port, "rx_missed"), received)  # /proc/net/dev adds them
        frames, skbs = gains.at(beside(port, "wire"), "frames"), gains.at(beside(port, "wire"), "skbs")
        received = max(0, received - missed - frames - twice.received.get(port, 0))
        # Of what a veth's sender could not hand over as an skb, the receiver counts what its backlog had no room for.
        if handed := frames + max(0, skbs - received):
            where = f"{_RING} of {port_name(port)}"
            yield PlaceLoss(where=where, hint="256 packets of a veth", packets=handed)
        if port.node == "tg":
            continue  # it drops what it has counted, by XDP, which some drivers count as dropped
        if missed:
            yield PlaceLoss(where=f"{_RING} of {port_name(port)}", hint="ethtool -G", packets=missed)
        left[port] = received
        sent = gains.at(port, "tx_dropped") + unsent_by_driver(gains, port) - twice.sent.get(port, 0)
        if not wired and sent > 0:
            yield PlaceLoss(where=f"on the transmit side of {port_name(port)}", packets=sent)
        if dropped := dropped_by_driver(gains, port) - twice.dropped.get(port, 0):
            yield PlaceLoss(where=f"{_BY_XDP} of {port_name(port)}", packets=dropped)
    if taps:
        yield from _tap_queues(gains, taps, offered, refused)
    elif refused and not wired:
        yield PlaceLoss(where=_REFUSED, packets=refused)
    yield from _backlogs(gains, left)


def _tap_queues(gains: Gains, taps: Sequence[Place], offered: int, refused: int) -> Iterator[PlaceLoss]:
    """Packets that TAPs had no room for, on the way to a guest.

    If a TAP has no room for a batch of live frames, the kernel counts one packet of it as dropped (`tun_xdp_xmit`).
    Packets that a TAP handed to the guest are counted in full: the rest of the offered packets stayed in its queue.
    """
    dropped = {tap: gained for tap in taps if (gained := gains.at(tap, "tx_dropped"))}
    handed = sum(gains.at(tap, "tx_packets") for tap in taps)
    lost = max(offered - handed, refused, sum(dropped.values())) if dropped else refused
    for tap, packets in _scaled(dropped or {taps[0]: 1}, lost).items():
        yield PlaceLoss(where=f"{_TAP} {tap.name}", hint="txqueuelen", packets=packets)


def _backlogs(gains: Gains, left: dict[Place, int]) -> Iterator[PlaceLoss]:
    """Backlogs by CPU, at most what the ports dropped on receipt; then what the ports dropped besides."""
    dropped = {place: gained.get("dropped", 0) for place, gained in gains.of("backlog") if gained.get("dropped", 0)}
    own = sum(left.values())
    rest = own - sum(dropped.values())
    if rest < 0:  # others' packets too
        dropped = _scaled(dropped, own)
    for place, packets in dropped.items():
        if packets:
            yield PlaceLoss(
                where=f"{_BACKLOG} of CPU {place.name}", hint="netdev_max_backlog", packets=packets
            )  # fmt: skip
    for place, packets in (_scaled(left, rest) if rest > 0 else {}).items():
        if packets:
            yield PlaceLoss(where=f"by {port_name(place)} on receipt", hint="rx_dropped", packets=packets)


def _qdiscs(gains: Gains) -> Iterator[PlaceLoss]:
    for place, gained in gains.of("qdisc"):
        for kind, packets in gained.items():
            if kind in _PROGRAMS:
                yield PlaceLoss(where=f"by the tc program of {port_name(place)}", packets=packets)
            else:
                yield PlaceLoss(where=f"in the qdisc {kind} of {port_name(place)}", hint="limit", packets=packets)


def _protocols(gains: Gains) -> Iterator[PlaceLoss]:
    for kind in ("ip", "ip6"):
        for place, gained in gains.of(kind):
            for names, where, hint in _IP:
                if packets := max(gained.get(name, 0) for name in names):
                    yield PlaceLoss(where=where + hop_name(place.node), hint=hint, packets=packets)
    # Packets that programs of ours receive were forwarded, and each program reports the drops of its own socket.
    received = full_ones = 0
    for place, gained in gains.of("receiver"):
        received += gained.get("received", 0)
        full_ones += gained.get("dropped", 0)
        yield PlaceLoss(
            where=f"{_FULL} of receiver {place.name}", hint="rmem, or its CPU", packets=gained.get("dropped", 0)
        )
    for kind in ("udp", "udp6"):
        for place, gained in gains.of(kind):
            full = gained.get("RcvbufErrors", 0)
            other = gained.get("InErrors", 0) - full
            of_ours, of_others = min(full, full_ones), gained.get("InDatagrams", 0) - received
            for packets, where, hint in (
                (full - of_ours, _FULL, "rmem"),
                (gained.get("NoPorts", 0), "for a UDP port without a socket", ""),
                (other, "with errors of UDP", ""),
                (of_others, "delivered to a socket of the SUT", ""),
            ):
                if packets > 0:
                    yield PlaceLoss(where=where + hop_name(place.node), hint=hint, packets=packets)
    for place, gained in gains.of("conntrack"):
        if packets := gained.get("drop", 0):
            where = "in the connection table" + hop_name(place.node)
            yield PlaceLoss(where=where, hint="nf_conntrack_max", packets=packets)


def _scaled(parts: Mapping[Place, int], total: int) -> dict[Place, int]:
    """Parts in the same proportion that come to ``total``; the largest takes what rounding leaves."""
    whole = sum(parts.values())
    if not whole:
        return {}
    scaled = {place: part * total // whole for place, part in parts.items()}
    scaled[max(parts, key=lambda place: parts[place])] += total - sum(scaled.values())
    return scaled


def total(trials: Iterable[Trial]) -> LossResult | None:
    """The losses of several trials together; None if no counters were read."""
    counted = [losses(trial) for trial in trials if trial.seen.counters_after and trial.offered]
    return LossResult.summed(counted) if counted else None
