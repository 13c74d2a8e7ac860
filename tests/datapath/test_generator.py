"""What every generator owes: exact counts, open loop, nothing of one trial in the next, and right frames on the wire.

Loads are low wherever a count must be exact: on a shared machine the hypervisor takes a CPU for milliseconds. A trial
in which it took the generator's is measured again, as the gate does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pytest
from flat_values import changed
from packets import Decoded, decode

from pdrgate.data_paths.catalogue import NETWORKS, Hop, Port
from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import nested
from pdrgate.record.trial import Trial
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.embedded import EmbeddedGenerator
from pdrgate.traffic.frames import Frames, template
from pdrgate.values.errors import TestbedError, UsageError

pytestmark = pytest.mark.datapath

LOW = 20e3
FEW = 5
"""Packets of a router's own that are dropped with the others."""
FLAT_OUT = 5e6
"""More than any engine can send, and 3 times what three hops forward on the fastest machine known."""


@dataclass
class Rig:
    testbed: NetnsTestbed
    generator: EmbeddedGenerator
    family: Literal[4, 6]
    engine: str
    cpu: int
    """One of the SUT's."""

    def frames(self, **more: object) -> Frames:
        return Frames(self.family, **more)  # type: ignore[arg-type]

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        """A trial that the generator did not limit, where the machine lets it have its CPU, and the counters around it.

        What is not sent it tells: `Trial.unsent`.
        """
        for _ in range(20):
            trial = self.counted(load, duration, frames)
            if not trial.generator_limited:
                break
        assert trial.offered == trial.intended - trial.unsent > 0
        return trial

    def counted(self, load: float, duration: float, frames: Frames) -> Trial:
        """A trial with the counters around it."""
        before = self.testbed.counters()
        trial = self.generator.trial(load, duration, frames)
        return changed(trial, counters_before=nested(before), counters_after=nested(self.testbed.counters()))

    @property
    def edges(self) -> tuple[tuple[Hop, Port], tuple[Hop, Port]]:
        """Where forward and reverse traffic enter the SUT."""
        first, last = self.testbed.hops[0], self.testbed.hops[-1]
        return (first, first.ingress), (last, last.egress)


@pytest.fixture(scope="module", params=["xdp", "packet"])
def testbed(request: pytest.FixtureRequest, make_testbed) -> Iterator[NetnsTestbed]:
    testbed = make_testbed(request.param)
    paths = [Routing(6), Routing(4)]
    for path in paths:
        path.apply(testbed.hops)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    yield testbed
    for path in paths:
        path.restore()
    testbed.close()


@pytest.fixture(scope="module", params=[6, 4], ids=["ipv6", "ipv4"])
def rig(request: pytest.FixtureRequest, testbed: NetnsTestbed) -> Iterator[Rig]:
    try:
        generator = testbed.generator(request.param)
    except TestbedError as error:
        if "cannot run BPF programs on live frames" not in str(error):
            raise
        pytest.skip(str(error))
    yield Rig(testbed, generator, request.param, generator.engine, plan_cpus(None, None).sut[0])
    generator.close()


def test_the_engine_is_the_one_asked_for(rig: Rig, request: pytest.FixtureRequest) -> None:
    engine = request.node.callspec.params["testbed"]
    assert rig.generator.describe() == {"name": "embedded", "engine": engine, "chosen": "asked for"}


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("size", [64, 128, 1518])
def test_counts_are_exact(rig: Rig, size: int, directions: Literal[1, 2]) -> None:
    trial = rig.trial(LOW, 0.1, rig.frames(size=size, directions=directions))
    assert (trial.intended, trial.forwarded, trial.aside.refused, trial.loss_ratio) == (2000, trial.offered, 0, 0)
    assert trial.sending_time == pytest.approx(0.1, rel=2e-3) or trial.unsent
    assert trial.seen.latency is None
    for _, port in rig.edges[:directions]:
        hop = 1 if port is rig.testbed.hops[0].ingress else len(rig.testbed.hops)
        gained = trial.seen.counter_changes[f"hop{hop}/{port.interface}"]["rx_packets"]
        # What else passes there (a router tells its multicast groups) are single packets.
        assert 0 <= gained - trial.offered // directions <= 10


def test_odd_counts_are_exact_too(rig: Rig) -> None:
    for load, duration, count in ((1, 0.1, 1), (10, 0.1, 1), (70, 0.1, 7), (19_999, 0.05, 1000), (12_345, 0.2, 2469)):
        trial = rig.trial(load, duration, rig.frames(directions=2))
        assert (trial.intended, trial.forwarded) == (count, trial.offered)


