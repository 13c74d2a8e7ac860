"""What a user's commands have left on a host: links, addresses, routes, rules, neighbours, nftables, qdiscs, IPsec."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.traffic import native

_TIMEOUT = 30.0
_MARK = "=== pdrgate "
_NEVER = re.compile(r"(?!)")
_EXPIRES = re.compile(r" (expires|valid_lft|preferred_lft|used) \S+")
_ROUTES_OF_KERNEL = re.compile(r"(local|broadcast|anycast|multicast) |.*\bproto (kernel|ra)\b")
_LINK_LOCAL = re.compile(r"fe80:")
_FALLBACK_TUNNEL = re.compile(r"(tunl0|gre0|gretap0|erspan0|ip6tnl0|ip6gre0|sit0|ip_vti0|ip6_vti0)$")
"""Links that come with a kind of tunnel when it is used first; none of them can be deleted."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of what a kernel's network has, as a command lists it line by line.

    All kinds that ``ip`` lists are listed by few starts of it: in an emulated guest each start takes longer than the
    list.
    """

    listed: str
    """The command; of ``ip`` its words."""
    deleted: Callable[[str], str]
    """Command that takes away the entry of a line; empty where the entry goes with something else."""
    passing: re.Pattern[str] = _NEVER
    """What a line has that changes by itself."""
    made_by_kernel: re.Pattern[str] = _NEVER
    """Lines of what the kernel makes by itself, and takes away with what it was made for."""
    family: str | None = None
    """Options of ``ip``, where it lists them; None: another program does."""
    entry: Callable[[str], str] = str
    """What is kept of a line."""


def _link(line: str) -> str:
    return f"ip link delete {shlex.quote(line.split()[0])}"


def _ip(what: str, family: int = 0) -> Callable[[str], str]:
    chosen = f"-{family} " if family else ""
    return lambda line: f"ip {chosen}{what} delete {line}"


def _qdisc(line: str) -> str:
    words = line.split()
    if "dev" not in words or ("root" not in words and not {"ingress", "clsact"} & set(words[:2])):
        return ""
    place = "root" if "root" in words else words[1]
    return f"tc qdisc delete dev {words[words.index('dev') + 1]} {place}"


def _ipsec(what: str, form: re.Pattern[str]) -> Callable[[str], str]:
    """Command that takes away the entry of a line and no other: a host may have had IPsec of its own."""

    def deleted(line: str) -> str:
        found = form.search(line.replace("\\", " "))
        return f"ip xfrm {what} delete {' '.join(found.groups())}" if found else ""

    return deleted


def _address(line: str) -> str:
    """``2: eth0    inet 10.0.0.1/24 brd ... `` as ip takes it."""
    _, device, _, address, *_ = line.split()
    return f"{address} dev {device}"


def _link_name(line: str) -> str:
    """``2: gate0@eth0: <BROADCAST> ...``: what stands before the device that it is on."""
    return line.split(":")[1].strip().partition("@")[0]


def _ipsec_state(line: str) -> str:
    """Without keys, counters and lifetimes."""
    return " ".join(line.replace("\\", " ").split()[:8])


_POLICY = re.compile(r"(src \S+) (dst \S+).*?(dir \w+)")
_STATE = re.compile(r"(src \S+) (dst \S+).*?(proto \w+) (spi \w+)")
_KINDS: dict[str, _Kind] = {
    "nftables": _Kind("nft list tables", lambda line: f"nft delete {line}"),
    "qdisc": _Kind("tc qdisc show", _qdisc, re.compile(r" (qdisc_id|refcnt) \S+")),
    "IPsec policy": _Kind("ip -o xfrm policy", _ipsec("policy", _POLICY)),
    "IPsec state": _Kind("ip -o xfrm state list nokeys", _ipsec("state", _STATE), entry=_ipsec_state),
    "rule": _Kind("rule show", lambda line: f"ip -4 rule delete {line.partition(':')[2].strip()}", family="-4"),
    "IPv6 rule": _Kind("rule show", lambda line: f"ip -6 rule delete {line.partition(':')[2].strip()}", family="-6"),
    "route": _Kind("route show table all", _ip("route", 4), _EXPIRES, _ROUTES_OF_KERNEL, family="-4"),
    "IPv6 route": _Kind("route show table all", _ip("route", 6), _EXPIRES, _ROUTES_OF_KERNEL, family="-6"),
    "neighbour": _Kind("neighbour show nud permanent", lambda line: f"ip neighbour delete {line}", family=""),
    "address": _Kind("address show", _ip("address"), made_by_kernel=_LINK_LOCAL, family="", entry=_address),
    "set": _Kind("ipset list -n", lambda line: f"ipset destroy {shlex.quote(line)}"),
    "link": _Kind("link show", _link, made_by_kernel=_FALLBACK_TUNNEL, family="", entry=_link_name),
}
"""What stands on another thing is before it. IPsec is asked alone: ip ends behind it, whatever else it is to list."""
_BETWEEN = "link show dev lo"
"""Command that prints the device of number 1, which each network has.

