"""What of a file belongs together: scenarios, builds, comparisons of builds, and their pairs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from flat_values import flat_trial

from pdrgate.gate.run.scenario import Scenario
from pdrgate.record.trial import Trial
from pdrgate.stability.experiments import comparisons, experiments, goal_of, without_goal


def of(side: str = "", build: str = "", pair: int = 0, **more: object) -> Trial:
    return flat_trial(1e6, 1.0, 1000, 990, side=side, build=build, pair=pair, **more)


def pairs(numbers: Iterable[int], candidate: str, baseline: str = "a", **more: object) -> list[Trial]:
    """Trials of both boots of each pair, in turn."""
    both = (("baseline", baseline), ("candidate", candidate))
    return [of(side, build, number, **more) for number in numbers for side, build in both * 2]


def numbered(*parts: list[Trial]) -> list[list[int]]:
    """The numbers of comparisons that each part's trials are told to be of."""
    found = iter(comparisons([trial for part in parts for trial in part]))
    return [sorted({next(found) for _ in part}) for part in parts]


def test_pairs_of_one_comparison_are_together_and_single_suts_are_of_none() -> None:
    assert numbered([of(), of()], pairs(range(1, 5), "b"), [of()]) == [[0], [1], [0]]


def test_another_candidate_is_another_comparison() -> None:
    assert numbered(pairs(range(1, 5), "b"), pairs(range(1, 4), "c")) == [[1], [2]]


def test_another_baseline_is_another_comparison() -> None:
    assert numbered(pairs((1, 2), "b"), pairs((3, 4), "b", baseline="x")) == [[1], [2]]


def test_the_same_builds_compared_again_are_another_comparison() -> None:
    assert numbered(pairs(range(1, 5), "b"), pairs(range(1, 3), "b")) == [[1], [2]]


def test_scenarios_are_compared_apart() -> None:
    assert numbered(pairs((1, 2), "b", scenario="s"), pairs((1, 2), "b", scenario="t")) == [[1], [2]]


def test_what_two_tests_compare_is_two_comparisons_also_where_the_first_ended_after_its_first_pair() -> None:
    assert numbered(pairs((1,), "b", test="Suite.One"), pairs((2, 3), "b", test="Suite.Two")) == [[1], [2]]


def test_trials_of_one_sut_are_one_experiment_whichever_tests_asked_for_them() -> None:
    """A scenario's soak says nothing by itself."""
    trials = [of(scenario="s", boot="7", test=test) for test in ("Suite.One", "Suite.Two")]
    assert [(name, len(found)) for name, found in experiments(trials)] == [("s, 7", 2)]


def test_a_pair_that_failed_is_begun_anew_in_the_same_comparison() -> None:
    failed = [of("baseline", "a", 2), of("candidate", "b", 2), of("baseline", "a", 2)]
    assert numbered(pairs((1,), "b"), failed, pairs((2, 3), "b")) == [[1], [1], [1]]


def test_a_run_that_is_resumed_goes_on_with_the_comparison_of_these_builds() -> None:
    whole = pairs(range(1, 4), "b"), pairs(range(1, 3), "c")
    assert numbered(*whole, pairs((4, 5), "b"), pairs((3, 4), "c")) == [[1], [2], [1], [2]]


def test_one_pair_of_a_comparison_that_ended_takes_none_of_the_next_ones_pairs() -> None:
    first, second = pairs((1,), "b"), pairs(range(1, 4), "c")
    numbers = comparisons(first + second)
    candidates = {number for number, trial in zip(numbers, first + second, strict=True) if trial.belonging.build == "c"}
    assert candidates == {2}
    assert set(numbers[-8:]) == {2}


def test_experiments_are_named_by_what_tells_them_apart() -> None:
    trials = [
        *pairs((1, 2), "b", scenario="s"), *pairs((1, 2), "c", scenario="s"), *pairs((1, 2), "b", scenario="t"),
        of(scenario="t", boot="7", fingerprint="f1"), of(scenario="t", boot="8", fingerprint="f1"),
        of(scenario="t", boot="8", fingerprint="f2"),
    ]  # fmt: skip
    assert [(name, len(members)) for name, members in experiments(trials)] == [
        ("s, baseline a, comparison 1", 4),
        ("s, candidate b, comparison 1", 4),
        ("s, baseline a, comparison 2", 4),
        ("s, candidate c, comparison 2", 4),
        ("t, baseline", 4),
        ("t, candidate", 4),
        ("t, 7", 1),
        ("t, 8, f1", 1),
        ("t, 8, f2", 1),
    ]


@pytest.mark.parametrize("loss_ratio", [0.0, 1e-7, 1e-6, 0.001, 0.005, 0.0123, 0.1, 0.5])
def test_a_scenarios_name_tells_its_goal(loss_ratio: float) -> None:
    asked = Scenario(loss_ratio=loss_ratio, latency=True, width=0.02)
    assert goal_of(asked.name) == pytest.approx(loss_ratio)
    assert without_goal(asked.name) == Scenario(latency=True, width=0.02).name


def test_the_loss_of_a_path_is_no_goal() -> None:
    name = "tcp-transfer-1cpu-4096-1024KiBwindow-pathloss2"
    assert (goal_of(name), without_goal(name)) == (0.005, name)
