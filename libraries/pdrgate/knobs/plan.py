"""The knobs of the section ``sut.knobs`` of a testbed file.

The section's keys are those of ``$defs/knobs`` in schemas/testbed.schema.json. A key with a dot or a slash in it is a
sysctl, as it is below ``sysctls``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.knobs.cpu import Governor, IdleLatency, Smt, Turbo, idle_latency
from pdrgate.knobs.cpu_shares import each, in_turn
from pdrgate.knobs.ethtool import channels, coalescing, pause_frames, rings
from pdrgate.knobs.file_knob import device_attribute, mtu, sysctl, threaded_napi
from pdrgate.knobs.firewall import FirewallRules
from pdrgate.knobs.interrupts import InterruptAffinity
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.knob import ANY, Knob, Missing, on_off, state_text
from pdrgate.knobs.neighbours import neighbours
from pdrgate.knobs.offloads import offloads
from pdrgate.knobs.qdisc import RootQdisc
from pdrgate.knobs.queues import QueueFiles, rfs_off, rps, xps
from pdrgate.knobs.records import of_whole_machine
from pdrgate.knobs.rss import IndirectionTable, flow_hash
from pdrgate.values.errors import TestbedError

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedKnob:
    """A knob of a testbed file, and what becomes of it on a host that lacks it."""

    knob: Knob
    missing: Missing = "error"

    @property
    def keeps(self) -> bool:
        """Whether nobody asked for it: it only puts back what another knob of the file takes away."""
        return self.missing == "ignore"

    @property
    def of_whole_machine(self) -> bool:
        """Whether it is set from outside all network namespaces. A port's interrupts are not: it is known there."""
        return not self.of_port and of_whole_machine(self.knob.to_record())

    @property
    def of_port(self) -> bool:
        """Whether it is a port's: set once the ports are up, for going down takes some of them away."""
        return "device" in self.knob.to_record()


def plan_knobs(section: Mapping[str, Any], ports: Sequence[str]) -> tuple[PlannedKnob, ...]:
    """The knobs for a host with these ports, in the order in which they are to be set.

    The order matters: CPUs that come or go take their settings with them, and so do queues. Whatever a host's ports
    are called, each gets all knobs of the section ``ports``.

    Raises:
        TestbedError: the section contradicts itself, see `plan_contradictions`, or names a port that the host has not.
    """
    for key, problem in plan_contradictions(section):
        raise TestbedError(f"{'.'.join(('sut', 'knobs', *key))}: {problem}")
    for port in section.get("neighbours", {}):
        if port not in ports:
            raise TestbedError(
                f"sut.knobs.neighbours: {port} is no port of this SUT; write {' or '.join(ports) or 'none of them'}"
            )
    missing: Missing = section.get("missing", "error")
    kept = (PlannedKnob(knob, "ignore") for knob in _kept(section, ports))
    return (*kept, *(PlannedKnob(knob, missing) for knob in _knobs(section, ports)))


def sysctls(section: Mapping[str, Any]) -> dict[str, int | str]:
    """The sysctls of a section by name, from wherever in it they stand."""
    return {name: value for name, value in section.items() if _is_sysctl(name)} | dict(section.get("sysctls", {}))


def plan_contradictions(section: Mapping[str, Any]) -> Iterator[tuple[_Key, str]]:
    """Contradictions that no schema finds in a section that follows it: the key below ``sut.knobs``, and the
    problem."""
    for key, name, value in (
        *((("sysctls", name), name, value) for name, value in section.get("sysctls", {}).items()),
        *(((name,), name, value) for name, value in section.items() if _is_sysctl(name)),
    ):
        try:
            sysctl(name, value)
        except TestbedError as error:
            yield key, str(error)
        if len(key) == 1 and name in section.get("sysctls", {}):
            yield key, "stands below sysctls too; keep one"
    for port, macs in section.get("neighbours", {}).items():
        try:
            neighbours(port, macs)
        except ValueError as error:
            yield ("neighbours", port), f"{error}; write addresses such as 192.0.2.1 or 2001:db8::1"
    asked = section.get("ports", {}).get("rss")
    if isinstance(asked, Mapping) and not any(asked.get("weight", (1,))):
        yield ("ports", "rss", "weight"), "all weights are 0; give one queue more"


