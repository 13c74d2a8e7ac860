"""The frames of a trial: size, address family, flows, directions; and the bytes of their headers.

Sizes are Ethernet frame sizes with the 4-byte FCS, as in RFC 2544 section 9: 64 to 1518. Each frame has a number, so
that one that comes back twice does not stand in for one that is lost (RFC 2544 section 10). An IPv6/UDP frame with a
number cannot be shorter than 70 bytes (14 + 40 + 8 + 4 + 4), so a ``size`` of 64 means 70 bytes there; ``wire_size``
says which.
"""

from __future__ import annotations

import dataclasses
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

from pdrgate.traffic import headers
from pdrgate.traffic.chosen.chosen_traffic import ChosenTraffic
from pdrgate.values.errors import UsageError

FCS = 4
PROBE_PAYLOAD = MARK_PAYLOAD = 8
NUMBER_PAYLOAD = 4
_MOST_SEGMENTS = 8
_HOPS = 64
_SOURCE_PORT = 1024
MAX_FLOWS = 16384
MARKED_PORT = 28772
"""UDP port that marked packets go to in every trial: somebody reads a socket of it."""
IMIX = ((64, 7), (570, 4), (1518, 1))
"""Frame sizes with FCS of the simple Internet mix, and how many of twelve frames have each."""


Counted = Literal["forwarded", "returned", "taken"]


@dataclass(frozen=True, slots=True)
class Frames:
    """Properties of a trial's frames.

    Raises:
        UsageError: a value is out of range; the message says which values are not.
    """

    family: Literal[4, 6] = 6
    size: int = 64
    """Frame bytes including the FCS, 64 to 1518."""
    flows: int = 256
    vary: Literal["ports", "addresses"] = "ports"
    """Field that differs between flows: UDP source ports or the last 16 bits of the source address."""
    directions: Literal[1, 2] = 1
    probe_rate: float = 0.0
    """Latency probes per second, over all directions; 0 means none. At least every second packet stays a plain one."""
    segments: bool = False
    """Whether a segment routing header (RFC 8754) leads each packet through the segments of its path."""
    vlan: int | None = None
    """The VLAN of an IEEE 802.1Q tag, 1 to 4094, whose four bytes are part of the size; None: frames are not tagged."""
    imix: bool = False
    """The sizes of ``IMIX`` instead of ``size``, which has no meaning then."""
    mark: int | None = None
    """First 32 bits of each payload, before the packet's number of 32 bits; None if nobody reads a socket.

    A reader of a socket recognises a trial's packets by it. Marked packets go to `MARKED_PORT`.
    """
    counted: Counted = "forwarded"
    """Packets that count: those that come back on the other port, those that come back on the port that they were sent
    from, or those that the SUT takes in, whether or not they come back."""
    chosen: ChosenTraffic | None = None
    """Traffic that replaces all other fields except the rate of probes. ``size`` is the default of its sizes."""

    def __post_init__(self) -> None:
        if self.family not in (4, 6):
            raise UsageError(f"IP version {self.family!r} does not exist; use 4 or 6")
        if not 64 <= self.size <= 1518:
            raise UsageError(f"frame size {self.size} is out of range; use 64 to 1518 bytes (with FCS)")
        if not 1 <= self.flows <= MAX_FLOWS:
            raise UsageError(f"{self.flows} flows are out of range; use 1 to {MAX_FLOWS}")
        if self.vary not in ("ports", "addresses"):
            raise UsageError(f"flows cannot vary by {self.vary!r}; use ports or addresses")
        if self.directions not in (1, 2):
            raise UsageError(f"{self.directions!r} directions do not exist; use 1 or 2")
        if not 0 <= self.probe_rate <= 50_000:
            raise UsageError(f"probe rate {self.probe_rate} is out of range; use 0 to 50000 probes/s")
        if self.mark is not None and self.probe_rate:
            raise UsageError("packets that a receiver reads cannot be latency probes; send none")
        if self.counted == "taken" and self.probe_rate:
            raise UsageError("packets that need not come back cannot be latency probes; send none")
        if self.chosen is not None:
            self._check_chosen(self.chosen)
        if self.segments and self.family != 6:
            raise UsageError("IPv4 has no segment routing header; use IPv6")
        if self.vlan is not None and not 1 <= self.vlan <= 4094:
            raise UsageError(f"VLAN {self.vlan} does not exist; use 1 to 4094")

    def _check_chosen(self, chosen: ChosenTraffic) -> None:
        if self.mark is not None:
            raise UsageError("what a receiver reads are pdrgate's own packets; leave the chosen traffic out")
        if self.imix:
            raise UsageError("chosen traffic has frame sizes of its own, by weight=; leave IMIX out")
        if self.directions != chosen.directions:
            raise UsageError("from=out says which of the chosen packets come from behind the SUT; leave directions out")

    @property
    def shares(self) -> tuple[tuple[int, Frames], ...]:
        """Frames of one size each, and their weights in the mix; a mix of one unless ``imix``."""
        if not self.imix:
            return ((1, self),)
        return tuple((weight, dataclasses.replace(self, size=size, imix=False)) for size, weight in IMIX)

    @property
    def link_header(self) -> int:
        """Bytes of the Ethernet header and its tag."""
        return headers.ETHERNET_HEADER + (0 if self.vlan is None else headers.VLAN_TAG)

    @property
    def header(self) -> int:
        """Bytes of the Ethernet, IP and UDP headers, without a routing header."""
        return self.link_header + headers.IP_HEADER[self.family] + headers.UDP_HEADER

    @property
    def wire_size(self) -> int:
        """Bytes of a plain frame with FCS; with a routing header there may be more, see `Template`."""
        return max(self.size, self.header + self.payload + FCS)

    @property
    def payload(self) -> int:
        """Bytes that a plain packet's payload has at least: its number, behind a mark if there is one."""
        return NUMBER_PAYLOAD if self.mark is None else MARK_PAYLOAD

    @property
    def probe_size(self) -> int:
        """Bytes of a probe frame with FCS: as a plain one, unless its time stamp needs more."""
        return max(self.size, self.header + PROBE_PAYLOAD + FCS)


