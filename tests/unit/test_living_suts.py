"""Which guests stay up from scenario to scenario, by a session that boots nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.failed_boots import too_many_failed
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.guests.guest import GuestError
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict


class _Nothing:
    disposable = True

    def standing(self) -> _Nothing:
        return self

    def ready(self) -> None:
        pass


class _Dies(_Nothing):
    """A SUT whose kernel dies while it boots."""


@dataclass
class BootsNothing:
    up: list[object] = field(default_factory=list)
    begun: int = 0
    dying: str = ""
    observer: Any = field(
        default_factory=lambda: SimpleNamespace(said=lambda sentence: None, warned=lambda sentence: None)
    )

    def begin(self, start: Any, *, kept: bool) -> object:
        self.begun += 1
        self.up.append(start(None))
        return self.up[-1]

    def ready(self, testbed: object, *, introduce: bool) -> None:
        assert testbed in self.up
        if isinstance(testbed, _Dies):
            raise GuestError("invalid opcode", Path("console"))

    def leave(self, testbeds: list[object]) -> None:
        for one in testbeds:
            self.up.remove(one)


def living(session: BootsNothing) -> LivingSuts:
    def build(side: Side) -> Build:
        def start(_: object) -> object:
            return _Dies() if session.dying == side else _Nothing()

        return cast(Build, SimpleNamespace(label=side, identity=side, counted=None, start=start))

    builds = {side: build(side) for side in SIDES}
    return LivingSuts(cast(Session, session), builds)


def test_the_first_pairs_stay_up_and_further_ones_end_when_others_are_wanted() -> None:
    session = BootsNothing()
    suts = living(session)
    first = suts.pairs((1, 2))
    for numbers in ((3, 4), (5, 6), (7, 8), (9, 10), (11, 12)):
        suts.pairs(numbers)
        assert len(session.up) <= 2 * 6
    assert suts.pairs((1, 2)) == first
    assert len(session.up) == 2 * 4
    assert session.begun == 2 * 12
    suts.close()
    assert session.up == []


def test_who_wants_a_sut_waits_for_what_is_done_there_meanwhile() -> None:
    suts, done = living(BootsNothing()), list[str]()
    suts.pairs((1, 2))
    begun = threading.Event()

    def slow() -> None:
        begun.wait(10)
        done.append("put back")

    suts.meanwhile([slow, slow])
    assert done == []
    begun.set()
    suts.pairs((1, 2))
    assert done == ["put back", "put back"]
    suts.close()


def test_a_candidate_that_dies_as_it_boots_beside_a_baseline_that_does_not_is_a_crash() -> None:
    boots = _boots(BootsNothing(dying="candidate"))
    died = [one for number in (1, 1) for one in boots.next(number, wanted=lambda pair: True).results]
    assert [one.side for one in died] == ["candidate"] * 2
    assert boots.baseline_came_up
    found = too_many_failed(died, {side: side for side in SIDES}, baseline_came_up=boots.baseline_came_up)
    assert found is not None
    assert found.verdict is Verdict.CRASH


def test_a_build_of_which_no_boot_comes_up_is_not_booted_for_each_scenario_anew() -> None:
    session, said = BootsNothing(dying="candidate"), list[str]()
    session.observer = SimpleNamespace(said=said.append, warned=said.append)
    suts = living(session)
    for scenario in range(74):
        boots = _boots(session, suts)
        died = [one for number in (1, 1) for one in boots.next(number, wanted=lambda pair: True).results]
        assert [(one.side, one.failure, one.sut_failed) for one in died] == [("candidate", "invalid opcode", True)] * 2
        assert boots.baseline_came_up
        assert session.begun == 2 + 4, scenario  # both of the baseline stay up
    assert said[-1] == "none of 4 boots of the candidate has come up: it is booted no more"
    assert sum("invalid opcode" in line for line in said) == 1
    suts.close()
    assert session.up == []


def test_a_build_that_came_up_once_is_booted_anew_however_often_it_dies() -> None:
    session = BootsNothing()
    suts = living(session)
    suts.pairs((1, 2))
    session.dying = "candidate"
    for died in range(1, 9):
        for number in (1, 2):
            suts.lost(("candidate", number))
        with pytest.raises(BootError):
            suts.pairs((1, 2))
        assert session.begun == 4 + 2 * died
    suts.close()


def test_a_baseline_that_dies_as_it_boots_has_not_come_up() -> None:
    boots = _boots(BootsNothing(dying="baseline"))
    assert [one.side for one in boots.next(1, wanted=lambda pair: True).results] == ["baseline"]
    assert not boots.baseline_came_up


def _boots(session: BootsNothing, suts: LivingSuts | None = None) -> LivingBoots:
    suts, counted = suts or living(session), cast(Any, SimpleNamespace(frames={}))
    task = ComparisonTask(cast(Session, session), Scenario(), suts.builds, Plan(2, None, 0.02))
    return LivingBoots(task, suts, counted)


def test_a_pair_that_may_be_enough_is_measured_alone_and_so_is_the_one_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, asked = BootsNothing(), list[tuple[int, ...]]()
    suts = living(session)

    def pairs(numbers: tuple[int, ...]) -> Any:
        asked.append(tuple(numbers))
        raise BootError("candidate", GuestError("gone", Path("console")))

    monkeypatch.setattr(suts, "pairs", pairs)
    boots = _boots(session, suts)
    boots.next(1, wanted=lambda pair: False)
    for number in (2, 3, 1):
        boots.next(number, wanted=lambda pair: True)
    assert asked == [(1,), (2,), (3, 4), (1, 2)]
    suts.close()
