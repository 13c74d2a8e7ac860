"""Each path of the portfolio in a guest: its packets go through, nothing of it stays, and what slows it down is named.

One guest takes all paths, one after the other. So what others execute after them is tried on the way: a path that
leaves state behind, such as a setting that the kernel never takes back, changes what the next ones call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from applied_path import applied
from portfolio_paths import FILES, REPLACED, scenario_of_path

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import DataPath, SetUp
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.gate.sut.probe import probe_path
from pdrgate.history.trials import TrialFile
from pdrgate.launch.path_files import Fault
from pdrgate.measurands import Ask
from pdrgate.measurands.counted.cost import on_path, packet_cost
from pdrgate.measurands.rates.replacement import per_replacement
from pdrgate.observers.set_up_costs import ReplacingObserver
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.generator import Generator

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

LOAD, DURATION = 8e3, 0.1
"""Packets/s that a guest takes of any path, and seconds."""
LIGHT = LOAD / 4
"""Packets/s of which a path of a thousand rules loses none, also where others have both CPUs of this machine: the
generator waits a second at most for what is queued."""
NEARLY_ALL = 0.995
TRIES = 3
"""Trials, of which one loses next to nothing; a guest that others' work keeps waiting may lose some in the others."""
LOOKED_AT = ("ipv4_routing", "ipv6_routing", "bridge")
"""Paths that are counted before all others, and once more after them..."""
OVERLOAD, COUNTED = 250e3, 3
"""...at so many packets/s, in so many trials each."""
BURSTS = 0.01
"""Seconds of a trial at an overload of some bursts."""
OF_EACH_PACKET, NEVER = 0.5, 0.05
"""Calls per packet of a function that is on its way, and of one that is not. What is between them is called for pages,
as `free_pcp_prepare`, or for batches: by which memory is free, and how long a ring is."""
ALIKE = 0.03
"""Of what a packet costs: a path that is set up again has other hash values, and lists of other lengths: one comparison
more is half a percent."""

Functions = Mapping[str, tuple[float, float]]
"""Instructions and calls, by function: for a packet, or for a replacement."""


