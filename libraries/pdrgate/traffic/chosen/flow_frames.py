"""The frames of chosen flows: each flow's values, and the bytes that they make, from the innermost layer outwards."""

from __future__ import annotations

import math
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pdrgate.traffic import headers
from pdrgate.traffic.chosen.chosen_traffic import Flows, Layer
from pdrgate.traffic.chosen.spans import Span, packed
from pdrgate.traffic.chosen.surroundings import Surroundings
from pdrgate.traffic.chosen.tail_mark import MARK_ROOM
from pdrgate.traffic.frames import FCS
from pdrgate.values.errors import UsageError

USUAL_FLOWS = 256

_FIRST_PORT, _LAST_PORT = 1024, 65535
_TUNNEL_PORTS = 0x4000
_FIRST_TUNNEL_PORT = 0xC000
_HEADER = {
    "udp": headers.UDP_HEADER,
    "tcp": headers.TCP_HEADER,
    "icmp": headers.ICMP_HEADER,
    "icmpv6": headers.ICMP_HEADER,
    "ip": 0,
}
_PROTOCOL = {
    "udp": socket.IPPROTO_UDP, "tcp": socket.IPPROTO_TCP, "icmp": socket.IPPROTO_ICMP,
    "icmpv6": socket.IPPROTO_ICMPV6,
}  # fmt: skip
_IP_IN_IP = {4: socket.IPPROTO_IPIP, 6: socket.IPPROTO_IPV6}
_INNER_MACS = (bytes.fromhex("020000000001"), bytes.fromhex("020000000002"))
"""Source and destination in a tunnel of Ethernet, where none are chosen."""
_SPANS = ("src", "dst", "ttl", "tos", "sport", "dport", "type", "code", "id", "proto", "key", "vni", "vlan", "vlan2")
"""The fields that may have several values."""

_Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A layer with the IP version that its header is of, and the usual values of what is not chosen."""

    layer: Layer
    version: Literal[4, 6]
    spans: Mapping[str, Span]


def flow_frames(flows: Flows, surroundings: Surroundings, size: int) -> list[tuple[bytes, ...]]:
    """Each flow's frames, one or its fragments, without FCS; their last bytes are zeros, for the mark.

    Args:
        size: bytes of a frame with FCS where the flows say no other, as far as the frame fits in.

    Raises:
        UsageError: the testbed has not the addresses, there are not so many flows, or frames are too long.
    """
    shapes = [_shape(layer, surroundings) for layer in flows.layers]
    spans = {(at, name): span for at, shape in enumerate(shapes) for name, span in shape.spans.items()}
    count = _open_up(flows, spans)
    least = _least(flows, shapes[0])
    length = 0
    made: list[tuple[bytes, ...]] = []
    for number, values in enumerate(_drawn(spans, count, flows.text)):
        by_layer: list[dict[str, int]] = [{} for _ in shapes]
        for (at, name), value in values.items():
            by_layer[at][name] = value
        length = length or _length(
            flows, least, len(_frames(flows, shapes, by_layer, surroundings, number, least)[0]), size
        )
        made.append(_frames(flows, shapes, by_layer, surroundings, number, length))
    return made


def _frames(
    flows: Flows, shapes: Sequence[_Shape], values: Sequence[_Values], surroundings: Surroundings, number: int,
    length: int,
) -> tuple[bytes, ...]:  # fmt: skip
    """The frames of one flow, with ``length`` bytes behind the innermost IP header; ``number`` is the flow's."""
    packets = _packets(flows, shapes[0], values[0], length, number)
    return tuple(_wrapped(packet, shapes, values, surroundings, number) for packet in packets)


def _shape(layer: Layer, surroundings: Surroundings) -> _Shape:
    version = _version(layer, surroundings.version)
    said = [one for one in (layer.src, layer.dst) if one is not None and one.version is not None]
    if version != surroundings.version and not said and layer.kind != "mpls":
        raise UsageError(
            f"{layer.kind} is IPv{version}, and the data path is IPv{surroundings.version}'s; say "
            f"src=@{surroundings.sends}{version}, on a path that has both such as data_path: ip-routing"
        )
    if layer.extensions and version == 4:
        raise UsageError("IPv4 has no extension headers; say dst=@out6, or leave extensions out")
    spans = {name: span for name in _SPANS if isinstance(span := getattr(layer, name), Span)}
    if layer.kind != "mpls":
        for name, asked in (("src", layer.src), ("dst", layer.dst)):
            spans[name] = surroundings.span(asked, version, source=name == "src")
    if layer.kind == "udp" or layer.kind == "tcp":
        spans.setdefault("dport", Span(9, 9))  # discard
    return _Shape(layer, version, spans)


def _version(layer: Layer, usual: Literal[4, 6]) -> Literal[4, 6]:
    if layer.kind in ("icmpv6", "srv6"):
        return 6
    if layer.kind == "icmp":
        return 4
    versions = [one.version for one in (layer.src, layer.dst) if one is not None and one.version is not None]
    return versions[0] if versions else usual


