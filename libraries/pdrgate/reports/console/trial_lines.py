"""A line for each trial that ended, and one on what is going on now."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from pdrgate.data_paths.tcp_streams import size
from pdrgate.gate.run.progress import Estimate, Progress
from pdrgate.measurands import Ask
from pdrgate.record.cause import causes_in_words
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.values.printable import printable
from pdrgate.values.units import Duration, Rate

_NOTEWORTHY = 1e-3
_PHASES = {Phase.CALIBRATION: "calibrate"}
_SIDE = 9
"""Columns of the longer of the two words."""
_WORDS, _TIME = 58, 26
"""Columns of outcome and bounds in words, and of the time left: all trials of a run have the same."""


def trial_line(progress: Progress, width: int | None = None) -> Text:
    """A trial that ended: of which build, load, loss, the search bounds by now, time left.

    Args:
        width: columns; where there are too few, first the time left is left out, then words. None for any number.
    """
    trial = progress.trial
    side = f"{trial.belonging.side:{_SIDE}s} " if trial.belonging.side else ""
    phase = _PHASES.get(trial.occasion.phase, trial.occasion.phase)
    head = f"  {progress.number:3d} {side}{phase:10s} {Rate(trial.intended_load)!s:>10s}  "
    bursts = _in_bursts(trial)
    bounds = "" if bursts else _bounds(progress.lower, progress.upper)
    room = math.inf if width is None else width - len(head)
    if room < _WORDS:
        told = f"{head}{_brief_outcome(trial):15s}  {bounds.removeprefix('unknown')}"
    else:
        mark = "from the resumed run" if progress.replayed else left_in_words(progress.left)
        told = f"{head}{_outcome(trial):28s}  {f'bounds {bounds}' if bounds else '':28s}"
        told += f"  {mark}" if room >= _WORDS + _TIME else ""
    line = Text(told.rstrip())
    if not trial.sound and not bursts:
        line.stylize("magenta", len(head))
    elif progress.replayed:
        line.stylize("dim")
    return line


def status_line(ask: Ask | None, left: Estimate | None, side: Side | None = None, pair: int = 0) -> str:
    """What is going on: how long it takes yet, and the trial that is running; empty where neither is known.

    Args:
        side: the build that is measured, where two are compared.
        pair: number of its pair of boots.
    """
    told = [left_in_words(left)]
    if ask is not None:
        of = f"pair {pair}, {side}: " if side else ""
        load = f" at {Rate(ask.load)}" if ask.load else ""
        load += f" by a window of {size(ask.window)}" if ask.window else ""
        told.append(f"{of}{_PHASES.get(ask.phase, ask.phase)}{load} for {Duration(ask.duration)}")
    said = "; ".join(filter(None, told))
    return f"  {said}" if said else ""


def left_in_words(left: Estimate | None) -> str:
    """``about 1:20 to 3:00 left``; empty where nobody knows."""
    if left is None:
        return ""
    least, most = _rounded(left.least), _rounded(left.most)
    if most == 0:
        return "a few seconds left"
    return f"about {_clock(most)} left" if least == most else f"about {_clock(least)} to {_clock(most)} left"


def _rounded(seconds: float) -> int:
    """Seconds rounded to what can be foreseen: 5 s, above two minutes 10 s, above ten a minute."""
    step = 5 if seconds < 120 else 10 if seconds < 600 else 60
    return step * round(seconds / step)


def _clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def _in_bursts(trial: Trial) -> bool:
    """Whether each part of it was sent at once and waited for: only counts of it mean anything, and no rate."""
    return trial.forwarded > 0 and trial.drained == trial.forwarded and not trial.under_way


def _outcome(trial: Trial) -> str:
    if _in_bursts(trial):
        return f"{trial.forwarded} of {trial.offered} in bursts"
    if trial.generator_limited:
        return f"generator: {Rate(trial.offered_load)}"
    if trial.seen.disturbed:
        return printable(f"disturbed: {causes_in_words(trial.seen.disturbed)}")
    latency = (
        ""
        if trial.seen.latency is None
        else f" p99 {_micro(trial.seen.latency.p99, trial.seen.latency.within[2:3])} us"
    )
    return f"{_loss(trial)}{latency}"


def _micro(latency: float, within: Sequence[float]) -> str:
    return "".join(f"{(latency - width) * 1e6:.0f} to " for width in within) + f"{latency * 1e6:.0f}"


def _brief_outcome(trial: Trial) -> str:
    """The loss that the load is judged by; for a trial that is not sound, why."""
    if _in_bursts(trial):
        return f"{trial.forwarded} in bursts"
    if not trial.sound:
        return "generator short" if trial.generator_limited else "disturbed"
    return _loss(trial).replace("steady loss", "steady")


def _loss(trial: Trial) -> str:
    """The loss that the load is judged by: where the queue grew, the one that it would come to."""
    if trial.steady_loss_ratio > trial.loss_ratio + _NOTEWORTHY:
        return f"steady loss {trial.steady_loss_ratio:.2%}"
    return "no loss" if not trial.lost else f"loss {trial.loss_ratio:.2%}"


def _bounds(lower: float | None, upper: float | None) -> str:
    """Search bounds, which are no PDR."""
    match lower, upper:
        case None, float(high):
            return f"< {Rate(high)}"
        case float(low), None:
            return f">= {Rate(low)}"
        case float(low), float(high):
            (number, unit), whole = str(Rate(low)).split(), str(Rate(high))
            return f"{number if whole.endswith(f' {unit}') else Rate(low)} .. {whole}"
    return "unknown"
