"""Everything on a host that knobs can turn, to compare what was before with what is after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pdrgate.hosts.host import Host
from pdrgate.knobs.cpu import Governor, Smt, Turbo, idle_latency
from pdrgate.knobs.ethtool import EthtoolSettings
from pdrgate.knobs.file_knob import FileKnob, device_attribute, sysctl
from pdrgate.knobs.file_set_knob import read_set
from pdrgate.knobs.firewall import NO_RULES, FirewallRules
from pdrgate.knobs.interrupts import InterruptAffinity
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.knob import Knob, state_text
from pdrgate.knobs.neighbours import static_neighbours
from pdrgate.knobs.offloads import EthtoolFeatures
from pdrgate.knobs.qdisc import RootQdisc
from pdrgate.knobs.queues import QueueFiles, rfs_off, rps_off
from pdrgate.knobs.rss import FlowHash, IndirectionTable
from pdrgate.values.errors import TestbedError

SYSCTLS = (
    "net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.dev_weight",
    "net.core.dev_weight_rx_bias", "net.core.dev_weight_tx_bias", "net.core.gro_normal_batch",
    "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog",
    "net.core.netdev_tstamp_prequeue", "net.core.rmem_default", "net.core.rmem_max",
    "net.core.rps_sock_flow_entries", "net.core.skb_defer_max", "net.core.wmem_default", "net.core.wmem_max",
    "net.ipv4.conf.all.forwarding", "net.ipv4.conf.all.rp_filter", "net.ipv4.conf.default.forwarding",
    "net.ipv4.fib_multipath_hash_policy", "net.ipv4.ip_default_ttl", "net.ipv4.ip_early_demux", "net.ipv4.ip_forward",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.udp_rmem_min", "net.ipv4.udp_wmem_min",
    "net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.all.forwarding", "net.ipv6.conf.default.disable_ipv6",
    "net.ipv6.conf.default.forwarding", "net.ipv6.fib_multipath_hash_policy", "net.ipv6.route.max_size",
    "net.netfilter.nf_conntrack_max", "vm.zone_reclaim_mode", "kernel.numa_balancing", "kernel.nmi_watchdog",
    "kernel.watchdog",
)  # fmt: skip
"""Those that change how packets are forwarded, or how evenly. Any other that a testbed file sets is a knob of its own,
to be handed over as such."""

_OF_INTERFACES = ("net/ipv4/conf/{}/forwarding", "net/ipv6/conf/{}/forwarding", "net/ipv6/conf/{}/disable_ipv6")
_ATTRIBUTES = ("mtu", "tx_queue_len", "gro_flush_timeout", "napi_defer_hard_irqs", "threaded")
_FLOWS = ("tcp4", "udp4", "tcp6", "udp6")
_NICE = 16
"""Behind the name, which may itself hold blanks, nice is the 17th field (proc(5): the 19th of all)."""
_THREADS = (
    'for s in /proc/[0-9]*/stat; do read -r line <"$s" && case $line in *"(ksoftirqd/"*) echo "$line";; esac; done '
    "2>/dev/null"
)


def snapshot(host: Host, ports: Sequence[str], also: Iterable[Knob] = ()) -> Mapping[str, str]:
    """The states of all knobs of a host with these ports, by setting; without those that it lacks or does not tell.

    Args:
        host: what is asked; nothing there is changed.
        ports: its interfaces that matter.
        also: further knobs, such as those of a testbed file; their wanted values do not matter.

    Raises:
        HostError: the host does not answer at all.
    """
    host.run("true")
    knobs = (*_of_host(), *(knob for port in ports for knob in _of_port(port)), *also)
    # Fifty files, by one command: over SSH each would be a journey of its own.
    paths = {knob.path: knob.path for knob in knobs if isinstance(knob, FileKnob)}
    found = read_set(host, paths)
    for knob in knobs:
        if not isinstance(knob, FileKnob) and (state := _told(host, knob)) is not None:
            found[_name(knob)] = state
    for port in ports:
        if host.exists(f"/sys/class/net/{port}"):
            found[f"neighbours {port}"] = state_text(static_neighbours(host, port))
    for line in host.run("sh", "-c", _THREADS, check=False).stdout.splitlines():
        head, _, fields = line.rpartition(")")
        found[f"kernel-thread-nice {head.partition('(')[2]}"] = fields.split()[_NICE]
    return dict(sorted(found.items()))


def setting(host: Host, port: str, knob: Knob) -> tuple[str, str | None]:
    """What `snapshot` calls a port's setting, and its state now; without a look at all the others."""
    name = _name(knob)
    return name, _told(host, next(one for one in _of_port(port) if _name(one) == name))


def _told(host: Host, knob: Knob) -> str | None:
    try:
        return None if knob.gone(host) else knob.read(host) or None
    except TestbedError:
        # The device has no such thing, or the host no such tool: then pdrgate cannot have changed it either.
        return None


def _of_host() -> Iterator[Knob]:
    yield from (Governor(""), idle_latency(0), Turbo(""), Smt(""), Irqbalance("off"), FirewallRules(NO_RULES))
    yield from (sysctl(name, 0) for name in SYSCTLS)


def _of_port(port: str) -> Iterator[Knob]:
    for family in ("rings", "channels", "coalescing", "pause"):
        yield EthtoolSettings(port, family, "")
    yield EthtoolFeatures(port, "")
    yield IndirectionTable(port, "default")
    yield from (FlowHash(port, f"{flow}=none") for flow in _FLOWS)
    yield from (device_attribute(port, name, 0) for name in _ATTRIBUTES)
    yield RootQdisc(port, "")
    yield from (rps_off(port), QueueFiles(port, "xps_cpus", "each none"), rfs_off(port))
    yield InterruptAffinity(port, "each none")
    yield from (sysctl(name.format(port), 0) for name in _OF_INTERFACES)


def _name(knob: Knob) -> str:
    name = " ".join(knob.to_record().values())
    return f"{name} {knob.value.partition('=')[0]}" if isinstance(knob, FlowHash) else name
