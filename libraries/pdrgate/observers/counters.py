"""The kernel's own packet counters, read before and after a trial: where packets went, and who had the CPU.

An interface has ``rx_dropped`` and its like, and what its driver and its qdiscs dropped. A CPU's backlog has
``dropped``. A CPU has the ticks (mostly of 10 ms) of processes, of softirqs and those that the hypervisor withheld. IP
and UDP have the kernel's own counters. All counters grow from boot; only differences mean anything.
`pdrgate.observers.accounting` sums them up. The parsers are pure functions on the text of kernel and programs.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.hosts.host import Host, split_files
from pdrgate.observers.driver_statistics import counts_losses
from pdrgate.observers.reading import Counter, Place, PlaceKind, signed
from pdrgate.values.errors import TestbedError

FILES = _DEV, _SOFTNET, _SNMP, _SNMP6, _NETSTAT, _CONNTRACK, _TRACKED, _MOST_TRACKED, _STAT = (
    "/proc/net/dev", "/proc/net/softnet_stat", "/proc/net/snmp", "/proc/net/snmp6", "/proc/net/netstat",
    "/proc/net/stat/nf_conntrack", "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/netfilter/nf_conntrack_max", "/proc/stat",
)  # fmt: skip
FILL = "fill_permille"
"""Name of the share of the table of connections that is taken, which is no count."""
_MISSED = "/sys/class/net/{}/statistics/rx_missed_errors"
_HEADED = ("tail", "-v", "-n", "+1")
_SCRIPT = f"""{" ".join(_HEADED)} $1; shift
printf '\\n==> qdiscs <==\\n'; tc -s -j qdisc show
for port; do printf '\\n==> driver %s <==\\n' "$port"; ethtool -S "$port"; done
"""

_OF_A_QDISC = {name: re.compile(rf'"{name}"\s*:\s*"([^"]*)"') for name in ("kind", "handle", "dev", "parent")}
_DEV_COLUMNS = {"rx_packets": 1, "rx_dropped": 3, "tx_packets": 9, "tx_dropped": 11}
_SOFTNET_COLUMNS = {"processed": 0, "dropped": 1, "time_squeeze": 2}
_SOFTNET_CPU_COLUMN = 12
_STAT_COLUMNS = {"process_ticks": (0, 1, 2), "softirq_ticks": (6,), "steal_ticks": (7,)}
_IP = (
    "ForwDatagrams", "OutForwDatagrams", "InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "InNoRoutes",
    "OutNoRoutes", "InTooBigErrors", "InTruncatedPkts", "InUnknownProtos", "FragFails", "IPReversePathFilter",
    "InDelivers",
)  # fmt: skip
"""Counters of a packet that a router forwards, drops or takes for its own; IPv4 and IPv6 have some of them each."""
_UDP = ("InDatagrams", "NoPorts", "InErrors", "RcvbufErrors", "MemErrors", "InCsumErrors")
"""Counters of a packet that is for the host itself; RcvbufErrors and those after it are part of InErrors."""


def read_counters(host: Host, interfaces: Collection[str], *, programs: bool = True) -> dict[Counter, int]:
    """All counters of the host's CPUs and protocols and of these interfaces, with one command.

    Args:
        programs: whether to ask the programs that print the counters of qdiscs and drivers: 1 to 2 ms more for each.

    Zeros are kept: a counter that starts to grow in the trial must be in both readings. Parts that the host does not
    have, a program among them, are left out.

    Raises:
        TestbedError: an interface is not there, or the host cannot be asked.
    """
    files = (*FILES, *map(_MISSED.format, interfaces))
    # No shell around the one program: to start one takes an emulated guest 10 ms.
    asked = ("sh", "-c", _SCRIPT, "sh", " ".join(files), *interfaces) if programs else (*_HEADED, *files)
    texts = split_files(host.run(*asked, check=False).stdout)
    drivers = {interface: parse_driver(texts.get(f"driver {interface}", "")) for interface in interfaces}
    return host_counters(HostCounters(texts, parse_qdiscs(texts.get("qdiscs", "")), drivers), interfaces, host.name)


@dataclass(frozen=True, slots=True)
class HostCounters:
    """Raw counters of a host's packets."""

    files: Mapping[str, str]
    """Texts of those of `FILES` and of ports' files that the host has, by path."""
    qdiscs: Sequence[Mapping[str, Any]]
    """Queueing disciplines as ``tc -s -j qdisc show`` has them."""
    drivers: Mapping[str, Mapping[str, int]]
    """Statistics of each interface's driver, under names of the driver's own."""