@dataclass(frozen=True, slots=True)
class Path:
    """One direction through the SUT: which port of the TG sends, to which MAC address, from and to which IP network.

    Addresses end in 16 bits that the generator fills: ``source`` with the flow if flows vary by address,
    ``destination`` with the cookie that identifies its own packets.
    """

    port: str
    source_mac: str
    destination_mac: str
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    segments: tuple[IPv6Address, ...] = ()
    """Stations of a segment routing header, in the order of travel."""
    twin: tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address] | None = None
    """Source and destination of the other IP version, for traffic of both; None where nobody knows them."""


@dataclass(frozen=True, slots=True)
class Template:
    """Header bytes of one direction and the partial checksums that the varying word and the time stamp complete."""

    tag: int
    """UDP destination port of plain frames."""
    plain: bytes
    probe: bytes
    plain_size: int
    """Bytes of a plain frame with FCS."""
    probe_size: int
    link_header: int
    """Bytes before the IP header."""
    routing: int
    """Bytes of the routing header."""
    first: int
    csum_sum: int
    probe_sum: int
    ip_sum: int
    vary_offset: int
    vary_in_ip: bool

    def word(self, frame: bytes, flows: int) -> int:
        """The varying word of a frame that came back; the first one where it has none of these flows'."""
        (word,) = struct.unpack("!H", frame[self.vary_offset : self.vary_offset + 2].ljust(2, b"\0"))
        return word if (word - self.first) & 0xFFFF < flows else self.first

    def frame(self, word: int, *, probe: bool = False, payload: bytes = b"") -> bytes:
        """The whole frame, without FCS, that a generator sends for a flow.

        Args:
            word: value of the field that varies by flow.
            payload: its first bytes, filled up with zeros.
        """
        head, size = (self.probe, self.probe_size) if probe else (self.plain, self.plain_size)
        made = bytearray(head + payload[: size - FCS - len(head)].ljust(size - FCS - len(head), b"\0"))
        struct.pack_into("!H", made, self.vary_offset, word)
        if self.vary_in_ip:
            headers.complete_ipv4(made)
        total = (self.probe_sum if probe else self.csum_sum) + word + headers.words_sum(bytes(made[len(head) :]))
        struct.pack_into("!H", made, len(head) - 2, headers.checksum(total) or 0xFFFF)
        return bytes(made)


