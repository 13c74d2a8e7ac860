"""Traffic that a user has chosen: flows of packets, layer by layer, and captures, with their weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pdrgate.traffic.chosen.spans import Addresses, Span, SutSide

Kind = Literal["udp", "tcp", "icmp", "icmpv6", "ip", "ipip", "gre", "vxlan", "srv6", "mpls"]
Draw = Literal["turn", "uniform", "zipf"]
_ANY_TTL = Span(64, 64)
_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A protocol and the IP header that it is in, or what other layers are put in; None: as usual, see docs."""

    kind: Kind
    src: Addresses | None = None
    dst: Addresses | None = None
    ttl: Span = _ANY_TTL
    tos: Span = Span(0, 0)  # noqa: RUF009  # frozen
    sport: Span | None = None
    dport: Span | None = None
    flags: int = 0
    """TCP's, as bits."""
    options: bytes = b""
    """TCP's, as they stand in the header."""
    extensions: int = 0
    """Number of IPv6's extension headers, of destination options without any."""
    type: Span | None = None
    """Type of an ICMP message. The next two fields are ICMP's, too."""
    code: Span | None = None
    id: Span | None = None
    proto: Span | None = None
    """The number of a protocol over IP that has no words here."""
    key: Span | None = None
    """Key of GRE."""
    vni: Span | None = None
    """Network identifier of VXLAN."""
    label: tuple[int, ...] = ()
    """Labels of MPLS, the top one first."""
    via: tuple[Addresses, ...] = ()
    """The segments of segment routing, in the order of travel."""
    vlan: Span | None = None
    """VLAN ids of the Ethernet header around this layer. The next three fields are of that header, too."""
    vlan2: Span | None = None
    """VLAN ids of a second tag, behind the first."""
    smac: bytes | None = None
    dmac: bytes | SutSide | None = None
    """A side's: the station's there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """Packets that differ by the values of their fields."""

    layers: tuple[Layer, ...]
    """From the innermost to the outermost."""
    flows: int | None = None
    """Number of flows. None: as many as its ranges make, up to the usual number."""
    draw: Draw = "turn"
    """Order of the flows: in turn, by chance, or by Zipf's law."""
    size: int | None = None
    """Bytes of a frame with FCS; None: the scenario's."""
    weight: int = 1
    origin: SutSide = "in"
    """Side of the SUT that sends them."""
    fragments: int = 1
    payload: bytes = b""
    text: str = ""
    """Words by which the packets were described."""

    def identity(self) -> bytes:
        """Bytes that are equal for equal flows."""
        return self.text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTraffic:
    """Frames of a capture file, in its order."""

    name: str
    frames: tuple[bytes, ...]
    weight: int = 1
    origin: SutSide = "in"
    keep_macs: bool = False
    """Whether frames keep their MAC addresses; else they go to the SUT."""
    text: str = ""

    def identity(self) -> bytes:
        whole = hashlib.sha256()
        for frame in self.frames:
            whole.update(len(frame).to_bytes(4) + frame)
        return f"{self.weight} {self.origin} {self.keep_macs} {whole.hexdigest()}".encode()


@dataclass(frozen=True)
class ChosenTraffic:
    """All that a scenario sends."""

    parts: tuple[Flows | CapturedTraffic, ...]

    @cached_property
    def digest(self) -> str:
        """Names equal traffic; of a capture, equal frames, wherever its file lies."""
        return hashlib.sha256(b"\0".join(part.identity() for part in self.parts)).hexdigest()[:8]

    @property
    def directions(self) -> Literal[1, 2]:
        """Number of sides of the SUT that packets come from: 2 if some come from behind it."""
        return 2 if any(part.origin == "out" for part in self.parts) else 1

    @property
    def words(self) -> str:
        """Words of the traffic, as a user writes them."""
        return "; ".join(part.text for part in self.parts)

    def __str__(self) -> str:
        """In words, for a title."""
        return self.words if len(self.words) <= _LONGEST else f"{self.words[: _LONGEST - 1]}…"

    def __hash__(self) -> int:
        return hash(self.digest)
