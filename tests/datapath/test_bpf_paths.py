"""XDP, tc and SRv6 as data paths in namespaces: who carries the packets, what is counted, and what is left behind."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from flat_values import changed
from packets import Decoded, decode

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build, own_build
from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, Hop, data_path
from pdrgate.data_paths.paths.tc_redirect import TcRedirect
from pdrgate.data_paths.paths.xdp_routing import XdpRouting
from pdrgate.data_paths.steering import MOST_PACKETS
from pdrgate.gate.sut.probe import probe_path
from pdrgate.hosts.host import local_host, netns_host
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import nested
from pdrgate.observers.watching import watching
from pdrgate.results.losses import LossResult
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import FCS, Frames, template
from pdrgate.traffic.generator import Generator
from pdrgate.traffic.headers import checksum, words_sum
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

LOAD, DURATION = 20e3, 0.1
FLAT_OUT = 5e6
HOPS = 3

PATHS: dict[str, Callable[[], DataPath]] = {
    "XDP native, IPv6": lambda: XdpRouting(6, mode="native"),
    "XDP native, IPv4": lambda: XdpRouting(4, mode="native"),
    "XDP generic, IPv6": lambda: XdpRouting(6, mode="generic"),
    "XDP generic, IPv4": lambda: XdpRouting(4, mode="generic"),
    "tc": TcRedirect,
}
every_path = pytest.mark.parametrize("make", PATHS.values(), ids=PATHS)

PREAMBLE = """\
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
char _license[] SEC("license") = "GPL";
"""
PASSES = 'SEC("xdp") int passes(struct xdp_md *ctx) { return XDP_PASS; }\n'
DROPS = 'SEC("tc") int drops(struct __sk_buff *skb) { return 2; }\n'
REDIRECTS_HALF_NOWHERE = """\
unsigned int seen = 0;
SEC("xdp") int half(struct xdp_md *ctx) { return seen++ % 2 ? XDP_PASS : bpf_redirect(99999, 0); }
"""
READS_BEYOND = 'SEC("xdp") int beyond(struct xdp_md *ctx) { return *(char *)(long)ctx->data; }\n'


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=HOPS)


@pytest.fixture(scope="module")
def generators(testbed: NetnsTestbed) -> Iterator[Callable[[int], Generator]]:
    opened: dict[int, Generator] = {}

    def of(family: int) -> Generator:
        if family not in opened:
            close()  # a port has one receiving program
            opened[family] = testbed.generator(family)
        return opened[family]

    def close() -> None:
        while opened:
            opened.popitem()[1].close()

    of.close = close  # type: ignore[attr-defined]
    yield of
    close()


@pytest.fixture
def no_generator(generators: Callable[[int], Generator]) -> Callable[[], None]:
    return generators.close  # type: ignore[attr-defined,no-any-return]


def compiled(folder: Path, text: str) -> Path:
    source, output = folder / "some.bpf.c", folder / "some.bpf.o"
    source.write_text(PREAMBLE + text)
    include = "-I/usr/include/x86_64-linux-gnu"
    subprocess.run(("clang", "-O2", "-g", "-target", "bpf", include, "-c", str(source), "-o", str(output)), check=True)
    return output


def attached(testbed: NetnsTestbed) -> dict[str, Any]:
    """The programs at every port of every hop, and what is pinned."""
    found: dict[str, Any] = {}
    for number, hop in enumerate(testbed.hops, start=1):
        for port in hop.ports:
            link = hop.host.run_json("ip", "-j", "link", "show", "dev", port.interface)[0]
            queue = hop.host.run_json("tc", "-j", "qdisc", "show", "dev", port.interface)
            found[f"{number} {port.interface}"] = (link.get("xdp"), [one["kind"] for one in queue])
        found[f"{number} pins"] = hop.host.run("ls", "/sys/fs/bpf", check=False).stdout
        mounts = (line.split() for line in hop.host.read("/proc/self/mounts").splitlines())
        found[f"{number} mounts"] = [where for _, where, kind, *_ in mounts if kind == "bpf" and "/tmp/" in where]
    return found


@contextlib.contextmanager
def applied(path: DataPath, testbed: NetnsTestbed) -> Iterator[DataPath]:
    before = attached(testbed)
    try:
        path.apply(testbed.hops)
        assert attached(testbed) != before
        yield path
    finally:
        told = path.restore()
        assert told == []
        assert attached(testbed) == before
        assert path.restore() == []


def by_kernel(testbed: NetnsTestbed) -> int:
    return sum(value for counter, value in testbed.counters().items() if counter.name.endswith("ForwDatagrams"))


@every_path
def test_the_program_carries_every_packet(testbed: NetnsTestbed, generators, make) -> None:
    with applied(make(), testbed) as path:
        generator = generators(path.family)
        kernel, counted = by_kernel(testbed), path.redirected()
        assert counted is not None
        trial = generator.trial(LOAD, DURATION, Frames(path.family))
        assert trial.forwarded == trial.offered > 0
        after = path.redirected()
        assert after is not None
        # Somebody's listener report may be redirected by tc too; the kernel's router has no part in it.
        assert HOPS * trial.forwarded <= after - counted <= HOPS * trial.forwarded + 10
        assert by_kernel(testbed) - kernel <= 10
        probe_path(path, testbed, generator, Frames(path.family))


@every_path
def test_both_directions(testbed: NetnsTestbed, generators, make) -> None:
    with applied(make(), testbed) as path:
        trial = generators(path.family).trial(LOAD, DURATION, Frames(path.family, directions=2))
        assert trial.forwarded == trial.offered > 0


SEND_AND_CATCH = """
import select, socket, sys
out, back = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2))
out.bind(("t0", 0)), back.bind(("t1", 3))
for frame in sys.argv[1:]:
    out.send(bytes.fromhex(frame))
