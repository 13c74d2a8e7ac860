"""Resources of this machine that a testbed uses and another run cannot use meanwhile; see `TestbedConfig.resources`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pdrgate.hosts.cpus import CpuPlan, thread_siblings
from pdrgate.knobs import plan_knobs
from pdrgate.knobs.file_knob import setting_name
from pdrgate.safety.locks import Resource

BACKLOG = "net.core.netdev_max_backlog"
"""A scenario's receive buffer where packets wait in the backlog; a machine has one for all of its CPUs."""


def cores(cpus: Iterable[int]) -> frozenset[Resource]:
    """Resources of these CPUs and all that share a core with one of them: threads of a core slow each other."""
    return frozenset(Resource("cpu", str(cpu)) for core in thread_siblings(cpus).values() for cpu in core)


def cores_of(plan: CpuPlan) -> frozenset[Resource]:
    """The `cores` of generator and SUT."""
    return cores((plan.generator, *plan.sut))


def settings(section: Mapping[str, Any]) -> Iterator[Resource]:
    """The knobs of a testbed file that are settings of the whole machine.

    Knobs of ports are left out: which ports is known only when the testbed is set up, and those are nobody else's.
    """
    of_machine = {key: value for key, value in section.items() if key not in ("ports", "neighbours")}
    for planned in plan_knobs(of_machine, ()):
        if planned.of_whole_machine:
            record = planned.knob.to_record()
            yield Resource("setting", setting_name(record["path"]) if "path" in record else record["kind"])
