"""What readings of one port tell: how long it sent, and what of its packets was under way meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.record.trial import LOOKS
from pdrgate.traffic.trex.readings import (
    END_LAG,
    FlowReading,
    Sending,
    back_at_end,
    left_over,
    sending_end,
    sending_time,
    under_way_at_looks,
    unseen,
)

ON_TIME = Sending((0.0, 0.002), (1.0, 1.005))
COUNT = 1_000_000


def until(end: float) -> Sending:
    return Sending((0.0, 0.002), (end, end + 0.005))


def reading(at: float, sent: float, back: float = 0.0, request: float = 0.001) -> FlowReading:
    return FlowReading(at - request / 2, at + request / 2, round(sent), round(back))


def test_the_end_of_sending_is_told_by_its_start_where_nothing_was_read() -> None:
    assert sending_end(1.0, Sending((0.0, 0.01), (1.0, 1.02))) == pytest.approx(1.005)
    assert sending_end(1.0, Sending((0.0, 0.01), (1.0, 1.02)), stopped=True) == pytest.approx(1.01)
    assert sending_end(1.2, Sending((0.0, 0.01), (1.0, 1.02))) == 1.02


def test_on_time_is_exactly_on_time() -> None:
    """The end is known within milliseconds only, and is no reason to doubt."""
    readings = [reading(0.1, 0.1e6), reading(0.9, 0.9e6)]
    assert sending_time(COUNT, 1.0, until(1.0 + END_LAG * 0.9), readings) == 1.0


@pytest.mark.parametrize("stretch", [1.005, 1.05, 1.5])
def test_lateness_is_measured_by_the_progress(stretch: float) -> None:
    readings = [reading(0.1, 0.1e6 / stretch), reading(0.9, 0.9e6 / stretch)]
    assert sending_time(COUNT, 1.0, until(stretch + 0.02), readings) == pytest.approx(stretch, rel=1e-3)


def test_the_quickest_readings_tell_the_progress() -> None:
    """A reading that took 50 ms is of any moment in them."""
    steps = [step / 16 for step in range(1, 16)]
    readings = [reading(at, at * COUNT / 1.01, request=0.05 if step % 3 else 0.001) for step, at in enumerate(steps)]
    assert sending_time(COUNT, 1.0, until(1.02), readings) == pytest.approx(1.01, rel=1e-3)
    slow = [reading(at, at * COUNT / 1.01, request=0.05) for at in steps]
    assert sending_time(COUNT, 1.0, until(1.02), slow) == 1.0


def test_a_lateness_within_the_readings_is_none() -> None:
    readings = [reading(0.1, 0.1e6 / 1.002, request=0.004), reading(0.9, 0.9e6 / 1.002, request=0.004)]
    assert sending_time(COUNT, 1.0, ON_TIME, readings) == 1.0


def test_few_packets_tell_nothing() -> None:
    assert sending_time(10, 0.1, until(0.1), [reading(0.01, 0), reading(0.09, 7)]) == 0.1
    assert sending_time(10, 0.1, until(0.1), [reading(0.01, 1), reading(0.09, 7)]) == 0.1


def test_the_sending_time_never_goes_beyond_the_end() -> None:
    stuck = [reading(0.1, 500), reading(0.9, 500)]
    assert sending_time(COUNT, 1.0, until(1.05), stuck) == pytest.approx(1.055)
    assert sending_time(COUNT, 1.0, until(0.9), stuck) == 1.0


def test_without_readings_the_end_tells() -> None:
    assert sending_time(1000, 1.0, until(1.5)) == pytest.approx(1.5 - 0.002 - END_LAG)


def test_a_stopped_port_sent_until_then() -> None:
    halved = [reading(0.1, 0.05e6), reading(0.9, 0.45e6)]
    assert sending_time(COUNT, 1.0, until(1.2), halved, stopped=True) == pytest.approx(1.2, abs=0.01)


def read(
    times: Sequence[float], *, load: float = 1e6, capacity: float = 0.97e6, flight: float = 0.0, apart: float = 0.0
) -> list[FlowReading]:
    """Of a port that sends for one second to a SUT whose buffer holds all that it cannot take.

    Args:
        apart: seconds that lie at most between the counters of one answer.
    """
    chance = random.Random(1)
    found = []
    for at in times:
        back = min(load, capacity * max(0.0, at - flight + chance.uniform(-apart, apart)))
        found.append(reading(at, load * min(1.0, at), back))
    return found


STEPS = [step / 16 for step in range(1, 16)]
END = [0.99, 0.995, 1.004, 1.01]


def test_what_is_under_way_is_told_at_equal_steps_of_the_sending() -> None:
    found = under_way_at_looks(COUNT, read(STEPS + END))
    assert found == pytest.approx([0.03e6 * look / LOOKS for look in range(1, LOOKS + 1)], abs=1)


@given(st.lists(st.floats(0.01, 0.99), max_size=60), st.floats(0.5, 1.0), st.floats(0, 0.005))
def test_it_does_not_matter_when_they_were_read(times: list[float], capacity: float, flight: float) -> None:
    each_quarter = [0.1, 0.3, 0.6, 0.9]
    found = under_way_at_looks(
        COUNT, read([*sorted(times + each_quarter), 1.004], capacity=capacity * 1e6, flight=flight)
    )
    queue = (1 - capacity) * 1e6
    truth = [queue * look / LOOKS + capacity * 1e6 * flight for look in range(1, LOOKS + 1)]
    # What is in flight is, only once a first packet was.
    assert found[2:] == pytest.approx(truth[2:], abs=3 + 0.01 * truth[-1])
    assert left_over(found) == pytest.approx(queue, abs=3 + 0.02 * queue)


@pytest.mark.parametrize("times", [[], [0.1, 0.3, 0.6], [0.3, 0.6, 0.9], [0.1, 0.3, 0.9]])
def test_a_quarter_without_a_reading_is_one_in_which_nobody_looked(times: list[float]) -> None:
    assert under_way_at_looks(COUNT, read([*times, 1.004, 1.01])) == ()


def test_a_packet_or_two_are_not_looked_at() -> None:
    assert under_way_at_looks(1, [reading(0.5, 0), reading(1.0, 1, 1)]) == ()
    assert under_way_at_looks(0, []) == ()


@pytest.mark.parametrize("apart", [0.0001, 0.0005])
def test_counters_that_lie_apart_are_told_by_many_looks(apart: float) -> None:
    """Half a millisecond is as much as a goal of 0.5 % allows in trials of 0.1 s."""
    found = under_way_at_looks(COUNT, read(STEPS + END, capacity=1e6, flight=0.002, apart=apart))
    first, last = sorted(found[:4]), sorted(found[-4:])
    assert abs(sum(last[1:3]) - sum(first[1:3])) / 2 <= apart * 1e6


def test_no_more_had_come_back_at_the_end_than_the_first_reading_after_it_has() -> None:
    """In the last milliseconds a SUT stalls, which nobody looked at."""
    readings = [*read(STEPS, capacity=1e6), reading(1.001, COUNT, 940_000), reading(1.1, COUNT, COUNT)]
    assert under_way_at_looks(COUNT, readings)[-1] == pytest.approx(60_000)
    assert under_way_at_looks(COUNT, readings[:15])[-1] == 0


@pytest.mark.parametrize("flight", [0.0, 0.001, 0.02])
@pytest.mark.parametrize("capacity", [0.5e6, 0.97e6, 1e6])
def test_what_is_under_way_from_the_beginning_is_not_left_over(capacity: float, flight: float) -> None:
    found = under_way_at_looks(COUNT, read([0.03, *STEPS, *END], capacity=capacity, flight=flight))
    assert left_over(found) == pytest.approx(1e6 - capacity, abs=0.002e6)


def test_the_burst_by_which_a_server_begins_is_not_left_over() -> None:
    """These looks are a real server's at 0.95, 1.03 and 2 times what a token bucket of 20 kpps passes, for 0.25 s."""
    below = (156, 151, 136, 118, 101, 84, 70, 58, 40, 31, 29, 17, 20, 20, 28, 29)
    beyond = (198, 201, 208, 216, 229, 237, 244, 257, 265, 274, 283, 293, 303, 312, 323, 333)
    far_beyond = (494, 807, 1119, 1431, 1745, 2057, 2369, 2680, 2992, 3305, 3616, 3929, 4244, 4555, 4868, 5184)
    assert left_over(below) == 0
    assert left_over(beyond) == pytest.approx(0.03 * 20e3 * 0.25, abs=10)
    assert left_over(far_beyond) == pytest.approx(20e3 * 0.25, abs=10)


