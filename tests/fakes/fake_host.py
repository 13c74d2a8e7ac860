"""A host that exists only here: files, and network devices that answer as the real tools do, and that can misbehave.

The texts of ethtool are those of version 6.1 on virtio_net, veth and mlx5; tc's and nft's those of iproute2 6.1 and
nftables 1.0.6.
"""

from __future__ import annotations

import contextlib
import copy
import fnmatch
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from types import TracebackType
from typing import Any, Self

from pdrgate.data_paths.contract import NETWORKS
from pdrgate.hosts.host import DEFAULT_TIMEOUT, CommandError, Completed

CPU = "/sys/devices/system/cpu"
_RING_LABELS = {"rx": "RX", "rx-mini": "RX Mini", "rx-jumbo": "RX Jumbo", "tx": "TX"}
_CHANNEL_LABELS = {"rx": "RX", "tx": "TX", "other": "Other", "combined": "Combined"}
_PAUSE_LABELS = {"autoneg": "Autonegotiate", "rx": "RX", "tx": "TX"}
_COALESCING = (
    "rx-usecs", "rx-frames", "rx-usecs-irq", "rx-frames-irq", "tx-usecs", "tx-frames", "rx-frames-low"
)  # fmt: skip
_HASH_LABELS = {
    "v": "VLAN tag", "s": "IP SA", "d": "IP DA", "f": "L4 bytes 0 & 1 [TCP/UDP src port]",
    "n": "L4 bytes 2 & 3 [TCP/UDP dst port]",
}  # fmt: skip
UNSUPPORTED = "netlink error: Operation not supported"


class ToolError(Exception):
    """A tool ends with exit code 1 and this on its standard error."""


@dataclass
class FakeDevice:
    """A network device. What is None or empty it lacks, as veth lacks rings and virtio lacks pause frames."""

    rings: dict[str, int] | None = None
    ring_maxima: dict[str, int] = field(default_factory=dict)
    channels: dict[str, int] | None = None
    channel_maxima: dict[str, int] = field(default_factory=dict)
    coalescing: dict[str, str] | None = None
    pause: dict[str, str] | None = None
    features: dict[str, list[bool]] = field(default_factory=dict)
    """Active, requested, fixed."""
    table: list[int] | None = None
    table_is_set: bool = False
    """By somebody: the kernel then refuses to take away queues that are in it."""
    hashes: dict[str, str] = field(default_factory=dict)
    default_qdisc: str = "noqueue"
    qdisc: list[dict[str, Any]] = field(default_factory=list)
    """With a handle; empty when the default is in place."""
    clsact: bool = False
    egress_filter: int | None = None
    """Instructions of its program."""
    neighbours: dict[str, tuple[str, str]] = field(default_factory=dict)
    """MAC address and state by IP address."""
    rounds: Callable[[str, int], int] = lambda name, value: value
    """What the driver makes of a ring size."""

    @property
    def queues(self) -> int:
        return (self.channels or {}).get("combined", 1)


