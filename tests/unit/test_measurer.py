"""The measurer: a trial is on disk before anybody hears of it, and a resumed run repeats none."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from causes import because
from flat_values import changed

from pdrgate.gate.run.resumed_run import EarlierTrials
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.history.trials import TrialFile
from pdrgate.measurands import Ask
from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import CounterObserver, Observation
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial
from pdrgate.stability import read_trials
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import GeneratorError, PdrGateError, StorageError, SutError, TestbedError

IN0_RX, IDLE = (Counter(Place("interface", "in0"), name) for name in ("rx", "idle"))
FLAT = Counter(Place("cpu", "1"), "flat")


class Generator:
    """Forwards all, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, float, Frames]] = []

    def describe(self) -> dict[str, str]:
        return {}

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        self.asked.append((load, duration, frames))
        sent = round(load * duration)
        return Trial(load, duration, sent, sent, sending_time=duration)

    def close(self) -> None:
        pass


@pytest.fixture
def file(tmp_path: Path) -> Iterator[TrialFile]:
    with TrialFile(tmp_path / "trials.jsonl") as file:
        yield file


MINE = Belonging("s", "Suite.Test", "f", "b", "candidate", "linux-b", 3)


def measurer(
    generator: Generator,
    file: TrialFile,
    earlier: Sequence[Trial] | EarlierTrials = (),
    on_trial: Callable[[Trial, bool], None] = lambda trial, replayed: None,
    belonging: Belonging = MINE,
) -> Measurer:
    ticks = itertools.count(1)
    return Measurer(
        OpenLoopTraffic(generator, Frames(size=128)),
        [CounterObserver(lambda: {IN0_RX: 10 * next(ticks), IDLE: 0, FLAT: 7})],
        file,
        belonging,
        earlier=earlier if isinstance(earlier, EarlierTrials) else EarlierTrials(earlier),
        on_trial=on_trial,
    )


@pytest.mark.parametrize(("taken", "believed"), [(500, True), (499, False), (0, False)])
def test_no_guest_has_had_more_than_was_taken_from_the_queue_before_it(
    file: TrialFile, taken: int, believed: bool
) -> None:
    sent = itertools.count(1000, taken)
    tap = Counter(Place("interface", "t0").of("tg"), "tx_packets")
    subject = Measurer(OpenLoopTraffic(Generator(), Frames()), [CounterObserver(lambda: {tap: next(sent)})], file, MINE)
    if believed:
        assert subject.measure(Ask(1000.0, 0.5, Phase.REPEAT)).forwarded == 500
    else:
        with pytest.raises(SutError, match=rf"500 packets of a trial, and {taken} were taken from the queues"):
            subject.measure(Ask(1000.0, 0.5, Phase.REPEAT))
        assert file.path.read_text() == ""  # what is not true, no run takes over


def test_a_trial_is_dressed_written_and_told_in_this_order(file: TrialFile) -> None:
    generator = Generator()
    told = []

    def on_trial(trial: Trial, replayed: bool) -> None:
        assert read_trials(file.path)[-1] == trial
        told.append((trial, replayed))

    subject = measurer(generator, file, on_trial=on_trial)
    trial = subject.measure(Ask(1000.0, 0.5, "search"), goal="PDR", repeat=2)
    assert generator.asked == [(1000.0, 0.5, Frames(size=128))]
    assert (trial.belonging.scenario, trial.belonging.fingerprint, trial.belonging.boot, trial.occasion.phase) == (
        "s",
        "f",
        "b",
        "search",
    )
    assert (trial.belonging.side, trial.belonging.build, trial.belonging.pair, trial.belonging.test) == (
        "candidate",
        "linux-b",
        3,
        "Suite.Test",
    )
    assert (trial.occasion.goal, trial.occasion.repeat) == ("PDR", 2)
    # Around the trial, without what is 0 in both.
    assert (trial.seen.counters_before, trial.seen.counters_after) == (
        {"in0": {"rx": 10}, "cpu1": {"flat": 7}},
        {"in0": {"rx": 20}, "cpu1": {"flat": 7}},
    )
    assert told == [(trial, False)]
    assert subject.made == [trial]