def template(frames: Frames, path: Path, *, tag: int, probe_tag: int) -> Template:
    """Header bytes for ``path`` with UDP destination ports ``tag`` and ``probe_tag``.

    The varying word is zero in the bytes and missing from the sums; UDP checksums are zero in the bytes.

    Raises:
        UsageError: the frames ask for segments, and the path has none or too many.
    """
    routing = b""
    if frames.segments:
        if not 1 <= len(path.segments) <= _MOST_SEGMENTS:
            raise UsageError(
                f"a segment routing header leads through 1 to {_MOST_SEGMENTS} segments, and the path has "
                f"{len(path.segments)}; choose another testbed, or frames without segments"
            )
        stops = [stop.packed for stop in (*path.segments, path.destination)]
        routing = headers.routing_header(socket.IPPROTO_UDP, stops)
    in_address = frames.vary == "addresses"
    source = path.source.packed[:-2] + b"\0\0" if in_address else path.source.packed
    first = struct.unpack("!H", path.source.packed[-2:])[0] if in_address else _SOURCE_PORT

    def head(frame_size: int, port: int) -> tuple[bytes, int, int]:
        carried = bytes(frame_size - FCS - frames.link_header - headers.IP_HEADER[frames.family])
        length = len(carried) - len(routing)
        udp = struct.pack("!HHHH", _SOURCE_PORT if in_address else 0, port, length, 0)
        # With a routing header it is the last stop that counts (RFC 8200, section 8.1).
        pseudo = source + path.destination.packed + struct.pack("!HH", length, socket.IPPROTO_UDP)
        ip_sum, following, destination = 0, socket.IPPROTO_UDP, path.destination.packed
        if frames.family == 4:
            ip = headers.ipv4(source, destination, following, carried, ttl=_HOPS, tos=0)[: headers.IP_HEADER[4]]
            ip_sum = headers.words_sum(ip[:10] + ip[12:])
            if in_address:
                ip = ip[:10] + b"\0\0" + ip[12:]
        else:
            if routing:
                following, destination = headers.ROUTING_NEXT, path.segments[0].packed
            ip = headers.ipv6(source, destination, following, carried, ttl=_HOPS, tos=0)[: headers.IP_HEADER[6]]
        to, by = (bytes.fromhex(mac.replace(":", "")) for mac in (path.destination_mac, path.source_mac))
        made = headers.ethernet(
            to, by, () if frames.vlan is None else (frames.vlan,), headers.ETHERTYPE[frames.family], ip + routing + udp
        )
        return made, headers.words_sum(pseudo + udp), ip_sum

    plain_size = max(frames.wire_size, frames.header + len(routing) + frames.payload + FCS)
    probe_size = max(frames.probe_size, frames.header + len(routing) + PROBE_PAYLOAD + FCS)
    plain, csum_sum, ip_sum = head(plain_size, tag)
    # Plain and probe IPv4 headers differ in their length, and so in their header sum, unless the frames are as long.
    probe, probe_sum, _ = head(probe_size, probe_tag)
    return Template(
        tag=tag,
        plain=plain,
        probe=probe,
        plain_size=plain_size,
        probe_size=probe_size,
        link_header=frames.link_header,
        routing=len(routing),
        first=first,
        csum_sum=csum_sum,
        probe_sum=probe_sum,
        ip_sum=ip_sum,
        vary_offset=frames.header + len(routing) - headers.UDP_HEADER
        if not in_address
        else frames.header - headers.UDP_HEADER - len(source) - 2,
        vary_in_ip=in_address,
    )
