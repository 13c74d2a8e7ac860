"""When SUTs of several CPUs that stay up are asked again, and booted anew: by SUTs that tell what a test says."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rule_changes import memory_changes
from trials_in_turns import in_turns, trial

from pdrgate.gate.comparisons.living_boots import several_cpu_suts
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.guests.guest import GuestError
from pdrgate.measurands import Ask
from pdrgate.measurands.memory.shared_lines import SharedLines
from pdrgate.record.phase import IN_LOCKSTEP, Phase
from pdrgate.record.stretch import MemoryCounts, MemorySeen, Seen
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.errors import SutError, TestbedError

_PACKETS = 1000


@dataclass
class _Session:
    cpus: int = 4
    begun: int = 0
    up: list[object] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    record: Any = field(default_factory=lambda: SimpleNamespace(several_cpus=SimpleNamespace()))

    @property
    def observer(self) -> Any:
        return SimpleNamespace(said=self.said.append, warned=self.said.append)

    @contextlib.contextmanager
    def on_several_cpus(self) -> Iterator[int]:
        yield self.cpus

    @contextlib.contextmanager
    def recorded_in(self, record: object) -> Iterator[None]:
        yield

    def begin(self, start: object, *, kept: bool) -> object:
        assert kept
        self.begun += 1
        self.up.append(SimpleNamespace(disposable=True, number=self.begun))
        return self.up[-1]

    def as_it_is(self) -> _Session:
        return self

    def leave(self, testbeds: list[object]) -> None:
        for one in testbeds:
            self.up.remove(one)


def _told(
    monkeypatch: pytest.MonkeyPatch,
    session: _Session,
    shared: dict[str, list[float]],
    scenarios: int = 1,
    stuck: tuple[str, ...] = (),
    ahead: bool = False,
    asked: bool = True,
    scaling: dict[str, float] | None = None,
    made: list[Phase] | None = None,
    unmeasured: list[tuple[str, ...]] | None = None,
    crashes: list[Judgement | None] | None = None,
    dead: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """What each scenario comes to, where trials of a build see so many shared lines for a packet, one after the other.

    A number below 0 ends the guest, and NaN is a trial of too few packets. The first guest of a side that is `stuck`
    cannot be put back. Several CPUs handle `scaling` times what one does; below 0, the guest ends then. The phases of
    trials that were made are added to `made`, what was not measured to `unmeasured`, and that the candidate's guests
    died, and the baseline's did not, to `crashes`. No guest of a side that is `dead` comes up.
    """

    class Sut:
        def __init__(self, _session: object, scenario: object, testbed: Any, identity: Any, **_: object) -> None:
            self.side = identity.side
            self.first = testbed.number <= len(SIDES)
            self.testbed = testbed
            self.trials: list[Trial] = []
            self.boot = str(testbed.number)

        def prepare(self) -> None:
            if self.side in dead:
                raise GuestError("no sign of life", Path("console"))
            if self.testbed not in session.up:
                raise TestbedError("there is no guest: the testbed is closed")

        def release(self) -> None:
            if self.first and self.side in stuck:
                raise SutError(f"{self.side}: a rule stays")

        def abandon(self) -> None: ...

        def measure(self, ask: Ask) -> Trial:
            phase = ask.phase
            if made is not None:
                made.append(phase)
            seen = Seen() if phase in IN_LOCKSTEP else Seen(memory=self.memory())
            if phase in IN_LOCKSTEP:
                times = (scaling or {}).get(self.side, 2.0) if phase is Phase.ALL_CPUS else 1.0
                if times < 0:
                    raise GuestError("the guest has ended", Path("console"))
                seen = in_turns((500, round(500 * 5000 / times)))
            self.trials.append(trial(seen, phase, self.boot))
            return self.trials[-1]

        def memory(self) -> MemorySeen | None:
            lines = shared[self.side].pop(0)
            if lines < 0:
                raise GuestError("the guest has ended", Path("console"))
            if math.isnan(lines):
                return None
            return MemorySeen(_PACKETS, 0, {"memcmp": MemoryCounts(shared=int(lines * _PACKETS))})

    monkeypatch.setattr(several_cpu_suts, "PreparedSut", Sut)
    builds = {side: SimpleNamespace(label=side, start=None, program=None) for side in SIDES}
    suts, found = SeveralCpuSuts(cast(Any, session), cast(Any, builds)), []
    for _ in range(scenarios):
        task = SimpleNamespace(
            scenario=None, longname="test", one_content=False, labels={side: f"{side}.deb" for side in SIDES}
        )
        if ahead:
            suts.begin(cast(Any, task))
        if asked:
            seen = suts.seen(cast(Any, task))
            found.append(dict(seen.results))
            if unmeasured is not None:
                unmeasured.append(seen.unmeasured)
            if crashes is not None:
                crashes.append(seen.crash)
    suts.close()
    assert session.up == []
    return cast(Any, found)


def test_one_trial_tells_that_nothing_has_changed_and_both_stay_up(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session()
    first, second = _told(monkeypatch, session, {"baseline": [0.1, 0.0], "candidate": [0.6, 0.0]}, scenarios=2)
    assert [one.trials for found in (first, second) for one in found.values()] == [1] * 4
    assert session.begun == 2


def test_lines_that_one_trial_shares_by_chance_cost_further_trials_and_no_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session()
    (found,) = _told(monkeypatch, session, {"baseline": [0.0] * 4, "candidate": [2.0, 0.0, 0.0, 0.0]})
    assert [one.trials for one in found.values()] == [4, 4]
    assert session.begun == 2


@pytest.mark.parametrize(("again", "verdict"), [(1.0, [Verdict.REGRESSION]), (0.0, [])])
def test_what_is_worse_is_believed_where_other_boots_show_it_too(
    monkeypatch: pytest.MonkeyPatch, again: float, verdict: list[Verdict]
) -> None:
    session = _Session()
    (found,) = _told(monkeypatch, session, {"baseline": [0.0] * 8, "candidate": [1.0] * 4 + [again] * 4})
    assert session.begun == 4
    assert [one.trials for one in found.values()] == [8, 8]
    changes = memory_changes(found["baseline"], found["candidate"], (), [SharedLines])
    assert [one.verdict for one in changes] == verdict


def test_cpus_that_handle_less_are_asked_again_and_then_other_boots_are(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session()
    lines = {side: [0.0] * 8 for side in SIDES}
    (found,) = _told(monkeypatch, session, lines, scaling={"baseline": 2.0, "candidate": 1.5})
    assert session.begun == 4
    assert [found[side].values["scaling"] for side in SIDES] == [pytest.approx([2.0] * 4), pytest.approx([1.5] * 4)]


ENDED = "what several CPUs share was not measured: the guest has ended"


def test_a_guest_that_ends_is_booted_anew_and_all_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    session, unmeasured = _Session(), []
    shared = {"baseline": [0.0] * 3, "candidate": [-1.0, 0.0, 0.0]}
    first, second = _told(monkeypatch, session, shared, scenarios=2, unmeasured=unmeasured)
    assert (len(first), len(second)) == (2, 2)
    assert unmeasured == [(), ()]
    assert session.begun == 4
    assert session.said == [ENDED]


def test_a_candidate_that_dies_on_several_cpus_each_time_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel would hide from what several CPUs do to each other by dying there."""
    session, unmeasured = _Session(), list[tuple[str, ...]]()
    crashes: list[Judgement | None] = []
    shared = {"baseline": [0.0] * 3, "candidate": [-1.0, -1.0, 0.0]}
    first, second = _told(monkeypatch, session, shared, scenarios=2, unmeasured=unmeasured, crashes=crashes)
    assert (first, len(second)) == ({}, 2)
    assert unmeasured == [(ENDED,), ()]
    assert session.begun == 6
    assert session.said == [ENDED, ENDED]
    assert [one and one.verdict for one in crashes] == [Verdict.CRASH, None]
    assert crashes[0] is not None
    assert crashes[0].reason == (
        "with 4 CPUs: the guest has ended; 2 boots of the candidate candidate.deb failed, and none of the baseline's"
    )