def test_what_cannot_be_written_is_not_told(file: TrialFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(trial: Trial) -> None:
        raise StorageError("full")

    def never(trial: Trial, replayed: bool) -> None:
        raise AssertionError("told")

    monkeypatch.setattr(file, "append", full)
    subject = measurer(Generator(), file, on_trial=never)
    with pytest.raises(StorageError):
        subject.measure(Ask(1000.0, 0.5, "search"))
    assert subject.made == []


def test_a_generator_that_fails_leaves_no_trial(file: TrialFile, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator()

    def broken(*_: object) -> Trial:
        raise GeneratorError("gone")

    monkeypatch.setattr(generator, "trial", broken)
    subject = measurer(generator, file)
    with pytest.raises(GeneratorError):
        subject.measure(Ask(1000.0, 0.5, "search"))
    assert (subject.made, file.path.read_bytes()) == ([], b"")


STEPS = [
    (1000.0, 0.5, "calibration", "", 0), (2000.0, 0.5, "search", "PDR", 0), (1500.0, 0.5, "search", "PDR", 0),
    (1500.0, 0.5, "search", "PDR", 0), (1500.0, 1.0, "repeat", "", 1),
]  # fmt: skip


@pytest.mark.parametrize("done", range(len(STEPS) + 1))
def test_earlier_trials_are_the_answers_while_the_questions_are_the_same(file: TrialFile, done: int) -> None:
    first = measurer(Generator(), file)
    for step in STEPS[:done]:
        first.measure(Ask(*step[:3]), *step[3:])
    earlier = first.made
    generator = Generator()
    told: list[bool] = []
    second = measurer(generator, file, earlier, lambda trial, replayed: told.append(replayed))
    for step in STEPS:
        second.measure(Ask(*step[:3]), *step[3:])
    assert second.made[:done] == earlier
    assert told == [True] * done + [False] * (len(STEPS) - done)
    assert [(load, duration) for load, duration, _ in generator.asked] == [step[:2] for step in STEPS[done:]]
    assert read_trials(file.path) == second.made  # nothing twice


def test_what_retis_looked_at_is_measured_anew_and_the_rest_is_not(file: TrialFile) -> None:
    looked = (3000.0, 0.1, "drops", "", 0)
    steps = (*STEPS, looked, (900.0, 1.0, "soak", "", 1))
    first = measurer(Generator(), file)
    for step in steps:
        first.measure(Ask(*step[:3]), *step[3:])
    generator = Generator()
    second = measurer(generator, file, first.made)
    for step in steps:
        second.measure(Ask(*step[:3]), *step[3:])
    assert [(load, duration) for load, duration, _ in generator.asked] == [looked[:2]]


@pytest.mark.parametrize(
    "other",
    [
        (1501.0, 0.5, "search", "PDR", 0),
        (1500.0, 0.6, "search", "PDR", 0),
        (1500.0, 0.5, "repeat", "PDR", 0),
        (1500.0, 0.5, "search", "PDR", 1),
    ],
)
def test_a_run_that_diverges_goes_its_own_way_from_there(
    file: TrialFile, other: tuple[float, float, str, str, int]
) -> None:
    first = measurer(Generator(), file)
    for step in STEPS:
        first.measure(Ask(*step[:3]), *step[3:])
    generator = Generator()
    second = measurer(generator, file, first.made)
    for step in (*STEPS[:2], other, *STEPS[3:]):
        second.measure(Ask(*step[:3]), *step[3:])
    assert second.made[:2] == first.made[:2]
    assert [(load, duration) for load, duration, _ in generator.asked] == [other[:2], *[step[:2] for step in STEPS[3:]]]


@pytest.mark.parametrize(
    "change",
    [
        {"scenario": "s-loss10"}, {"fingerprint": "g"}, {"boot": "c"}, {"side": "baseline"}, {"build": "x"},
        {"pair": 4}, {"test": "Suite.Another"},
    ],
)  # fmt: skip
def test_trials_of_another_question_boot_build_or_test_are_no_answers(file: TrialFile, change: dict[str, Any]) -> None:
    first = measurer(Generator(), file, belonging=dataclasses.replace(MINE, **change))
    for step in STEPS:
        first.measure(Ask(*step[:3]), *step[3:])
    generator = Generator()
    second = measurer(generator, file, first.made)
    for step in STEPS:
        second.measure(Ask(*step[:3]), *step[3:])
    assert len(generator.asked) == len(STEPS)


def test_an_earlier_trial_answers_once(file: TrialFile) -> None:
    """A test that had never run once told the trials of the one before it as its own, and sent nothing."""
    first = measurer(Generator(), file)
    for step in (*STEPS, *STEPS[:2]):
        first.measure(Ask(*step[:3]), *step[3:])
    earlier = EarlierTrials(first.made)
    generator = Generator()
    for _ in range(3):
        again = measurer(generator, file, earlier)
        for step in STEPS:
            again.measure(Ask(*step[:3]), *step[3:])
    # Nothing of the first, what was begun of the second, all of the third.
    asked = [step[:2] for step in (*STEPS[2:], *STEPS)]
    assert [(load, duration) for load, duration, _ in generator.asked] == asked


def test_a_generators_own_counters_stay_beside_the_suts(file: TrialFile) -> None:
    class Counting(Generator):
        def trial(self, load: float, duration: float, frames: Frames) -> Trial:
            trial = super().trial(load, duration, frames)
            return changed(
                trial, counters_before={"trex": {"queue_full": 1}}, counters_after={"trex": {"queue_full": 4}}
            )

    trial = measurer(Counting(), file).measure(Ask(1000, 1, "search"))
    assert trial.seen.counter_changes == {"trex": {"queue_full": 3}, "in0": {"rx": 10}}


@pytest.mark.parametrize(("phase", "told"), [(Phase.SEARCH, "the server was busy"), (Phase.PATH, "")])
def test_what_disturbed_a_generator_is_told(file: TrialFile, phase: Phase, told: str) -> None:
    class Busy(Generator):
        def trial(self, load: float, duration: float, frames: Frames) -> Trial:
            return changed(super().trial(load, duration, frames), disturbed=because("the server was busy"))

    assert measurer(Busy(), file).measure(Ask(1000, 1, phase)).seen.disturbed == because(told)


def test_a_sut_that_died_is_told_and_not_what_went_with_it(file: TrialFile) -> None:
    class Portless(Generator):
        def trial(self, load: float, duration: float, frames: Frames) -> Trial:
            raise GeneratorError("t0 has gone")

    def died() -> None:
        raise TestbedError("the guest crashed")

    for check, told in ((died, "the guest crashed"), (lambda: None, "t0 has gone")):
        subject = Measurer(OpenLoopTraffic(Portless(), Frames()), (), file, MINE, check=check)
        with pytest.raises(PdrGateError, match=told):
            subject.measure(Ask(1000, 1, "search"))
    assert file.path.read_text() == ""


def test_what_leads_in_to_a_trial_is_sent_before_it_and_not_when_it_is_taken_over(file: TrialFile) -> None:
    generator, led = Generator(), list[tuple[float, Phase, int]]()

    def lead_in(load: float, phase: Phase) -> None:
        led.append((load, phase, len(generator.asked)))

    fresh = Measurer(OpenLoopTraffic(generator, Frames(6, 64), lead_in=lead_in), [], file, MINE)
    trial = fresh.measure(Ask(1e3, 1.0, Phase.PDR))
    assert led == [(1e3, Phase.PDR, 0)]
    Measurer(
        OpenLoopTraffic(generator, Frames(6, 64), lead_in=lead_in), [], file, MINE, earlier=EarlierTrials([trial])
    ).measure(Ask(1e3, 1.0, Phase.PDR))
    assert len(led) == 1
    assert len(generator.asked) == 1


class _CallsSeen:
    """An observer that has seen a function and who calls it."""

    def begin(self) -> None:
        pass

    def end(self) -> Observation:
        return Observation(functions={"find": (9, 1)}, callers={"find": ("receive",)})


@pytest.mark.parametrize(("pair", "kept"), [(0, True), (1, True), (2, False)])
def test_callers_are_kept_of_the_first_trial_at_saturation_of_the_first_boot(
    file: TrialFile, pair: int, kept: bool
) -> None:
    belonging = dataclasses.replace(MINE, pair=pair)
    subject = Measurer(OpenLoopTraffic(Generator(), Frames()), (), file, belonging, counting=(_CallsSeen(),))
    phases = (Phase.COST, Phase.SATURATION, Phase.SATURATION)
    made = [subject.measure(Ask(1000.0, 1.0, phase)) for phase in phases]
    told = {"find": ("receive",)} if kept else {}
    assert [one.seen.callers for one in made] == [{}, told, {}]
    assert all(one.seen.functions for one in made)
