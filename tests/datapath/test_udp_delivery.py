"""UDP delivery in a namespace: who received, what was dropped where, and nothing is left."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from flat_values import changed
from tests.datapath.conftest import comms
from tests.datapath.test_routing import state

from pdrgate.data_paths.catalogue import Receivers, data_path
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import nested
from pdrgate.observers.watching import watching
from pdrgate.record.trial import Trial
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic import native
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import SutError

pytestmark = pytest.mark.datapath

LOW, DURATION = 20e3, 0.1
FLAT_OUT = 5e6
FEW = 50
"""Packets that the machine may lose besides."""


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    testbed = make_testbed(hops=2)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    return testbed


@contextlib.contextmanager
def delivering(testbed: NetnsTestbed, family: Literal[4, 6], receivers: Receivers) -> Iterator[object]:
    path = data_path("udp-delivery" if family == 4 else "udp6-delivery", receivers=receivers)
    try:
        path.apply(testbed.hops)
        generator = counted_by(path.arrivals, testbed.generator(family))
        try:

            def measure(load: float) -> Trial:
                with watching(testbed.observers(shared=True)) as watch:
                    trial = generator.trial(load, DURATION, Frames(family))
                seen = watch.observation
                return changed(
                    trial,
                    counters_before={**nested(seen.before), **trial.seen.counters_before},
                    counters_after={**nested(seen.after), **trial.seen.counters_after},
                )

            yield measure
        finally:
            generator.close()
    finally:
        path.restore()


@pytest.mark.parametrize(
    ("family", "receivers"),
    [(4, Receivers(4)), (6, Receivers(2, call="recvmmsg")), (4, Receivers(busy_poll=50))],
    ids=["four", "ipv6", "busy"],
)
def test_each_packet_is_delivered_once(testbed: NetnsTestbed, family: Literal[4, 6], receivers: Receivers) -> None:
    before = state(testbed)
    with delivering(testbed, family, receivers) as measure:
        trial = measure(LOW)
    assert state(testbed) == before
    assert trial.offered + trial.unsent == LOW * DURATION  # a busy machine sends too late
    assert trial.lost <= FEW
    each = [counters for place, counters in trial.seen.counters_after.items() if place.startswith("receiver")]
    assert sum(one["received"] for one in each) == trial.forwarded
    assert len(each) == receivers.count
    assert all(one["received"] and not one["duplicates"] for one in each)
    assert all(any(name.startswith("gap_") for name in one) for one in each)
    account = losses(trial)
    assert abs(account.unexplained) <= FEW, account.sentence()


def test_the_kernel_checks_sources_no_more_than_before(testbed: NetnsTestbed) -> None:
    """A local route that somebody adds makes it do so, for all of its namespace and for good."""
    host = testbed.hops[0].host
    host.run("ip", "link", "set", "dev", "lo", "up")
    try:
        before = state(testbed)
        with delivering(testbed, 4, Receivers()) as measure:
            trial = measure(LOW)
            routes = host.run_json("ip", "-j", "-4", "route", "show", "table", "local")
        assert state(testbed) == before
    finally:
        host.run("ip", "link", "set", "dev", "lo", "down")
    assert trial.lost <= FEW
    assert {route["protocol"] for route in routes} == {"kernel"}


def test_receivers_have_the_priority_of_packet_work_on_their_cpu(testbed: NetnsTestbed) -> None:
    """Below it they hardly ran when the SUT was flooded, and a livelock was measured that was ours."""
    (cpu,) = testbed.sut_cpus[:1]
    with delivering(testbed, 4, Receivers(2)):
        found = {name: pid for pid, name in comms().items()}
        for receiver in range(2):
            pid = found[f"pdrgate-recv/{receiver}"]
            assert os.sched_getaffinity(pid) <= set(testbed.sut_cpus)
            assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, found[f"ksoftirqd/{cpu}"])
    assert not any(name.startswith("pdrgate-recv/") for name in comms().values())


def test_what_a_small_socket_buffer_has_no_room_for(testbed: NetnsTestbed) -> None:
    with delivering(testbed, 4, Receivers(buffer=4)) as measure:
        trial = measure(FLAT_OUT)
    account = losses(trial)
    assert account.most is not None
    assert account.most.where == "in full socket buffers of receiver 0"
    assert trial.seen.counters_after["receiver0"]["dropped"] == account.most.packets > 1000
    assert abs(account.unexplained) <= FEW + account.lost // 1000, account.sentence()
    # What was still queued when sending ended is not counted into the rate.
    assert trial.forwarding_rate <= trial.offered_load
    assert trial.steady_loss_ratio > 0.1


TOLD_TWICE = r"report (\d+) packets in a trial that put (\d+) in front of it: that is not true"
"""A generator that others keep from its CPU sends fewer than were asked for."""


def test_a_receiver_that_tells_of_twice_as_much_is_not_believed(
    testbed: NetnsTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest's own word is a stranger's: our receiver, made to lie, on real packets."""
    parts, honest = native.build(), "(unsigned long long)one->received,"
    for source in Path(native.__file__).parent.glob("*.[ch]"):
        (tmp_path / source.name).write_text(source.read_text())
    text = (tmp_path / "receiver.c").read_text()
    assert text.count(honest) == 1
    (tmp_path / "receiver.c").write_text(text.replace(honest, f"2 * {honest}"))
    subprocess.run(("gcc", "-Os", "-static", str(tmp_path / "receiver.c"), "-o", str(tmp_path / "liar")), check=True)
    monkeypatch.setattr(native, "build", lambda: dataclasses.replace(parts, receiver=tmp_path / "liar"))
    with (
        delivering(testbed, 4, Receivers()) as measure,
        pytest.raises(SutError, match=TOLD_TWICE) as told,
    ):
        measure(LOW)  # type: ignore[operator]
    found = re.search(TOLD_TWICE, str(told.value))
    assert found is not None
    assert int(found[1]) == 2 * int(found[2])
