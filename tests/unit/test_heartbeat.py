"""What a heartbeat's numbers are taken for, and a program that does not answer as it should."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from pdrgate.observers import heartbeat as module
from pdrgate.observers.heartbeat import BeatSlowdown, Heartbeat, HeartbeatObserver, Pace, Watched, disturbance
from pdrgate.observers.reading import Counter, Place, nested
from pdrgate.record.cause import CauseKind, causes_in_words
from pdrgate.traffic.native import NativeParts
from pdrgate.values.errors import TestbedError

MS = 1_000_000
QUIET = Watched(
    elapsed=400 * MS, beats=200, missed=0, stalls=0, stalled=0, longest_stall=0, withheld=0, longest_withheld=0,
    longest_wait=90_000, arithmetic_median=820, arithmetic_q90=860, loads_median=1900, loads_q90=2100, own_time=2 * MS,
    packets_ran=380 * MS, packets_waited=2 * MS,
)  # fmt: skip


def beat(slowdown: float = 0.0, loads: float = 0.0, **changes: int) -> str:
    return causes_in_words(disturbance(dataclasses.replace(QUIET, **changes), 1, BeatSlowdown(slowdown, loads)))


def test_packet_work_that_waits_for_programs_of_the_sut_is_no_disturbance() -> None:
    waits = dataclasses.replace(QUIET, withheld=300 * MS, longest_withheld=20 * MS, packets_waited=350 * MS, stalls=1)
    found = [[one.kind for one in disturbance(waits, 1, BeatSlowdown(), shared=shared)] for shared in (False, True)]
    assert found == [[CauseKind.STOOD_STILL, CauseKind.WITHHELD], [CauseKind.STOOD_STILL]]


def test_a_quiet_trial_is_sound() -> None:
    assert beat() == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"stalls": 2, "stalled": 20 * MS, "longest_stall": 11 * MS},
            "CPU 1 stood still for up to 11.0 ms, 5.0% of the trial",
        ),
        # Few long ones and many short ones alike.
        (
            {"elapsed": 2000 * MS, "withheld": 7 * MS, "longest_withheld": 7 * MS},
            "others had CPU 1 for up to 7.0 ms, 0.4% of the trial, while packets waited",
        ),
        (
            {"withheld": 8 * MS, "longest_withheld": 4 * MS},
            "others had CPU 1 for up to 4.0 ms, 2.0% of the trial, while packets waited",
        ),
        ({"packets_waited": 62 * MS}, "packets waited for 15.0% of the trial while others had CPU 1"),
        (
            {"withheld": 60 * MS, "longest_withheld": 30 * MS, "packets_waited": 62 * MS},
            "others had CPU 1 for up to 30.0 ms, 15.0% of the trial, while packets waited",
        ),
    ],
)
def test_what_the_machine_did(changes: dict[str, int], told: str) -> None:
    assert beat(**changes) == told


def test_a_core_that_is_shared_is_slow() -> None:
    assert beat(0.25) == "CPU 1 was slower by 25% than at its best"
    assert beat(0.25, 0.5) == "CPU 1 was slower by 25% than at its best"
    assert beat(0.05, 0.25) == "CPU 1 reached its memory slower by 25% than at its best"
    assert beat(0.05, 0.11) == ""
    assert beat(0.25, withheld=60 * MS, longest_withheld=30 * MS) == (
        "others had CPU 1 for up to 30.0 ms, 15.0% of the trial, while packets waited; "
        "CPU 1 was slower by 25% than at its best"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"longest_wait": 22 * MS, "missed": 40},  # rounds of packet work, which is the SUT's own
        {"packets_waited": 50 * MS, "own_time": 45 * MS},  # for nobody but the heartbeat
        {"elapsed": 1000 * MS, "withheld": 4 * MS, "longest_withheld": 4 * MS},  # less than what a PDR accepts
        {"packets_ran": 0, "packets_waited": 0},  # no ksoftirqd to be seen, or nothing to do
    ],
)
def test_what_is_no_disturbance(changes: dict[str, int]) -> None:
    assert beat(**changes) == ""


def test_a_slow_sut_beside_good_beats_stays_the_suts() -> None:
    """Whatever a SUT does with its packets: the work of the beats is the same, and so is what they tell."""
    pace, some = Pace(), random.Random(1)
    for _ in range(100):
        watched = dataclasses.replace(
            QUIET, loads_median=some.randint(1850, 2050), longest_wait=some.randint(0, 25 * MS),
            packets_ran=some.randint(200, 395) * MS, missed=some.randint(0, 20),
        )  # fmt: skip
        assert disturbance(watched, 1, pace.slowdown(watched)) == ()


def test_the_pace_is_that_of_the_best_trials_so_far() -> None:
    pace = Pace()
    assert pace.slowdown(QUIET) == BeatSlowdown()
    slower = dataclasses.replace(QUIET, arithmetic_median=984, loads_median=2850)
    assert pace.slowdown(slower) == BeatSlowdown(pytest.approx(0.2), pytest.approx(0.5))
    # One stroke of luck among many makes no reference.
    for _ in range(40):
        pace.slowdown(QUIET)
    assert pace.slowdown(dataclasses.replace(QUIET, arithmetic_median=100, loads_median=100)) == BeatSlowdown()
    assert pace.slowdown(QUIET) == BeatSlowdown()


@pytest.mark.parametrize(("beats", "slower"), [(50, 0.0), (500, 0.2)])
def test_loads_of_few_beats_scatter_by_chance(beats: int, slower: float) -> None:
    """One in ten is slower than the median by a quarter: that of 50 beats says little, that of 500 much."""
    pace = Pace()
    usual = dataclasses.replace(QUIET, beats=beats, loads_median=2000, loads_q90=2500)
    assert pace.slowdown(usual) == BeatSlowdown()
    found = pace.slowdown(dataclasses.replace(usual, loads_median=2400, loads_q90=3000))
    assert found == BeatSlowdown(0.0, pytest.approx(slower))


def test_an_idle_cpu_tells_no_pace() -> None:
    """Its beats find other caches, and it forwards no less for being slow."""
    pace = Pace()
    pace.slowdown(QUIET)
    assert pace.slowdown(dataclasses.replace(QUIET, arithmetic_median=9000, packets_ran=MS)) == BeatSlowdown()


def test_few_beats_tell_no_pace() -> None:
    pace = Pace()
    assert pace.slowdown(dataclasses.replace(QUIET, beats=3, arithmetic_median=1)) == BeatSlowdown()
    assert pace.slowdown(QUIET) == BeatSlowdown()


def test_what_was_seen_are_counters_of_the_cpus_heartbeat() -> None:
    reading = QUIET.reading(1)
    assert reading[Counter(Place("heartbeat", "1"), "arithmetic_median")] == 820
    assert nested(reading)["cpu1/heartbeat"]["packets_ran"] == 380 * MS


def test_an_answer_of_another_version_is_told() -> None:
    with pytest.raises(TestbedError, match="the heartbeat's answer is not of this version"):
        Watched.of({"beats": 1})


# --- The program ---


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shell script in the place of the compiled program."""
    path = tmp_path / "heartbeat"
    monkeypatch.setattr(module.native, "build", lambda: NativeParts(*[path] * len(dataclasses.fields(NativeParts))))
    return path


