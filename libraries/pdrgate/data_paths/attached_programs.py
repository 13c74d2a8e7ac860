"""Steps that put an eBPF program in the way of packets, at the SUT's ports by XDP, and what others share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pdrgate.bpf.prog_run import PacketOutcome, packet_outcome
from pdrgate.bpf.programs import (
    BpfMap,
    LoadedProgram,
    XdpMode,
    attach_xdp,
    counts,
    detach_xdp,
    driver,
    loaded,
    refusal,
)
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.contract import Hop, Port
from pdrgate.data_paths.steps import Step
from pdrgate.hosts.host import CommandError, Host
from pdrgate.record.fate import Fate
from pdrgate.values.errors import TestbedError

COUNTERS = "pdrgate_counts"
"""The map whose first element, summed over CPUs, is what a program has sent on; programs under test may lack it."""
_IS_COUNTERS = ("percpu_array", 4, 8)

THROUGH: tuple[Fate, ...] = ("forwarded", "delivered")
"""Fates of packets that must get through the programs at all ports, or through a path beneath them."""
WantedMode = Literal["auto", "native", "generic"]


class Sent:
    """What programs have sent on, as they count, and what loading them has cost."""

    def __init__(self) -> None:
        self._counters: list[tuple[Host, int]] = []
        self._uncounted = False
        self.load_cost: Mapping[str, int] = {}

    def add(self, program: LoadedProgram) -> None:
        """Count what a program sends on, where it has the map `COUNTERS`. Without it the total becomes unknown."""
        host, maps = program.host, program.maps
        self.load_cost = self.load_cost or program.cost.by_name()  # of several hops, the first one
        if is_ours(maps, COUNTERS, _IS_COUNTERS):
            self._counters.append((host, maps[COUNTERS].number))
        else:
            self._uncounted = True

    def total(self) -> int | None:
        """Packets that all programs counted; None where one does not count, or there is none."""
        if self._uncounted or not self._counters:
            return None
        return sum(counts(host, number)[0] for host, number in self._counters)

    def clear(self) -> None:
        """There are no programs any more."""
        self._counters.clear()
        self._uncounted = False
        self.load_cost = {}


def is_ours(maps: Mapping[str, BpfMap], name: str, layout: tuple[str, int, int]) -> bool:
    """Whether a map is pdrgate's, by its name, its kind and its sizes of key and value; else it is the program's."""
    found = maps.get(name)
    return found is not None and (found.kind, found.key_size, found.value_size) == layout


def sut_names(hop: Hop) -> dict[str, str]:
    """What maps may hold of a hop, by the names that `pdrgate.bpf.filling.SUT_NAMES` lists."""
    names = {}
    for name, port in (("in", hop.ingress), ("out", hop.egress)):
        names[f"@{name}.ifindex"] = str(interface_number(hop.host, port))
        names[f"@{name}.mac"] = port.mac
        names[f"@{name}.peer.mac"] = port.peer_mac
    return names


def verdict_on(hop: Hop, build: BpfBuild, packet: bytes) -> PacketOutcome | None:
    """What a build's program makes of a packet that comes in at a hop; None where nobody can say."""
    names = sut_names(hop)
    try:
        return packet_outcome(hop.host, build, names, packet, int(names["@in.ifindex"]))
    except TestbedError:
        return None


def program_ports(hops: Sequence[Hop], fate: Fate) -> Iterator[tuple[Hop, tuple[Port, ...]]]:
    """The ports of each hop that get a program: all, or, where packets need not go through, those at the SUT's edges.

    Both ends of a link between two hops would send a packet back for ever, and take a CPU with it.
    """
    edges = (hops[0].ingress, hops[-1].egress)
    for hop in hops:
        ports = tuple(port for port in hop.ports if fate in THROUGH or any(port is edge for edge in edges))
        if ports:
            yield hop, ports


class AttachedXdp(Step):
    """One XDP program at all ports, in one mode.

    Args:
        fate: of packets. Native XDP is steered in namespaces by a cpumap, which drops what its program sends back, and
            does not show how much waits in it. So ``auto`` chooses generic XDP there, unless packets are forwarded or
            delivered.
    """

    def __init__(
        self, hops: Sequence[Hop], build: BpfBuild, wanted: WantedMode, sent: Sent, fate: Fate = "forwarded"
    ) -> None:
        self._hops = hops
        self._ports = tuple(program_ports(hops, fate))
        self._build = build
        self._wanted: WantedMode = "generic" if build.setup.attach == "xdp-generic" else wanted
        self._sent = sent
        self.mode: XdpMode = "generic"
        self.driver = ""
        self.why = "asked for" if self._wanted == "generic" else ""
        """Why it is not a faster mode."""
        steered = any(port.steering for hop in hops for port in hop.ports)
        if self._wanted == "auto" and steered and fate not in THROUGH:
            self._wanted, self.why = "generic", "a cpumap can only forward"

    @property
    def words(self) -> str:
        return f"XDP {self.mode} ({self.driver})"

    @property
    def sentence(self) -> str:
        return f"XDP {self.mode} ({self.driver}{self.why and f': {self.why}'})"

    def apply(self) -> None:
        first = self._hops[0]
        self.driver = driver(first.host, first.ingress.interface)
        if self._wanted == "generic":
            self._attach_all("generic")
            return
        try:
            self._attach_all("native")
        except CommandError as error:
            if self._wanted == "native":
                raise TestbedError(
                    f"{error.host} has no native XDP for {self.driver}: {refusal(error)}; use mode auto or generic"
                ) from error
            self.why = refusal(error)
            while self._undo:
                self._undo.pop()()
            self._sent.clear()
            self._attach_all("generic")

    def _attach_all(self, mode: XdpMode) -> None:
        for hop, all_ports in self._ports:
            steered = [port for port in all_ports if port.steering is not None and mode == "native"]
            for kind, ports in (("xdp/cpumap", steered), ("xdp", [one for one in all_ports if one not in steered])):
                if not ports:
                    continue
                # Both ports of a hop have one program and its maps: what one of them learns the other knows.
                with loaded(hop.host, self._build, kind, sut_names(hop)) as program:
                    self._undo.append(program.leave)
                    for port in ports:
                        self._attach(program, port, mode)
                    self._sent.add(program)
        self.mode = mode

    def _attach(self, program: LoadedProgram, port: Port, mode: XdpMode) -> None:
        host = program.host
        if port.steering is not None and mode == "native":
            port.steering.begin(program, port.interface)
            self._undo.append(port.steering.end)
        else:
            attach_xdp(program, port.interface, mode)
            self._undo.append(lambda: detach_xdp(host, port.interface, mode))


def interface_number(host: Host, port: Port) -> int:
    """The number of a port's interface on its host. Raises TestbedError."""
    return int(host.read(f"/sys/class/net/{port.interface}/ifindex"))