@pytest.mark.parametrize("vary", ["ports", "addresses"])
def test_many_flows_all_arrive(rig: Rig, vary: Literal["ports", "addresses"]) -> None:
    # 16384 addresses cross many that end in .0 and .255.
    trial = rig.trial(50e3, 0.4, rig.frames(flows=16384, vary=vary, directions=2))
    assert trial.intended == 20_000
    assert trial.forwarded == trial.offered


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("size", [64, 512])
def test_probes_tell_the_latency(rig: Rig, size: int, directions: Literal[1, 2]) -> None:
    trial = rig.trial(LOW, 0.3, rig.frames(size=size, directions=directions, probe_rate=1000))
    assert (trial.intended, trial.forwarded) == (6000, trial.offered)
    latency = trial.seen.latency
    assert latency is not None
    assert latency.count == pytest.approx(trial.offered / 20, rel=0.1)
    assert 0 < latency.p50 <= latency.p90 <= latency.p99 <= latency.max < 1


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("size", [64, 1518])
def test_overload_is_open_loop_and_every_packet_is_accounted_for(
    rig: Rig, size: int, directions: Literal[1, 2]
) -> None:
    for _ in range(20):  # at times the SUT has more of the machine than the generator, and keeps up
        trial = rig.counted(FLAT_OUT, 0.2, rig.frames(size=size, directions=directions))
        if trial.loss_ratio > 0.05:
            break
    assert trial.generator_limited
    assert trial.intended == 1_000_000
    assert trial.unsent > 0
    assert trial.sending_time < 0.4  # it ends with its time, not with its packets
    assert trial.loss_ratio > 0.05
    assert trial.forwarded > 0
    if rig.engine == "packet":
        assert 0 < trial.aside.refused <= trial.lost
    # A router's own few packets are dropped with the others.
    assert abs(losses(trial).unexplained) <= FEW, losses(trial).sentence()


def test_a_moderate_overload_is_all_sent(rig: Rig) -> None:
    """The SUT loses, the generator does not fall short: what a search relies on just above the PDR."""
    ceiling = rig.generator.trial(FLAT_OUT, 0.1, rig.frames())
    load = min(1.3 * ceiling.forwarding_rate, 0.9 * ceiling.offered_load)
    trial = rig.trial(load, 0.2, rig.frames())
    if trial.generator_limited:
        pytest.skip(f"20 times in a row others had the generator's CPU: {trial.unsent} of {trial.intended} not sent")
    assert abs(losses(trial).unexplained) <= FEW, losses(trial).sentence()


def test_nothing_of_an_overload_is_in_the_next_trial(rig: Rig) -> None:
    for _ in range(5):
        rig.generator.trial(FLAT_OUT, 0.05, rig.frames())
        trial = rig.trial(LOW, 0.05, rig.frames())
        assert (trial.intended, trial.forwarded, trial.surplus) == (1000, trial.offered, 0)
        assert trial.aside.stray <= 5  # all of the overload had come back, or was lost, before this trial began


@pytest.mark.parametrize("load", [0, -1, math.nan, math.inf, -math.inf])
def test_loads_without_meaning(rig: Rig, load: float) -> None:
    with pytest.raises(UsageError, match=r"^a trial at a load of .* packets/s has no meaning; give a load above 0$"):
        rig.generator.trial(load, 0.1, rig.frames())


@pytest.mark.parametrize("duration", [0, -1, math.nan, math.inf])
def test_durations_without_meaning(rig: Rig, duration: float) -> None:
    with pytest.raises(UsageError, match=r"^a trial of .* s has no meaning; give a duration above 0$"):
        rig.generator.trial(LOW, duration, rig.frames())


def test_too_many_packets_for_one_trial(rig: Rig) -> None:
    with pytest.raises(UsageError, match=r"^3000000000 packets are too many for one trial"):
        rig.generator.trial(3e6, 1000, rig.frames())


CAPTURE = """
import os, socket, sys
os.sched_setaffinity(0, {int(sys.argv[2])})  # leave the generator its CPU
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
tap.bind((sys.argv[1], 0))
tap.settimeout(0.15)
print("ready", flush=True)
sys.stdin.readline()
seen = []
try:
    while True:
        frame, address = tap.recvfrom(4096)
        if address[2] != 4:  # PACKET_OUTGOING
            seen.append(frame)
except TimeoutError:
    print(*(frame.hex() for frame in seen), sep="\\n")
"""


