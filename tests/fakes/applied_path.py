"""A path of the portfolio on a testbed, as a gate sets it up: for tests and benches that use it without a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pdrgate.data_paths.catalogue import DataPath, SetUp, data_path
from pdrgate.gate.run.scenario import Scenario
from pdrgate.knobs import KnobSet, batching
from pdrgate.testbeds.vm.vm_testbed import VmTestbed


@contextmanager
def applied(testbed: VmTestbed, scenario: Scenario, set_up: SetUp | None) -> Iterator[DataPath]:
    """The path with this set-up, and the scenario's pinning and batches; taken away again."""
    if set_up is not None:
        testbed.furnish(set_up.programs, set_up.words)
    path = data_path(scenario.data_path, None, scenario.delivery, scenario.streams, set_up=set_up, report=print)
    knobs = KnobSet()
    try:
        path.apply(testbed.hops)
        testbed.pin(scenario.pinning)
        for port in testbed.hops[0].ports:
            for knob in batching(port.interface, scenario.gro, scenario.wait):
                knobs.apply(testbed.guest, knob)
        yield path
    finally:
        assert [*knobs.restore(), *path.restore()] == []