def host_counters(read: HostCounters, interfaces: Collection[str], host: str) -> dict[Counter, int]:
    """The parsed counters of a host. Raises TestbedError if it has no such interface.

    Args:
        host: its name, for people.
    """
    by_interface = parse_net_dev(read.files.get(_DEV, ""))
    if absent := sorted(set(interfaces) - by_interface.keys()):
        raise TestbedError(
            f"{host} has no interface {', '.join(absent)}, but {', '.join(sorted(by_interface)) or 'none'}; "
            "was it removed or renamed during the run?"
        )
    counters = {
        Counter(Place("interface", interface), name): value
        for interface in interfaces
        for name, value in by_interface[interface].items()
    }
    for interface in interfaces:
        if missed := read.files.get(_MISSED.format(interface), "").strip():
            counters[Counter(Place("interface", interface), "rx_missed")] = int(missed)
        counters |= driver_losses(interface, read.drivers.get(interface, {}))
    counters |= qdisc_drops(interfaces, read.qdiscs)
    counters |= parse_softnet(read.files.get(_SOFTNET, ""))
    counters |= parse_snmp(read.files.get(_SNMP, ""))
    counters |= parse_netstat(read.files.get(_NETSTAT, ""))
    counters |= parse_snmp6(read.files.get(_SNMP6, ""))
    counters |= parse_conntrack(read.files.get(_CONNTRACK, "")) or fill_of_conntrack(
        read.files.get(_TRACKED, ""), read.files.get(_MOST_TRACKED, "")
    )
    counters |= parse_stat(read.files.get(_STAT, ""))
    return counters


def parse_net_dev(text: str) -> dict[str, dict[str, int]]:
    """Parse /proc/net/dev: by interface, packets received, sent and dropped."""
    found = {}
    for line in text.splitlines():
        interface, colon, rest = line.rpartition(":")
        columns = rest.split()
        if colon and len(columns) > max(_DEV_COLUMNS.values()):
            found[interface.strip()] = {name: int(columns[at]) for name, at in _DEV_COLUMNS.items()}
    return found


def parse_softnet(text: str) -> dict[Counter, int]:
    """Parse /proc/net/softnet_stat: per CPU, packets processed, dropped at a full backlog, and budgets that ran out.

    Values are hexadecimal. A line's CPU stands in column 13; kernels before 5.10 lack it and have a line per CPU.
    """
    found = {}
    for row, line in enumerate(text.splitlines()):
        columns = line.split()
        if len(columns) > max(_SOFTNET_COLUMNS.values()):
            cpu = int(columns[_SOFTNET_CPU_COLUMN], 16) if len(columns) > _SOFTNET_CPU_COLUMN else row
            for name, at in _SOFTNET_COLUMNS.items():
                found[Counter(Place("backlog", str(cpu)), name)] = int(columns[at], 16)
    return found


def parse_driver(text: str) -> dict[str, int]:
    """``ethtool -S``: all that the driver counts, by its own names, which may have colons in them."""
    lines = (tuple(part.strip() for part in line.rpartition(":")) for line in text.splitlines())
    return summed((name, int(value)) for name, _, value in lines if value.isascii() and value.isdecimal())