@dataclass
class FakeHost:
    """What is asked of it is in ``asked``; ``shows`` has files that read back so whatever is written to them."""

    files: dict[str, str] = field(default_factory=dict)
    devices: dict[str, FakeDevice] = field(default_factory=dict)
    routes: dict[str, list[str]] = field(default_factory=dict)
    """By network, those of protocol 211 within it."""
    rules: str = ""
    service: str | None = None
    """Of irqbalance, as systemd tells: active or inactive; None without systemd."""
    processes: dict[int, str] = field(default_factory=dict)
    """Of irqbalance: command lines by process id."""
    lacks: frozenset[str] = frozenset()
    """Programs that are not installed."""
    refuses: set[str] = field(default_factory=set)
    """Files that cannot be written."""
    shows: dict[str, str] = field(default_factory=dict)
    name: str = "fake"
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def state(self) -> object:
        """All that can be changed, to compare."""
        # A table that is what the driver would make is as good as one of the driver's.
        devices = {name: vars(one) | {"table_is_set": None} for name, one in self.devices.items()}
        return copy.deepcopy(
            (self.files, devices, self.routes, self.rules, self.service, sorted(self.processes.values()))
        )

    # --- A Host ---

    def exists(self, path: str) -> bool:
        if path.startswith("/sys/class/net/") and path.count("/") == 4:
            return path.rpartition("/")[2] in self.devices
        if path == "/run/systemd/system":
            return self.service is not None
        return path in self.files or any(name.startswith(f"{path}/") for name in self.files)

    def read(self, path: str) -> str:
        if path.startswith("/proc/") and path.endswith("/cmdline"):
            return "\0".join(shlex.split(self.processes[int(path.split("/")[2])])) + "\0"
        if path not in self.files and path not in self.shows:
            raise CommandError(self.name, f"reading {path}", Completed((), 1, "", "No such file or directory"))
        return f"{self.shows.get(path, self.files.get(path))}\n"

    def write(self, path: str, text: str) -> None:
        if path in self.refuses:
            raise CommandError(self.name, f"writing {path}", Completed((), 1, "", "Invalid argument"))
        self.files[path] = text.strip()

    def run(self, *argv: str, timeout: float = DEFAULT_TIMEOUT, check: bool = True) -> Completed:
        self.asked.append(argv)
        if argv[0] in self.lacks:
            done = Completed(argv, 127, "", f"sh: 1: exec: {argv[0]}: not found")
        else:
            try:
                done = Completed(argv, 0, getattr(self, f"_{argv[0]}")(*argv[1:]), "")
            except ToolError as error:
                done = Completed(argv, 1, "", f"{error}\n")
        if check and done.exit_code:
            raise CommandError(self.name, f"`{' '.join(argv)}`", done)
        return done

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        text = self.run(*argv, timeout=timeout).stdout
        return json.loads(text) if text.strip() else []

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    # --- Programs ---

    def _true(self) -> str:
        return ""

    def _ls(self, *folders: str) -> str:
        if len(folders) == 1:
            return self._names(folders[0])
        heads = []
        for folder in folders:
            with contextlib.suppress(ToolError):
                heads.append(f"{folder}:\n{self._names(folder)}")
        return "\n".join(heads)

    def _names(self, folder: str) -> str:
        resolved = re.sub(r"/[^/]+/\.\.", "", folder)
        prefix = f"{resolved}/"
        names = {name.removeprefix(prefix).split("/")[0] for name in self.files if name.startswith(prefix)}
        if not names:
            raise ToolError(f"ls: cannot access '{folder}': No such file or directory")
        return "".join(f"{name}\n" for name in sorted(names))

    def _tail(self, _n: str, _one: str, *paths: str) -> str:
        known = {**self.files, **self.shows}
        # What can be opened and not read still has its head.
        heads = [f"==> {path} <==\n{known[path]}" + "\n" * (known[path] != "") for path in paths if path in known]
        return "\n".join(heads)

    def _rm(self, _f: str, path: str) -> str:
        self.files.pop(path, None)
        return ""

    def _sh(self, _c: str, script: str, *arguments: str) -> str:
        if script.startswith("echo "):
            pattern = script.removeprefix("echo ")
            return " ".join(fnmatch.filter(sorted(self.files), pattern)) or pattern
        if "kill" in script:
            for pid in arguments[1:]:
                del self.processes[int(pid)]
        elif "setsid" in script:
            self.processes[max(self.processes, default=100) + 1] = shlex.join(arguments[1:])
        elif "irqbalance" in script:
            return "".join(f"{pid}\n" for pid in self.processes)
        return ""

    def _systemctl(self, what: str, _service: str) -> str:
        if what == "is-active":
            return f"{self.service}\n"
        if what in ("start", "stop"):
            self.service = "active" if what == "start" else "inactive"
        return ""

    def _nft(self, *words: str) -> str:
        match words:
            case ("list", "ruleset"):
                return self.rules
            case ("flush", "ruleset"):
                self.rules = ""
            case ("--check", "--file", _):
                if "unloadable" in self.rules:
                    raise ToolError("Error: syntax error, unexpected unloadable")
            case ("--file", path):
                self.rules = self.files[path].removeprefix("flush ruleset\n") + "\n"
            case _:
                raise AssertionError(words)
        return ""

    def _tc(self, *words: str) -> str:
        match words:
            case ("-j", "qdisc", "show", "dev", name):
                device = self.devices[name]
                default = {"kind": device.default_qdisc, "handle": "0:", "root": True, "options": {}}
                clsact = [{"kind": "clsact", "handle": "ffff:"}] if device.clsact else []
                return json.dumps([*(device.qdisc or [default]), *clsact])
            case ("qdisc", what, "dev", name, "clsact"):
                if self.devices[name].clsact is (what == "add"):
                    raise ToolError("Error: Exclusivity flag on, cannot modify.")
                self.devices[name].clsact, self.devices[name].egress_filter = what == "add", None
            case ("-j", "filter", "show", "dev", name, "egress", "pref", _):
                length = self.devices[name].egress_filter
                program = {"handle": "0x1", "bytecode": {"length": length}}
                return "[]" if length is None else json.dumps([{"kind": "bpf"}, {"kind": "bpf", "options": program}])
            case ("filter", "delete", "dev", name, "egress", "pref", _):
                self.devices[name].egress_filter = None
            case ("filter", "add", "dev", name, "egress", "protocol", "all", "pref", _, "handle", "1", *program):
                assert self.devices[name].clsact
                length, *code = program[-1].split(",")
                assert len(code) == int(length)
                self.devices[name].egress_filter = int(length)
            case ("qdisc", "delete", "dev", name, "root"):
                if not self.devices[name].qdisc:
                    raise ToolError("Error: Cannot delete qdisc with handle of zero.")
                self.devices[name].qdisc = []
            case ("qdisc", "replace", "dev", name, "root", kind, *options):
                if kind not in ("pfifo", "bfifo", "pfifo_fast", "noqueue", "fq"):
                    raise ToolError("Error: Specified qdisc kind is unknown.")
                told = {"limit": 1000} if kind in ("pfifo", "bfifo") else {}
                told |= {key: int(value) for key, value in zip(options[::2], options[1::2], strict=True)}
                self.devices[name].qdisc = [{"kind": kind, "handle": "8001:", "root": True, "options": told}]
            case _:
                raise AssertionError(words)
        return ""

    def _ip(self, *words: str) -> str:
        match words:
            case ("-j", "neighbour", "show", "dev", name, "nud", "permanent"):
                known = self.devices[name].neighbours.items()
                return json.dumps([{"dst": to, "lladdr": mac} for to, (mac, state) in known if state == "permanent"])
            case ("neighbour", "replace", to, "dev", name, "lladdr", mac, "nud", "permanent"):
                self.devices[name].neighbours[to] = (mac, "permanent")
            case ("neighbour", "delete", to, "dev", name):
                del self.devices[name].neighbours[to]
            case ("-j", "-4" | "-6", "route", "show", "root", network, "proto", "211"):
                return json.dumps([{"dst": route} for route in self.routes.get(network, ())])
            case (_, "route", "add", "unreachable", *route, "proto", "211"):
                self.routes.setdefault(self._network(route[0]), []).append(" ".join(route))
            case (_, "route", "delete", "unreachable", *route, "proto", "211"):
                own = self.routes[network := self._network(route[0])]
                own.remove(" ".join(route))
                if not own:
                    del self.routes[network]
            case _:
                raise AssertionError(words)
        return ""

    @staticmethod
    def _network(route: str) -> str:
        """The whole network that it lies in; those of tests are the generator's."""
        return next(
            str(one) for networks in NETWORKS.values() for one in (networks.forward, networks.reverse)
            if ip_network(route).version == one.version and ip_network(route).subnet_of(one)  # type: ignore[arg-type]
        )  # fmt: skip

    # --- ethtool ---

    def _ethtool(self, *words: str) -> str:
        if words[0] == "--json":
            return self._show_features(words[2])
        option, name, *rest = words
        if name not in self.devices:
            raise ToolError("netlink error: no device matches name (offset 24)\nnetlink error: No such device")
        device = self.devices[name]
        pairs = dict(zip(rest[::2], rest[1::2], strict=False))
        match option:
            case "-g" if device.rings is not None:
                return _limits("Ring", name, _RING_LABELS, device.ring_maxima, device.rings)
            case "-G" if device.rings is not None:
                for key, value in pairs.items():
                    device.rings[key] = device.rounds(key, int(value))
            case "-l" if device.channels is not None:
                return _limits("Channel", name, _CHANNEL_LABELS, device.channel_maxima, device.channels)
            case "-L" if device.channels is not None:
                self._set_channels(name, device, {key: int(value) for key, value in pairs.items()})
            case "-c" if device.coalescing is not None:
                return _coalescing(name, device.coalescing)
            case "-C" if device.coalescing is not None:
                device.coalescing.update(pairs)
            case "-a" if device.pause is not None:
                lines = [f"{label}:\t{device.pause[key]}\n" for key, label in _PAUSE_LABELS.items()]
                return f"Pause parameters for {name}:\n{''.join(lines)}RX negotiated: off\nTX negotiated: on\n\n"
            case "-A" if device.pause is not None:
                device.pause.update(pairs)
            case "-x":
                return _table(name, device)
            case "-X" if device.table is not None:
                device.table, device.table_is_set = _spread(device, rest), rest[0] != "default"
            case "-n" | "-N" if rest[1] not in device.hashes:
                raise ToolError("Cannot get RX network flow hashing options: Operation not supported")
            case "-n":
                fields = [_HASH_LABELS[letter] for letter in device.hashes[rest[1]]] or ["None"]
                kind = f"{rest[1][:3].upper()} over IPV{rest[1][-1]}"
                return f"{kind} flows use these fields for computing Hash flow key:\n" + "\n".join(fields) + "\n\n"
            case "-N":
                device.hashes[rest[1]] = "" if rest[2] == "r" else "".join(sorted(rest[2], key="vsdfn".index))
            case "-K":
                for key, word in pairs.items():
                    device.features[key][:2] = [word == "on" and key != "rx-gro-hw", word == "on"]
                self._depend(device)
            case _:
                raise ToolError(UNSUPPORTED)
        return ""

    def _show_features(self, name: str) -> str:
        told: dict[str, Any] = {
            key: {"active": a, "requested": r, "fixed": f} for key, (a, r, f) in self.devices[name].features.items()
        }
        told["tx-checksumming"] = {"active": True, "requested": None, "fixed": None}
        return json.dumps([{"ifname": name, **told}])

    def _depend(self, device: FakeDevice) -> None:
        """TSO needs transmit checksums, as in the kernel."""
        if "tx-tcp-segmentation" in device.features:
            checksums = device.features["tx-checksum-ip-generic"][0]
            device.features["tx-tcp-segmentation"][0] = checksums and device.features["tx-tcp-segmentation"][1]

    def _set_channels(self, name: str, device: FakeDevice, wanted: dict[str, int]) -> None:
        """Queues that go lose their settings, and the table is made anew, as virtio_net and others do it."""
        assert device.channels is not None
        table = device.table if device.table_is_set else None
        if table and max(table) >= wanted.get("combined", device.queues):
            raise ToolError("netlink error: Invalid argument")
        device.channels.update(wanted)
        for path in list(self.files):
            match = re.match(rf"/sys/class/net/{name}/queues/[rt]x-(\d+)/", path)
            if match and int(match[1]) >= device.queues:
                del self.files[path]
        for queue in range(device.queues):
            for file, text in queue_files(name, queue).items():
                self.files.setdefault(file, text)
        if device.table is not None and table is None:
            device.table = [entry % device.queues for entry in range(len(device.table))]