@contextlib.contextmanager
def program(script: str, hop: Hop, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program in a hop's namespace, once it has told that it is ready."""
    namespace = hop.host.name.removeprefix("netns:")
    process = subprocess.Popen(
        ("ip", "netns", "exec", namespace, sys.executable, "-IS", "-c", script, *arguments),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def captured(rig: Rig, frames: Frames, load: float = LOW, duration: float = 0.1) -> tuple[Trial, list[list[bytes]]]:
    """A trial and the frames that entered the SUT meanwhile, by direction."""
    with contextlib.ExitStack() as stack:
        cpu = str(rig.cpu)
        taps = [stack.enter_context(program(CAPTURE, hop, port.interface, cpu)) for hop, port in rig.edges]
        trial = rig.generator.trial(load, duration, frames)
        outputs = [tap.communicate("go\n", timeout=60)[0] for tap in taps]
    kinds = (b"\x86\xdd" if rig.family == 6 else b"\x08\x00",)
    seen = [[bytes.fromhex(line) for line in output.splitlines()] for output in outputs]
    return trial, [[frame for frame in side if frame[12:14] in kinds] for side in seen]


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"size": 128, "vary": "addresses", "flows": 300, "directions": 2, "probe_rate": 4000},
        {"size": 64, "directions": 2, "probe_rate": 4000, "flows": 10},
        {"size": 1518, "vary": "addresses", "probe_rate": 500},
        {"size": 64, "vary": "addresses", "probe_rate": 500},
    ],
    ids=["plain", "addresses-both-probes", "ports-both-probes", "large-probes", "small-addresses-probes"],
)
def test_the_frames_on_the_wire_are_what_was_asked_for(rig: Rig, form: dict[str, object]) -> None:
    frames = rig.frames(**form)
    trial, by_direction = captured(rig, frames)
    counts = [len(side) for side in by_direction]
    assert sum(counts) == trial.offered
    if frames.directions == 2:
        assert abs(counts[0] - counts[1]) <= 1
    networks = NETWORKS[rig.family]
    ends = ((networks.reverse, networks.forward), (networks.forward, networks.reverse))
    sizes: dict[int, set[int]] = {}
    for (_, port), side, (source, destination) in zip(rig.edges, by_direction, ends, strict=True):
        decoded = [decode(frame) for frame in side]  # checks lengths and checksums
        for raw, frame in zip(side, decoded, strict=True):
            assert (frame.source_mac, frame.destination_mac, frame.hops) == (port.peer_mac, port.mac, 64)
            assert int(frame.destination) == int(destination.network_address) | rig.generator.cookie
            assert frame.source in source
            sizes.setdefault(frame.destination_port, set()).add(len(raw) + 4)
        if decoded:
            assert flows(frames, decoded) == frames.flows
    tag = min(sizes)  # each direction has two ports of its own, one for probes
    expected = {tag + 2 * direction: {frames.wire_size} for direction in range(frames.directions)}
    assert sizes == expected | ({port + 1: {frames.probe_size} for port in expected} if frames.probe_rate else {})


@pytest.mark.parametrize("size", [64, 70, 128])
def test_checksums_are_right_also_when_buffers_are_used_again(rig: Rig, size: int) -> None:
    """Where a probe was, a plain frame comes next: at a high load soon, and in both directions."""
    _, by_direction = captured(rig, rig.frames(size=size, probe_rate=50_000, directions=2), 500e3, 0.05)
    ports = {decode(frame).destination_port for side in by_direction for frame in side}
    assert len(ports) == 4


def flows(frames: Frames, seen: list[Decoded]) -> int:
    """How many flows there are, after a look at what tells them apart."""
    ports = {frame.source_port for frame in seen}
    addresses = {int(frame.source) for frame in seen}
    different, same = (addresses, ports) if frames.vary == "addresses" else (ports, addresses)
    if seen:
        assert len(same) == 1
        assert max(different) - min(different) == len(different) - 1
        assert min(ports) >= 1024
    return len(different)


FOREIGN = """
import socket, sys, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    for frame in sys.argv[2:]:
        out.send(bytes.fromhex(frame))
    time.sleep(0.002)
"""


def test_foreign_packets_are_strays_and_never_forwarded(rig: Rig) -> None:
    # What almost is ours: last trial's frames as they left the SUT, and some with one thing changed.
    _, (frames, _) = captured(rig, rig.frames())
    ours = frames[0]
    header = 62 if rig.family == 6 else 42
    port = slice(header - 6, header - 4)
    cookie = slice(header - 10, header - 8)
    assert ours[cookie] == rig.generator.cookie.to_bytes(2)
    other_port, other_cookie, no_udp = bytearray(ours), bytearray(ours), bytearray(ours)
    other_port[port] = b"\x00\x09"
    other_cookie[cookie] = (rig.generator.cookie ^ 1).to_bytes(2)
    no_udp[20 if rig.family == 6 else 23] = 6
    arp, short = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + b"\0" * 46, ours[:14]
    foreign = [bytes(frame) for frame in (ours, other_port, other_cookie, no_udp, arp, short)]
    last, out = rig.testbed.hops[-1], rig.testbed.hops[-1].egress.interface
    with program(FOREIGN, last, out, *(frame.hex() for frame in foreign)):
        trial = rig.trial(LOW, 0.2, rig.frames())
    assert (trial.intended, trial.forwarded, trial.surplus) == (4000, trial.offered, 0)
    assert trial.aside.stray >= len(foreign)
    quiet = rig.trial(LOW, 0.2, rig.frames())
    assert quiet.aside.stray < trial.aside.stray