def summed(statistics: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums by name; drivers such as vmxnet3 have each name once for each queue."""
    found: dict[str, int] = {}
    for name, value in statistics:
        found[name] = found.get(name, 0) + value
    return found


def driver_losses(interface: str, values: Mapping[str, int]) -> dict[Counter, int]:
    """Lost packets among what a driver counts."""
    return {
        Counter(Place("driver", interface), name.replace(" ", "_")): value
        for name, value in values.items()
        if counts_losses(name)
    }


def parse_qdiscs(text: str) -> list[dict[str, Any]]:
    """``tc -s -j qdisc show``; empty of a tc that knows no JSON.

    A kind whose options tc prints as plain text leaves an entry that is no JSON. Of that one, what is not of its kind
    is read, and others are whole.
    """
    try:
        qdiscs: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError:
        return [one for entry in re.split(r'(?=\{\s*"kind"\s*:)', text)[1:] if (one := _qdisc(entry)) is not None]
    return qdiscs


def _qdisc(entry: str) -> dict[str, Any] | None:
    """One qdisc of a text in which some are no JSON."""
    with contextlib.suppress(ValueError):
        whole: dict[str, Any] = json.JSONDecoder().raw_decode(entry)[0]
        return whole
    found: dict[str, Any] = {name: read[1] for name, pattern in _OF_A_QDISC.items() if (read := pattern.search(entry))}
    if not {"kind", "handle", "dev"} <= found.keys():
        return None
    drops = re.search(r'"packets"\s*:\s*\d+\s*,\s*"drops"\s*:\s*(\d+)', entry)
    return (
        found
        | ({"root": True} if re.search(r'"root"\s*:\s*true', entry) else {})
        | ({"drops": int(drops[1])} if drops else {})
    )


def qdisc_drops(interfaces: Collection[str], qdiscs: Sequence[Mapping[str, Any]]) -> dict[Counter, int]:
    """Drops of the qdiscs themselves, by kind: a parent counts its children's drops too."""
    found: dict[Counter, int] = {}
    for one in qdiscs:
        if one.get("dev") not in interfaces or "drops" not in one:
            continue
        parents = {"", one["handle"].rstrip(":")} if one.get("root") else {one["handle"].rstrip(":")} - {"0"}
        below = [
            other["drops"]
            for other in qdiscs
            if other["dev"] == one["dev"] and other is not one
            and other.get("parent", "-").partition(":")[0] in parents and "drops" in other
        ]  # fmt: skip
        own = max(0, signed(one["drops"] - sum(below))) if below else one["drops"]
        counter = Counter(Place("qdisc", one["dev"]), one["kind"])
        found[counter] = found.get(counter, 0) + own
    return found


def parse_snmp(text: str) -> dict[Counter, int]:
    """Parse /proc/net/snmp: packets that IPv4 forwarded and discarded, and the counters of UDP over it."""
    tables = dict(_tables(text))
    return _named("ip", _IP, tables.get("Ip", {})) | _named("udp", _UDP, tables.get("Udp", {}))


def parse_netstat(text: str) -> dict[Counter, int]:
    """Parse /proc/net/netstat: losses of IPv4 that came later than RFC 2013's and 4293's counters."""
    tables = dict(_tables(text))
    return _named("ip", _IP, tables.get("IpExt", {}) | tables.get("TcpExt", {}))


def parse_snmp6(text: str) -> dict[Counter, int]:
    """Parse /proc/net/snmp6: packets that IPv6 forwarded and discarded, and the counters of UDP over it."""
    table = {name: int(value) for name, value in (line.split() for line in text.splitlines() if line.strip())}
    own, udp = ({name.removeprefix(head): value for name, value in table.items() if name.startswith(head)}
                for head in ("Ip6", "Udp6"))  # fmt: skip
    return _named("ip6", _IP, own) | _named("udp6", _UDP, udp)


def parse_conntrack(text: str) -> dict[Counter, int]:
    """Parse /proc/net/stat/nf_conntrack: packets dropped because their connection could not be noted, of all CPUs."""
    heads, *rows = [line.split() for line in text.splitlines()] or [[]]
    if "drop" not in heads:
        return {}
    return {Counter(Place("conntrack"), "drop"): sum(int(row[heads.index("drop")], 16) for row in rows)}


def fill_of_conntrack(count: str, most: str) -> dict[Counter, int]:
    """How full the table of connections is, for kernels that do not count whom it had no room for."""
    if not (count.strip().isdecimal() and most.strip().isdecimal() and int(most)):
        return {}
    return {Counter(Place("conntrack"), FILL): min(1000, int(count) * 1000 // int(most))}


def _tables(text: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Tables of a line of names and one of values, each after the table's own name."""
    for names, values in itertools.pairwise(text.splitlines()):
        (head, *columns), (same, *numbers) = names.split() or [""], values.split() or [""]
        if head == same and head.endswith(":") and columns and not columns[0].lstrip("-").isdigit():
            yield head[:-1], {name: int(value) for name, value in zip(columns, numbers, strict=False)}


def _named(kind: PlaceKind, names: Collection[str], table: dict[str, int]) -> dict[Counter, int]:
    return {Counter(Place(kind), name): table[name] for name in names if name in table}


def parse_stat(text: str) -> dict[Counter, int]:
    """Parse /proc/stat: per CPU, ticks of processes (user, nice, system), of softirqs, and those the hypervisor
    withheld."""
    found = {}
    for line in text.splitlines():
        label, *columns = line.split()
        number = label.removeprefix("cpu")
        if label != number and number.isdigit() and len(columns) > max(map(max, _STAT_COLUMNS.values())):
            for name, places in _STAT_COLUMNS.items():
                found[Counter(Place("cpu", number), name)] = sum(int(columns[at]) for at in places)
    return found
