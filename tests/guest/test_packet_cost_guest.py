"""The cost of a packet in a real kernel: single functions repeat to half an instruction, whatever the machine does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import DATA_PATHS, data_path
from pdrgate.data_paths.slowdowns import Planted
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.gate.verdicts.packet_cost import cost_result, notice_of_calls
from pdrgate.history.trials import TrialFile
from pdrgate.knobs import KnobSet
from pdrgate.measurands import Ask
from pdrgate.measurands.counted.cost import packet_cost
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import CALLER, USER_SPACE, Belonging
from pdrgate.record.trial import Trial
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

OVERLOAD, DURATION = 120_000.0, 0.25
LOSS = 0.005


@pytest.fixture
def metered(shared_testbed, cloud: KernelBuild) -> VmTestbed:
    return shared_testbed(cloud, metered=True)


@pytest.fixture
def measurer(metered: VmTestbed, tmp_path: Path) -> Iterator[Measurer]:
    path = data_path("ipv6-routing")
    path.apply(metered.hops)
    metered.pin("1 cpu")
    generator, file = metered.generator(6), TrialFile(tmp_path / "trials.jsonl")
    belonging = Belonging("cost", boot=metered.boot_id, pair=1)
    yield Measurer(
        OpenLoopTraffic(generator, Frames(6, 64), busy=metered.executed.busy),
        metered.observers(),
        file,
        belonging,
        counting=metered.executed.counting(),
        during={Phase.PATH: metered.executed.tracing()},
    )
    generator.close()
    file.close()
    path.restore()


@pytest.fixture
def saturate(measurer: Measurer) -> Callable[[], list[Trial]]:
    return lambda: [measurer.measure(Ask(OVERLOAD, DURATION, Phase.SATURATION)) for _ in range(3)]


def per_packet(trial: Trial, name: str) -> tuple[float, float]:
    found = packet_cost([trial])
    assert found is not None
    return found.functions[name]


def test_functions_on_the_path_repeat_and_a_policy_rule_is_seen_where_it_is(
    metered: VmTestbed, measurer: Measurer, saturate: Callable[[], list[Trial]]
) -> None:
    assert metered.executed.uncounted == ""
    first, second, third = saturate()
    for name in ("ip6_forward", "ip6_rcv_core", "start_xmit"):
        instructions = [per_packet(trial, name)[0] for trial in (first, second, third)]
        # Since Linux 6.12 what is sent is accounted for as the port gives it back, now more and now fewer at a time.
        assert max(instructions) - min(instructions) < (10 if name == "start_xmit" else 0.5), name
        assert 50 < instructions[0] < 500
        for trial in (first, second, third):
            assert per_packet(trial, name)[1] == pytest.approx(1.0, abs=0.01)  # each packet once

    # Who called whom: all of it is told, and each packet's way leads from the poll to the port.
    followed = measurer.measure(Ask(OVERLOAD, DURATION, Phase.PATH))
    assert sum(each for each, _ in followed.seen.stacks.values()) == pytest.approx(
        sum(each for name, (each, _) in first.seen.functions.items() if name != USER_SPACE) * followed.forwarded
        / first.forwarded, rel=0.03,
    )  # fmt: skip
    ways = [stack for stack in followed.seen.stacks if "ip6_forward" in stack.split(CALLER)]
    assert ways[0].startswith("handle_softirqs;net_rx_action;__napi_poll;virtnet_poll;receive_buf;napi_gro_receive;")
    assert any(";ip6_finish_output;" in stack and ";start_xmit" in stack for stack in followed.seen.stacks)
    own = [followed.seen.stacks[stack] for stack in ways if stack.endswith("ip6_forward")]
    each, calls = (sum(column) / followed.forwarded for column in zip(*own, strict=True))
    # The least of what it calls counts for it; and some of the first packets are not followed, where that begins late.
    assert -0.05 < each / per_packet(first, "ip6_forward")[0] - 1 < 0.06
    assert 0.95 < calls < 1.01

    idle = measurer.measure(Ask(0.0, DURATION, Phase.IDLE))
    assert idle.seen.functions[USER_SPACE][0] > 1_000_000  # a program had the CPU
    assert idle.seen.functions["update_process_times"][1] > 0
    assert "ip6_forward" not in idle.seen.functions
    assert idle.seen.counted >= DURATION

    # A slowdown that is planted is seen where it is, and leaves nothing behind.
    with KnobSet() as knobs:
        for knob in Planted(DATA_PATHS["ipv6-routing"].slowdowns[0], 300).knobs(metered.hops[0]):
            knobs.apply(metered.guest, knob)
        slowed = saturate()
    assert all(per_packet(trial, "__tcf_classify")[1] == pytest.approx(1.0, abs=0.01) for trial in slowed)
    plain, planted = cost_result([[first, second, third, idle]], LOSS), cost_result([[*slowed, idle]], LOSS)
    # Its program has come after the names were read, and is counted under somebody else's.
    assert any(one.change == pytest.approx(310, abs=15) for one in function_changes(plain, planted))
    assert "__tcf_classify" not in measurer.measure(Ask(OVERLOAD, DURATION, Phase.SATURATION)).seen.functions

    # The first rule takes routing off its fast path, the second is walked past by each packet.
    metered.guest.run("ip", "-6", "rule", "add", "fwmark", "77", "table", "main")
    ruled = saturate()
    before = cost_result([[*ruled, idle]], LOSS)
    metered.guest.run("ip", "-6", "rule", "add", "fwmark", "78", "table", "main")
    after = cost_result([[*saturate(), idle]], LOSS)
    found = {one.function: one for one in function_changes(before, after)}
    assert found["fib_rules_lookup"].change == pytest.approx(15, abs=5)
    # This guest is not held at a speed: beside other load its trials differ by more than they should, or are left out.
    assert before is not None
    assert after is not None
    deviations = [one.deviation for cost in (before, after) for one in cost.functions if one.name == "fib_rules_lookup"]
    alone = None in deviations  # of three trials
    assert found["fib_rules_lookup"].sure or alone or max(one or 0.0 for one in deviations) > 1.0, deviations

    # One table more is looked up by each packet, before the one that has its route: that is told by calls alone. Trials
    # stand for boots here.
    metered.guest.run("ip", "-6", "route", "add", "unreachable", "2001:db8:77::/48", "table", "77")
    metered.guest.run("ip", "-6", "rule", "add", "pref", "77", "table", "77")
    twice = saturate() + saturate()
    fewer, more = (cost_result([[trial, idle] for trial in each], LOSS) for each in (ruled, twice))
    changes = {one.function: one for one in function_changes(fewer, more)}
    looked_up = changes["fib6_table_lookup"]
    assert looked_up.calls_changed
    assert looked_up.calls_before is not None
    assert looked_up.calls_after == pytest.approx(looked_up.calls_before + 1, abs=0.01)
    assert "called" in notice_of_calls([looked_up])
    halves = (cost_result([[trial, idle] for trial in each], LOSS) for each in (twice[:3], twice[3:]))
    assert notice_of_calls(function_changes(*halves)) == ""


def test_other_trials_keep_no_functions(measurer: Measurer) -> None:
    assert measurer.measure(Ask(5000.0, DURATION, Phase.REPEAT)).seen.functions == {}