@pytest.mark.parametrize(
    "shared",
    [
        {"baseline": [-1.0, 0.0], "candidate": [-1.0, -1.0]},
        {"baseline": [-1.0, -1.0], "candidate": [0.0, 0.0]},
        {"baseline": [0.0, 0.0], "candidate": [-1.0, 0.0]},
    ],
    ids=["both", "the baseline", "once"],
)
def test_guests_that_end_are_no_crash_where_the_baseline_s_do_or_others_do_not(
    monkeypatch: pytest.MonkeyPatch, shared: dict[str, list[float]]
) -> None:
    crashes: list[Judgement | None] = []
    _told(monkeypatch, _Session(), shared, crashes=crashes)
    assert crashes == [None]


@pytest.mark.parametrize("ahead", [False, True])
def test_a_candidate_that_never_comes_up_on_several_cpus_is_not_booted_for_each_scenario(
    monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    session, crashes = _Session(), list[Judgement | None]()
    shared = {side: [0.0] * 20 for side in SIDES}
    _told(monkeypatch, session, shared, scenarios=9, crashes=crashes, dead=("candidate",), ahead=ahead)
    assert [one and one.verdict for one in crashes] == [Verdict.CRASH] * 9
    assert session.begun == 2 * 4


def test_a_candidate_that_dies_once_its_cpus_execute_in_turn_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    crashes: list[Judgement | None] = []
    shared = {side: [0.0] * 2 for side in SIDES}
    (found,) = _told(monkeypatch, _Session(), shared, scaling={"candidate": -1.0}, crashes=crashes)
    assert len(found) == 2
    assert [one and one.verdict for one in crashes] == [Verdict.CRASH]


def test_guests_that_end_in_lockstep_each_time_cost_the_scaling_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    session, unmeasured = _Session(), []
    shared = {side: [0.0] * 2 for side in SIDES}
    (found,) = _told(monkeypatch, session, shared, scaling=dict.fromkeys(SIDES, -1.0), unmeasured=unmeasured)
    assert len(found) == 2
    assert not any("scaling" in one.values for one in found.values())
    assert unmeasured == [("how much more 4 CPUs handle was not measured: the guest has ended",)]


def test_a_build_whose_packets_nobody_saw_on_all_cpus_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    unmeasured: list[tuple[str, ...]] = []
    (found,) = _told(
        monkeypatch, _Session(), {"baseline": [0.0] * 4, "candidate": [math.nan] * 12}, unmeasured=unmeasured
    )
    assert found == {}
    ((line,),) = unmeasured
    assert "too few trials of the candidate" in line


def test_a_guest_that_cannot_be_put_back_is_ended_and_booted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session()
    seen = {"baseline": [0.0] * 3, "candidate": [0.0] * 3}
    found = _told(monkeypatch, session, seen, scenarios=3, stuck=("candidate",))
    assert [len(one) for one in found] == [2, 2, 2]
    assert session.begun == 3
    assert session.said == ["candidate: a rule stays"]


@pytest.mark.parametrize("stuck", [(), ("candidate",)])
def test_what_is_begun_beside_other_things_tells_the_same(
    monkeypatch: pytest.MonkeyPatch, stuck: tuple[str, ...]
) -> None:
    seen = {"baseline": [0.1, 0.2, 0.3, 0.0], "candidate": [0.3, 0.2, 0.1, 0.0]}
    session = _Session()
    found = _told(monkeypatch, session, seen, scenarios=3, stuck=stuck, ahead=True)
    assert [one.trials for told in found for one in told.values()] == [1] * 6
    assert session.begun == 2 + len(stuck)


def test_what_is_begun_for_a_scenario_that_nobody_asks_of_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session()
    seen = {"baseline": [0.0] * 2, "candidate": [0.0] * 2}
    assert _told(monkeypatch, session, seen, ahead=True, asked=False) == []
    assert (session.begun, session.said) == (2, [])


@pytest.mark.parametrize(("in_vain", "told"), [(1, 2), (2, 2), (12, 0)])
def test_a_trial_of_too_few_packets_is_made_again_twice(
    monkeypatch: pytest.MonkeyPatch, in_vain: int, told: int
) -> None:
    seen = {"baseline": [0.0] * 4, "candidate": [*[math.nan] * in_vain, 0.0]}
    (found,) = _told(monkeypatch, _Session(), seen)
    assert len(found) == told


def test_a_testbed_without_such_guests_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session(cpus=0)
    assert _told(monkeypatch, session, {}) == [{}]
    assert (session.begun, session.said) == (0, [])


def test_where_nothing_tells_the_scaling_it_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Phase] = []
    shared = {side: [0.0] for side in SIDES}
    (found,) = _told(monkeypatch, _Session(), shared, scaling=dict.fromkeys(SIDES, math.inf), made=made)
    assert not any("scaling" in one.values for one in found.values())
    assert sorted(made) == sorted([Phase.MEMORY] * len(SIDES) + [Phase.ALL_CPUS] * 3 * len(SIDES))
