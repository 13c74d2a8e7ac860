"""The page of the portfolio's paths: what each is, why it is there, and a picture of what its packets pass.

The pictures are drawn from what the paths' files describe: the data path, the steps and the traffic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pdrgate.data_paths.catalogue import DATA_PATHS, UNDER_STEPS
from pdrgate.gate.run.scenario import Scenario
from pdrgate.launch.described import described_tests
from pdrgate.launch.path_files import PathFile, path_files

_HOOKS = {"ingress": 0, "prerouting": 1, "input": 3, "forward": 3, "output": 3, "postrouting": 5}
"""Places of netfilter's hooks on a packet's way; routing is 2, devices are 4, queueing disciplines 6."""
_ROUTING, _DEVICE, _QUEUE = 2, 4, 6
_CHAIN = re.compile(r"add chain ip \w+ \w+ \{ type (\w+) hook (\w+)")
_FLOWTABLE = re.compile(r"add flowtable .* hook (\w+)")
_TABLES = re.compile(r"^iptables -A (\w+)")
_LINK = re.compile(r"ip link add \S+ .*?type (\w+)")
_QDISC = re.compile(r"tc qdisc (?:add|replace) dev \S+ (?:root|parent \S+)(?: handle \S+)? (\w+)")
_RELAY = re.compile(r"pdrgate-relay from (\w+).* to (\w+)")
_SOCKETS = {
    "udp": "UDP socket", "packet": "packet socket", "ring": "ring of a packet socket", "xdp": "AF_XDP socket",
    "tap": "TAP",
}  # fmt: skip


def paths_page() -> Iterator[str]:
    """The sections of docs/paths.md, a path each, by rank."""
    scenarios = {tag: one.scenario for one in described_tests(patterns=("path-*",)) for tag in one.tags}
    paths = path_files()
    for rank in ("primary", "secondary"):
        yield from ("", f"## {rank.capitalize()}")
        for one in sorted(paths, key=lambda path: path.title.lower()):
            if one.rank == rank:
                yield from _section(one, scenarios[one.tag])


def _section(path: PathFile, scenario: Scenario) -> Iterator[str]:
    yield from (
        "",
        f"### {path.title}",
        "",
        f"`{path.tag}`: {path.about}",
        "",
        path.why,
        "",
        f"    {picture(scenario)}",
    )
    if scenario.traffic is not None:
        yield f"    packets: {scenario.traffic.words}"
    if path.fault is not None:
        steps = "; ".join(one for one in path.fault.steps if not one.startswith("undo:"))
        yield from ("", f"A fault that is seen: `{steps}`, in `{path.fault.seen_in}`.")


def picture(scenario: Scenario) -> str:
    """What a packet passes, from port to port or to a program."""
    commands = [step.command for step in scenario.set_up.steps] if scenario.set_up is not None else []
    stations = _stations(commands, scenario)
    path = DATA_PATHS[scenario.data_path]
    if scenario.streams is not None:
        sends = scenario.streams.direction == "sends"
        ends = ("a program", "IN") if sends else ("IN", "a program")
        inner = [f"TCP ({scenario.streams})", *stations]
        return " → ".join((ends[0], *(inner if sends else reversed(inner)), ends[1]))
    if path.delivers:
        return " → ".join(("IN", *stations, path.title, str(scenario.delivery)))
    return " → ".join(("IN", *stations, *(() if scenario.counts == "dropped" else ("OUT",))))


def _stations(commands: Sequence[str], scenario: Scenario) -> list[str]:
    found: list[tuple[int, str]] = []
    path = DATA_PATHS[scenario.data_path]
    for command in commands:
        for kind, hook in _CHAIN.findall(command):
            found.append((_HOOKS.get(hook, _ROUTING), f"nftables {hook} ({kind})"))
        found += [(_HOOKS[hook], "flowtable") for hook in _FLOWTABLE.findall(command)]
        found += [(_HOOKS[chain.lower()], f"iptables {chain}") for chain in _TABLES.findall(command)]
        found += [(_QUEUE, name) for name in _QDISC.findall(command) if name != "clsact"]
        found += [(_DEVICE, f"{link} device") for link in _LINK.findall(command)]
        if command.startswith("ipvsadm -A"):
            found.append((_HOOKS["input"], "IPVS"))
        for one, other in _RELAY.findall(command):
            found.append((_DEVICE, f"{_SOCKETS[one]} → a program → {_SOCKETS[other]}"))
    if not (path.delivers or scenario.streams is not None or path.name.startswith("bare-")):
        found.append((_ROUTING, "routing" if path.name == UNDER_STEPS else path.title))
    return [name for _, name in dict.fromkeys(sorted(found, key=lambda one: one[0]))]
