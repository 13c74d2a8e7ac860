"""What counts as handled, in namespaces: real packets that programs and rules drop, return and pass on."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flat_values import flat_trial
from test_bpf_paths import compiled

from pdrgate.data_paths.catalogue import DataPath, data_path
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.probe import probe_path
from pdrgate.hosts.host import Host
from pdrgate.observers.accounting import losses
from pdrgate.observers.fates import by_fate
from pdrgate.observers.reading import nested
from pdrgate.record.fate import Fate
from pdrgate.record.trial import LOOKS, Trial
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.values.errors import SutError

pytestmark = pytest.mark.datapath

LOAD, DURATION = 20e3, 0.25
FLAT_OUT = 5e6

PASSES = 'SEC("xdp") int passes(struct xdp_md *ctx) { return XDP_PASS; }\n'
PROGRAMS = {
    "drops": 'SEC("xdp") int drops(struct xdp_md *ctx) { return XDP_DROP; }\n',
    "returns": 'SEC("xdp") int returns(struct xdp_md *ctx) { return XDP_TX; }\n',
    "passes": PASSES,
    "passes to a socket": PASSES,
    "drops half": """
unsigned int seen = 0;
SEC("xdp") int half(struct xdp_md *ctx) { return seen++ % 2 ? XDP_PASS : XDP_DROP; }
""",
}


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=1)


@contextlib.contextmanager
def applied(path: DataPath, testbed: NetnsTestbed) -> Iterator[DataPath]:
    try:
        path.apply(testbed.hops)
        yield path
    finally:
        assert path.restore() == []


@contextlib.contextmanager
def drop_rule(host: Host) -> Iterator[Callable[[], int]]:
    """A rule that drops UDP, and how many packets it says that it has dropped."""
    host.run("nft", "add table inet guard; add chain inet guard ahead { type filter hook prerouting priority 0; }")
    host.run("nft", "add rule inet guard ahead meta l4proto udp counter drop")
    try:
        yield lambda: int(host.run("nft", "list chain inet guard ahead").stdout.partition("packets ")[2].split()[0])
    finally:
        host.run("nft", "delete table inet guard")


def measured(testbed: NetnsTestbed, name: str, fate: Fate, load: float = LOAD, duration: float = DURATION) -> Trial:
    """What the probe lets pass, measured once."""
    scenario = Scenario(name, fate=fate)
    generator = testbed.generator(scenario.frames.family)
    try:
        before = testbed.counters()
        sent = generator.trial(load, duration, scenario.frames)
        after = testbed.counters()
    finally:
        generator.close()
    counted = {"counters_before": nested(before), "counters_after": nested(after)}
    return by_fate(flat_trial(**{field: getattr(sent, field) for field in sent.__slots__} | counted), fate)


def probed(testbed: NetnsTestbed, path: DataPath, fate: Fate) -> Trial:
    scenario = Scenario(path.name, fate=fate)
    generator = testbed.generator(path.family)
    try:
        return probe_path(path, testbed, generator, scenario.frames, fate)
    finally:
        generator.close()


@pytest.fixture
def build(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return compiled(tmp_path, PROGRAMS[request.param])


@pytest.mark.parametrize(
    ("fate", "build"), [("dropped", "drops"), ("returned", "returns"), ("passed", "passes")], indirect=["build"]
)
def test_each_packet_has_the_fate_that_its_program_gives_it(testbed, build: Path, fate: Fate) -> None:
    with applied(data_path("xdp-ipv6-routing", build, fate=fate), testbed) as path:
        assert probed(testbed, path, fate).forwarded
        trial = measured(testbed, path.name, fate)
        assert "a cpumap can only forward" in path.sentence()
    assert trial.forwarded == trial.offered > 0
    assert (trial.aside.returned, trial.aside.fate) == (0, fate)
    assert len(trial.under_way) == LOOKS
    assert trial.steady_loss_ratio == 0


@pytest.mark.parametrize(
    ("fate", "build", "said"),
    [
        ("returned", "drops", r"sends back none of 1000 .*; of \d+ \d+ ended in it.*: --set fate=dropped\?"),
        ("forwarded", "drops", r"forwards none of 1000 .*; of \d+ \d+ ended in it.*: --set fate=dropped\?"),
        ("passed", "drops", r"passes to its sockets or its router none of 1000 .*--set fate=dropped\?"),
        (
            "dropped",
            "passes to a socket",
            r"drops none of 1000 .*reached its sockets or its router: --set fate=passed\?",
        ),
    ],
    indirect=["build"],
)
def test_a_probe_says_what_became_of_packets_instead(testbed, build: Path, fate: Fate, said: str) -> None:
    with applied(data_path("xdp-ipv6-routing", build, fate="handled"), testbed) as path:
        ends_there = ("local", "2001:2:0:1::/64", "dev", testbed.hops[0].ingress.interface, "table", "local")
        if "socket" in said:
            testbed.hops[0].host.run("ip", "-6", "route", "add", *ends_there)
        try:
            with pytest.raises(SutError, match=said):
                probed(testbed, path, fate)
        finally:
            if "socket" in said:
                testbed.hops[0].host.run("ip", "-6", "route", "delete", *ends_there)


@pytest.mark.parametrize(
    ("fate", "build", "said"),
    [
        ("forwarded", "returns", r"sends (\d+) of \1 packets back on the port that they came from"),
        ("returned", "passes", r"sends (\d+) of \1 packets out of the other port"),
        ("dropped", "passes", r"lets (\d+) of \1 packets leave"),
    ],
    indirect=["build"],
)
def test_packets_that_leave_another_way_are_none_that_were_handled(testbed, build: Path, fate: Fate, said: str) -> None:
    seen = FramesSeen()
    with applied(data_path("xdp-ipv6-routing", build, fate="handled"), testbed) as path:
        trial = seen.take(probed(testbed, path, fate), path)
    assert trial.forwarded == 0
    # A busy machine sends fewer than the 1000 that were asked for.
    assert re.fullmatch(said, seen.fault), seen.fault
    assert seen.other_fate == {"forwarded": "returned", "returned": "forwarded"}.get(fate)


@pytest.mark.parametrize("build", ["drops half"], indirect=True)
def test_what_is_dropped_and_what_is_passed_is_all_that_is_handled(testbed, build: Path) -> None:
    found = {}
    with applied(data_path("xdp-ipv6-routing", build, fate="handled"), testbed) as path:
        for fate in ("handled", "dropped", "passed"):
            found[fate] = measured(testbed, path.name, fate)
    assert found["handled"].loss_ratio == 0
    assert found["dropped"].forwarded == pytest.approx(found["dropped"].offered / 2, abs=2)
    assert found["passed"].forwarded == pytest.approx(found["passed"].offered / 2, abs=2)
    assert (
        found["dropped"].aside.returned
        == found["dropped"].aside.left
        == found["dropped"].offered - found["dropped"].forwarded
    )


@pytest.mark.parametrize("engine", ["xdp", "packet"])
def test_what_a_rule_drops_is_dropped_and_what_never_got_to_it_is_lost(make_testbed, engine: str) -> None:
    testbed = make_testbed(hops=1, engine=engine)
    testbed.set_buffer(64)
    with (
        applied(data_path("ipv6-routing", fate="dropped"), testbed) as path,
        drop_rule(testbed.hops[0].host) as dropped,
    ):
        assert probed(testbed, path, "dropped").forwarded
        before = dropped()
        calm = measured(testbed, path.name, "dropped")
        between = dropped()
        flooded = measured(testbed, path.name, "dropped", FLAT_OUT)
        after = dropped()
    assert calm.forwarded == between - before
    assert flooded.forwarded == after - between
    assert flooded.lost == sum(place.packets for place in losses(flooded).places)
    assert flooded.under_way == tuple(sorted(flooded.under_way))


@pytest.mark.parametrize("build", ["returns"], indirect=True)
def test_two_ends_of_a_link_do_not_send_a_packet_back_for_ever(make_testbed, build: Path) -> None:
    """A packet of the kernel's own between two hops once took the generator its CPU: 250 of 2500 packets were sent."""
    testbed = make_testbed(hops=2)
    with applied(data_path("xdp-ipv6-routing", build, fate="returned"), testbed) as path:
        first, last = testbed.hops
        has = {
            port.interface + hop.host.name[-1]: "xdp"
            in hop.host.run_json("ip", "-j", "link", "show", port.interface)[0]
            for hop in (first, last)
            for port in hop.ports
        }
        first.host.run("ip", "-6", "address", "add", "fd00::1/64", "dev", first.egress.interface, "nodad", check=False)
        trial = measured(testbed, path.name, "returned")
    assert has == {"in01": True, "out01": False, "in02": False, "out02": True}
    assert trial.unsent < trial.offered / 2  # others may have this CPU for a while
