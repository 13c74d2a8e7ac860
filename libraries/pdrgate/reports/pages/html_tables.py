"""What a result holds as HTML tables, for Robot's log and for pages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pdrgate.measurands import Cost, described
from pdrgate.reports.markup.html import Cell, Column, Table
from pdrgate.reports.words.arrival_words import below
from pdrgate.reports.words.costs import INLINED, ChangesTable, changes_table, cost_in_words, total_change
from pdrgate.reports.words.latencies import latency_cells, share_in_words
from pdrgate.reports.words.measurands import (
    EVIDENCE,
    intervals_in_words,
    judged_first,
    measurand_rows,
    value_in_words,
    verdict_in_words,
)
from pdrgate.reports.words.memory_words import MEMORY_CAPTION
from pdrgate.reports.words.path_table import path_lines
from pdrgate.results.losses import LossResult, thousands
from pdrgate.results.model import (
    ArrivalsResult,
    AssessmentResult,
    BootResult,
    CheckResult,
    ComparisonResult,
    CostResult,
    LatencyResult,
    LoadResult,
    MeasurandResult,
    RunResult,
    ScenarioResult,
    SearchResult,
    TransfersResult,
)
from pdrgate.results.verdict import Verdict
from pdrgate.values.units import Rate, Ratio

_OUTCOMES: dict[bool | None, Cell] = {
    True: Cell("✓ ok", "pass"),
    False: Cell("✗ failed", "fail"),
    None: Cell("? undecided", "warn"),
}
_TONES: dict[str, Literal["pass", "fail", "warn"]] = {
    "PASS": "pass", "IMPROVEMENT": "pass", "REGRESSION": "fail", "ASSERTION_FAILED": "fail",
    "INCONCLUSIVE": "warn",
}  # fmt: skip
_FUNCTIONS = 40
"""Rows of a table of functions."""
_LEAST_DIFFERENCE = 1e-6
"""The least difference of two loss ratios that is worth a column."""


def paths_table(result: RunResult, *, passing: bool) -> str:
    """A row for each path of a portfolio that passes, or that does not, the worst first; empty without one."""
    columns = [
        Column("path", heads=True, wraps=True), Column("base", True, wraps=True), Column("candidate", True, wraps=True),
        Column("change", True, wraps=True),
    ]  # fmt: skip
    rows = [
        [
            Cell(one.path), Cell(_breakable(one.base)), Cell(_breakable(one.candidate)),
            _change_cell(verdict_in_words(one.verdict), one.verdict, one.change),
        ]
        for one in path_lines(result)
        if one.verdict.passes is passing
    ]  # fmt: skip
    told = intervals_in_words(*(one.comparison for one in result.scenarios))
    caption = "The worst first; instructions per packet, where no unit is said."
    return Table(caption, columns, rows, told).html() if rows else ""


def measurands_table(scenario: ScenarioResult) -> str:
    """Each measurand of both builds with its change and the verdict on it; of a build alone with its interval."""
    rows = measurand_rows(scenario)
    if scenario.comparison is None:
        columns = [
            Column("measurand", heads=True, wraps=True),
            Column("value", True),
            Column("95 % interval", True, True),
        ]
        cells = [[Cell(_breakable(row.title)), Cell(row.number), Cell(row.interval)] for row in rows]
        return Table("Measured", columns, cells).html() if cells else ""
    columns = [
        Column("measurand", heads=True, wraps=True), Column("base", True), Column("candidate", True),
        Column("change", True, wraps=True),
    ]  # fmt: skip
    cells = [
        [
            Cell(_breakable(row.title)), Cell(row.baseline), Cell(row.number),
            _change_cell(row.marked, row.verdict, row.changed),
        ]
        for row in judged_first(rows)[0]
    ]  # fmt: skip
    return Table(_compared(scenario), columns, cells, intervals_in_words(scenario.comparison)).html()


def evidence_tables(scenario: ScenarioResult) -> Iterator[str]:
    """What the verdict on each measurand rests on, and measurands that are not judged; nothing of one build alone."""
    rows, besides = judged_first(measurand_rows(scenario))
    if scenario.comparison is None:
        return
    if besides:
        head = (Column("told besides", heads=True, wraps=True), Column("base", True), Column("candidate", True))
        yield Table("", head, [[Cell(row.title), Cell(row.baseline), Cell(row.number)] for row in besides]).html()
    columns = [
        Column("measurand", heads=True, wraps=True), Column("candidate's 95 % interval", True, wraps=True),
        Column("confidence of the change", True, wraps=True), Column("evidence"),
        Column("resolvable change", True, wraps=True),
    ]  # fmt: skip
    cells = [
        [Cell(row.name), Cell(row.interval), Cell(row.confidence), Cell(row.evidence), Cell(row.resolves)]
        for row in rows
    ]
    yield Table("What the verdicts rest on.", columns, cells, f"{EVIDENCE}.").html()


def losses_table(losses: LossResult, of: str = "") -> str:
    """Each place that lost packets, and what nobody counted; ``of`` says of which build."""
    rows = [(place.where, place.hint, place.packets) for place in losses.places]
    if losses.unexplained:
        rows.append(("unexplained", losses.fault, losses.unexplained))
    cells = [
        [Cell(where), Cell(hint), Cell(thousands(packets)), Cell(f"{packets / losses.offered:.3%}")]
        for where, hint, packets in rows
    ]
    columns = (
        Column("lost", heads=True), Column("what it hints at", wraps=True), Column("packets", True),
        Column("of the offered", True),
    )  # fmt: skip
    caption = _begun(
        of,
        f"{thousands(losses.offered)} packets offered = {thousands(losses.forwarded)} forwarded + what each place lost",
    )
    return Table(caption, columns, cells).html()


def checks_table(assessment: AssessmentResult, of: str = "") -> str:
    """Each check: ok, failed or undecided, and its sentence; ``of`` says of which build."""
    reason = f": {assessment.reason}" if assessment.reason else ""
    label = f"{assessment.labels.get(assessment.reading, 'no label')} in the {assessment.reading} reading"
    return _outcomes(_begun(of, f"{assessment.verdict}{reason} ({label})"), assessment.checks)


def loads_table(assessment: AssessmentResult, of: str = "") -> str:
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
    caption = _begun(of, f"load-loss curve, PLR {_crossing(assessment)}")
    return Table(caption, columns, [by_load[load] for load in sorted(by_load)]).html()


def boots_table(boots: Sequence[BootResult], measurands: Sequence[MeasurandResult] = ()) -> str:
    """Each boot in the order they were measured: its values, or why it failed, with the call trace."""
    units = {one.name: one.unit for one in measurands}
    names = list(dict.fromkeys(name for boot in boots for name in boot.values))
    columns = [Column("pair", True), Column("side"), Column("kernel"), *(Column(name, True) for name in names)]
    rows = []
    for boot in boots:
        told = [boot.failure, *(boot.crash.trace if boot.crash else ()), *boot.complaints]
        values = [
            value_in_words(boot.values[name], units.get(name, described(name).unit)) if name in boot.values else ""
            for name in names
        ]
        texts = (str(boot.pair), boot.side, boot.kernel, *values, "\n".join(line for line in told if line))
        rows.append([Cell(text) for text in texts])
    return Table("Boots", (*columns, Column("", wraps=True)), rows).html()


def bounds_table(search: SearchResult, of: str = "") -> str:
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
    caption = _begun(of, f"search bounds after {search.trials} trials, {search.elapsed:.3g} s of traffic")
    return Table(caption, columns, rows).html()


def transfers_table(found: TransfersResult) -> str:
    """Each transfer in measured order; of the window curve, where the knee is."""
    columns = [
        Column("transfer", heads=True), Column("window", True), Column("throughput", True),
        Column("round trip", True), Column("sent again", True), Column("SUT's CPU busy", True),
        Column("the other's", True), Column("", wraps=True),
    ]  # fmt: skip
    rows = [
        [
            Cell(f"{one.phase} {one.repeat or ''}".rstrip()), Cell(f"{one.window // 1024} KiB"),
            Cell(f"{one.throughput / 1e9:.4g} Gbit/s"), Cell("" if one.rtt is None else f"{1e3 * one.rtt:.3g} ms"),
            Cell(f"{one.retransmitted} of {one.segments}"), Cell(_share(one.sut_busy)), Cell(_share(one.station_busy)),
            Cell(one.disturbed),
        ]
        for one in found.transfers
    ]  # fmt: skip
    told = ["Transfers"]
    if found.rest_rtt is not None:
        told.append(f"a round trip takes {1e3 * found.rest_rtt:.3g} ms at rest")
    if found.knees:
        knee = "no two sweeps agree on the knee" if found.knee is None else f"knee {found.knee // 1024} KiB"
        told.append(f"{knee} (by sweep {', '.join(f'{one // 1024}' for one in found.knees)} KiB)")
    return Table("; ".join(told), columns, rows).html()


def transfer_checks_table(found: TransfersResult) -> str:
    """Whether the throughput of the repeats is one number."""
    return _outcomes("The throughput of the repeats", found.checks)


def cost_table(cost: CostResult, of: str = "") -> str:
    """The functions on a packet's path, the largest first; ``of`` says of which build."""
    columns = (Column("function", heads=True), Column("instructions", True), Column("calls", True))
    rows = [
        [Cell(one.name), Cell(f"{one.instructions:.1f}"), Cell(f"{one.calls:.3g}")]
        for one in cost.functions[:_FUNCTIONS]
    ]
    if left := cost.functions[_FUNCTIONS:]:
        rest = f"{len(left)} smaller ones"
        rows.append([Cell(rest), Cell(f"{sum(one.instructions for one in left):.1f}"), Cell("")])
    caption = _begun(of, f"{cost_in_words(cost)}; by function, per {cost.each} ({INLINED})")
    return Table(caption, columns, rows).html()


