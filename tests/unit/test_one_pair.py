"""Paths that are counted one after the other, on simulated SUTs: of which is one pair enough?"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from counting_testbed import CountingTestbed
from fake_testbed import CONFIG, QUICK, Watcher
from simulated_sut import Behaviour, IdealCurve, SimulatedSut

from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.selection_file import code_key
from pdrgate.gate.run.session import Session
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.history.results import encoded
from pdrgate.record.path_code import PathCode
from pdrgate.reports.plots.pairs import pairs
from pdrgate.reports.words.headline import headline, scenario_headline
from pdrgate.results.consistency import contradictions
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal

SAME = {"ip_rcv": 1000.0, "ip_forward": 2000.0}
SLOWER = {"ip_rcv": 1000.0, "ip_forward": 2170.0}
ONE_PAIR = "one pair of boots, which shows what was foretold"
BASE = "digest of the base"
Counted = Callable[[Mapping[str, float]], PairsComparison]


@contextlib.contextmanager
def counting(folder: Path, experience: Experience | None = None, candidate: str = "new") -> Iterator[Counted]:
    """Counts one path after the other on the same SUTs: the candidate has what a test hands over, by function."""
    functions: dict[Side, Mapping[str, float]] = {"baseline": SAME, "candidate": SAME}
    numbers = itertools.count(1)

    def boot(side: Side, journal: Journal) -> CountingTestbed:
        number = next(numbers)
        sut = SimulatedSut(IdealCurve(50e3), Behaviour(0.0), seed=number)
        return CountingTestbed(sut, lambda: functions[side], boot_id=f"boot-{number}", kernel=side)

    record = RunRecord(folder / candidate, QUICK.profile)
    session = Session(CONFIG, QUICK, record, Watcher(), experience=experience, state=folder / "state")
    session.take()
    with contextlib.closing(session):
        builds = {
            side: Build(side, side, lambda journal, side=side: boot(side, journal), identity=identity)
            for side, identity in zip(SIDES, (BASE, candidate), strict=True)
        }
        suts, buffers = LivingSuts(session, builds), itertools.count(64)

        def count(candidate: Mapping[str, float]) -> PairsComparison:
            functions["candidate"] = candidate
            scenario = Scenario(buffer=next(buffers))
            made = living_comparison_of(
                ComparisonTask(session, scenario, suts.builds, Plan(4, 600, 0.02), longname=scenario.name), suts
            )
            made.run()
            return made

        yield count
        suts.close()


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    with counting(tmp_path) as count:
        yield count


def verdict(made: PairsComparison) -> tuple[Verdict, int, bool]:
    """The verdict, the pairs that it took, and whether its reason says that one was enough."""
    assert made.judgement is not None
    return made.judgement.verdict, made.loop.found.pairs, ONE_PAIR in made.judgement.reason


def test_of_the_fourth_equal_path_one_pair_is_enough(counted: Counted) -> None:
    found = [verdict(counted(SAME)) for _ in range(5)]
    assert found == [(Verdict.PASS, 2, False)] * 3 + [(Verdict.PASS, 1, True)] * 2


def test_a_function_that_is_slower_on_three_paths_is_red_on_the_others_after_one_pair(counted: Counted) -> None:
    found = [verdict(counted(SLOWER)) for _ in range(5)]
    assert found == [(Verdict.REGRESSION, 2, False)] * 3 + [(Verdict.REGRESSION, 1, True)] * 2


def test_another_function_that_is_slower_has_a_second_pair_and_then_none(counted: Counted) -> None:
    for _ in range(3):
        counted(SAME)
    assert verdict(counted(SLOWER)) == (Verdict.REGRESSION, 2, False)
    assert verdict(counted(SLOWER)) == (Verdict.REGRESSION, 1, True)
    assert verdict(counted({**SAME, "nf_hook_slow": 170.0})) == (Verdict.REGRESSION, 2, False)
    assert verdict(counted({**SAME, "ip_forward": 2400.0})) == (Verdict.REGRESSION, 2, False)


def test_of_a_base_that_was_measured_before_one_pair_is_enough_for_a_pass_alone(tmp_path: Path) -> None:
    experience = Experience(Address(file=tmp_path / "history.db"))
    with counting(tmp_path, experience, "first") as count:
        known = count(SAME)
        assert verdict(known) == (Verdict.PASS, 2, False)
    experience.add_path_codes(code_key(BASE, CONFIG), {known.scenario.name: PathCode()}, 1.0)
    with counting(tmp_path, experience, "second") as count:
        assert verdict(count(SAME)) == (Verdict.PASS, 1, True)
        assert verdict(count(SAME)) == (Verdict.PASS, 2, False)  # a path of which nothing is known
    with counting(tmp_path, experience, "third") as count:
        assert verdict(count(SLOWER)) == (Verdict.REGRESSION, 2, False)


def test_reports_say_of_a_single_pair_what_they_say_of_more(counted: Counted) -> None:
    found = [counted(SLOWER) for _ in range(4)]
    run = found[-1].session.record.result(finished=True)
    assert [*contradictions(run)] == []
    assert encoded(run)
    one = run.scenarios[-1]
    assert one.comparison is not None
    assert one.comparison.pairs_in_words == "1 pair of boots"
    assert pairs(one)
    assert "ip_forward" in scenario_headline(one)
    assert headline(run).startswith("REGRESSION: ip_forward +170 on all 4 paths")