def test_where_nobody_looked_the_drain_tells_what_had_come_back_at_the_end() -> None:
    draining = [reading(1.01, COUNT, 950_000), reading(1.02, COUNT, 960_000)]
    assert back_at_end(COUNT, draining, 1.0) == 940_000


@pytest.mark.parametrize(
    ("readings", "back"),
    [
        ([], 0),
        ([reading(1.2, COUNT, COUNT), reading(1.3, COUNT, COUNT)], 0),
        ([reading(0.9, 0.9e6, 0.72e6), reading(1.3, COUNT, COUNT)], 800_000),
        ([reading(0.9, 0.9e6, 0.72e6), reading(1.001, COUNT, 0.73e6)], 730_000),
    ],
)
def test_what_nobody_saw_come_back_by_the_end_is_not_told_to_have(readings: list[FlowReading], back: int) -> None:
    assert back_at_end(COUNT, readings, 1.0) == back


def test_the_longest_time_without_a_reading() -> None:
    assert unseen(0.0, 1.0, read(STEPS + END)) == 0
    assert unseen(0.0, 1.0, read([0.2, 0.4, 0.6, 0.8])) == 0
    assert unseen(0.0, 1.0, read([0.2, 0.4, 0.45, 0.8])) == pytest.approx(0.35)
    assert unseen(0.0, 1.0, read([0.6, 0.8, 1.1])) == pytest.approx(0.6)
    assert unseen(0.0, 1.0, []) == 1.0
