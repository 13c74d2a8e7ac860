"""Whether a curve can be trusted, its loads, and the bounds that its search ended at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.reports.tree import Cell, Column, ReportPart, Table, begun
from pdrgate.results.model import AssessmentResult, CheckResult, LoadResult, ScenarioResult, SearchResult, Side
from pdrgate.values.units import Rate, Ratio

_OUTCOMES: dict[bool | None, Cell] = {
    True: Cell("✓ ok", "pass"),
    False: Cell("✗ failed", "fail"),
    None: Cell("? undecided", "warn"),
}
_CHECKS = (Column("check", heads=True), Column("outcome"), Column("why", wraps=True))
_LEAST_DIFFERENCE = 1e-6
"""The least difference of two loss ratios that is worth a column."""


def assessment_part(scenario: ScenarioResult) -> ReportPart:
    """The checks of each build; its loads, and the bounds of its search."""
    found = [(side or "", one, search) for side, one, search in assessed_builds(scenario)]
    checks = [(label, one) for label, one, _ in found if one is not None]
    return ReportPart(
        title="Whether the curve can be trusted",
        is_check=True,
        brief=[_failed(one, label) for label, one in checks if one.checks],
        whole=[checks_table(_caption(one, label), one.checks) for label, one in checks],
        further=[
            table
            for label, one, search in found
            for table in (_loads(one, label) if one else None, _bounds(search, label) if search else None)
            if table is not None
        ],
    )


def assessed_builds(
    scenario: ScenarioResult,
) -> Iterator[tuple[Side | None, AssessmentResult | None, SearchResult | None]]:
    """Side, assessment and search of each build that was compared; None for the side of the only one.

    What stands in a scenario of two builds is the candidate's.
    """
    own = scenario.findings
    for side in scenario.builds.sides:
        assessment, search = side.findings.assessment, side.findings.search
        if side.side == "candidate":
            assessment, search = assessment or own.assessment, search or own.search
        yield side.side, assessment, search
    if not scenario.builds.sides:
        yield None, own.assessment, own.search


def checks_table(caption: str, checks: Sequence[CheckResult]) -> Table:
    """Each check: ok, failed or undecided, and its sentence."""
    return Table(caption, _CHECKS, [_row(one) for one in checks])


def _failed(assessment: AssessmentResult, of: str) -> Table:
    """The checks that did not pass, and the names of those that did."""
    passed = [one.name for one in assessment.checks if one.passed]
    rows = [_row(one) for one in assessment.checks if not one.passed]
    if passed:
        names = ", ".join(passed)
        rows.append([Cell(f"{len(passed)} of {len(assessment.checks)} checks"), _OUTCOMES[True], Cell(names)])
    return Table(_caption(assessment, of), _CHECKS, rows)


def _row(check: CheckResult) -> list[Cell]:
    return [Cell(check.name), _OUTCOMES[check.passed], Cell(check.sentence)]


def _caption(assessment: AssessmentResult, of: str) -> str:
    reason = f": {assessment.reason}" if assessment.reason else ""
    label = f"{assessment.labels.get(assessment.reading, 'no label')} in the {assessment.reading} reading"
    return begun(of, f"{assessment.verdict}{reason} ({label})")


def _loads(assessment: AssessmentResult, of: str = "") -> Table:
    """Each load: its repeats, what they lost and delivered, and the TIR of the step that ends there."""
    steady = any(abs(_steady(point) - point.plr) > _LEAST_DIFFERENCE for point in assessment.loads)
    names = ["load", "runs", "PLR", *(["steady PLR"] if steady else []), "sd", "UCL95", "ΔUCL95", "delivery ratio"]
    names += ["throughput", "TIR"]
    columns = [*(Column(name, numeric=True) for name in names), Column("", wraps=True)]
    by_load = {
        point.load: [*map(Cell, _numbers(point, steady)), Cell(_remark(assessment, index))]
        for index, point in enumerate(assessment.loads)
    }
    limited = Cell("every trial was generator-limited", span=len(columns) - 1)
    by_load |= {load: [Cell(str(Rate(load))), limited] for load in assessment.generator_limited_loads}
    caption = begun(of, f"load-loss curve, PLR {_crossing(assessment)}")
    return Table(caption, columns, [by_load[load] for load in sorted(by_load)])


def _bounds(search: SearchResult, of: str = "") -> Table:
    """The bounds that the search for each goal ended at, which are no PDR; ``of`` names the build."""
    columns = (
        Column("goal", heads=True), Column("loss ratio", True), Column("width", True), Column("lower bound", True),
        Column("upper bound", True), Column("conditional throughput", True), Column("outcome"),
    )  # fmt: skip
    rows = [
        [
            Cell(goal.name), Cell(str(Ratio(goal.loss_ratio))), Cell(str(Ratio(goal.width))), Cell(_rate(goal.lower)),
            Cell(_rate(goal.upper)), Cell(_rate(goal.conditional_throughput)), Cell(goal.outcome),
        ]
        for goal in search.goals
    ]  # fmt: skip
    caption = begun(of, f"search bounds after {search.trials} trials, {search.elapsed:.3g} s of traffic")
    return Table(caption, columns, rows)


def _numbers(point: LoadResult, steady: bool) -> list[str]:
    limited = f" (−{point.generator_limited} generator-limited)" if point.generator_limited else ""
    return [
        str(Rate(point.load)),
        f"{point.runs}{limited}",
        _percent(point.plr),
        *([_percent(_steady(point))] if steady else []),
        _percent(point.plr_sd),
        _percent(point.ucl),
        "" if point.delta_ucl is None else f"{point.delta_ucl:.3f}",
        f"{100 * (1 - point.plr):.4f} %",
        str(Rate(point.throughput)),
        "" if point.tir is None else f"{point.tir:z.3f}".replace("-", "−"),
    ]


def _steady(point: LoadResult) -> float:
    return point.plr if point.steady_plr is None else point.steady_plr


def _remark(assessment: AssessmentResult, index: int) -> str:
    saturation = assessment.saturation
    remarks = []
    if assessment.loads[index].load == assessment.pdr.bracket[1]:
        remarks.append("first past the PDR")
    if index == saturation.potential_index:
        remarks.append("potential saturation")
    if index == saturation.actual_index:
        remarks.append("saturated from here")
    return ", ".join(remarks)


def _crossing(assessment: AssessmentResult) -> str:
    """The load where the PLR crosses. It is not called the PDR where a gate may compute that from other numbers too."""
    pdr = assessment.pdr
    threshold = Ratio(pdr.plr_threshold)
    if pdr.load is None:
        low, high = pdr.bracket
        where = f"above {Rate(low)}" if low is not None else f"below {Rate(high)}" if high is not None else "nowhere"
        return f"crosses {threshold} {where}"
    ends = [f"{word} {Rate(end)}" for word, end in (("from", pdr.lower), ("to", pdr.upper)) if end is not None]
    interval = f"95 % interval {' '.join(ends)}" if ends else "no interval"
    return f"crosses {threshold} at {Rate(pdr.load)}, {interval}"


def _rate(value: float | None) -> str:
    return "" if value is None else str(Rate(value))


def _percent(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if 0 < ratio < 1e-6:
        return "< 0.0001 %"
    return "0 %" if ratio == 0 else f"{100 * ratio:.4f} %"
