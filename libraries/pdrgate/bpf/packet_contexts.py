"""Context of a packet that BPF_PROG_RUN passes to a program beside the packet's bytes (linux/bpf.h)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from pdrgate.builds.bpf_build import ProgramKind
from pdrgate.traffic.headers import IPV4, IPV6, network_layer

_HEAD = struct.Struct("<III")
_XDP = struct.Struct("<IIIIII")
"""Layout of struct xdp_md."""
_LOOKUP = struct.Struct("<QII4s16sHH4s16sII")
"""Layout of struct bpf_sk_lookup: socket, family, protocol, remote side, local side, interface."""
_WITH_PORTS = (socket.IPPROTO_TCP, socket.IPPROTO_UDP)


@dataclass(frozen=True, slots=True)
class PacketContext:
    """A packet as the runner reads it."""

    packet: bytes
    context: bytes = b""
    optional: bool = False
    """Whether the packet may be run without its context if the kernel refuses that."""

    @property
    def record(self) -> bytes:
        """The packet in the runner's file, see vectors.c."""
        return _HEAD.pack(len(self.packet), len(self.context), self.optional) + self.packet + self.context


def context_of(kind: ProgramKind, packet: bytes, port: int = 0) -> PacketContext:
    """The packet with the context of a program of that kind.

    Args:
        port: number of the interface that it comes in at; 0 for none.
    """
    if kind == "xdp" and port:
        return PacketContext(packet, _XDP.pack(0, len(packet), 0, port, 0, 0), optional=True)
    if kind == "sk_lookup":
        return PacketContext(b"", lookup_context(packet))
    return PacketContext(packet)


def lookup_context(packet: bytes) -> bytes:
    """Context of a program that chooses a socket: addresses and ports, and no byte of the packet.

    Missing addresses and ports are zeros, which a kernel refuses.
    """
    kind, at = network_layer(packet)
    four, six = (bytes(4), bytes(4)), (bytes(16), bytes(16))
    family, protocol = 0, 0
    if kind == IPV4 and len(packet) >= at + 20:
        family, protocol = socket.AF_INET, packet[at + 9]
        four = packet[at + 12 : at + 16], packet[at + 16 : at + 20]
        at += 4 * (packet[at] & 15)
    elif kind == IPV6 and len(packet) >= at + 40:
        family, protocol = socket.AF_INET6, packet[at + 6]
        six = packet[at + 8 : at + 24], packet[at + 24 : at + 40]
        at += 40
    source = destination = 0
    if protocol in _WITH_PORTS and len(packet) >= at + 4:
        source, destination = struct.unpack_from("!HH", packet, at)
    # The remote port is in the network's order, and the local one in the processor's.
    return _LOOKUP.pack(
        0, family, protocol, four[0], six[0], socket.htons(source), 0, four[1], six[1], destination, 0
    )  # fmt: skip