while select.select([back], [], [], 0.3)[0]:
    print(back.recv(2048).hex())
"""


def frames_to_send(testbed: NetnsTestbed, family: Literal[4, 6], hops: int, count: int) -> list[bytes]:
    """Frames with a hop limit, whose IPv4 header checksums take many values."""
    way = testbed.chain.paths(family)[0]
    part = template(Frames(family), way, tag=4000, probe_tag=4001)
    made = []
    for number in range(count):
        frame = bytearray(part.plain) + bytes(part.plain_size - FCS - len(part.plain))
        if family == 4:
            frame[18:20], frame[22], frame[24:26] = struct.pack("!H", number * 257 & 0xFFFF), hops, bytes(2)
            frame[24:26] = struct.pack("!H", checksum(words_sum(bytes(frame[14:34]))))
        else:
            frame[21] = hops
        frame[len(part.plain) - 2 : len(part.plain)] = struct.pack("!H", checksum(part.csum_sum))
        made.append(bytes(frame))
    return made


@pytest.mark.parametrize("family", [4, 6])
def test_the_program_does_to_a_packet_what_a_router_does(
    testbed: NetnsTestbed, no_generator, family: Literal[4, 6]
) -> None:
    no_generator()  # its receiving program would keep the frames from us
    way = testbed.chain.paths(family)[0]
    with applied(XdpRouting(family, mode="generic"), testbed) as path, netns_host(testbed.chain.tg) as host:

        def through(hops: int, count: int) -> list[Decoded]:
            frames = [frame.hex() for frame in frames_to_send(testbed, family, hops, count)]
            caught = host.run(sys.executable, "-c", SEND_AND_CATCH, *frames, timeout=30).stdout.split()
            return [decode(frame) for frame in map(bytes.fromhex, caught) if frame[36:38] == b"\x0f\xa0"
                    or frame[56:58] == b"\x0f\xa0"]  # fmt: skip

        found = through(64, 256)
        assert len(found) == 256
        assert {one.hops for one in found} == {64 - HOPS}
        assert {str(one.destination) for one in found} == {str(way.destination)}
        last = testbed.hops[-1].egress
        assert {(one.source_mac, one.destination_mac) for one in found} == {(last.mac, last.peer_mac)}
        assert path.redirected() == HOPS * 256
        # A hop limit that ends on the way is the kernel's to answer.
        assert len(through(HOPS + 1, 1)) == 1
        counted = path.redirected()
        assert through(HOPS, 1) == []
        assert path.redirected() == (counted or 0) + 2 * (HOPS - 1)  # the packet, and the answer on its way back


@every_path
def test_modes_are_told(testbed: NetnsTestbed, make) -> None:
    with applied(make(), testbed) as path:
        if isinstance(path, TcRedirect):
            assert path.mode == "tc ingress"
        else:
            word = "generic" if "asked for" in path.sentence() else "native"
            assert path.mode == f"XDP {word} (veth)"
        assert path.describe() == {"data_path_mode": path.mode}
        assert not path.by_kernel


def test_native_is_taken_where_it_can_be_had(testbed: NetnsTestbed) -> None:
    with applied(data_path("xdp-ipv6-routing"), testbed) as path:
        assert path.sentence() == "XDP native (veth)"
        modes = {
            hop.host.run_json("ip", "-j", "link", "show", "dev", port.interface)[0]["xdp"]["mode"]
            for hop in testbed.hops
            for port in hop.ports
        }
        assert modes == {1}


@pytest.mark.parametrize("where", ["at the edge", "in the middle"])
def test_generic_is_the_way_out_and_says_why(testbed: NetnsTestbed, generators, where: str) -> None:
    # Native XDP wants frames that fit into a page, and the veth looks at what its peer may send.
    namespace, peer = (testbed.chain.tg, "t0") if where == "at the edge" else (testbed.chain.suts[2], "in0")
    with netns_host(namespace) as host:
        host.run("ip", "link", "set", peer, "mtu", "9000")
        try:
            with applied(XdpRouting(6), testbed) as path:
                assert path.mode == "XDP generic (veth)"
                assert "MTU" in path.sentence()
                trial = generators(6).trial(LOAD, DURATION, Frames(6))
                assert trial.forwarded == trial.offered
                assert path.redirected() == HOPS * trial.forwarded
            strict = XdpRouting(6, mode="native")
            try:
                with pytest.raises(
                    TestbedError, match=r"has no native XDP for veth: .*MTU.*; use mode auto or generic$"
                ):
                    strict.apply(testbed.hops)
            finally:
                strict.restore()
        finally:
            host.run("ip", "link", "set", peer, "mtu", "1500")


def test_native_xdp_runs_on_the_suts_cpus(testbed: NetnsTestbed, generators) -> None:
    with applied(XdpRouting(6, mode="native"), testbed):
        hop = testbed.hops[0]
        steering = hop.ingress.steering
        assert steering is not None
        ticks = steering.ticks()  # type: ignore[attr-defined]
        generators(6).trial(400e3, 0.5, Frames(6))
        later = steering.ticks()  # type: ignore[attr-defined]
        assert later.keys() == set(testbed.sut_cpus)
        assert sum(later.values()) > sum(ticks.values())


def test_the_buffer_of_native_xdp_is_the_queue_before_it(testbed: NetnsTestbed, generators) -> None:
    with applied(XdpRouting(6, mode="native"), testbed):
        testbed.set_buffer(64)
        with watching(testbed.observers()) as watch:
            trial = generators(6).trial(FLAT_OUT, 0.1, Frames(6))
        before, after = nested(watch.observation.before), nested(watch.observation.after)
        account = losses(changed(trial, counters_before=before, counters_after=after))
        full = [place.packets for place in account.places if place.where == "in the queue of a cpumap"]
        assert account.lost > 0
        assert sum(full) > account.lost / 2, account.sentence()
        assert abs(account.unexplained) <= account.lost / 100, account.sentence()
        testbed.set_buffer(4096)
        assert generators(6).trial(LOAD, DURATION, Frames(6)).loss_ratio == 0
        testbed.pin("1 cpu")
        assert generators(6).trial(LOAD, DURATION, Frames(6)).loss_ratio == 0
        with pytest.raises(TestbedError, match=rf"receive buffers of up to {MOST_PACKETS} packets here, not 20000; "):
            testbed.set_buffer(20_000)
        testbed.set_buffer(1000)


@pytest.fixture
def lose(testbed: NetnsTestbed, generators) -> Callable[[Frames], LossResult]:
    """What became of a trial's packets."""

    def lost(frames: Frames) -> LossResult:
        with watching(testbed.observers()) as watch:
            trial = generators(6).trial(LOAD, DURATION, frames)
        before, after = nested(watch.observation.before), nested(watch.observation.after)
        return losses(changed(trial, counters_before=before, counters_after=after))

    return lost