def _open_up(flows: Flows, spans: dict[tuple[int, str], Span]) -> int:
    """Number of flows. If the ranges make fewer, the field that is free makes the rest.

    Raises UsageError when none is.
    """
    made = math.prod(span.count for span in spans.values())
    free = {"udp": "sport", "tcp": "sport", "icmp": "id", "icmpv6": "id"}.get(flows.layers[0].kind, "")
    first, last = (_FIRST_PORT, _LAST_PORT) if free == "sport" else (1, 0xFFFF)
    room = last - first + 1 if free and (0, free) not in spans else 1
    wanted = flows.flows or (min(made, USUAL_FLOWS) if made > 1 else min(room, USUAL_FLOWS))
    if wanted > made * room:
        more = f", with {room} of {free}" if room > 1 else ""
        raise UsageError(f"flows={wanted} are more than the {made} that its ranges make{more}; give a longer range")
    if room > 1:
        spans[0, free] = Span(first, first + math.ceil(wanted / made) - 1)
    return wanted


def _drawn(
    spans: Mapping[tuple[int, str], Span], count: int, seed: str
) -> Iterator[dict[tuple[int, str], int]]:  # fmt: skip
    """The values of ``count`` flows, no two of them equal: all that there are, or some drawn with the words as seed."""
    fixed = {place: span.low for place, span in spans.items() if span.count == 1}
    varied = [(place, span) for place, span in spans.items() if span.count > 1]
    for number in _places(math.prod(span.count for _, span in varied), count, seed):
        values = dict(fixed)
        for place, span in varied:
            number, step = divmod(number, span.count)
            values[place] = span.low + step
        yield values


def _places(all_: int, count: int, seed: str) -> Sequence[int]:
    if count == all_:
        return range(all_)
    chance = random.Random(seed)
    if all_ < 2 * count:
        return chance.sample(range(all_), count)
    found: dict[int, None] = {}
    while len(found) < count:
        found[chance.randrange(all_)] = None
    return list(found)


def _header(layer: Layer) -> int:
    """Bytes of the headers behind the innermost IP header."""
    return 8 * layer.extensions + _HEADER[layer.kind] + len(layer.options)


def _least(flows: Flows, inner: _Shape) -> int:
    """Bytes behind the innermost IP header, of a fragment where it is cut, that hold all that must be in them."""
    cut = flows.fragments > 1
    least = _header(inner.layer) + MARK_ROOM + (0 if cut else len(flows.payload))
    # What is in a tunnel may leave it, and must be no shorter then than a frame may be.
    least = max(least, headers.SHORTEST_FRAME - headers.ETHERNET_HEADER - headers.IP_HEADER[inner.version])
    if cut:
        whole = _header(inner.layer) + len(flows.payload) + MARK_ROOM * flows.fragments
        least = _in_eights(max(least, math.ceil(whole / flows.fragments)))
    return least


