"""Numbers that nobody judges are shown with their scatter, or not at all: equal builds have several states."""

from __future__ import annotations

from dataclasses import replace

from flat_values import changed
from made_results import compared, result

from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.words.measurand_tables import evidence_tables, measurands_table
from pdrgate.results.model import MeasurandResult, ScenarioResult


def counted(name: str, *samples: float) -> MeasurandResult:
    return MeasurandResult(name=name, unit=f"{name}/packet", better="lower", value=samples[0], samples=samples)


def told(base: dict[str, tuple[float, ...]], candidate: dict[str, tuple[float, ...]]) -> ScenarioResult:
    """A comparison whose builds have these counts, which are compared by nothing."""
    one = compared()
    sides = tuple(
        side.but(
            replace(
                side.findings,
                measurands=(*side.findings.measurands, *(counted(name, *each) for name, each in own.items())),
            )
        )
        for side, own in zip(one.builds.sides, (base, candidate), strict=True)
    )
    return changed(one, sides=sides, measurands=sides[1].findings.measurands)


def test_counts_that_flip_between_two_states_are_shown_as_a_range() -> None:
    flips = {"atomics": (9.05, 8.55)}
    table = evidence_tables(told(flips, {"atomics": (8.55, 9.05)}))[0]
    assert [[cell.text for cell in row][1:] for row in table.rows] == [["8.55 to 9.05", "8.55 to 9.05"]]
    assert "8.55 to 9.05" in run_markdown(result(told(flips, flips)))


def test_counts_that_repeat_are_one_number() -> None:
    table = evidence_tables(told({"atomics": (9.0, 9.0)}, {"atomics": (9.0, 9.0)}))[0]
    assert [[cell.text for cell in row][1:] for row in table.rows] == [["9", "9"]]


def test_a_count_whose_scatter_nobody_knows_is_not_shown() -> None:
    one = told({"atomics": (9.05,)}, {"atomics": (8.55, 9.05)})
    assert "atomics" not in run_markdown(result(one))
    assert not any("atomics" in row[0].text for row in measurands_table(one, every=True).rows)
