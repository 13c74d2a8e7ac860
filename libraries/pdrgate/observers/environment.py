"""The environment a measurement was made in: what must be known of a host to compare its results with others."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pdrgate.hosts.cpus import parse_cpu_list
from pdrgate.hosts.host import Host, split_files
from pdrgate.observers.build_options import PRINT_OPTIONS, set_options

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
options() {{ {PRINT_OPTIONS}; }}
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
    """A port of the SUT. Values that driver and kernel do not report are None."""

    interface: str
    driver: str | None = None
    driver_version: str | None = None
    """The driver's version; that of a driver that comes with the kernel is the kernel's release."""
    firmware: str | None = None
    bus: str | None = None
    """The bus address that it is plugged in at, such as ``0000:3b:00.0``."""
    numa_node: int | None = None
    mtu: int | None = None
    """Largest packet of the port, bytes."""
    speed: int | None = None
    """Mbit/s; None while the link is down, too."""
    offloads: tuple[str, ...] | None = None
    """The features that are on, by ethtool's names."""

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, fit for JSON."""
        return {**dataclasses.asdict(self), "offloads": None if self.offloads is None else list(self.offloads)}


@dataclass(frozen=True, slots=True)
class Environment:
    """A host at one time. Values that the host does not report are None; nothing here is guessed."""

    kernel_release: str | None = None
    """The release, as ``uname -r`` prints it."""
    kernel_version: str | None = None
    """Build number and date, as ``uname -v`` prints them."""
    architecture: str | None = None
    config_sha256: str | None = None
    """The digest of the kernel's configuration: the text that it keeps in itself, /proc/config.gz, else that in
    /boot."""
    config_options: dict[str, str] | None = None
    """Options of the configuration that matter to packets and are set, see `pdrgate.observers.build_options`."""
    cmdline: str | None = None
    mitigations: dict[str, str] | None = None
    """The kernel's mitigation of each vulnerability, in this kernel's own words."""
    cpu_model: str | None = None
    cpus: int | None = None
    """CPUs online."""
    governor: str | None = None
    """Frequency governor; several, sorted, where the CPUs differ."""
    smt: bool | None = None
    """Whether threads of one core are in use."""
    hypervisor: bool | None = None
    """Whether the CPU says that it is virtual; None except on x86."""
    memory_bytes: int | None = None
    distribution: str | None = None
    boot_id: str | None = None
    microcode: str | None = None
    """Revision of the CPUs' microcode; several, sorted, where the CPUs differ."""
    frequency_driver: str | None = None
    """The driver that sets the frequency, such as intel_pstate; several, sorted, if the CPUs differ."""
    turbo: bool | None = None
    """Whether CPUs may go beyond their nominal frequency."""
    idle_driver: str | None = None
    """The driver that puts idle CPUs to sleep."""
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
    """Environment of a machine, and of the network namespace that has the ports: a command each.

    Args:
        host: the machine.
        interfaces: the SUT's ports.
        network: the host that has the interfaces, if that is only a part of the machine.

    Raises:
        HostError: a host cannot be asked at all. Single values that it does not report are None.
    """
    ports = tuple(interfaces)
    if network is None:
        return parse_environment(_printed(host, _SCRIPT + _NETWORK_SCRIPT, ports), ports)
    machine = parse_environment(_printed(host, _SCRIPT))
    inside = parse_environment(_printed(network, _NETWORK_SCRIPT, ports), ports)
    sysctls = {**(machine.sysctls or {}), **(inside.sysctls or {})}
    return dataclasses.replace(machine, sysctls=sysctls or None, ports=inside.ports)


def _printed(host: Host, script: str, ports: Iterable[str] = ()) -> str:
    return host.run("sh", "-c", script, "sh", *ports, check=False).stdout


def parse_environment(text: str, interfaces: Iterable[str] = ()) -> Environment:
    """The environment in files and answers headed as `tail -v` does; unreadable parts are None."""
    files = split_files(text)

    def value(path: str, read: Callable[[str], T]) -> T | None:
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
    turbo = value(_NO_TURBO, lambda off: not int(off))
    return Environment(
        kernel_release=value("uname", lambda uname: uname.splitlines()[0]),
        kernel_version=value("uname", lambda uname: uname.splitlines()[1]),
        architecture=value("uname", lambda uname: uname.splitlines()[2]),
        config_sha256=value("config", lambda config: _matched(r"([0-9a-f]{64})", config)),
        config_options=value("config options", set_options),
        cmdline=value("/proc/cmdline", str.strip),
        mitigations=mitigations or None,
        cpu_model=value("/proc/cpuinfo", lambda info: _matched(r"(?m)^model name\s*: (.+)", info)),
        cpus=value(f"{_CPU}/online", lambda online: len(parse_cpu_list(online))),
        governor=_each(files, "/scaling_governor"),
        smt=value(f"{_CPU}/smt/active", lambda active: bool(int(active))),
        hypervisor=value("/proc/cpuinfo", lambda info: "hypervisor" in _matched(r"(?m)^flags\s*: (.+)", info).split()),
        memory_bytes=value("/proc/meminfo", lambda info: int(_matched(r"MemTotal:\s+(\d+) kB", info)) * 1024),
        distribution=value("/etc/os-release", lambda release: _matched(r'(?m)^PRETTY_NAME="?([^"\n]+)', release)),
        boot_id=value(_BOOT_ID, str.strip),
        microcode=value("/proc/cpuinfo", lambda info: _joined(re.findall(r"(?m)^microcode\s*: (.+)", info))),
        frequency_driver=_each(files, "/scaling_driver"),
        turbo=value(_BOOST, lambda on: bool(int(on))) if turbo is None else turbo,
        idle_driver=value(_IDLE_DRIVER, str.strip),
        clocksource=value(_CLOCKSOURCE, str.strip),
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
    """Result of ``read`` for the text; None without text, or if the text is invalid."""
    try:
        return read(files[path]) if files.get(path, "").strip() else None
    except (ValueError, IndexError, KeyError):
        return None


def _each(files: Mapping[str, str], ending: str) -> str | None:
    """Contents of the CPUs' files of that name, joined; None if there are none."""
    return _joined(value for path, value in files.items() if path.endswith(ending))


def _joined(values: Iterable[str]) -> str | None:
    return ", ".join(sorted({value.strip() for value in values} - {""})) or None


def _matched(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"no {pattern} in the text")
    return match[1].strip()
