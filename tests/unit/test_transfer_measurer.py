"""The measurer of transfers keeps the same order as that of trials: on disk, then told; and a dead SUT comes first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.gate.run.resumed_run import EarlierTrials
from pdrgate.gate.sut.closed_loop_traffic import ClosedLoopTraffic
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.history.trials import TrialFile
from pdrgate.measurands import Ask
from pdrgate.observers.watching import Observation
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.transfer import Transfer
from pdrgate.record.trial import Trial
from pdrgate.stability import read_trials
from pdrgate.values.errors import PdrGateError, TestbedError

MINE = Belonging("s", "Suite.Test", "f", "b", "candidate", "linux-b", 3)
ASK = Ask.of_window(1 << 16, 1.0, Phase.REPEAT)


class Loop:
    """Simulates a closed loop: delivers what it is asked for, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def describe(self) -> dict[str, str]:
        return {}

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        self.asked += 1
        moved = Transfer(window, 1, "cubic", rate, delivered=1000 * self.asked, seconds=duration)
        return Trial.of_transfer(moved, duration)

    def close(self) -> None:
        pass


class Broken(Loop):
    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        raise TestbedError("the program has gone")


class Counting:
    """Counts how often it watched."""

    def __init__(self) -> None:
        self.watched = 0

    def begin(self) -> None:
        self.watched += 1

    def end(self) -> Observation:
        return Observation(functions={"tcp_sendmsg": 2000.0})


@pytest.fixture
def file(tmp_path: Path) -> Iterator[TrialFile]:
    with TrialFile(tmp_path / "trials.jsonl") as file:
        yield file


def test_a_transfer_is_on_disk_with_whose_it_is_before_it_is_told(file: TrialFile) -> None:
    on_disk: list[list[Trial]] = []
    measurer = Measurer(
        ClosedLoopTraffic(Loop()),
        (),
        file,
        MINE,
        on_trial=lambda transfer, replayed: on_disk.append(read_trials(file.path)),
    )
    made = measurer.measure(ASK, repeat=2)
    assert on_disk == [[made]]
    assert measurer.made == [made]
    assert made.belonging == MINE
    assert (made.occasion.phase, made.occasion.repeat, made.transfer.delivered) == (Phase.REPEAT, 2, 1000)


def test_functions_are_counted_where_a_transfer_tells_what_a_byte_costs(file: TrialFile) -> None:
    counting = Counting()
    measurer = Measurer(ClosedLoopTraffic(Loop()), (), file, MINE, counting=(counting,))
    assert measurer.measure(ASK).seen.functions
    assert not measurer.measure(Ask.of_window(1 << 16, 1.0, Phase.SEARCH)).seen.functions
    assert counting.watched == 1


def test_what_the_resumed_run_measured_is_taken_from_it(file: TrialFile) -> None:
    loop = Loop()
    earlier = Measurer(ClosedLoopTraffic(loop), (), file, MINE).measure(ASK)
    told: list[tuple[Trial, bool]] = []
    second = Measurer(
        ClosedLoopTraffic(loop),
        (),
        file,
        MINE,
        earlier=EarlierTrials([earlier]),
        on_trial=lambda *one: told.append(one),
    )
    fresh = [second.measure(ASK), second.measure(ASK)][-1]
    assert told == [(earlier, True), (fresh, False)]
    assert loop.asked == 2
    assert read_trials(file.path) == [earlier, fresh]


def test_a_sut_that_died_is_told_and_not_what_went_with_it(file: TrialFile) -> None:
    def died() -> None:
        raise TestbedError("the guest crashed")

    for check, told in ((died, "the guest crashed"), (lambda: None, "the program has gone")):
        with pytest.raises(PdrGateError, match=told):
            Measurer(ClosedLoopTraffic(Broken()), (), file, MINE, check=check).measure(ASK)
    assert file.path.read_text() == ""
