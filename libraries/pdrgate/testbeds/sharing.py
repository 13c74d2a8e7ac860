"""What a testbed uses of this machine that another run cannot use at the same time, from its file alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pdrgate.hosts.cpus import thread_siblings
from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.knobs import plan_knobs
from pdrgate.knobs.file_knob import setting_name
from pdrgate.safety.locks import MACHINE, Resource
from pdrgate.testbeds.config import TestbedConfig
from pdrgate.testbeds.kinds import LocalNetns, LocalVm, Rack, StationConfig

BACKLOG = "net.core.netdev_max_backlog"
"""A scenario's receive buffer where packets wait in the backlog; a machine has one for all of its CPUs."""


def resources(config: TestbedConfig) -> frozenset[Resource]:
    """What a run with this testbed has to hold. CPUs come with all threads of their cores, which slow each other.

    Where the SUT is on this machine it holds that too, so that nobody who has it for a SUT changes what is measured.

    Raises:
        TestbedError: the CPUs that the file asks for cannot be had.
    """
    match config:
        case Rack():
            return frozenset(_of_rack(config))
        case LocalNetns():
            # A guest's knobs and buffers are its own, those of namespaces partly this machine's.
            return _of_cpus(config) | {MACHINE, Resource("setting", BACKLOG), *_settings(config.knobs)}
        case LocalVm():
            return _of_cpus(config) | {MACHINE}
    return frozenset((Resource("host", config.name),))


def _of_cpus(config: TestbedConfig) -> frozenset[Resource]:
    plan = config.cpu_plan()
    return cores((plan.generator, *plan.sut))


def cores(cpus: Iterable[int]) -> frozenset[Resource]:
    """These CPUs and all that share a core with one of them."""
    return frozenset(Resource("cpu", str(cpu)) for core in thread_siblings(cpus).values() for cpu in core)


def _of_rack(config: Rack) -> Iterator[Resource]:
    generator = config.generator
    if generator.trex is not None:
        yield from (Resource("trex", f"{port} at {generator.trex.address}") for port in generator.trex.ports)
        yield from cores(config.cpus or () if not config.over_ssh else ())
    else:
        inside = f" of namespace {generator.namespace}" if generator.namespace else ""
        yield from (Resource("interface", f"{port}{inside}") for port in generator.ports)
        plan = config.cpu_plan()
        yield from cores((plan.generator, *(() if config.over_ssh else plan.sut)))
    if config.station is not None:
        yield from _of_station(config.station)
    if config.host.ssh is not None:
        yield Resource("host", _place(config.host.ssh))
        return
    yield MACHINE
    namespace = config.host.namespace
    yield Resource("host", f"namespace {namespace}" if namespace else "of this machine")
    yield from _settings(config.knobs)
    if config.buffer != "ring":
        yield Resource("setting", BACKLOG)


def _of_station(station: StationConfig) -> Iterator[Resource]:
    if station.host.ssh is not None:
        yield Resource("host", _place(station.host.ssh))
        return
    inside = f" of namespace {station.host.namespace}" if station.host.namespace else ""
    yield Resource("interface", f"{station.interface}{inside}")
    yield from cores(() if station.cpu is None else (station.cpu,))


def _settings(section: Mapping[str, Any]) -> Iterator[Resource]:
    # Ports are known only when the testbed is set up, and what is theirs is nobody else's.
    of_machine = {key: value for key, value in section.items() if key not in ("ports", "neighbours")}
    for planned in plan_knobs(of_machine, ()):
        if planned.of_whole_machine:
            record = planned.knob.to_record()
            yield Resource("setting", setting_name(record["path"]) if "path" in record else record["kind"])


def _place(target: SshTarget) -> str:
    """A host by address, for aliases are each testbed's own."""
    return f"{target.address}:{target.port}" + (f" behind {_place(target.jump)}" if target.jump else "")
