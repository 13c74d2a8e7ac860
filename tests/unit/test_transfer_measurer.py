"""The measurer of transfers keeps the same order as that of trials: on disk, then told; and a dead SUT comes first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.gate.run.resumed_run import EarlierStretches
from pdrgate.gate.sut.transfer_measurer import TransferMeasurer
from pdrgate.history.transfers import TransferFile
from pdrgate.measurands import TransferAsk
from pdrgate.observers.watching import Observation
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.transfer import Transfer
from pdrgate.stability.transfer_files import read_transfers
from pdrgate.values.errors import PdrGateError, TestbedError

MINE = Belonging("s", "Suite.Test", "f", "b", "candidate", "linux-b", 3)
ASK = TransferAsk(1 << 16, 1.0, Phase.REPEAT)


class Loop:
    """Simulates a closed loop: delivers what it is asked for, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def describe(self) -> dict[str, str]:
        return {}

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Transfer:
        self.asked += 1
        return Transfer(window, 1, "cubic", duration, rate, delivered=1000 * self.asked, seconds=duration)

    def close(self) -> None:
        pass


class Broken(Loop):
    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Transfer:
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
def file(tmp_path: Path) -> Iterator[TransferFile]:
    with TransferFile(tmp_path / "transfers.jsonl") as file:
        yield file


def test_a_transfer_is_on_disk_with_whose_it_is_before_it_is_told(file: TransferFile) -> None:
    on_disk: list[list[Transfer]] = []
    measurer = TransferMeasurer(
        Loop(), (), file, MINE, told=lambda transfer, replayed: on_disk.append(read_transfers(file.path))
    )
    made = measurer.measure(ASK, repeat=2)
    assert on_disk == [[made]]
    assert measurer.made == [made]
    assert made.belonging == MINE
    assert (made.occasion.phase, made.occasion.repeat, made.delivered) == (Phase.REPEAT, 2, 1000)


def test_functions_are_counted_where_a_transfer_tells_what_a_byte_costs(file: TransferFile) -> None:
    counting = Counting()
    measurer = TransferMeasurer(Loop(), (), file, MINE, counting=(counting,))
    assert measurer.measure(ASK).seen.functions
    assert not measurer.measure(TransferAsk(1 << 16, 1.0, Phase.SEARCH)).seen.functions
    assert counting.watched == 1


def test_what_the_resumed_run_measured_is_taken_from_it(file: TransferFile) -> None:
    loop = Loop()
    earlier = TransferMeasurer(loop, (), file, MINE).measure(ASK)
    told: list[tuple[Transfer, bool]] = []
    second = TransferMeasurer(
        loop, (), file, MINE, earlier=EarlierStretches([earlier]), told=lambda *one: told.append(one)
    )
    fresh = [second.measure(ASK), second.measure(ASK)][-1]
    assert told == [(earlier, True), (fresh, False)]
    assert loop.asked == 2
    assert read_transfers(file.path) == [earlier, fresh]


def test_a_sut_that_died_is_told_and_not_what_went_with_it(file: TransferFile) -> None:
    def died() -> None:
        raise TestbedError("the guest crashed")

    for check, told in ((died, "the guest crashed"), (lambda: None, "the program has gone")):
        with pytest.raises(PdrGateError, match=told):
            TransferMeasurer(Broken(), (), file, MINE, check=check).measure(ASK)
    assert file.path.read_text() == ""