def test_a_failed_redirect_of_a_cpumaps_program_is_counted_once(testbed: NetnsTestbed, lose, tmp_path: Path) -> None:
    """The kernel tells it of the redirect, and of the cpumap's program."""
    path = XdpRouting(6, bpf_build(compiled(tmp_path, REDIRECTS_HALF_NOWHERE)), mode="native")
    try:
        path.apply(testbed.hops)
        lose(Frames(6))
        account = lose(Frames(6))
    finally:
        path.restore()
    # The first hop's program is a cpumap's, those behind it are their ports' own.
    told = [account.at(f"by a failed redirect of XDP on in0 at hop{hop}") for hop in range(1, HOPS + 1)]
    assert all(told), account.sentence()
    assert abs(sum(told) - account.lost) <= account.lost / 50, account.sentence()
    assert abs(account.unexplained) <= account.lost / 50, account.sentence()


def test_what_is_redirected_and_not_sent_is_counted_once(testbed: NetnsTestbed, generators, lose) -> None:
    """The kernel tells it of the redirect, and the veth of what its peer does not take."""
    with applied(XdpRouting(6, mode="native"), testbed):
        generators(6)
        with netns_host(testbed.chain.tg) as host:
            host.run("ip", "link", "set", "t1", "mtu", "1280")
            try:
                account = lose(Frames(6, size=1518))
            finally:
                host.run("ip", "link", "set", "t1", "mtu", "1500")
    assert account.lost > 1000
    assert account.most is not None and account.most.where == "in the receive ring of the generator's t1"
    assert account.most.packets == account.lost, account.sentence()
    assert account.unexplained == 0, account.sentence()


