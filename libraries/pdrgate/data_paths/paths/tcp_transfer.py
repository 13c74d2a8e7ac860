"""The end host and TCP: the SUT and the station that it faces talk to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pdrgate.data_paths.contract import Hop, Port, Station
from pdrgate.data_paths.iperf import Ends, Iperf
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, routes_beside
from pdrgate.data_paths.steps import Command, KnobSetting, Started, Step, SteppedPath
from pdrgate.data_paths.tcp_requests import TcpRequests
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.hosts.host import Host
from pdrgate.knobs import ChangeLog, Knob, Missing, RootQdisc, each, offloads, rps, sysctl
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

_SEND_BUFFER = 64 << 20
"""Bytes that the senders' buffers may hold, so that windows and not they decide."""
_OVERHEAD = 2
"""Times the window that a receiver's buffer holds: packets take more memory than their bytes."""
_SCALE = 16
"""Bits of the window field of a segment. Larger windows are scaled."""
_PATH_LIMIT = 100_000
_TABLE = "netdev pdrgate_loss"
"""Packets under way on a path with delay, at most."""


@dataclass(frozen=True, slots=True)
class _Receiver:
    """A receiver, whose window decides: its host, the interface, and the address that it faces."""

    host: Host
    interface: str
    to: str


class TcpTransfer(SteppedPath):
    """TCP between the hop where traffic comes in and its station; further hops have nothing to do.

    The window is set on the receiver's route. The receiver's buffer is twice as large, and does not grow by itself. A
    kernel may forget the route's window once a buffer is set (6.18 does). Windows of 64 KiB times a power of two are
    exact all the same, for a segment has no room for a larger one at the scale that they were begun with. A path delay,
    and loss, are netem's, at the station's end where its kernel has that. What a SUT of a run's own sends is lost where
    the station takes it, after a fixed number of frames.

    Args:
        changes: where what is set is noted first; addresses and routes the testbed knows of.
    """

    def __init__(self, family: Literal[4, 6], streams: TcpStreams, changes: ChangeLog | None = None) -> None:
        super().__init__(_name(family), family)
        self._network = KernelNetwork(family)
        self._streams = streams
        self._changes = changes
        self._started: Started[Iperf | TcpRequests] | None = None
        self._window = 0
        """Window that is set now, bytes; 0 where none is."""

    @property
    def mode(self) -> str:
        return "sockets"

    @property
    def by_kernel(self) -> bool:
        return False

    @property
    def loop(self) -> Iperf | TcpRequests:
        """What transfers over it. Raises TestbedError when it is not applied."""
        if self._started is None or self._started.program is None:
            raise TestbedError(f"{self.name} is not set up")
        return self._started.program

    def sentence(self) -> str:
        return f"TCP: {self._streams}"

    def restore(self) -> list[str]:
        self._window = 0
        return super().restore()

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        hop = hops[0] if hops else None
        if hop is None or hop.station is None:
            where = hop.host.name if hop is not None else "the testbed"
            raise TestbedError(
                f"nobody at the other end of {where} talks TCP; name a host that does as station in the testbed file, "
                "or use one of kind local-netns or local-vm"
            )
        station, network = hop.station, self._network
        yield from self._end(hop.host, replace(hop.ingress, peer_mac=station.port.mac), side=2)
        yield from self._end(station.host, station.port, side=1)
        if station.cpu is not None:
            # Else what the SUT sends is taken in, and answered, on the SUT's CPU.
            steered = rps(station.port.interface, each((station.cpu,)))
            yield self._setting(station.host, steered, missing="skip")
        # What is lost where the station takes it ends with that: nobody puts it back who finds it there.
        if fixed := self._loses_at(station):
            yield _every_nth_lost(station, round(1 / self._streams.loss))
        streams = replace(self._streams, loss=0.0) if fixed else self._streams
        if streams.delay or streams.loss:
            yield _Lengthened(hop, station, streams, self._changes)
        ends = Ends(network.address(0, 2), network.address(0, 1), hop.cpus[0] if hop.cpus else None)
        if self._streams.sends:
            receiver = _Receiver(station.host, station.port.interface, ends.sut)
        else:
            receiver = _Receiver(hop.host, hop.ingress.interface, ends.station)

        def advertise(window: int) -> None:
            if self._streams.buffers == "fixed":
                self._advertise(receiver, window)

        loop: type[Iperf] | type[TcpRequests] = TcpRequests if self._streams.request else Iperf
        self._started = Started(lambda: loop(hop.host, station, ends, self._streams, advertise))
        yield self._started

    def _loses_at(self, station: Station) -> bool:
        """Whether the station loses frames of the SUT's by their number."""
        mine = self._streams.loss and self._streams.sends and self._changes is None
        return bool(mine) and station.host.run("nft", "-v", check=False).exit_code == 0

    def _end(self, host: Host, port: Port, side: int) -> Iterator[Step]:
        """An end of the connection, on ``host``."""
        if self.family == 6:
            yield self._setting(host, sysctl(f"net/ipv6/conf/{port.interface}/disable_ipv6", 0))
        yield from self._network.connected(host, port, link=0, side=side)
        # What an earlier transfer found out is none of the next one's business.
        yield self._setting(host, sysctl("net/ipv4/tcp_no_metrics_save", 1))
        if self._streams.buffers == "fixed":
            yield self._setting(host, sysctl("net/ipv4/tcp_wmem", f"4096 {1 << 20} {_SEND_BUFFER}"))
            yield self._setting(host, sysctl("net/ipv4/tcp_moderate_rcvbuf", 0))
        # Frames as on a wire, and not what one of 64 KiB would be in memory.
        if not _has_wire(host, port.interface):
            yield self._setting(host, offloads(port.interface, {"tso": False}), missing="skip")
        if port.steering is not None:
            # The sender's CPU would put the segments together that the SUT's is to take in.
            yield self._setting(host, offloads(port.interface, {"gro": False}), missing="skip")

    def _setting(self, host: Host, knob: Knob, missing: Missing = "error") -> KnobSetting:
        return KnobSetting(host, knob, missing=missing, changes=self._changes)

    def _advertise(self, receiver: _Receiver, window: int) -> None:
        if window == self._window:
            return
        advertised = window - (window >> _SCALE)
        route = (receiver.to, "dev", receiver.interface)
        replaced = self._network.ip(
            receiver.host, ("route", "replace", *route, "window", str(advertised)), ("route", "delete", *route)
        )
        if self._window:
            replaced.apply()  # the first one's opposite deletes this one
        else:
            self._take(replaced)
        self._window = window
        buffer = _OVERHEAD * advertised
        self._take(self._setting(receiver.host, sysctl("net/ipv4/tcp_rmem", f"4096 {buffer} {buffer}")))