def _in_eights(length: int) -> int:
    """Length of a fragment's bytes, rounded up to a multiple of 8."""
    return -(-length // 8) * 8


def _length(flows: Flows, least: int, shortest: int, size: int) -> int:
    """Bytes behind the innermost IP header, in frames of the size that is asked for, or of the one that they need.

    Args:
        shortest: bytes of the frame, without FCS, that has ``least`` of them.
    """
    more = (flows.size or size) - FCS - shortest
    if flows.size is not None and more < 0:
        raise UsageError(f"size={flows.size} is too small: with its headers and the mark it has {shortest + FCS} bytes")
    if shortest > headers.LONGEST_FRAME:
        raise UsageError(f"its frames have {shortest + FCS} bytes with FCS, and 1518 is the most; leave some out")
    length = least + max(0, more)
    return length // 8 * 8 if flows.fragments > 1 else length


def _packets(flows: Flows, shape: _Shape, values: _Values, length: int, number: int) -> tuple[bytes, ...]:
    """The innermost packets of a flow, IP header included: one, or its fragments, with ``length`` bytes in each."""
    layer, version = shape.layer, shape.version
    source, destination = _ends(shape, values)
    head = _header(layer)
    # Each fragment ends in a mark, so what is chosen goes round these.
    payload = bytearray(length * flows.fragments - head)
    rest = flows.payload
    for at in range(flows.fragments):
        begin, end = max(0, at * length - head), (at + 1) * length - head - MARK_ROOM
        payload[begin:end] = rest[: end - begin].ljust(end - begin, b"\0")
        rest = rest[end - begin :]
    transport, carried = _transport(layer, version, values, source, destination, bytes(payload))
    protocol, carried = headers.extended(layer.extensions, transport, carried)
    ttl, tos = values["ttl"], values["tos"]
    if flows.fragments == 1:
        if version == 4:
            return (headers.ipv4(source, destination, protocol, carried, ttl=ttl, tos=tos),)
        return (headers.ipv6(source, destination, protocol, carried, ttl=ttl, tos=tos),)
    packets = []
    for offset in range(0, len(carried), length):
        part, more = carried[offset : offset + length], offset + length < len(carried)
        if version == 4:
            packets.append(
                headers.ipv4(source, destination, protocol, part, ttl=ttl, tos=tos, identification=number & 0xFFFF,
                             offset=offset, more=more, fragment=True)
            )  # fmt: skip
        else:
            cut = headers.fragment_header(protocol, number, offset, more=more) + part
            packets.append(headers.ipv6(source, destination, headers.FRAGMENT_NEXT, cut, ttl=ttl, tos=tos))
    return tuple(packets)


def _transport(
    layer: Layer, version: int, values: _Values, source: bytes, destination: bytes, payload: bytes
) -> tuple[int, bytes]:
    """The protocol's number, and its header with what it carries."""
    if layer.kind == "ip":
        return values.get("proto", 253), payload  # for experiments (RFC 3692)
    protocol = _PROTOCOL[layer.kind]
    if layer.kind == "udp":
        return protocol, headers.udp(source, destination, values["sport"], values["dport"], payload)
    if layer.kind == "tcp":
        return protocol, headers.tcp(
            source, destination, values["sport"], values["dport"], layer.flags, layer.options, payload
        )
    echo = headers.ECHO[version]
    pseudo = (source, destination) if version == 6 else None
    return protocol, headers.icmp(values.get("type", echo), values.get("code", 0), values["id"], payload, pseudo)


def _wrapped(
    packet: bytes, shapes: Sequence[_Shape], values: Sequence[_Values], surroundings: Surroundings, number: int
) -> bytes:
    """The frame that an innermost packet is in."""
    ethertype = headers.ETHERTYPE[shapes[0].version]
    version = shapes[0].version
    for at, shape in enumerate(shapes[1:], start=1):
        layer, fields = shape.layer, values[at]
        if layer.kind == "mpls":
            packet, ethertype = headers.mpls(layer.label, fields["ttl"], packet), headers.MPLS
            continue
        if ethertype == headers.MPLS and layer.kind != "vxlan":
            raise UsageError(f"mpls cannot be in {layer.kind}; say mpls last, or in vxlan")
        source, destination = _ends(shape, fields)
        following = _IP_IN_IP[version]
        if layer.kind == "gre":
            following, packet = socket.IPPROTO_GRE, headers.gre(ethertype, fields.get("key"), packet)
        elif layer.kind == "vxlan":
            frame = _linked(packet, shapes[at - 1].layer, values[at - 1], ethertype, *_INNER_MACS, surroundings)
            sport = fields.get("sport", _FIRST_TUNNEL_PORT + number % _TUNNEL_PORTS)
            tunnelled = headers.vxlan(fields.get("vni", 1), frame)
            port = fields.get("dport", headers.VXLAN_PORT)
            # IPv4 goes without a checksum, as RFC 7348 wants it.
            packet = headers.udp(source, destination, sport, port, tunnelled, summed=shape.version == 6)
            following = socket.IPPROTO_UDP
        elif layer.kind == "srv6":
            stops = _stops(layer, destination, surroundings)
            destination = stops[0]
            following, packet = headers.ROUTING_NEXT, headers.routing_header(following, stops) + packet
        version, ethertype = shape.version, headers.ETHERTYPE[shape.version]
        wrap = headers.ipv4 if version == 4 else headers.ipv6
        packet = wrap(source, destination, following, packet, ttl=fields["ttl"], tos=fields["tos"])
    macs = surroundings.source_mac, surroundings.sut_mac
    return _linked(packet, shapes[-1].layer, values[-1], ethertype, *macs, surroundings)


def _linked(
    packet: bytes, layer: Layer, values: _Values, ethertype: int, source: bytes, destination: bytes,
    surroundings: Surroundings,
) -> bytes:  # fmt: skip
    """The Ethernet frame around a layer, from and to these addresses where it says no others."""
    if layer.dmac is not None:
        destination = surroundings.mac(layer.dmac) if isinstance(layer.dmac, str) else layer.dmac
    vlans = [values[name] for name in ("vlan", "vlan2") if name in values]
    return headers.ethernet(destination, layer.smac or source, vlans, ethertype, packet)


def _ends(shape: _Shape, values: _Values) -> tuple[bytes, bytes]:
    return packed(values["src"], shape.version), packed(values["dst"], shape.version)


def _stops(layer: Layer, last: bytes, surroundings: Surroundings) -> list[bytes]:
    """The segments in the order of travel, the destination last. Raises UsageError when there are none."""
    if layer.via:
        via = [surroundings.span(one, 6, source=False).low for one in layer.via]
    else:
        via = list(surroundings.segments)
    if not via:
        raise UsageError("srv6 has no segments here; say such as via=fd00:211:5e9::1")
    return [*(packed(one, 6) for one in via), last]