def test_segments_end_on_every_hop(testbed: NetnsTestbed, generators) -> None:
    path = data_path("srv6-end")
    try:
        path.apply(testbed.hops)
        for directions in (1, 2):
            trial = generators(6).trial(LOAD, DURATION, Frames(6, segments=True, directions=directions))  # type: ignore[arg-type]
            assert trial.forwarded == trial.offered > 0
        probed = generators(6).trial(LOAD, DURATION, Frames(6, segments=True, probe_rate=1000))
        assert probed.loss_ratio == 0
        assert probed.seen.latency is not None
        # Frames without the header find their way too, those with it only by segments.
        assert generators(6).trial(LOAD, DURATION, Frames(6)).loss_ratio == 0
    finally:
        path.restore()
    plain = data_path("ipv6-routing")
    try:
        plain.apply(testbed.hops)
        assert generators(6).trial(LOAD, DURATION, Frames(6, segments=True)).forwarded == 0
        with pytest.raises(TestbedError, match=r"ipv6-routing forwards none of \d+ IPv6 packets .*the kernel routes"):
            probe_path(plain, testbed, generators(6), Frames(6, segments=True))
    finally:
        plain.restore()


@pytest.mark.parametrize("name", [name for name, kind in DATA_PATHS.items() if kind.program])
def test_a_build_under_test_takes_the_place_of_ours(testbed: NetnsTestbed, generators, name: str) -> None:
    own = {"xdp": ("xdp_router", ("LOOKUPS=4",)), "tc": ("tc_redirect", ())}[DATA_PATHS[name].program or ""]
    build = own_build(*own)
    with applied(data_path(name, build), testbed) as path:
        assert path.sentence().endswith(f", program {build.label}")
        assert path.describe() == {"data_path_mode": path.mode}
        probe_path(path, testbed, generators(path.family), Frames(path.family))