def queue_files(name: str, queue: int) -> dict[str, str]:
    """The files of one pair of queues, with what is in them at first."""
    folder = f"/sys/class/net/{name}/queues"
    return {
        f"{folder}/rx-{queue}/rps_cpus": "0",
        f"{folder}/rx-{queue}/rps_flow_cnt": "0",
        f"{folder}/tx-{queue}/xps_cpus": "0",
    }


def _limits(kind: str, name: str, labels: dict[str, str], maxima: dict[str, int], now: dict[str, int]) -> str:
    def lines(values: dict[str, int]) -> str:
        return "".join(f"{label}:\t\t{values.get(key, 'n/a')}\n" for key, label in labels.items())

    return (
        f"{kind} parameters for {name}:\nPre-set maximums:\n{lines(maxima)}Current hardware settings:\n{lines(now)}"
        + ("RX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\toff\nTCP data split:\tn/a\n" if kind == "Ring" else "")
    )


def _coalescing(name: str, now: dict[str, str]) -> str:
    def told(key: str) -> str:
        return now.get(key, "n/a")

    # It shows rx-frame-low, and takes rx-frames-low.
    lines = [f"{key.replace('frames-low', 'frame-low')}:\t{told(key)}\n" for key in _COALESCING]
    return (
        f"Coalesce parameters for {name}:\nAdaptive RX: {told('adaptive-rx')}  TX: {told('adaptive-tx')}\n"
        f"stats-block-usecs:\tn/a\n\n{''.join(lines)}\nCQE mode RX: n/a  TX: n/a\n\n"
    )


