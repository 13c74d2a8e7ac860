"""Checks of the SUT's ports: links, and how far packets have to go inside the machine."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.data_paths.catalogue import Hop
from pdrgate.doctor.finding import Check, Outcome, check_named, fail, ok, unknown, warn
from pdrgate.doctor.here import node_of
from pdrgate.hosts.cpus import format_cpu_list
from pdrgate.hosts.host import read_files
from pdrgate.observers.environment import Environment, PortEnvironment

_ERRORS = ("rx_errors", "tx_errors", "rx_crc_errors")


def links(hop: Hop, ports: Sequence[PortEnvironment] = (), number: int | None = None) -> Check:
    """Whether both ports are up, at one speed, and without errors since the machine was started.

    Args:
        ports: what is known of them.
        number: of the hop, where there are several.
    """
    interfaces = (hop.ingress.interface, hop.egress.interface)

    def look() -> Outcome:
        words, faults, remedies = [], [], []
        for interface in interfaces:
            (link,) = hop.host.run_json("ip", "-j", "link", "show", "dev", interface)
            flags = link.get("flags", ())
            if "UP" not in flags:
                faults.append(f"{interface} is down")
                remedies.append(f"ip link set {interface} up")
            elif "LOWER_UP" not in flags:
                faults.append(f"{interface} has no link")
                remedies.append(f"check the cable of {interface} and the port at its other end")
            words.append(interface)
        if faults:
            return fail(", ".join(faults), "; ".join(remedies))
        # An interface that is plugged in nowhere reports a speed that is made up.
        speeds = {port.interface: port.speed for port in ports if port.speed is not None and port.bus is not None}
        shown = ", ".join(f"{name} {speeds[name]} Mbit/s" if name in speeds else name for name in words)
        if len(set(speeds.values())) > 1:
            return warn(f"{shown}: the slower link is the limit", "see ethtool for what the far ends offer")
        paths = [f"/sys/class/net/{interface}/statistics/{error}" for interface in interfaces for error in _ERRORS]
        counts = {path: int(text) for path, text in read_files(hop.host, paths).items()}
        wrong = [f"{path.split('/')[4]} {path.rpartition('/')[2]} {count}" for path, count in counts.items() if count]
        if wrong:
            return warn(f"{shown}: up, with errors since the start: {', '.join(wrong)}", "see ethtool -S for which")
        return ok(f"{shown}: up, without errors")

    return Check("links" if number is None else f"links of hop {number}", look)


@check_named("NUMA")
def numa(environment: Environment, cpus: Sequence[int]) -> Outcome:
    """Whether the ports are plugged in where the SUT's CPUs are."""
    if environment.numa_nodes is None:
        return unknown("the kernel reports no NUMA nodes")
    if len(environment.numa_nodes) == 1:
        return ok("the machine has one NUMA node")
    placed = [port for port in environment.ports if port.numa_node is not None]
    if not placed:
        return unknown("the kernel does not report which NUMA node the ports are plugged in at")
    own = {node_of(environment, cpu) for cpu in cpus}
    words = ", ".join(f"{port.interface} at node {port.numa_node}" for port in placed)
    if any(own != {str(port.numa_node)} for port in placed):
        near = environment.numa_nodes.get(str(placed[0].numa_node), "")
        return warn(
            f"{words}, and the SUT's CPU {format_cpu_list(cpus)} at node {', '.join(sorted(map(str, own)))}",
            f"choose of CPUs {near} as sut.cpus in the testbed file, or plug the card in elsewhere",
        )
    return ok(f"{words}, as the SUT's CPUs")
