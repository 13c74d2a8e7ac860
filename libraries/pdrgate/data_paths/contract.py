"""What a data path is, and what it is applied to: a chain of hops with two ports each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Literal

from pdrgate.bpf.prog_run import PacketOutcome
from pdrgate.hosts.host import Host
from pdrgate.traffic.delivery import Arrivals
from pdrgate.traffic.frames import Path
from pdrgate.traffic.generator import ClosedLoop

if TYPE_CHECKING:
    from pdrgate.data_paths.steering import CpuMapSteering


@dataclass(frozen=True, slots=True)
class Port:
    """An interface of the SUT and the station that it faces."""

    interface: str
    mac: str
    peer_mac: str
    steering: CpuMapSteering | None = field(default=None, compare=False)
    """What moves native XDP to the SUT's CPUs where it would run on another; None where they take packets in anyway."""


@dataclass(frozen=True, slots=True)
class Station:
    """The machine that a router faces, where that has a network stack of its own: it can talk to the SUT by TCP."""

    host: Host
    port: Port
    """The station's interface; its peer is the hop."""
    cpu: int | None = None
    """The CPU of its programs and its packet work; None: as its scheduler likes."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A hop is a router of the SUT: forward traffic comes in at ``ingress`` and leaves by ``egress``."""

    host: Host
    ingress: Port
    egress: Port
    cpus: tuple[int, ...] = field(default=(), kw_only=True)
    """The host's CPUs that are the SUT's, where others are not; its programs stay on them."""
    station: Station | None = field(default=None, kw_only=True)
    """The station that sends forward traffic to the first hop; None where only a generator is there."""

    @property
    def ports(self) -> tuple[Port, Port]:
        return self.ingress, self.egress


@dataclass(frozen=True, slots=True)
class Networks:
    """Networks of the test traffic. Forward traffic goes from ``reverse`` to ``forward``, the other way round
    back."""

    forward: IPv4Network | IPv6Network
    reverse: IPv4Network | IPv6Network


NETWORKS: dict[int, Networks] = {
    4: Networks(IPv4Network("198.18.0.0/16"), IPv4Network("198.19.0.0/16")),
    6: Networks(IPv6Network("2001:2:0:1::/64"), IPv6Network("2001:2:0:2::/64")),
}
"""Networks of the blocks reserved for benchmarking: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180)."""


def segment(hop: int) -> IPv6Address:
    """The segment (RFC 8986: SID) of a hop, counted from 1 in the order of forward traffic."""
    return IPv6Address(f"fd00:211:5e9::{hop:x}")


def directions(family: int, names: tuple[str, str], first: Port, last: Port, hops: int = 1) -> tuple[Path, Path]:
    """The two directions of test traffic of an IP version through the SUT, for a generator.

    Args:
        names: the generator's ports.
        first: the SUT's port that the first of them faces.
        last: the other one.
    """
    by = tuple(map(segment, range(1, hops + 1))) if family == 6 else ()
    (ahead, back), (other_ahead, other_back) = (
        (NETWORKS[version].forward.network_address, NETWORKS[version].reverse.network_address)
        for version in (family, 10 - family)
    )
    return (
        Path(names[0], first.peer_mac, first.mac, back + 1, ahead, by, (other_back + 1, other_ahead)),
        Path(names[1], last.peer_mac, last.mac, ahead + 1, back, by[::-1], (other_ahead + 1, other_back)),
    )


class DataPath(ABC):
    """A way for packets through the SUT; its defaults are those of the kernel's own router."""

    def __init__(self, name: str, family: Literal[4, 6]) -> None:
        self.name = name
        self.family: Literal[4, 6] = family

    @property
    def mode(self) -> str:
        """How packets are carried, such as ``XDP native (veth)``; known once it is applied."""
        return "kernel"

    @property
    def by_kernel(self) -> bool:
        """Whether the kernel's own router forwards, so that its counters of forwarded packets show what got through."""
        return True

    @property
    def arrivals(self) -> Arrivals | None:
        """What counts the packets where they end at the SUT; None where they come back. Known once it is applied."""
        return None

    @property
    def loop(self) -> ClosedLoop | None:
        """What transfers over a closed loop; None where a generator offers a load. Known once it is applied."""
        return None

    @abstractmethod
    def sentence(self) -> str:
        """The mode, and why it is not a faster one, in words."""

    def describe(self) -> Mapping[str, str]:
        """What makes results comparable beyond the name: part of the fingerprint."""
        return {}

    def redirected(self) -> int | None:
        """Packets that programs on all hops have sent on, as they count; None when no program does, or it does not."""
        return None

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        """What a path of this name makes of a frame of forward (0) or reverse (1) traffic; None where it does not come
        back. Known once it is applied.
        """
        return None

    def replace(self) -> Mapping[str, int]:
        """Replace what the path was set up with, on the first hop, some times in a row.

        Returns the counters of `pdrgate.data_paths.replacing.replaced`. Raises TestbedError.
        """
        return {}

    def load_cost(self) -> Mapping[str, int]:
        """What loading the path's own eBPF program has cost: ``verified`` instructions, ``states``, ``jited`` bytes,
        ``memory`` of its maps; nothing where it runs none. Known once it is applied.
        """
        return {}

    def explain(self, packet: bytes) -> PacketOutcome | None:
        """What a program of the user's own makes of such a packet of forward traffic; None where nobody can say."""
        return None

    @property
    def of_user(self) -> bool:
        """Whether a program of the user's own forwards.

        Its frames need not be a router's. Only those of another build of it show what they should be.
        """
        return False

    @abstractmethod
    def apply(self, hops: Sequence[Hop]) -> None:
        """Set the path up on every hop, then read it back.

        Raises:
            TestbedError: a hop refuses, or does not forward as it was set up to.
        """

    @abstractmethod
    def restore(self) -> list[str]:
        """Undo what `apply` did, also after it failed half-way; sentences on what could not be done as expected."""
