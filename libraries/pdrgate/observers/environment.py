"""The environment a measurement was made in: what must be known of a host to compare its results with others."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pdrgate.hosts.cpus import parse_cpu_list
from pdrgate.hosts.host import Host, split_files
from pdrgate.observers.build_options import TELL_OPTIONS, told_options

T = TypeVar("T")

MACHINE_SYSCTLS = (
    "net.core.bpf_jit_enable", "net.core.bpf_jit_harden", "net.core.busy_poll", "net.core.dev_weight",
    "net.core.dev_weight_rx_bias", "net.core.gro_normal_batch", "net.core.netdev_budget",
    "net.core.netdev_budget_usecs", "net.core.netdev_tstamp_prequeue", "net.core.rps_sock_flow_entries",
    "kernel.nmi_watchdog", "kernel.numa_balancing", "kernel.sched_rt_runtime_us", "kernel.timer_migration",
)  # fmt: skip
"""Settings of a whole machine that change what a packet costs. The backlog is not one: scenarios set it."""

NETWORK_SYSCTLS = (
    "net.ipv4.conf.all.rp_filter", "net.ipv4.fib_multipath_hash_policy", "net.ipv4.ip_early_demux",
    "net.ipv6.fib_multipath_hash_policy", "net.netfilter.nf_conntrack_max",
)  # fmt: skip
"""Settings that each network namespace has for itself; the last one is there only while connections are tracked."""

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
_CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NO_TURBO, _BOOST = f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"
_IDLE_DRIVER = f"{_CPU}/cpuidle/current_driver"
_VULNERABILITIES = f"{_CPU}/vulnerabilities/"
_SYSCTLS = "/proc/sys/"


def _sysctl_path(name: str) -> str:
    return _SYSCTLS + name.replace(".", "/")


_SCRIPT = f"""
printf '==> uname <==\\n'; uname -r; uname -v; uname -m
config() {{
    if [ -r /proc/config.gz ]; then gzip -dc /proc/config.gz | "$@"
    elif [ -r "/boot/config-$(uname -r)" ]; then "$@" <"/boot/config-$(uname -r)"; fi
}}
options() {{ {TELL_OPTIONS}; }}
printf '\\n==> config <==\\n'; config sha256sum
printf '\\n==> config options <==\\n'; config options
printf '\\n'
tail -v -n +1 /proc/cmdline /proc/cpuinfo /proc/meminfo /etc/os-release {_BOOT_ID} {_CLOCKSOURCE} \
    {_CPU}/online {_CPU}/smt/active {_NO_TURBO} {_BOOST} {_IDLE_DRIVER} {_VULNERABILITIES}* \
    {_CPU}/cpu[0-9]*/cpufreq/scaling_governor {_CPU}/cpu[0-9]*/cpufreq/scaling_driver {_NODE}/node[0-9]*/cpulist \
    {" ".join(map(_sysctl_path, MACHINE_SYSCTLS))}
"""
_NETWORK_SCRIPT = f"""
printf '\\n'
tail -v -n +1 {" ".join(map(_sysctl_path, NETWORK_SYSCTLS))}
for port; do
    tail -v -n +1 "/sys/class/net/$port/mtu" "/sys/class/net/$port/speed" "/sys/class/net/$port/device/numa_node"
    printf '\\n==> ethtool -i %s <==\\n' "$port"; ethtool -i "$port"
    printf '\\n==> ethtool -k %s <==\\n' "$port"; ethtool -k "$port"
    printf '\\n'