def latency_table(latency: Sequence[LatencyResult], of: str = "") -> str:
    """Latency at each share of the PDR, and what a packet costs there; ``of`` says of which build."""
    counted = any(one.instructions is not None for one in latency)
    columns = (
        Column("latency at", heads=True), Column("load", True), Column("median", True), Column("90 %", True),
        Column("99 %", True), Column("longest", True), Column("probes", True), Column("trials", True),
        *((Column(Cost.unit, True), Column("packets a poll", True)) if counted else ()),
    )  # fmt: skip
    rows = [
        [
            Cell(share_in_words(one)), Cell(str(Rate(one.load))),
            *map(Cell, latency_cells(one)),
            Cell(thousands(one.probes)), Cell(str(one.trials)),
            *((Cell(_number(one.instructions, ".0f")), Cell(_number(one.batch, ".3g"))) if counted else ()),
        ]
        for one in latency
    ]  # fmt: skip
    return Table(_begun(of, "one-way latency of probes, medians over the trials"), columns, rows).html()


def arrivals_table(found: Sequence[ArrivalsResult], of: str = "") -> str:
    """How packets arrived at the receivers, by load; ``of`` says of which build."""
    polled = any(one.batch is not None for one in found)
    columns = (
        Column("offered", heads=True), Column("packets a call", True),
        *((Column("packets a poll", True),) if polled else ()),
        Column("half of the gaps", True), Column("90 %", True), Column("99 %", True), Column("gaps timed", True),
        Column("trials", True),
    )  # fmt: skip
    rows = [
        [
            Cell(str(Rate(one.load))), Cell(_number(one.packets_per_call, ".3g")),
            *((Cell(_number(one.batch, ".3g")),) if polled else ()),
            *(Cell(below(bound)) for bound in (one.p50, one.p90, one.p99)),
            Cell(thousands(one.gaps)), Cell(str(one.trials)),
        ]
        for one in found
    ]  # fmt: skip
    return Table(_begun(of, "arrivals at the receivers: gaps between calls that bring packets"), columns, rows).html()