def test_a_program_that_lets_all_pass_is_found_out(testbed: NetnsTestbed, generators, tmp_path: Path) -> None:
    with applied(data_path("xdp-ipv6-routing", compiled(tmp_path, PASSES)), testbed) as path:
        assert path.redirected() is None
        assert generators(6).trial(LOAD, DURATION, Frames(6)).loss_ratio == 0
        with pytest.raises(
            TestbedError, match=r"the kernel's own router forwarded \d{4} of \d{4} IPv6 packets, which the"
        ):
            probe_path(path, testbed, generators(6), Frames(6))


MAP_OF_A_USER = """
struct two {{ __u64 one; __u64 other; }};
struct {{ __uint(type, BPF_MAP_TYPE_{kind}); __uint(max_entries, 8); __type(key, __u32); __type(value, {value}); }}
{name} SEC(".maps");
SEC("xdp") int passes(struct xdp_md *ctx)
{{ __u32 key = 2; return bpf_map_lookup_elem(&{name}, &key) ? XDP_PASS : XDP_PASS; }}
"""


@pytest.mark.parametrize("name", ["counters", "pdrgate_counts"])
@pytest.mark.parametrize(("kind", "value"), [("ARRAY", "__u64"), ("HASH", "__u64"), ("PERCPU_ARRAY", "struct two")])
def test_a_map_of_the_users_is_not_taken_for_ours(
    testbed: NetnsTestbed, tmp_path: Path, name: str, kind: str, value: str
) -> None:
    build = compiled(tmp_path, MAP_OF_A_USER.format(name=name, kind=kind, value=value))
    with applied(data_path("xdp-ipv6-routing", build), testbed) as path:
        assert path.redirected() is None


COUNTS_BY_ACTION = """
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 5); __type(key, __u32); __type(value, __u64); }
counters SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1); __type(key, __u64); __type(value, __u64); }
ports SEC(".maps");
SEC("tc") int passes(struct __sk_buff *skb)
{ __u32 at = 2; __u64 none = 0; __u64 *count = bpf_map_lookup_elem(&counters, &at);
  if (count) (*count)++;
  return bpf_map_lookup_elem(&ports, &none) ? 2 : 0; }
"""


def test_nothing_is_written_into_a_map_of_the_users(testbed: NetnsTestbed, tmp_path: Path) -> None:
    with applied(data_path("tc-redirect", compiled(tmp_path, COUNTS_BY_ACTION)), testbed) as path:
        assert path.redirected() is None
        host = testbed.hops[0].host
        (ports,) = [one for one in host.run_json("bpftool", "-j", "map", "show") if one.get("name") == "ports"][:1]
        assert host.run_json("bpftool", "-j", "map", "dump", "id", str(ports["id"])) == []


PINNED = """
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, ENTRIES); __type(key, __u32); __type(value, __u64);
__uint(pinning, LIBBPF_PIN_BY_NAME); } pdrgate_pinned SEC(".maps");
SEC("xdp") int passes(struct xdp_md *ctx)
{ __u32 key = 0; __u64 *count = bpf_map_lookup_elem(&pdrgate_pinned, &key); if (count) (*count)++; return XDP_PASS; }
"""