def script(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def test_one_turn_begins_and_the_next_one_ends(program: Path) -> None:
    record = "".join(f'"{name}": {value}, ' for name, value in dataclasses.asdict(QUIET).items()).rstrip(", ")
    script(program, f"echo '{{\"ready\": true}}'\nread x; echo '{{\"on\": true}}'\nread x; echo '{{{record}}}'\n")
    heartbeat = Heartbeat(1)
    try:
        observer = HeartbeatObserver([heartbeat])
        observer.begin()
        observation = observer.end()
        assert observation.disturbed == ()
        assert observation.after == QUIET.reading(1)
        assert set(observation.before.values()) == {0}
        with pytest.raises(TestbedError, match="the heartbeat on CPU 1"):
            observer.begin()
    finally:
        heartbeat.close()
        heartbeat.close()


def test_a_machine_without_real_time_threads_says_so(program: Path) -> None:
    script(program, 'echo \'{"error": "a real-time thread on that CPU: Operation not permitted"}\'\n')
    with pytest.raises(TestbedError, match="no heartbeat on CPU 1: a real-time thread on that CPU: Operation not perm"):
        Heartbeat(1)


def test_a_program_that_ends_at_once_is_told(program: Path) -> None:
    script(program, "exit 3\n")
    with pytest.raises(TestbedError, match=r"the heartbeat on CPU 1 has ended \(exit code 3\); run again"):
        Heartbeat(1)
