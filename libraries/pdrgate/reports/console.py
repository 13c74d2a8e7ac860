"""What a person at a terminal reads while a run goes on, and when it has ended."""

from __future__ import annotations

from pathlib import Path

from pdrgate.gate.progress import Progress
from pdrgate.reports.costs import cost_lines
from pdrgate.reports.losses import loss_lines
from pdrgate.reports.measurands import MeasurandRow, measurand_rows
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.trial import Trial
from pdrgate.units import Rate

_FILES = (
    "summary.html", "summary.md", "log.html", "report.html", "xunit.xml", "output.xml", "result.json", "trials.jsonl",
    "allure-results", "plots",
)  # fmt: skip
_WORTH_TELLING = 1e-3
_PHASES = {"calibration": "calibrate", "search": "search", "repeat": "repeat"}


def trial_line(progress: Progress) -> str:
    """One line on a trial that ended: load, loss, the search bounds by now, time left."""
    trial = progress.trial
    mark = "from the resumed run" if progress.replayed else _left(progress.left)
    return (
        f"  {progress.number:3d} {_PHASES.get(trial.phase, trial.phase):10s} {Rate(trial.intended_load)!s:>11s}  "
        f"{_outcome(trial):28s}  {_known(progress):32s}  {mark}"
    )


def verdict_table(result: RunResult) -> list[str]:
    """The end of a run: for each scenario its verdict and reason, and a line per measurand; all columns in line."""
    blocks = [(scenario, measurand_rows(scenario)) for scenario in result.scenarios]
    cells = [_cells(row) for _, rows in blocks for row in rows]
    widths = [max(map(len, column)) for column in zip(_HEAD, *cells, strict=True)]
    if not any(row.change for _, rows in blocks for row in rows):
        widths = widths[: _HEAD.index("BASELINE")]  # there was nothing to compare with
    lines = []
    for scenario, rows in blocks:
        lines.append(f"{scenario.title}: {scenario.verdict}")
        lines += [f"  {told}" for told in _told(scenario)]
        lines += [_line(row, widths) for row in ((_HEAD, *map(_cells, rows)) if rows else ())]
        lines += [f"  {told}" for told in (*cost_lines(scenario), *loss_lines(scenario))]
    return lines


def paths(folder: Path) -> list[str]:
    """Where the files of a run lie, those that exist."""
    return [f"  {folder / name}" for name in _FILES if (folder / name).exists()]


def _outcome(trial: Trial) -> str:
    if trial.generator_limited:
        return f"generator: {Rate(trial.offered_load)}"
    if trial.disturbed:
        return f"disturbed: {trial.disturbed}"
    loss = "no loss" if not trial.lost else f"loss {trial.loss_ratio:.2%}"
    if trial.steady_loss_ratio > trial.loss_ratio + _WORTH_TELLING:
        loss += f" (steady {trial.steady_loss_ratio:.2%})"  # the queue grew: that is what the load is judged by
    return loss if trial.latency is None else f"{loss} p99 {trial.latency.p99 * 1e6:.0f} us"


def _known(progress: Progress) -> str:
    match progress.lower, progress.upper:
        case None, None:
            return "bounds unknown"
        case None, float(upper):
            return f"bounds < {Rate(upper)}"
        case float(lower), None:
            return f"bounds >= {Rate(lower)}"
        case float(lower), float(upper):
            return f"bounds {Rate(lower)} .. {Rate(upper)}"
    raise AssertionError("bounds are numbers or None")


def _left(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} left"


_HEAD = ("MEASURAND", "VALUE", "95 % INTERVAL", "BASELINE", "CHANGE")


def _cells(row: MeasurandRow) -> tuple[str, ...]:
    return tuple(text or "-" for text in (row.name, row.value, row.interval, row.baseline, row.change))


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    name, *numbers = (
        f"{cell:{'<' if column == 0 else '>'}{width}s}"
        for column, (cell, width) in enumerate(zip(cells, widths, strict=False))
    )
    return f"  {name}  {'  '.join(numbers)}".rstrip()


def _told(scenario: ScenarioResult) -> list[str]:
    """What is said of a scenario in words."""
    told = [scenario.reason]
    if scenario.sides:
        boots = [sum(not boot.failure for boot in scenario.boots if boot.side == one.side) for one in scenario.sides]
        names = [f"{one.side} {one.build}, {number} boots" for one, number in zip(scenario.sides, boots, strict=True)]
        told.append("; ".join(names))
    if scenario.comparison is not None and not scenario.comparison.accepted:
        told.append(f"the verdict does not rest on the change: {scenario.comparison.why_not}")
    return told