@dataclass(frozen=True)
class Used:
    """What became of a path that was set up, used and taken away."""

    scenario: Scenario
    moved: bool
    """Whether what was sent came through, in numbers that suffice."""
    stays: bool
    """Whether the network's state was another one afterwards."""
    functions: Functions
    """What was executed; nothing of a closed loop."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("portfolio")


@pytest.fixture(scope="module")
def metered(shared_testbed, cloud: KernelBuild) -> VmTestbed:
    return shared_testbed(cloud, metered=True)


@pytest.fixture(scope="module")
def at_first(metered: VmTestbed, folder: Path) -> Mapping[str, Sequence[Functions]]:
    """What the paths that are looked at execute, before all others."""
    return {name: at_saturation(metered, name, folder) for name in LOOKED_AT}


@pytest.fixture(scope="module", params=FILES)
def name(request: pytest.FixtureRequest, at_first: object) -> str:
    return request.param


@pytest.fixture(scope="module")
def used(metered: VmTestbed, name: str, folder: Path) -> Used:
    """The path as it is."""
    (hop,) = metered.hops
    scenario = scenario_of_path(name)
    before = NetworkState.of(hop.host)
    with applied(metered, scenario, scenario.set_up) as path:
        if path.loop is not None:
            moved, functions = path.loop.transfer(65536, 0.2).transfer.delivered > 0, {}
        else:
            with generating(metered, path) as generator:
                probe_path(path, metered, generator, scenario.frames, scenario.counts)
                moved = any(nearly_all(generator.trial(LIGHT, DURATION, scenario.frames)) for _ in range(TRIES))
                functions = executed(metered, path, generator, scenario, folder)
    return Used(scenario, moved, NetworkState.of(hop.host) != before, functions)


def nearly_all(trial: Trial) -> bool:
    return trial.forwarded >= NEARLY_ALL * trial.offered > 0


@contextmanager
def generating(testbed: VmTestbed, path: DataPath) -> Iterator[Generator]:
    generator = counted_by(path.arrivals, testbed.generator(path.family))
    try:
        yield generator
    finally:
        generator.close()


@contextmanager
def measuring(
    testbed: VmTestbed, path: DataPath, generator: Generator, scenario: Scenario, folder: Path
) -> Iterator[Measurer]:
    file = TrialFile(folder / "trials.jsonl")
    try:
        yield Measurer(
            OpenLoopTraffic(generator, scenario.frames, busy=testbed.executed.busy),
            testbed.observers(),
            file,
            Belonging("path", boot=testbed.boot_id, pair=1),
            counting=testbed.executed.counting(),
            during={Phase.REPLACEMENT: (ReplacingObserver(path.replace),)},
        )
    finally:
        file.close()


def executed(testbed: VmTestbed, path: DataPath, generator: Generator, scenario: Scenario, folder: Path) -> Functions:
    with measuring(testbed, path, generator, scenario, folder) as measurer:
        if scenario.replaces:
            return per_replacement(measurer.measure(Ask(LOAD / 8, DURATION, Phase.REPLACEMENT)))
        found = packet_cost([measurer.measure(Ask(LOAD, DURATION, Phase.COST))])
    assert found is not None
    return found.functions


def at_saturation(testbed: VmTestbed, name: str, folder: Path, duration: float = DURATION) -> Sequence[Functions]:
    scenario = scenario_of_path(name)

    def trial(measurer: Measurer) -> Trial:
        return measurer.measure(Ask(OVERLOAD, duration, Phase.SATURATION))

    with (
        applied(testbed, scenario, scenario.set_up) as path,
        generating(testbed, path) as generator,
        measuring(testbed, path, generator, scenario, folder) as measurer,
    ):
        trial(measurer)
        return [on_path(trial(measurer)) for _ in range(COUNTED)]


def with_fault(scenario: Scenario, fault: Fault) -> SetUp:
    plain, (first, *_) = scenario.set_up or SetUp(()), fault.steps
    if first.startswith(REPLACED):
        assert plain.replacement is not None
        command = f"{plain.replacement.command} && {first.removeprefix(REPLACED)}"
        return replace(plain, replacement=replace(plain.replacement, command=command))
    more = set_up_of(fault.steps)
    return replace(plain, steps=(*plain.steps, *more.steps))


def test_its_packets_go_through_and_nothing_stays(used: Used) -> None:
    assert used.moved
    assert not used.stays


def test_a_fault_is_named_by_the_function_that_it_is_in(
    metered: VmTestbed, used: Used, name: str, folder: Path
) -> None:
    scenario, fault = used.scenario, FILES[name].fault
    if fault is None:
        pytest.skip("a closed loop has no packets to count, and tests of programs make those of XDP slower")
    function = fault.seen_in
    with applied(metered, scenario, with_fault(scenario, fault)) as path, generating(metered, path) as generator:
        generator.trial(LOAD, DURATION, scenario.frames)
        slower = executed(metered, path, generator, scenario, folder)
    costs = [
        sum(each for one, (each, _) in functions.items() if re.search(function, one))
        for functions in (used.functions, slower)
    ]
    print(f"{name}: {function} {costs[0]:.0f} -> {costs[1]:.0f} instructions")
    assert costs[1] > 1.1 * costs[0]


def test_what_a_path_executes_does_not_depend_on_those_before(
    metered: VmTestbed, at_first: Mapping[str, Sequence[Functions]], folder: Path
) -> None:
    for name, first in at_first.items():
        last = at_saturation(metered, name, folder)
        before, after = (min(sum(each for each, _ in one.values()) for one in trials) for trials in (first, last))
        print(f"{name}: {before:.0f} -> {after:.0f} instructions")
        assert called_anew(first, last) == called_anew(last, first) == [], name
        assert after == pytest.approx(before, rel=ALIKE), name


def test_workers_of_wireguard_end_what_they_have_begun(metered: VmTestbed, folder: Path) -> None:
    """However slow the guest is: one that sends would else interrupt the one that encrypts, up to once a packet."""
    for functions in at_saturation(metered, "wireguard", folder, BURSTS):
        begun = {name: functions[f"wg_packet_{name}_worker"][1] for name in ("encrypt", "tx", "decrypt")}
        print(begun, functions["__schedule"])
        assert begun["tx"] < 1.5 * begun["encrypt"] < 0.1


def called_anew(first: Sequence[Functions], last: Sequence[Functions]) -> list[str]:
    """The functions that all later trials call for each packet, and no earlier one does."""
    calls = {
        name: [[one.get(name, (0.0, 0.0))[1] for one in trials] for trials in (first, last)]
        for name in {name for one in last for name in one}
    }
    return [name for name, (old, new) in calls.items() if min(new) >= OF_EACH_PACKET and max(old) < NEVER]