def knobs_text(section: Mapping[str, Any]) -> str:
    """A section in words that are equal when the knobs are: ``ports.mtu=1400; cpu.turbo=False``, sorted."""

    def parts(key: str, value: Any) -> Iterator[str]:
        if isinstance(value, Mapping) and value:
            for name, one in value.items():
                yield from parts(f"{key}.{name}" if key else str(name), one)
        elif key:
            yield f"{key.removeprefix('sysctls.')}={value}"

    return "; ".join(sorted(parts("", section)))


def _kept(section: Mapping[str, Any], ports: Sequence[str]) -> Iterator[Knob]:
    """Knobs that are lost with queues or CPUs and do not come back with them, and knobs that keep queues from going."""
    if "smt" in section.get("cpu", {}):
        yield from (Governor(ANY), IdleLatency(ANY))
    for port in ports:
        if "channels" in section.get("ports", {}):
            yield from (
                IndirectionTable(port, "default"),
                rps(port, ANY),
                xps(port, ANY),
                QueueFiles(port, "rps_flow_cnt", ANY),
            )
        if "channels" in section.get("ports", {}) or "smt" in section.get("cpu", {}):
            yield InterruptAffinity(port, ANY)


def _knobs(section: Mapping[str, Any], ports: Sequence[str]) -> Iterator[Knob]:
    cpu = section.get("cpu", {})
    if "smt" in cpu:
        yield Smt(on_off(cpu["smt"]))
    if "turbo" in cpu:
        yield Turbo(on_off(cpu["turbo"]))
    if "governor" in cpu:
        yield Governor(cpu["governor"])
    if "max_idle_latency" in cpu:
        yield idle_latency(cpu["max_idle_latency"])
    if "irqbalance" in section:
        yield Irqbalance(on_off(section["irqbalance"]))
    yield from (sysctl(name, value) for name, value in sysctls(section).items())
    if "firewall" in section:
        yield FirewallRules(section["firewall"])
    for port in ports:
        asked = section.get("ports", {})
        yield from (make(port, asked[name]) for name, make in _OF_A_PORT.items() if name in asked)
        if macs := section.get("neighbours", {}).get(port):
            yield neighbours(port, macs)


def _indirection(port: str, asked: str | Mapping[str, Any]) -> IndirectionTable:
    if isinstance(asked, str):
        return IndirectionTable(port, asked)
    words = {how: ",".join(map(str, value)) if how == "weight" else str(value) for how, value in asked.items()}
    return IndirectionTable(port, state_text(words))


def _share(asked: Sequence[int] | Mapping[str, Sequence[int]]) -> str:
    return in_turn(asked["in_turn"]) if isinstance(asked, Mapping) else each(asked)


_OF_A_PORT: dict[str, Callable[[str, Any], Knob]] = {
    # What resets a device, or gives it other queues, comes before what belongs to these.
    "channels": channels,
    "rings": rings,
    "mtu": mtu,
    "coalescing": coalescing,
    "pause": pause_frames,
    "offloads": offloads,
    "rss": _indirection,
    "flow_hash": flow_hash,
    "gro_flush_timeout": lambda port, value: device_attribute(port, "gro_flush_timeout", value),
    "napi_defer_hard_irqs": lambda port, value: device_attribute(port, "napi_defer_hard_irqs", value),
    "threaded_napi": threaded_napi,
    "qdisc": RootQdisc,
    "rps": lambda port, value: rps(port, _share(value)),
    "xps": lambda port, value: xps(port, _share(value)),
    "rfs": lambda port, value: rfs_off(port),
    "interrupts": lambda port, value: InterruptAffinity(port, _share(value)),
}


def _is_sysctl(name: str) -> bool:
    return "." in name or "/" in name
