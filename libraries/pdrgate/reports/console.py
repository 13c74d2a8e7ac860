"""What a person at a terminal reads while a run goes on, and when it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pdrgate.gate.progress import Progress
from pdrgate.trial import Trial
from pdrgate.units import Rate

_FILES = (
    "log.html", "report.html", "xunit.xml", "output.xml", "result.json", "trials.jsonl", "allure-results", "plots",
)  # fmt: skip
_PHASES = {"calibration": "calibrate", "search": "search", "repeat": "repeat"}


def trial_line(progress: Progress) -> str:
    """One line on a trial that ended: load, loss, what is known of the PDR by now, time left."""
    trial = progress.trial
    mark = "from the resumed run" if progress.replayed else _left(progress.left)
    return (
        f"  {progress.number:3d} {_PHASES.get(trial.phase, trial.phase):9s} {Rate(trial.intended_load)!s:>11s}  "
        f"{_outcome(trial):24s}  {_known(progress):30s}  {mark}"
    )


def verdict_table(result: Mapping[str, Any]) -> list[str]:
    """The end of a run: one line per scenario, then the run's verdict."""
    scenarios: Sequence[Mapping[str, Any]] = result["scenarios"]
    lines = []
    if scenarios:
        names = max(8, *(len(entry["title"]) for entry in scenarios))
        lines = [f"{'SCENARIO':{names}s}  {'PDR':>11s}  {'95 % INTERVAL':>25s}  {'CHANGE':>8s}  VERDICT"]
        for entry in scenarios:
            change = (entry["comparison"] or {}).get("change")
            lines.append(
                f"{entry['title']:{names}s}  {_pdr(entry['pdr']):>11s}  {_interval(entry['pdr']):>25s}  "
                f"{'-' if change is None else f'{change:+.1%}':>8s}  {entry['verdict']}"
            )
            if base := entry.get("baseline_pdr"):
                against = f"  against {entry['builds']['baseline']}"
                boots = f"boots of each: {len(base['per_run'])}"
                lines.append(f"{against:{names}s}  {_pdr(base):>11s}  {_interval(base):>25s}  {'':8s}  {boots}")
            lines.append(f"    {entry['reason']}")
    return lines


def paths(folder: Path) -> list[str]:
    """Where the files of a run lie, those that exist."""
    return [f"  {folder / name}" for name in _FILES if (folder / name).exists()]


def _outcome(trial: Trial) -> str:
    if trial.generator_limited:
        return f"generator: {Rate(trial.offered_load)}"
    loss = "no loss" if not trial.lost else f"loss {trial.loss_ratio:.3%}"
    return loss if trial.latency is None else f"{loss} p99 {trial.latency.p99 * 1e6:.0f} us"


def _known(progress: Progress) -> str:
    match progress.lower, progress.upper:
        case None, None:
            return "PDR unknown"
        case None, float(upper):
            return f"PDR < {Rate(upper)}"
        case float(lower), None:
            return f"PDR >= {Rate(lower)}"
        case float(lower), float(upper):
            return f"PDR {Rate(lower)} .. {Rate(upper)}"
    raise AssertionError("bounds are numbers or None")


def _left(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} left"


def _pdr(pdr: Mapping[str, Any] | None) -> str:
    return str(Rate(pdr["load"])) if pdr else "-"


def _interval(pdr: Mapping[str, Any] | None) -> str:
    if not pdr or pdr["lower"] is None:
        return "-"
    return f"{Rate(pdr['lower'])} .. {Rate(pdr['upper'])}"