def function_changes_table(comparison: ComparisonResult) -> str:
    """The functions in which the cost of a packet changed, the largest change first, and the whole cost at the
    end."""
    shown = comparison.functions[:_FUNCTIONS]
    told = changes_table(shown, comparison.functions, total_change(comparison))
    head, *numbers = told.head
    columns = (Column(head, heads=True), *(Column(name, True) for name in numbers), Column("", wraps=True))
    doubts = ["" if one.sure or one.calls_changed else "within what trials differ by" for one in shown]
    rows = [[*map(Cell, cells), Cell(doubt)] for cells, doubt in itertools.zip_longest(told.rows, doubts, fillvalue="")]
    return Table(f"Instructions per packet by function: what changed ({INLINED})", columns, rows).html()


def memory_changes_table(told: ChangesTable) -> str:
    """The functions that touch or miss more or fewer lines, by measurand, with what the lines are."""
    columns = [
        Column(name, name in ("before", "after", "change"), heads=name == "function", wraps=name == "lines of")
        for name in told.head
    ]
    return Table(MEMORY_CAPTION, columns, [[*map(Cell, cells)] for cells in told.rows]).html()


def facts_table(caption: str, facts: Mapping[str, Any]) -> str:
    """Names and what is known under them; what lies deeper as ``place.name``."""
    rows = [[Cell(name), Cell(text)] for name, text in _flat(facts)]
    return Table(caption, (Column("", heads=True), Column("", wraps=True)), rows).html()


