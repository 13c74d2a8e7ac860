"""The kernel's own packet counters, read before and after a trial: where packets went, and who had the CPU.

Of an interface ``rx_dropped`` and its like, of a CPU's backlog ``dropped``, of a CPU the ticks (mostly of 10 ms) of
processes, of softirqs and those that the hypervisor withheld, of the IP layers the kernel's own words. All counters
grow from boot; only differences mean anything. The parsers are pure functions on the kernel's text.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from pdrgate.errors import TestbedError
from pdrgate.hosts.host import Host, read_files
from pdrgate.observers.reading import Counter, Place

_DEV, _SOFTNET, _SNMP, _SNMP6, _STAT = (
    "/proc/net/dev", "/proc/net/softnet_stat", "/proc/net/snmp", "/proc/net/snmp6", "/proc/stat"
)  # fmt: skip

_DEV_COLUMNS = {"rx_packets": 1, "rx_dropped": 3, "tx_packets": 9, "tx_dropped": 11}
_SOFTNET_COLUMNS = {"processed": 0, "dropped": 1, "time_squeeze": 2}
_SOFTNET_CPU_COLUMN = 12
_STAT_COLUMNS = {"process_ticks": (0, 1, 2), "softirq_ticks": (6,), "steal_ticks": (7,)}
_IP = (
    "ForwDatagrams", "OutForwDatagrams", "InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "InNoRoutes",
    "OutNoRoutes", "InTooBigErrors", "InTruncatedPkts",
)  # fmt: skip
"""What becomes of a packet that a router forwards or drops; IPv4 and IPv6 have some of them each."""


def read_counters(host: Host, interfaces: Collection[str]) -> dict[Counter, int]:
    """All counters of the host's CPUs and IP layers and of these interfaces, with one command (1 to 2 ms).

    Zeros are kept: a counter that starts to grow in the trial must be in both readings.

    Raises:
        TestbedError: an interface is not there, or the host cannot be asked.
    """
    texts = read_files(host, (_DEV, _SOFTNET, _SNMP, _SNMP6, _STAT))
    by_interface = parse_net_dev(texts.get(_DEV, ""))
    if absent := sorted(set(interfaces) - by_interface.keys()):
        raise TestbedError(
            f"{host.name} has no interface {', '.join(absent)}, but {', '.join(sorted(by_interface)) or 'none'}; "
            "was it removed or renamed during the run?"
        )
    counters = {
        Counter(Place.interface(interface), name): value
        for interface in interfaces
        for name, value in by_interface[interface].items()
    }
    counters |= parse_softnet(texts.get(_SOFTNET, ""))
    counters |= parse_snmp(texts.get(_SNMP, ""))
    counters |= parse_snmp6(texts.get(_SNMP6, ""))
    counters |= parse_stat(texts.get(_STAT, ""))
    return counters


def parse_net_dev(text: str) -> dict[str, dict[str, int]]:
    """/proc/net/dev: by interface, packets received, sent and dropped."""
    found = {}
    for line in text.splitlines():
        interface, colon, rest = line.rpartition(":")
        columns = rest.split()
        if colon and len(columns) > max(_DEV_COLUMNS.values()):
            found[interface.strip()] = {name: int(columns[at]) for name, at in _DEV_COLUMNS.items()}
    return found


def parse_softnet(text: str) -> dict[Counter, int]:
    """/proc/net/softnet_stat: per CPU, packets processed, dropped at a full backlog, and budgets that ran out.

    Values are hexadecimal. A line's CPU stands in column 13; kernels before 5.10 lack it and have a line per CPU.
    """
    found = {}
    for row, line in enumerate(text.splitlines()):
        columns = line.split()
        if len(columns) > max(_SOFTNET_COLUMNS.values()):
            cpu = int(columns[_SOFTNET_CPU_COLUMN], 16) if len(columns) > _SOFTNET_CPU_COLUMN else row
            for name, at in _SOFTNET_COLUMNS.items():
                found[Counter(Place.backlog(cpu), name)] = int(columns[at], 16)
    return found


def parse_snmp(text: str) -> dict[Counter, int]:
    """/proc/net/snmp: what IPv4 forwarded and discarded."""
    found = {}
    for names, values in itertools.pairwise(text.splitlines()):
        if names.startswith("Ip: ") and values.startswith("Ip: "):
            table = dict(zip(names.split()[1:], values.split()[1:], strict=False))
            found = {Counter(Place("ip"), name): int(table[name]) for name in _IP if name in table}
            break
    return found


def parse_snmp6(text: str) -> dict[Counter, int]:
    """/proc/net/snmp6: what IPv6 forwarded and discarded."""
    table = dict(line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {Counter(Place("ip6"), name): int(table[f"Ip6{name}"]) for name in _IP if f"Ip6{name}" in table}


def parse_stat(text: str) -> dict[Counter, int]:
    """/proc/stat: per CPU, ticks of processes (user, nice, system), of softirqs, and those the hypervisor withheld."""
    found = {}
    for line in text.splitlines():
        label, *columns = line.split()
        number = label.removeprefix("cpu")
        if label != number and number.isdigit() and len(columns) > max(map(max, _STAT_COLUMNS.values())):
            for name, places in _STAT_COLUMNS.items():
                found[Counter(Place.cpu(int(number)), name)] = sum(int(columns[at]) for at in places)
    return found
