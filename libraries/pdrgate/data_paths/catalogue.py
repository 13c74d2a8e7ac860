"""Data paths: what makes the SUT forward. Each is applied to a chain of hops, read back, and restored."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, ProgramKind, bpf_build
from pdrgate.data_paths.bpf_forwarding import TcRedirect, XdpRouting
from pdrgate.data_paths.contract import NETWORKS, DataPath, Hop, Networks, Port, Station, segment
from pdrgate.data_paths.receivers import CALLS, MOST_RECEIVERS, Call, Receivers
from pdrgate.data_paths.routing import Routing, SegmentRouting
from pdrgate.data_paths.tcp_streams import CONTROLS, Direction, TcpStreams
from pdrgate.data_paths.tcp_transfer import TcpTransfer
from pdrgate.data_paths.udp_delivery import UdpDelivery
from pdrgate.errors import TestbedError
from pdrgate.knobs import ChangeLog

__all__ = [
    "CALLS", "CONTROLS", "DATA_PATHS", "MOST_RECEIVERS", "NETWORKS", "Call", "DataPath", "Direction", "Hop",
    "Networks", "Port", "Receivers", "Routing", "SegmentRouting", "Station", "TcRedirect", "TcpStreams", "TcpTransfer",
    "UdpDelivery", "XdpRouting", "data_path", "segment",
]  # fmt: skip


class Kind(NamedTuple):
    """What is known of a data path before it is made."""

    title: str
    """How a person calls it."""
    family: Literal[4, 6]
    """The IP version of its traffic."""
    program: ProgramKind | None = None
    """What its program is for; None when it runs none."""
    segments: bool = False
    """Whether its traffic has a segment routing header."""
    delivers: bool = False
    """Whether packets end at the SUT, at `Receivers`."""
    transfers: bool = False
    """Whether its traffic is a closed loop, of `TcpStreams`."""


DATA_PATHS: dict[str, Kind] = {
    "ipv6-routing": Kind("IPv6 routing", 6),
    "ipv4-routing": Kind("IPv4 routing", 4),
    "xdp-ipv6-routing": Kind("IPv6 routing by XDP", 6, "xdp"),
    "xdp-ipv4-routing": Kind("IPv4 routing by XDP", 4, "xdp"),
    "tc-redirect": Kind("redirection by tc", 6, "tc"),
    "srv6-end": Kind("SRv6 End", 6, segments=True),
    "udp-delivery": Kind("UDP delivery", 4, delivers=True),
    "udp6-delivery": Kind("UDP delivery over IPv6", 6, delivers=True),
    "tcp-transfer": Kind("TCP", 4, transfers=True),
    "tcp6-transfer": Kind("TCP over IPv6", 6, transfers=True),
}
"""By the names that suites may use."""


def data_path(
    name: str,
    program: BpfBuild | Path | None = None,
    receivers: Receivers | None = None,
    streams: TcpStreams | None = None,
    changes: ChangeLog | None = None,
) -> DataPath:
    """A new data path of that name.

    Args:
        program: an eBPF object to run in place of pdrgate's own, the build under test.
        receivers: who receives, where packets end at the SUT.
        streams: of TCP, where it talks that.
        changes: where what it sets of TCP is noted first, for no testbed knows of that; None: it ends with the hosts.

    Raises:
        BpfBuildError: the object holds no program for this data path, or the data path runs none.
        TestbedError: there is no such data path.
    """
    if name not in DATA_PATHS:
        raise TestbedError(f"there is no data path {name!r}; there are {', '.join(DATA_PATHS)}")
    kind = DATA_PATHS[name]
    if program is not None and kind.program is None:
        able = ", ".join(other for other, known in DATA_PATHS.items() if known.program)
        raise BpfBuildError(f"{kind.title} runs no eBPF program; builds of one can be measured by {able}")
    if program is not None:
        program = bpf_build(program.path if isinstance(program, BpfBuild) else program, kind.program)
    if kind.program == "xdp":
        return XdpRouting(kind.family, program)
    if kind.program == "tc":
        return TcRedirect(program)
    if kind.delivers:
        return UdpDelivery(kind.family, receivers or Receivers())
    if kind.transfers:
        return TcpTransfer(kind.family, streams or TcpStreams(), changes)
    return SegmentRouting() if kind.segments else Routing(kind.family)
