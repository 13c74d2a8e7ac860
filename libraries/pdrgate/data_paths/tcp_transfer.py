"""The end host and TCP: the SUT and the station that it faces talk to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pdrgate.data_paths.contract import Hop, Station
from pdrgate.data_paths.iperf import Ends, Iperf
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import Host
from pdrgate.knobs import ChangeLog, KnobSet, RootQdisc, offloads, rps_knobs, sysctl

_SEND_BUFFER = 64 << 20
"""Bytes that the senders' buffers may hold, so that windows and not they decide."""
_OVERHEAD = 2
"""Times the window that a receiver's buffer holds: packets take more memory than their bytes."""
_SCALE = 16
"""Bits of a window that a segment tells; more are scaled."""
_PATH_LIMIT = 100_000
"""Packets under way on a path with delay, at most."""


@dataclass(frozen=True, slots=True)
class _Receiver:
    """Whose window decides: its host, the interface, and the address that it faces."""

    host: Host
    interface: str
    to: str


class TcpTransfer:
    """TCP between the hop where traffic comes in and its station; further hops have nothing to do.

    The window is that of the receiver's route and twice that of its buffer, which does not grow by itself. Kernels have
    forgotten the route's once the buffer tells them otherwise (6.18 does); windows of 64 KiB times a power of two are
    exact all the same, for no segment can tell a larger one at the scale that they were begun with. A path delay, and
    loss, are netem's, at the station's end where its kernel has that.

    Args:
        changes: where what is set is noted first; addresses and routes the testbed knows of.
    """

    def __init__(self, family: Literal[4, 6], streams: TcpStreams, changes: ChangeLog | None = None) -> None:
        self._network = KernelNetwork(family)
        self._streams = streams
        self._knobs = KnobSet(changes)
        self._loop: Iperf | None = None
        self._window = 0
        """That is set, bytes."""

    @property
    def name(self) -> str:
        return "tcp-transfer" if self.family == 4 else "tcp6-transfer"

    @property
    def family(self) -> Literal[4, 6]:
        return self._network.family

    @property
    def mode(self) -> str:
        return "sockets"

    @property
    def by_kernel(self) -> bool:
        return False

    @property
    def arrivals(self) -> None:
        return None

    @property
    def loop(self) -> Iperf:
        """What transfers over it. Raises TestbedError when it is not applied."""
        if self._loop is None:
            raise TestbedError(f"{self.name} is not set up")
        return self._loop

    def sentence(self) -> str:
        return f"TCP: {self._streams}"

    def describe(self) -> Mapping[str, str]:
        return {}

    def redirected(self) -> int | None:
        return None

    def forwarded(self, frame: bytes, direction: int) -> None:
        return None

    @property
    def of_user(self) -> bool:
        return False

    def apply(self, hops: Sequence[Hop]) -> None:
        hop = hops[0] if hops else None
        if hop is None or hop.station is None:
            where = hop.host.name if hop is not None else "the testbed"
            raise TestbedError(
                f"nobody at the other end of {where} talks TCP; name a host that does as station in the testbed file, "
                "or use one of kind local-netns or local-vm"
            )
        station, network = hop.station, self._network
        ingress = replace(hop.ingress, peer_mac=station.port.mac)
        for host, port, side in ((hop.host, ingress, 2), (station.host, station.port, 1)):
            if self.family == 6:
                self._knobs.apply(host, sysctl(f"net/ipv6/conf/{port.interface}/disable_ipv6", 0))
            network.connect(host, port, link=0, side=side)
            for name, value in (
                ("net/ipv4/tcp_wmem", f"4096 {1 << 20} {_SEND_BUFFER}"),
                ("net/ipv4/tcp_moderate_rcvbuf", 0),
                # What an earlier transfer found out is none of the next one's business.
                ("net/ipv4/tcp_no_metrics_save", 1),
            ):
                self._knobs.apply(host, sysctl(name, value))
            # Frames as on a wire, and not what one of 64 KiB would be in memory.
            if not _has_wire(host, port.interface):
                self._knobs.apply(host, offloads(port.interface, {"tso": False}), missing="skip")
            if port.steering is not None:
                # The sender's CPU would put the segments together that the SUT's is to take in.
                self._knobs.apply(host, offloads(port.interface, {"gro": False}), missing="skip")
        if station.cpu is not None:
            # Else what the SUT sends is taken in, and answered, on the SUT's CPU.
            for knob in rps_knobs(station.host, station.port.interface, (station.cpu,)):
                self._knobs.apply(station.host, knob, missing="skip")
        self._lengthen(hop, station)
        ends = Ends(network.address(0, 2), network.address(0, 1), hop.cpus[0] if hop.cpus else None)
        if self._streams.sends:
            receiver = _Receiver(station.host, station.port.interface, ends.sut)
        else:
            receiver = _Receiver(hop.host, hop.ingress.interface, ends.station)

        def advertise(window: int) -> None:
            self._advertise(receiver, window)

        self._loop = Iperf(hop.host, station, ends, self._streams, advertise)

    def _advertise(self, receiver: _Receiver, window: int) -> None:
        if window == self._window:
            return
        told = window - (window >> _SCALE)
        route = (receiver.to, "dev", receiver.interface)
        command = ("route", "replace", *route, "window", str(told))
        if self._window:
            receiver.host.run("ip", f"-{self.family}", *command)
        else:
            self._network.run(receiver.host, command, ("route", "delete", *route))
        self._window = window
        buffer = _OVERHEAD * told
        self._knobs.apply(receiver.host, sysctl("net/ipv4/tcp_rmem", f"4096 {buffer} {buffer}"))

    def restore(self) -> list[str]:
        told = []
        self._window = 0
        loop, self._loop = self._loop, None
        try:
            if loop is not None:
                loop.close()
        except TestbedError as error:
            told.append(str(error))
        # Addresses first: those of IPv6 go with it.
        return told + self._network.restore() + self._knobs.restore()

    def _lengthen(self, hop: Hop, station: Station) -> None:
        """Give the path its delay and its loss.

        The delay may be at either end. Loss is the senders' packets': it must be at theirs.
        """
        streams = self._streams
        if not streams.delay and not streams.loss:
            return
        netem = ["netem", "limit", str(_PATH_LIMIT)]
        netem += ["delay", f"{round(streams.delay * 1e6)}us"] if streams.delay else []
        netem += ["loss", f"{100 * streams.loss:g}%"] if streams.loss else []
        at_station = station.host, station.port.interface
        at_sut = hop.host, hop.ingress.interface
        places = [at_station, at_sut] if not streams.loss else [at_sut if streams.sends else at_station]
        why = ""
        for host, interface in places:
            try:
                self._knobs.apply(host, RootQdisc(interface, " ".join(netem)))
            except TestbedError as error:
                why = str(error)
                continue
            return
        hosts = " and ".join(host.name for host, _ in places)
        what = "loss" if streams.loss else "delay"
        raise TestbedError(
            f"{hosts} cannot give the path {what}: the kernel has no netem (sch_netem; {why}); measure without, or "
            "where the kernel has it"
        )


def _has_wire(host: Host, interface: str) -> bool:
    """Whether a card sends what comes out of an interface: then large segments are cut there."""
    driver = host.run("readlink", f"/sys/class/net/{interface}/device/driver", check=False).stdout.strip()
    return bool(driver) and not driver.endswith("/virtio_net")
