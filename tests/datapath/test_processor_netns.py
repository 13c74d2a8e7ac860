"""What this processor counts of the kernel while packets are forwarded, where it counts at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from flat_values import flat_trial

from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.cost_counting import uncounted_reason
from pdrgate.hosts.host import local_host
from pdrgate.measurands.counted.cost import packet_cost
from pdrgate.observers.function_names import OTHERS
from pdrgate.observers.processor import WHOLE_KERNEL, ProcessorCounting
from pdrgate.observers.watching import Observation, watching
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.datapath


def counted(testbed: NetnsTestbed, load: float) -> tuple[Trial, Observation]:
    """A trial of 0.4 s, and what the kernel executed meanwhile."""
    path = data_path("ipv6-routing", None)
    path.apply(testbed.hops)
    testbed.pin("1 cpu")
    generator = testbed.generator(6)
    try:
        with watching(testbed.executed.counting()) as watch:
            trial = generator.trial(load, 0.4, Frames(6))
    finally:
        generator.close()
        path.restore()
    return trial, watch.observation


def test_packets_cost_what_their_number_says(make_testbed: Callable[[], NetnsTestbed]) -> None:
    testbed = make_testbed()
    testbed.executed.counting()
    if told := testbed.executed.uncounted:
        assert uncounted_reason(testbed) == f"the cost of a packet is not counted here: {told}"
        assert testbed.describe().keys() >= {"hops"} and "counted" not in testbed.describe()
        pytest.skip(told)
    costs = []
    for load in (50e3, 100e3):
        trial, observation = counted(testbed, load)
        assert observation.counted > 0.4
        own = {name: values for name, values in observation.functions.items() if name != USER_SPACE}
        (executed,) = (value for counter, value in observation.after.items() if counter.name == "kernel_instructions")
        assert sum(instructions for instructions, _ in own.values()) == pytest.approx(executed, rel=0.01)
        found = packet_cost([flat_trial(load, 0.4, trial.offered, trial.forwarded, functions=observation.functions)])
        assert found is not None and found.batch is None
        costs.append(found.instructions)
    # What other processes do on that CPU counts too: a factor of three is no matter of this test.
    assert all(1000 < cost < 200_000 for cost in costs), costs
    assert testbed.describe()["counted"].startswith("by the processor")


def test_without_perf_the_kernel_is_one_function(machine: None, tmp_path: Path) -> None:
    """And what programs execute is no part of it."""
    host = local_host()
    cpu = max(os.sched_getaffinity(0))
    watch = ProcessorCounting(host, lambda: (cpu,))
    try:
        if not (observers := watch.counting()):
            pytest.skip(watch.uncounted)
        (observer,) = observers
        observer._counts.profiles = False
        with watch.busy(), watching(observers) as told:
            subprocess.run(("sleep", "0.2"), check=True)
        functions = told.observation.functions
        assert functions.keys() <= {WHOLE_KERNEL, OTHERS, USER_SPACE}
        assert functions[USER_SPACE][0] > functions[WHOLE_KERNEL][0] > 0
    finally:
        watch.close()
    assert not list(Path("/tmp").glob("pdrgate-profile.*"))


def test_a_cpu_that_is_not_there_is_told(machine: None) -> None:
    watch = ProcessorCounting(local_host(), lambda: (4096,))
    assert watch.counting() == ()
    assert watch.uncounted.startswith("the processor's counters on local: kernel_instructions: ")
    assert watch.describe() == {}
