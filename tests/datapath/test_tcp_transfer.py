"""TCP in a namespace: what a window holds back, what is told of what a kernel lacks, and nothing is left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.datapath.test_routing import state

from pdrgate.data_paths.catalogue import TcpStreams
from pdrgate.data_paths.iperf import Iperf
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.hosts.host import local_host
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

KIB = 1024


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    testbed = make_testbed(hops=2)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    return testbed


@contextlib.contextmanager
def transferring(testbed: NetnsTestbed, streams: TcpStreams, family: int = 4) -> Iterator[Iperf]:
    path = TcpTransfer(family, streams)  # type: ignore[arg-type]
    try:
        path.apply(testbed.hops)
        yield path.loop
    finally:
        told = path.restore()
    assert told == []


@pytest.mark.parametrize(
    ("family", "streams"),
    [(4, TcpStreams(congestion="reno")), (6, TcpStreams(2, direction="sends"))],
    ids=["to", "from-ipv6"],
)
def test_a_window_holds_back_what_is_under_way(testbed: NetnsTestbed, family: int, streams: TcpStreams) -> None:
    before = state(testbed)
    with transferring(testbed, streams, family) as loop:
        large, small = loop.transfer(1024 * KIB, 1.0).transfer, loop.transfer(16 * KIB, 1.0).transfer
        rest = loop.transfer(1024 * KIB, 0.1, rate=10e6).transfer
    assert state(testbed) == before
    # What a reader that is slow has not taken yet is no part of what its window still has room for.
    assert 2 * small.senders.advertised < large.senders.advertised <= 1024 * KIB - 16
    assert 8 * KIB <= small.senders.advertised <= 24 * KIB
    for transfer in (small, large):
        assert transfer.streams == streams.count
        assert transfer.congestion == streams.congestion
        assert len(transfer.senders.looks) > 1  # a busy machine has iperf3 look late, and so less often
        assert transfer.senders.rtt
        assert transfer.delivered
    assert rest.throughput < 1e9
    assert rest.senders.rtt


def test_what_a_kernel_lacks_is_told(testbed: NetnsTestbed) -> None:
    there = local_host().read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    with transferring(testbed, TcpStreams(congestion="nv")) as loop:
        if "nv" in there:
            assert loop.transfer(64 * KIB, 1.0).transfer.delivered
        else:
            with pytest.raises(TestbedError, match=rf"congestion.*; the SUT's kernel has {there[0]}"):
                loop.transfer(64 * KIB, 1.0)


def test_a_path_with_delay_takes_netem(testbed: NetnsTestbed) -> None:
    before = state(testbed)
    try:
        with transferring(testbed, TcpStreams(delay=0.01)) as loop:
            assert (loop.transfer(64 * KIB, 1.0).transfer.senders.rtt or 0.0) >= 0.01
    except TestbedError as error:
        assert "the kernel has no netem (sch_netem;" in str(error)
    assert state(testbed) == before