def _table(name: str, device: FakeDevice) -> str:
    rows = "Operation not supported\n"
    if device.table is not None:
        rows = "".join(
            f"{at:5}: " + "".join(f" {entry:5}" for entry in device.table[at : at + 8]) + "\n"
            for at in range(0, len(device.table), 8)
        )
    return (
        f"RX flow hash indirection table for {name} with {device.queues} RX ring(s):\n{rows}"
        "RSS hash key:\n91:9d:a1:5b\nRSS hash function:\n    toeplitz: on\n    xor: off\n    crc32: off\n"
    )


def _spread(device: FakeDevice, words: Sequence[str]) -> list[int]:
    """Entry by entry, as ethtool fills a table; written apart from the code under test."""
    assert device.table is not None
    size = len(device.table)
    if words[0] in ("default", "equal"):
        queues = device.queues if words[0] == "default" else int(words[1])
        return [entry % queues for entry in range(size)]
    weights = [int(word) for word in words[1:]]
    table, queue, reached = [], -1, 0
    for entry in range(size):
        while entry >= size * reached // sum(weights):
            queue += 1
            reached += weights[queue]
        table.append(queue)
    return table


def machine(queues: int = 2) -> FakeHost:
    """A router with a virtio port that has everything, eth0, and a veth that lacks most, v0."""
    eth0 = FakeDevice(
        rings={"rx": 256, "tx": 256}, ring_maxima={"rx": 1024, "tx": 1024},
        channels={"combined": queues}, channel_maxima={"combined": 4},
        coalescing={"adaptive-rx": "off", "rx-usecs": "3", "rx-frames": "1", "tx-usecs": "0", "rx-frames-low": "0"},
        pause={"autoneg": "on", "rx": "on", "tx": "off"},
        features={
            "generic-receive-offload": [True, True, False], "rx-gro-hw": [False, False, False],
            "tx-checksum-ip-generic": [True, True, False], "tx-tcp-segmentation": [True, True, False],
            "large-receive-offload": [False, False, True],
        },
        table=[entry % queues for entry in range(16)], hashes={"udp4": "sd", "udp6": "sdfn", "tcp4": ""},
        default_qdisc="mq",
    )  # fmt: skip
    v0 = FakeDevice(channels={"rx": 1, "tx": 1}, channel_maxima={"rx": 1, "tx": 1},
                    features={"generic-receive-offload": [False, False, False]})  # fmt: skip
    files = {
        f"{CPU}/online": "0-3",
        f"{CPU}/smt/control": "on",
        f"{CPU}/intel_pstate/no_turbo": "0",
        "/proc/sys/net/core/netdev_max_backlog": "1000",
        "/proc/sys/net/ipv4/ip_forward": "0",
        "/proc/interrupts": (
            "            CPU0       CPU1\n"
            "  1:          0          9   IO-APIC   1-edge      i8042\n"
            " 24:          0          0   PCI-MSI 32768-edge      virtio0-config\n"
            " 26:          0          0   PCI-MSI 49152-edge      virtio1-config\n"
            + "".join(
                f" {27 + 2 * queue}:          0          0   PCI-MSI 4915{queue}-edge      virtio1-input.{queue}\n"
                f" {28 + 2 * queue}:          1          1   PCI-MSI 4916{queue}-edge      virtio1-output.{queue}\n"
                for queue in range(queues)
            )
            + "NMI:          0          0   Non-maskable interrupts\n"
        ),
    }
    for number in (1, 24, 26, *range(27, 27 + 2 * queues)):
        files[f"/proc/irq/{number}/smp_affinity_list"] = "0-3"
    for number in (26, *range(27, 27 + 2 * queues)):
        files[f"/sys/class/net/eth0/msi_irqs/{number}"] = "msix"
    files["/sys/class/net/eth0/device/irq"] = "11"
    for policy in (0, 2):
        files[f"{CPU}/cpufreq/policy{policy}/scaling_governor"] = "powersave"
        files[f"{CPU}/cpufreq/policy{policy}/scaling_available_governors"] = "performance powersave"
    for cpu in range(2):
        for state, latency in enumerate((0, 2, 133)):
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/latency"] = str(latency)
            files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable"] = "0"
    for name in ("eth0", "v0"):
        for attribute in ("mtu", "tx_queue_len", "gro_flush_timeout", "napi_defer_hard_irqs", "threaded"):
            files[f"/sys/class/net/{name}/{attribute}"] = {"mtu": "1500", "tx_queue_len": "1000"}.get(attribute, "0")
    for queue in range(queues):
        files |= queue_files("eth0", queue)
    files |= queue_files("v0", 0)
    files["/sys/class/net/v0/queues/tx-0/xps_cpus"] = ""  # there, and not readable: it has one queue only
    return FakeHost(files, {"eth0": eth0, "v0": v0}, service="active")