class _Lengthened(Step):
    """The path has its delay and its loss.

    The delay may be at either end. Loss is the senders' packets': it must be at theirs.
    """

    def __init__(self, hop: Hop, station: Station, streams: TcpStreams, changes: ChangeLog | None) -> None:
        netem = ["netem", "limit", str(_PATH_LIMIT)]
        netem += ["delay", f"{round(streams.delay * 1e6)}us"] if streams.delay else []
        netem += ["loss", f"{100 * streams.loss:g}%"] if streams.loss else []
        self._qdisc = " ".join(netem)
        self._what = "loss" if streams.loss else "delay"
        at_station = station.host, station.port.interface
        at_sut = hop.host, hop.ingress.interface
        self._places = [at_station, at_sut] if not streams.loss else [at_sut if streams.sends else at_station]
        self._changes = changes
        self._setting: KnobSetting | None = None

    def apply(self) -> None:
        why = ""
        for host, interface in self._places:
            setting = KnobSetting(host, RootQdisc(interface, self._qdisc), changes=self._changes)
            try:
                setting.apply()
            except TestbedError as error:
                why = str(error)
                continue
            self._setting = setting
            return
        hosts = " and ".join(host.name for host, _ in self._places)
        raise TestbedError(
            f"{hosts} cannot give the path {self._what}: the kernel has no netem (sch_netem; {why}); measure without, "
            "or where the kernel has it"
        )

    def undo(self) -> Sequence[str]:
        return self._setting.undo() if self._setting is not None else ()


def _every_nth_lost(station: Station, every: int) -> Command:
    """Loss of each n-th frame that comes to the station, by nftables.

    The first frame is not lost: a connection that begins anew for want of an answer takes a second. Frames are counted
    as on a wire. A sender's queue has large segments instead, of which a part would be lost.
    """
    rules = (
        f"add table {_TABLE}; "
        f"add chain {_TABLE} coming {{ type filter hook ingress device {station.port.interface} priority 0; }}; "
        f"add rule {_TABLE} coming numgen inc mod {every} {every - 1} drop"
    )
    return Command(station.host, ("nft", rules), ("nft", f"delete table {_TABLE}"))


def _has_wire(host: Host, interface: str) -> bool:
    """Whether a card sends what comes out of an interface: then large segments are cut there."""
    driver = host.run("readlink", f"/sys/class/net/{interface}/device/driver", check=False).stdout.strip()
    return bool(driver) and not driver.endswith("/virtio_net")


def _name(family: Literal[4, 6]) -> str:
    return "tcp-transfer" if family == 4 else "tcp6-transfer"


def _description(family: Literal[4, 6]) -> PathDescription:
    return PathDescription(
        name=_name(family),
        title="TCP" if family == 4 else "TCP over IPv6",
        help=f"Programs move bytes by TCP over IPv{family}: no PDR, see `Measure Transfers`.",
        make=lambda asked: TcpTransfer(family, asked.streams, asked.changes),
        frames=Frames(family),
        fate="delivered",
        loop="closed",
        slowdowns=(EGRESS_FILTER, routes_beside(family)),
    )


PATHS = (_description(4), _description(6))