def test_a_packet_that_comes_twice_does_not_stand_in_for_one_that_is_lost(rig: Rig) -> None:
    """The last router drops each tenth packet, and sends each ninth of the others twice: as many come as are sent."""
    last = rig.testbed.hops[-1]
    kind, network = ("ip6" if rig.family == 6 else "ip"), str(NETWORKS[rig.family].forward)
    (route,) = last.host.run_json("ip", "-j", f"-{rig.family}", "route", "show", network)
    chain = f"{kind} twice_and_never passing"
    rules = (
        f"add table {kind} twice_and_never",
        f"add chain {chain} {{ type filter hook forward priority 0; }}",
        f"add rule {chain} meta l4proto != udp accept",
        f"add rule {chain} numgen inc mod 10 == 0 drop",
        f"add rule {chain} numgen inc mod 9 == 0 dup to {route['gateway']} device {route['dev']}",
    )
    try:
        for rule in rules:
            last.host.run("nft", rule)
        trial = rig.trial(LOW, 0.1, rig.frames())
    finally:
        last.host.run("nft", f"delete table {kind} twice_and_never")
    tenth = pytest.approx(trial.offered / 10, abs=1.5)
    assert (trial.lost, trial.aside.twice) == (tenth, tenth)
    assert (trial.forwarded + trial.lost, trial.aside.stray) == (trial.offered, 0)
    again = rig.trial(LOW, 0.1, rig.frames())
    assert (again.forwarded, again.aside.twice) == (again.offered, 0)


LATE = """
import socket, sys, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
frame = bytes.fromhex(sys.argv[2]) + (time.monotonic_ns() - 2 * 10**9).to_bytes(8)
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + 0.5
while time.monotonic() < end:
    out.send(frame)
    time.sleep(0.002)
"""


def test_the_longest_latency_of_a_trial_is_told_however_many_probes_follow(rig: Rig) -> None:
    """Early in the trial some probes come back that were sent 2 s ago, in its middle and end none."""
    tag = rig.generator._built_in(rig.frames()).templates[0].tag + 4  # the next trial's
    path = rig.testbed.chain.paths(rig.family)[0]
    destination = type(path.destination)(int(path.destination) >> 16 << 16 | rig.generator.cookie)
    own = dataclasses.replace(path, destination=destination)
    late = template(rig.frames(), own, tag=tag, probe_tag=tag + 1).probe
    last, out = rig.testbed.hops[-1], rig.testbed.hops[-1].egress.interface
    with program(LATE, last, out, late.hex()) as injector:
        assert injector.stdin is not None
        injector.stdin.write("go\n")
        injector.stdin.flush()
        trial = rig.generator.trial(100e3, 2.2, rig.frames(probe_rate=50_000))
    latency = trial.seen.latency
    assert latency is not None
    assert latency.count > 65_536 + 25_000
    assert latency.p50 <= latency.p90 <= latency.p99 <= latency.max
    assert 2 < latency.max < 10
    assert latency.p50 < 1


def test_without_a_route_all_is_lost_and_the_drain_ends(rig: Rig) -> None:
    middle = rig.testbed.hops[1].host
    route = (str(NETWORKS[rig.family].forward), "via")
    (found,) = middle.run_json("ip", "-j", f"-{rig.family}", "route", "show", route[0])
    middle.run("ip", f"-{rig.family}", "route", "delete", route[0])
    try:
        trial = rig.trial(LOW, 0.1, rig.frames())
    finally:
        middle.run("ip", f"-{rig.family}", "route", "add", *route, found["gateway"], "dev", found["dev"])
    assert (trial.intended, trial.forwarded, trial.loss_ratio) == (2000, 0, 1.0)
    if rig.family == 6:
        assert trial.seen.counter_changes["hop2/ip6"]["InNoRoutes"] >= trial.offered
    again = rig.trial(LOW, 0.1, rig.frames())
    assert again.forwarded == again.offered