def _outcomes(caption: str, checks: Sequence[CheckResult]) -> str:
    rows = [[Cell(check.name), _OUTCOMES[check.passed], Cell(check.sentence)] for check in checks]
    return Table(caption, (Column("check", heads=True), Column("outcome"), Column("why", wraps=True)), rows).html()


def _change_cell(marked: str, verdict: Verdict | None, change: str) -> Cell:
    """The verdict in words above the change that it is of."""
    whole = marked if verdict is Verdict.NO_BASELINE else marked.replace(" ", "\N{NO-BREAK SPACE}")
    return Cell("\n".join(filter(None, (whole, change))), _TONES.get(verdict or "", ""))


def _breakable(title: str) -> str:
    """A unit may go on in the next line behind its stroke."""
    return title.replace("/", "/\N{ZERO WIDTH SPACE}")


def _begun(of: str, caption: str) -> str:
    """A caption that says of which build it is, where there are several."""
    whole = f"{of}: {caption}" if of else caption
    return whole[:1].upper() + whole[1:]


def _compared(scenario: ScenarioResult) -> str:
    comparison = scenario.comparison
    if comparison is None:
        return "Measured"
    pairs = f", {comparison.pairs_in_words}" if comparison.pairs else ""
    rests = "" if comparison.accepted else "; the verdict does not rest on it"
    if rests and not scenario.reason.startswith(comparison.why_not):  # it is the headline then
        rests += f": {comparison.why_not}"
    return f"Against {comparison.baseline}{pairs}, tolerance {Ratio(comparison.tolerance)}{rests}."


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
    """The load where the PLR crosses; it is not called the PDR where a gate may tell that by other numbers too."""
    pdr = assessment.pdr
    threshold = Ratio(pdr.plr_threshold)
    if pdr.load is None:
        low, high = pdr.bracket
        where = f"above {Rate(low)}" if low is not None else f"below {Rate(high)}" if high is not None else "nowhere"
        return f"crosses {threshold} {where}"
    ends = [f"{word} {Rate(end)}" for word, end in (("from", pdr.lower), ("to", pdr.upper)) if end is not None]
    interval = f"95 % interval {' '.join(ends)}" if ends else "no interval"
    return f"crosses {threshold} at {Rate(pdr.load)}, {interval}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _rate(value: float | None) -> str:
    return "" if value is None else str(Rate(value))


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _percent(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if 0 < ratio < 1e-6:
        return "< 0.0001 %"
    return "0 %" if ratio == 0 else f"{100 * ratio:.4f} %"


def _flat(facts: Mapping[str, Any], place: str = "") -> list[tuple[str, str]]:
    """What is known, one fact each."""
    found: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{place}{key}"
        if isinstance(value, Mapping):
            found += _flat(value, f"{name}.")
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            found += _flat({str(number): one for number, one in enumerate(value)}, f"{name}.")
        elif isinstance(value, list | tuple):
            found.append((name, ", ".join(map(str, value))))
        elif value is not None:
            found.append((name, str(value)))
    return found
