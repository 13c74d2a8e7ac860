"""A heartbeat on the SUT's CPU while packets are forwarded there, and somebody who takes that CPU away.

That the trials of a quiet machine are sound is no matter of these tests: the machine may not be quiet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hog import hog

from pdrgate.data_paths.catalogue import data_path
from pdrgate.observers.reading import nested
from pdrgate.observers.watching import Observation, watching
from pdrgate.record.cause import causes_in_words
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.datapath

DURATION = 0.4


def watched(testbed: NetnsTestbed, load: float, number: int) -> list[Observation]:
    """What the testbed's observers saw of trials at a load."""
    path = data_path("ipv6-routing", None)
    path.apply(testbed.hops)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    generator = testbed.generator(6)
    found = []
    try:
        for _ in range(number):
            with watching(testbed.observers()) as watch:
                generator.trial(load, DURATION, Frames(6))
            found.append(watch.observation)
    finally:
        generator.close()
        path.restore()
    return found


def test_it_beats_while_packets_are_forwarded(make_testbed: Callable[[], NetnsTestbed]) -> None:
    testbed = make_testbed()
    assert testbed.describe()["heartbeat"] == "2 ms"
    place = f"cpu{testbed.sut_cpus[0]}/heartbeat"
    for observation in watched(testbed, 50e3, 2):
        before, after = nested(observation.before)[place], nested(observation.after)[place]
        assert set(before.values()) == {0}
        assert after["elapsed"] >= DURATION * 1e9
        assert after["beats"] > 0
        assert after["arithmetic_median"] > 0
        assert after["loads_median"] > 0


def test_who_takes_the_suts_cpu_away_is_seen(make_testbed: Callable[[], NetnsTestbed]) -> None:
    """30 ms of every 200 ms, at an overload: packet work waits for 15 % of the time."""
    testbed = make_testbed()
    cpu = testbed.sut_cpus[0]
    with hog(cpu, "fifo"):
        found = watched(testbed, 20e6, 6)
    blamed = [observation for observation in found if f"others had CPU {cpu}" in causes_in_words(observation.disturbed)]
    assert len(blamed) >= 4, [causes_in_words(observation.disturbed) for observation in found]


def test_it_ends_with_its_testbed(make_testbed: Callable[[], NetnsTestbed]) -> None:
    before = my_heartbeats()
    testbed = make_testbed()
    assert my_heartbeats() - before
    testbed.close()
    assert my_heartbeats() == before


def my_heartbeats() -> set[Path]:
    return {process for process in Path("/proc").glob("[0-9]*") if is_my_heartbeat(process)}


def is_my_heartbeat(process: Path) -> bool:
    try:
        name, stat = (process / "comm").read_text().strip(), (process / "stat").read_text()
    except OSError:
        return False
    return name == "pdrgate-heartbe" and int(stat.rpartition(")")[2].split()[1]) == os.getpid()