def test_pinned_maps_are_of_one_load_and_nothing_of_them_stays(testbed: NetnsTestbed, tmp_path: Path) -> None:
    """Of this machine, of the same name and of other sizes, while the first is there."""
    machine, builds = local_host(), []
    for entries in (1, 4096):
        (folder := tmp_path / str(entries)).mkdir()
        builds.append(bpf_build(compiled(folder, PINNED.replace("ENTRIES", str(entries)))))
    before = (sorted(Path("/sys/fs/bpf").iterdir()), Path("/proc/self/mounts").read_text())
    with (
        loaded(machine, builds[0], "xdp") as one,
        loaded(machine, builds[0], "xdp") as again,
        loaded(machine, builds[1], "xdp") as other,
    ):
        numbers = {program.maps["pdrgate_pinned"].number for program in (one, again, other)}
        assert len(numbers) == 3
    assert (sorted(Path("/sys/fs/bpf").iterdir()), Path("/proc/self/mounts").read_text()) == before
    for _ in range(100):  # the kernel frees them when nobody can be at them any more
        if not numbers & {one["id"] for one in machine.run_json("bpftool", "-j", "map", "show")}:
            return
        time.sleep(0.1)
    pytest.fail("the maps are still there")


def test_an_object_that_libbpf_refuses_is_told_by_its_own_words(testbed: NetnsTestbed, tmp_path: Path) -> None:
    missing = """extern int pdrgate_has_no_such_kfunc(void *) __attribute__((section(".ksyms")));
SEC("xdp") int asks(struct xdp_md *ctx) { return pdrgate_has_no_such_kfunc(ctx); }
"""
    before = attached(testbed)
    path = data_path("xdp-ipv6-routing", compiled(tmp_path, missing))
    try:
        with pytest.raises(
            BpfBuildError, match=r"refuses its program \w+ \(xdp\): .*'?pdrgate_has_no_such_kfunc|kernel BTF"
        ):
            path.apply(testbed.hops)
    finally:
        path.restore()
    assert attached(testbed) == before


def test_a_program_that_drops_all_is_found_out(testbed: NetnsTestbed, generators, tmp_path: Path) -> None:
    with (
        applied(data_path("tc-redirect", compiled(tmp_path, DROPS)), testbed) as path,
        pytest.raises(TestbedError, match=r"tc-redirect forwards none of \d+ IPv6 packets"),
    ):
        probe_path(path, testbed, generators(6), Frames(6))


def test_a_program_that_the_verifier_rejects(testbed: NetnsTestbed, tmp_path: Path) -> None:
    before = attached(testbed)
    path = data_path("xdp-ipv6-routing", bpf_build(compiled(tmp_path, READS_BEYOND)))
    try:
        with pytest.raises(
            BpfBuildError, match=r"refuses its program \w+ \(xdp\): the verifier says: .*invalid access to packet"
        ):
            path.apply(testbed.hops)
    finally:
        path.restore()
    assert attached(testbed) == before


def test_a_port_that_has_a_program_is_left_alone(testbed: NetnsTestbed, tmp_path: Path) -> None:
    middle = testbed.hops[1]
    file = compiled(tmp_path, PASSES)
    middle.host.run("ip", "link", "set", "dev", "out0", "xdpgeneric", "obj", str(file), "sec", "xdp")
    path = XdpRouting(6)
    try:
        with pytest.raises(TestbedError, match=r"^out0 on .* has an XDP program already \(id \d+\); take it off: "):
            path.apply(testbed.hops)
    finally:
        path.restore()
        assert middle.host.run_json("ip", "-j", "link", "show", "dev", "out0")[0].get("xdp")
        middle.host.run("ip", "link", "set", "dev", "out0", "xdpgeneric", "off")


class _Distrusted:
    """A host whose bpftool says that it has attached what it has not."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def run(self, *argv: str, **options: Any) -> Any:
        if argv[:3] == ("bpftool", "net", "attach"):
            return self._host.run("true")
        return self._host.run(*argv, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def test_an_attachment_that_is_not_there_is_noticed(testbed: NetnsTestbed) -> None:
    first, second, third = testbed.hops
    path = XdpRouting(6)
    try:
        with pytest.raises(TestbedError, match=r"attached XDP program \d+ to in0 on .* in native mode, but .*None"):
            path.apply((first, Hop(_Distrusted(second.host), second.ingress, second.egress), third))  # type: ignore[arg-type]
    finally:
        path.restore()
    assert all(xdp is None for xdp, _ in (value for value in attached(testbed).values() if isinstance(value, tuple)))
