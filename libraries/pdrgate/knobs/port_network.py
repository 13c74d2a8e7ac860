"""Network state that a data path gives a port: addresses, routes, static neighbours, and attached programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import ANY, DeviceKnob
from pdrgate.knobs.neighbours import static_neighbours
from pdrgate.values.errors import TestbedError

_FLAGS = frozenset({"linkdown", "dead", "offload", "trap", "rt_offload", "rt_trap"})
"""Flags of a route that the kernel reports and does not accept."""
_MADE_BY_KERNEL = (" proto kernel ", " proto ra ")
_XDP_MODES = {1: "xdpdrv", 2: "xdpgeneric", 3: "xdpoffload"}
_TCX_LINKS = 'ls -d /tmp/pdrgate-*.bpf/tcx-"$1" 2>/dev/null'
"""Links of tcx that keep programs at an interface, by its number, where `pdrgate.bpf.programs` pins them."""
_END_TCX_LINK = """\
bpftool link detach pinned "$1" && rm "$1" || exit
ls "${1%/*}"/tcx-* >/dev/null 2>&1 || { umount "${1%/*}" && rmdir "${1%/*}"; }
"""


@dataclass(frozen=True, slots=True)
class PortNetwork(DeviceKnob):
    """The network set-up of a port, on a host that outlives the run.

    Data paths undo what they do, but not when they are killed. Applied before them, with the value `ANY`, this knob has
    in the journal what was there, so that all else can be taken away. A state is lines: ``address …``, ``route4 …``,
    ``route6 …``, ``neighbour …``, ``xdp …``, ``clsact``, and ``tcx …`` for links that only pdrgate can have made.
    """

    kind = "port-network"

    device: str
    value: str = ANY

    def describe(self) -> str:
        return f"network set-up of {self.device}: {', '.join(self.value.splitlines()) or 'none'}"

    def read(self, host: Host) -> str:
        return "\n".join(sorted(self._lines(host)))

    def apply(self, host: Host) -> None:
        if self.value != ANY:
            self._set(host, self.value)

    def holds(self, actual: str, wanted: str) -> bool:
        return wanted in (ANY, actual)

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        return wanted == ANY

    def _set(self, host: Host, wanted: str) -> None:
        lines, now = set(wanted.splitlines()), set(self.read(host).splitlines())
        # Programs and routes go before the addresses that they need, and come back after these.
        for line in sorted(now - lines, reverse=True):
            self._change(host, line, "delete")
        for line in sorted(lines - set(self.read(host).splitlines())):
            self._change(host, line, "add")
        if (back := self.read(host)) != wanted:
            differing = sorted(set(back.splitlines()) ^ lines)
            raise TestbedError(
                f"the network set-up of {self.device} on {host.name} does not go back: {', '.join(differing)}; see "
                f"ip address, ip route and ip link of {self.device}, and does a service there set it?"
            )

    def _lines(self, host: Host) -> list[str]:
        lines = [
            f"address {address['local']}/{address['prefixlen']}"
            for link in host.run_json("ip", "-j", "address", "show", "dev", self.device)
            for address in link.get("addr_info", ())
            if address.get("scope") != "link"  # the kernel's own of IPv6
        ]
        lines += [
            f"route{family} {' '.join(word for word in route.split() if word not in _FLAGS)}"
            for family in ("4", "6")
            for route in host.run("ip", f"-{family}", "route", "show", "dev", self.device).stdout.splitlines()
            if not any(words in f"{route} " for words in _MADE_BY_KERNEL)
        ]
        lines += [f"neighbour {address} {mac}" for address, mac in static_neighbours(host, self.device).items()]
        links: list[dict[str, Any]] = host.run_json("ip", "-j", "link", "show", "dev", self.device)
        xdp = links[0].get("xdp", {})
        if "prog" in xdp:
            lines.append(f"xdp {_XDP_MODES.get(xdp.get('mode', 0), 'xdp')} {xdp['prog']['id']}")
        # Without tc nobody can have hung anything there.
        if " clsact " in f" {host.run('tc', 'qdisc', 'show', 'dev', self.device, check=False).stdout} ":
            lines.append("clsact")
        number = host.read(f"/sys/class/net/{self.device}/ifindex").strip()
        pins = host.run("sh", "-c", _TCX_LINKS, "sh", number, check=False).stdout.split()
        return [*lines, *(f"tcx {pin}" for pin in pins)]

    def _change(self, host: Host, line: str, what: str) -> None:
        kind, *words = line.split()
        on = ("dev", self.device)
        match kind, what:
            case "address", _:
                nodad = ("nodad",) if what == "add" and ":" in words[0] else ()
                host.run("ip", "address", what, *words, *on, *nodad)
            case (("route4" | "route6"), _):
                host.run("ip", f"-{kind[-1]}", "route", what, *words, *on)
            case "neighbour", "delete":
                host.run("ip", "neighbour", "delete", words[0], *on)
            case "neighbour", _:
                host.run("ip", "neighbour", "replace", words[0], "lladdr", words[1], *on, "nud", "permanent")
            case "xdp", "delete":
                host.run("ip", "link", "set", *on, words[0], "off")
            case "tcx", "delete":
                host.run("sh", "-c", _END_TCX_LINK, "sh", *words)
            case "clsact", _:
                host.run("tc", "qdisc", what, *on, "clsact")
            case _:
                raise TestbedError(
                    f"{self.device} on {host.name} had {line} and has lost it, which cannot be put back; load it again"
                )