done
"""


@dataclass(frozen=True, slots=True)
class PortEnvironment:
    """A port of the SUT. What driver and kernel do not tell is None."""

    interface: str
    driver: str | None = None
    driver_version: str | None = None
    """The driver's version; that of a driver that comes with the kernel is the kernel's release."""
    firmware: str | None = None
    bus: str | None = None
    """The bus address that it is plugged in at, such as ``0000:3b:00.0``."""
    numa_node: int | None = None
    mtu: int | None = None
    """Bytes."""
    speed: int | None = None
    """Mbit/s; None while the link is down, too."""
    offloads: tuple[str, ...] | None = None
    """The features that are on, by ethtool's names."""

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, fit for JSON."""
        return {**dataclasses.asdict(self), "offloads": None if self.offloads is None else list(self.offloads)}


@dataclass(frozen=True, slots=True)
class Environment:
    """A host at one time. What the host does not tell is None; nothing here is guessed."""

    kernel_release: str | None = None
    """The release, as ``uname -r`` tells it."""
    kernel_version: str | None = None
    """Build number and date, as ``uname -v`` tells them."""
    architecture: str | None = None
    config_sha256: str | None = None
    """The digest of the kernel's configuration: the text that it keeps in itself, /proc/config.gz, else that in
    /boot."""
    config_options: dict[str, str] | None = None
    """Options of the configuration that matter to packets and are set, see `pdrgate.observers.build_options`."""
    cmdline: str | None = None
    mitigations: dict[str, str] | None = None
    """What the kernel does about each vulnerability, in this kernel's own words."""
    cpu_model: str | None = None
    cpus: int | None = None
    """CPUs online."""
    governor: str | None = None
    """Frequency governor; several, sorted, where the CPUs differ."""
    smt: bool | None = None
    """Whether threads of one core are in use."""
    hypervisor: bool | None = None
    """Whether the CPU says that it is virtual; only x86 tells."""
    memory_bytes: int | None = None
    distribution: str | None = None
    boot_id: str | None = None
    microcode: str | None = None
    """Revision of the CPUs' microcode; several, sorted, where the CPUs differ."""
    frequency_driver: str | None = None
    """What sets the frequency, such as intel_pstate; several, sorted, where the CPUs differ."""
    turbo: bool | None = None
    """Whether CPUs may go beyond their nominal frequency."""
    idle_driver: str | None = None
    """What puts idle CPUs to sleep."""
    clocksource: str | None = None
    numa_nodes: dict[str, str] | None = None
    """CPUs of each NUMA node as a list, by the node's number."""
    sysctls: dict[str, str] | None = None
    """Values of those of `MACHINE_SYSCTLS` and `NETWORK_SYSCTLS` that the kernel has."""
    ports: tuple[PortEnvironment, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, fit for JSON."""
        return {**dataclasses.asdict(self), "ports": [port.to_dict() for port in self.ports]}


def capture_environment(host: Host, interfaces: Iterable[str] = (), network: Host | None = None) -> Environment:
    """Ask a machine, and the network namespace that has the ports, for their environment: a command each.

    Args:
        host: the machine.
        interfaces: the SUT's ports.
        network: the host that has the interfaces, where that is only a part of the machine.

    Raises:
        HostError: a host cannot be asked at all; what it does not tell is None.
    """
    ports = tuple(interfaces)
    if network is None:
        return parse_environment(_told(host, _SCRIPT + _NETWORK_SCRIPT, ports), ports)
    machine = parse_environment(_told(host, _SCRIPT))
    inside = parse_environment(_told(network, _NETWORK_SCRIPT, ports), ports)
    sysctls = {**(machine.sysctls or {}), **(inside.sysctls or {})}
    return dataclasses.replace(machine, sysctls=sysctls or None, ports=inside.ports)


def _told(host: Host, script: str, ports: Iterable[str] = ()) -> str:
    return host.run("sh", "-c", script, "sh", *ports, check=False).stdout


def parse_environment(text: str, interfaces: Iterable[str] = ()) -> Environment:
    """The environment told by files and answers headed as `tail -v` does; unreadable parts are None."""
    files = split_files(text)

    def told(path: str, read: Callable[[str], T]) -> T | None:
        return _read(files, path, read)

    mitigations = {
        path.removeprefix(_VULNERABILITIES): value.strip()
        for path, value in files.items()
        if path.startswith(_VULNERABILITIES)
    }
    nodes = {
        match[1]: value.strip()
        for path, value in files.items()
        if (match := re.fullmatch(rf"{_NODE}/node(\d+)/cpulist", path)) and value.strip()
    }
    sysctls = {
        name: " ".join(files[path].split())
        for name in (*MACHINE_SYSCTLS, *NETWORK_SYSCTLS)
        if files.get(path := _sysctl_path(name), "").strip()
    }
    turbo = told(_NO_TURBO, lambda off: not int(off))
    return Environment(
        kernel_release=told("uname", lambda uname: uname.splitlines()[0]),
        kernel_version=told("uname", lambda uname: uname.splitlines()[1]),
        architecture=told("uname", lambda uname: uname.splitlines()[2]),
        config_sha256=told("config", lambda config: _matched(r"([0-9a-f]{64})", config)),
        config_options=told("config options", told_options),
        cmdline=told("/proc/cmdline", str.strip),
        mitigations=mitigations or None,
        cpu_model=told("/proc/cpuinfo", lambda info: _matched(r"(?m)^model name\s*: (.+)", info)),
        cpus=told(f"{_CPU}/online", lambda online: len(parse_cpu_list(online))),
        governor=_each(files, "/scaling_governor"),
        smt=told(f"{_CPU}/smt/active", lambda active: bool(int(active))),
        hypervisor=told("/proc/cpuinfo", lambda info: "hypervisor" in _matched(r"(?m)^flags\s*: (.+)", info).split()),
        memory_bytes=told("/proc/meminfo", lambda info: int(_matched(r"MemTotal:\s+(\d+) kB", info)) * 1024),
        distribution=told("/etc/os-release", lambda release: _matched(r'(?m)^PRETTY_NAME="?([^"\n]+)', release)),
        boot_id=told(_BOOT_ID, str.strip),
        microcode=told("/proc/cpuinfo", lambda info: _joined(re.findall(r"(?m)^microcode\s*: (.+)", info))),
        frequency_driver=_each(files, "/scaling_driver"),
        turbo=told(_BOOST, lambda on: bool(int(on))) if turbo is None else turbo,
        idle_driver=told(_IDLE_DRIVER, str.strip),
        clocksource=told(_CLOCKSOURCE, str.strip),
        numa_nodes=nodes or None,
        sysctls=sysctls or None,
        ports=tuple(_port(files, interface) for interface in interfaces),
    )


def _port(files: Mapping[str, str], interface: str) -> PortEnvironment:
    device = f"/sys/class/net/{interface}"

    def driver(key: str) -> str | None:
        return _read(files, f"ethtool -i {interface}", lambda info: _matched(rf"(?m)^{key}: *(\S.*)$", info))

    def number(name: str, least: int) -> int | None:
        found = _read(files, f"{device}/{name}", int)
        return None if found is None or found < least else found  # the kernel writes -1 for none

    firmware = driver("firmware-version")
    return PortEnvironment(
        interface,
        driver=driver("driver"),
        driver_version=driver("version"),
        firmware=None if firmware == "N/A" else firmware,
        bus=driver("bus-info"),
        numa_node=number("device/numa_node", 0),
        mtu=number("mtu", 1),
        speed=number("speed", 1),
        offloads=_read(
            files, f"ethtool -k {interface}", lambda text: tuple(sorted(re.findall(r"(?m)^\s*([\w-]+): on\b", text)))
        ),
    )


def _read(files: Mapping[str, str], path: str, read: Callable[[str], T]) -> T | None:
    """What ``read`` makes of the text; None without text, or when the text is not what it should be."""
    try:
        return read(files[path]) if files.get(path, "").strip() else None
    except (ValueError, IndexError, KeyError):
        return None


def _each(files: Mapping[str, str], ending: str) -> str | None:
    """What the CPUs' files of that name say; None when there are none."""
    return _joined(value for path, value in files.items() if path.endswith(ending))


def _joined(values: Iterable[str]) -> str | None:
    return ", ".join(sorted({value.strip() for value in values} - {""})) or None


def _matched(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"no {pattern} in the text")
    return match[1].strip()
