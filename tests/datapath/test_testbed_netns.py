"""The testbed of namespaces: pinning and buffers are read back, and closing it leaves the machine as it was."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pdrgate.hosts.cpus import CpuPlan, parse_cpu_mask, plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

LOCAL = Path(__file__).parents[2] / "resources" / "testbeds" / "local-netns.yaml"
BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=2)


def steered(testbed: NetnsTestbed) -> dict[str, tuple[int, ...]]:
    """The CPUs of every receive queue in the SUT, by hop and queue."""
    found = {}
    for number, hop in enumerate(testbed.hops, start=1):
        for path in hop.host.run("sh", "-c", "ls -d /sys/class/net/*/queues/rx-*").stdout.split():
            device, queue = path.split("/")[4], path.split("/")[-1]
            if device != "lo":
                found[f"{number}.{device}.{queue}"] = parse_cpu_mask(hop.host.read(f"{path}/rps_cpus"))
    return found


def test_pinning_reads_back_at_both_edges_and_nowhere_else(testbed: NetnsTestbed) -> None:
    plan = plan_cpus(None, None)
    others = tuple(sorted(os.sched_getaffinity(0) - {plan.generator}))
    for pinning, cpus in (("unpinned", others), ("1 cpu", plan.sut[:1])):
        testbed.pin(pinning)  # type: ignore[arg-type]
        assert steered(testbed) == {"1.in0.rx-0": cpus, "1.out0.rx-0": (), "2.in0.rx-0": (), "2.out0.rx-0": cpus}
        assert plan.generator not in cpus


def test_two_cpus_need_two(testbed: NetnsTestbed) -> None:
    before = steered(testbed)
    with pytest.raises(TestbedError) as error:
        testbed.pin("2 cpus")
    cpu = plan_cpus(None, None).sut[0]
    assert str(error.value) == (
        f"pinning to 2 cpus needs 2 CPUs for the SUT, and it has CPU {cpu}; "
        "give it more with sut.cpus in the testbed file, such as cpus: [1, 2]"
    )
    assert steered(testbed) == before


def test_one_cpu_is_refused_before_anything_is_made(
    machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    with Journal.begin(tmp_path) as journal, pytest.raises(TestbedError, match=r"^only CPU 0 is available, and a gen"):
        load_testbed(LOCAL).open(journal)
    assert state_of_machine() == before


def test_not_being_root_is_told(machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with Journal.begin(tmp_path) as journal, pytest.raises(TestbedError) as error:
        load_testbed(LOCAL).open(journal)
    assert str(error.value) == "testbed local-netns makes network namespaces, which takes root; run with sudo"


def test_missing_tools_are_told(machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda tool, path=None: None)
    with Journal.begin(tmp_path) as journal, pytest.raises(TestbedError) as error:
        load_testbed(LOCAL).open(journal)
    assert str(error.value).startswith(
        "ip, ethtool are not installed; run ./ci/bootstrap, or: apt-get install iproute2 ethtool"
    )


def test_buffers_are_set_and_put_back(
    machine: None, tmp_path: Path, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    with Journal.begin(tmp_path) as journal:
        testbed = load_testbed(LOCAL).open(journal)
        try:
            for packets in (512, 4096, 1, 777):
                testbed.set_buffer(packets)
                assert int(BACKLOG.read_text()) == packets
            for packets in (0, -1, 1_000_001):
                with pytest.raises(
                    TestbedError, match=rf"^a receive buffer of {packets} packets makes no sense; use 512"
                ):
                    testbed.set_buffer(packets)
            assert int(BACKLOG.read_text()) == 777
            assert state_of_machine() != before
        finally:
            testbed.close()
        assert state_of_machine() == before
        testbed.close()  # a second time
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_fails_half_way_leaves_nothing(
    machine: None, tmp_path: Path, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    with (
        Journal.begin(tmp_path) as journal,
        pytest.raises(TestbedError, match=r"^writing never to /proc/sys/net/ipv4/ip_forward"),
    ):
        NetnsTestbed(3, plan_cpus(None, None), journal, section={"net.ipv4.ip_forward": "never"})
    assert state_of_machine() == before


def test_a_namespace_that_could_not_be_deleted_is_deleted_by_the_next_close(
    machine: None, tmp_path: Path, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    with Journal.begin(tmp_path) as journal:
        testbed = NetnsTestbed(2, plan_cpus(None, None), journal)
        held = Path("/run/netns", testbed.hops[0].host.name.removeprefix("netns:"))
        # Mounted over itself: what `ip netns delete` unmounts is then not all that holds the file.
        subprocess.run(("mount", "--bind", held, held), check=True)
        with pytest.raises(TestbedError, match=rf"^[^;]*{held.name}[^;]*Device or resource busy"):
            testbed.close()
        assert held.exists()
        testbed.close()
        assert state_of_machine() == before
        testbed.close()


def test_what_a_testbed_tells_of_itself(testbed: NetnsTestbed) -> None:
    plan = plan_cpus(None, None)
    assert testbed.describe() == {"hops": "2", "steering": "rps", "sut_cpus": "1", "heartbeat": "2 ms"}
    assert testbed.sentence() == (
        f"2 routed hops in namespaces; generator on CPU {plan.generator}, SUT on CPU {plan.sut[0]}"
    )
    assert testbed.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    assert testbed.environment().kernel_release == os.uname().release
    counters = testbed.counters()
    told = {"hop1/in0.rx_packets", "hop2/out0.tx_dropped", "cpu0/backlog.dropped", "hop2/ip6.InDiscards"}
    assert told <= set(map(str, counters))


def test_namespaces_of_two_testbeds_do_not_meet(machine: None, make_testbed) -> None:
    plan = plan_cpus(None, None)
    one, other = make_testbed(hops=1), make_testbed(hops=8)
    try:
        assert {hop.host.name for hop in one.hops}.isdisjoint(hop.host.name for hop in other.hops)
        assert len(other.hops) == 8
        assert CpuPlan(plan.generator, plan.sut, plan.shared_core) == plan
    finally:
        other.close()
        one.close()