No listing but that of links prints such a line, so it separates listings.
"""
_LO = re.compile(r"1: lo: <")


@dataclass(frozen=True, slots=True)
class NetworkState:
    """Lines by kind."""

    lines: dict[str, frozenset[str]]

    @classmethod
    def of(cls, host: Host, kinds: Collection[str] = tuple(_KINDS)) -> NetworkState:
        """What the host has now of these kinds; what it has no tool for, nobody can have made there."""
        found: dict[str, list[str]] = {name: [] for name in kinds}
        ordered = sorted(found, key=lambda name: name == "link")  # last: other listings end at lo's line
        families = {_KINDS[name].family: [one for one in ordered if _KINDS[one].family == _KINDS[name].family]
                    for name in ordered}  # fmt: skip
        script = "\n".join(_listing(family, names) for family, names in families.items())
        name, left = "", list[str]()
        for line in host.script(script, _TIMEOUT).stdout.splitlines():
            if line.startswith(_MARK):
                name, *left = line.removeprefix(_MARK).split(",")
            elif left and _LO.match(line):
                name = left.pop(0)
            elif name in found and line.strip():
                found[name].append(_KINDS[name].entry(line))
        return cls({name: frozenset(_kept(_KINDS[name], lines)) for name, lines in found.items()})

    def new_in(self, later: NetworkState) -> Iterator[tuple[str, str]]:
        """Kind and line of what is there later and was not, of the kinds that are known then."""
        for name in later.lines:
            for line in sorted(later.lines[name] - self.lines[name]):
                yield name, line

    def of_kinds(self, kinds: Collection[str]) -> NetworkState:
        """What the host had of these kinds alone."""
        return NetworkState({name: self.lines[name] for name in kinds})


def _listing(family: str | None, names: Sequence[str]) -> str:
    """The commands that list several kinds, each of its own or all by one start of ``ip``."""
    if family is None:
        return "\n".join(f"echo '{_MARK}{name}'; {{ {_KINDS[name].listed}; }} 2>/dev/null" for name in names)
    calls = f"\n{_BETWEEN}\n".join(_KINDS[name].listed for name in names)
    return f"echo '{_MARK}{','.join(names)}'; ip -o {family} -force -batch - 2>/dev/null <<'END'\n{calls}\nEND"


def _kept(kind: _Kind, lines: Iterable[str]) -> Iterator[str]:
    """Lines of what the kernel has not made by itself, without what changes by itself."""
    for line in lines:
        if not kind.made_by_kernel.match(line):
            yield " ".join(kind.passing.sub("", line).split())


@dataclass(slots=True)
class _Known:
    """What a host has when nothing is set up there."""

    state: NetworkState
    number: str
    """See `network_number`, of then or of when it had the same last."""


class KnownNetworks:
    """What hosts have when nothing is set up there: it is listed once, as long as all that is set up is taken away.

    A list takes an emulated guest 0.14 s. A number by which equal lists are recognised takes it 0.013 s.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(self, host: Host) -> NetworkState:
        """What the host has."""
        if host.name not in self._known:
            self._known[host.name] = _Known(NetworkState.of(host), network_number(host))
        return self._known[host.name].state

    def again(self, host: Host) -> None:
        """Take it that the host has what is known, now that the same was set up once more, or learn what it has."""
        known = self._known.get(host.name)
        if known is not None and known.number != network_number(host):
            del self._known[host.name]
        self.of(host)

    def restore(self, host: Host) -> list[str]:
        """Take away what the host has new; sentences on what it still has, and on what it has no more."""
        known = self._known[host.name]
        if known.number and known.number == network_number(host):
            return []
        sentences = restore_network(host, known.state)
        if sentences:
            del self._known[host.name]
        else:
            known.number = network_number(host)
        return sentences


def network_number(host: Host) -> str:
    """Digest of all that a host's network has, equal for equal networks; empty where the host cannot compute it."""
    return host.script(f"{shlex.quote(str(native.build().network))} look 2>/dev/null").stdout.strip()


def restore_network(host: Host, earlier: NetworkState) -> list[str]:
    """Take away what the host has new; sentences on what it still has, and on what it has no more."""
    now = NetworkState.of(host)
    kinds = [name for name, lines in now.lines.items() if lines != earlier.lines[name]]
    if not kinds:  # each kind costs an emulated guest the start of a program
        return []
    commands = dict.fromkeys(_KINDS[name].deleted(line) for name, line in earlier.new_in(now))
    host.script("\n".join((*(f"{command} 2>/dev/null" for command in commands if command), ":")), _TIMEOUT)
    earlier, now = earlier.of_kinds(kinds), NetworkState.of(host, kinds)
    return [f"{host.name} still has the {name} `{line}`, of the scenario's set-up; take it away" for name, line
            in earlier.new_in(now)] + [
        f"{host.name} has no more the {name} `{line}`, which it had before the scenario's set-up; put it back"
        for name, line in now.new_in(earlier)
    ]  # fmt: skip
