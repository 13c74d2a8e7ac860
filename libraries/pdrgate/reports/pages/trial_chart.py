"""Every trial of a scenario as a mark on the page that says, when it is pointed at, what it was and what was counted.

The marks are SVG with titles, and each leads to its line in a table below, which is what keyboards and screen readers
have: no script, so that it works in a mail, on a phone, and where a CI server forbids scripts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import Place
from pdrgate.record.cause import causes_in_words
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports.pages.round_values import round_values
from pdrgate.reports.words.latencies import latency_in_words
from pdrgate.results.losses import thousands
from pdrgate.results.model import ScenarioResult
from pdrgate.values.units import Duration, Rate

_WIDTH, _HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 950, 24, 226
_MOST = 2000
"""Trials that a page shows: a table of more is no page any more."""
_CROWD = 150
_NOTEWORTHY = 1e-4
_GOAL = 0.005
"""Loss ratio that separates little loss from much, where no goal is known."""
SHAPES = {
    "no loss": ("pass full", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z"),
    "loss within the goal": ("warn", "M-5-5H5V5H-5Z"),
    "loss beyond the goal": ("fail", "M0-6L6 5H-6Z"),
    "generator-limited": ("mark", "M0-6L6 0L0 6L-6 0Z"),
    "disturbed": ("fault", "M-5-5L5 5M-5 5L5-5"),
}
"""Tone and path of a trial's mark, by what became of the trial. The shape alone identifies it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A trial on the chart."""

    number: int
    x: float
    y: float
    shape: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A trial as a row of the table."""

    number: int
    cells: tuple[str, ...]
    told: str
    """What the counters and the beats saw of it."""


@dataclass(frozen=True, slots=True)
class TrialChart:
    """The trials of a scenario, in measured order."""

    alternative: str
    left_out: int
    ticks: Sequence[tuple[float, str]]
    boots: Sequence[tuple[float, str]]
    """Places where another boot begins, each with the boot's name where there is room."""
    marks: Sequence[Mark]
    lines: Sequence[Line]
    shapes: Sequence[str]
    scale: float
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    top: int = _TOP
    bottom: int = _BOTTOM


HEAD = ("", "began", "phase", "boot", "load", "offered", "lost", "loss", "handled at")


def trial_chart(scenario: ScenarioResult, trials: Sequence[Trial]) -> TrialChart | None:
    """The chart of those trials that are the scenario's; None where there is none.

    Args:
        trials: of its run, in measured order.
    """
    own = [one for one in trials if one.belonging.scenario == scenario.name]
    shown = own[:_MOST]
    if not shown:
        return None
    goal = scenario.findings.assessment.pdr.plr_threshold if scenario.findings.assessment else _GOAL
    # What the generator can do at most may be hundreds of times what the SUT can: such trials stand at the rim.
    asked = [one.offered_load for one in shown if one.occasion.phase != Phase.CALIBRATION]
    high = max(asked or [one.offered_load for one in shown]) or 1.0
    step = (_RIGHT - _LEFT - 16) / max(len(shown) - 1, 1)
    places = [_LEFT + 8 + number * step for number in range(len(shown))]
    kinds = [_kind(one, goal) for one in shown]
    begun = shown[0].occasion.started
    marks, lines = [], []
    for number, (one, x, kind) in enumerate(zip(shown, places, kinds, strict=True), 1):
        y = _BOTTOM - min(1.0, one.offered_load / high) * (_BOTTOM - _TOP)
        cells = tuple(_cells(one, begun))
        told = "; ".join(_told(one))
        title = f"{_sentence(number, one, cells)}\n{kind}" + (f"\n{told}" if told else "")
        marks.append(Mark(number, round(x, 1), round(y, 1), _name(kind), title))
        lines.append(Line(number, cells, told))
    return TrialChart(
        alternative=f"{len(shown)} trials in measured order, each at the load that was offered: "
        + ", ".join(f"{kinds.count(kind)} {kind}" for kind in SHAPES if kind in kinds)
        + ". The table below has them all.",
        left_out=len(own) - len(shown),
        ticks=[(round(_BOTTOM - one / high * (_BOTTOM - _TOP), 1), str(Rate(one))) for one in round_values(0, high, 5)],
        boots=list(_boots(shown, places, step)),
        marks=marks,
        lines=lines,
        shapes=[_name(kind) for kind in SHAPES if kind in kinds],
        scale=0.9 if len(shown) <= _CROWD else 0.6,
    )  # fmt: skip


def shapes() -> dict[str, tuple[str, str, str]]:
    """Marks by name: tone, path, and what they say."""
    return {_name(kind): (tone, path, kind) for kind, (tone, path) in SHAPES.items()}


def _name(kind: str) -> str:
    return f"trial-{kind.replace(' ', '-')}"


def _kind(trial: Trial, goal: float) -> str:
    if trial.seen.disturbed:
        return "disturbed"
    if trial.generator_limited:
        return "generator-limited"
    if not trial.steady_loss_ratio:
        return "no loss"
    return "loss within the goal" if trial.steady_loss_ratio <= goal else "loss beyond the goal"


def _cells(trial: Trial, begun: float) -> Iterator[str]:
    moment = time.strftime("%H:%M:%S", time.localtime(trial.occasion.started))
    yield f"{moment} (+{Duration(trial.occasion.started - begun)})" if trial.occasion.started > begun else moment
    yield f"{trial.occasion.phase} {trial.occasion.repeat}" if trial.occasion.repeat else trial.occasion.phase
    yield f"{trial.belonging.side} {trial.belonging.pair}" if trial.belonging.side else trial.belonging.boot[:8]
    yield str(Rate(trial.intended_load))
    yield thousands(trial.offered)
    yield thousands(trial.lost)
    yield f"{trial.loss_ratio:.3%}"
    yield str(Rate(trial.forwarding_rate))


def _sentence(number: int, trial: Trial, cells: Sequence[str]) -> str:
    began, phase, boot, load, offered, lost, ratio, rate = cells
    of = f" of {boot}" if boot else ""
    return (
        f"trial {number}: {phase}{of}, {load} for {Duration(trial.seconds)}, {began}\n"
        f"{offered} offered, {lost} lost ({ratio}), {thousands(trial.drained)} came back late; "
        f"{trial.aside.fate} at {rate}"
    )


def _told(trial: Trial) -> Iterator[str]:
    """What disturbed it, where its packets were lost, what the beats were like."""
    if trial.seen.disturbed:
        yield f"disturbed: {causes_in_words(trial.seen.disturbed)}"
    if trial.unsent:
        yield f"{thousands(trial.unsent)} unsent"
    if trial.steady_loss_ratio > trial.loss_ratio + _NOTEWORTHY:
        yield f"judged by {trial.steady_loss_ratio:.3%}, with what the queue grew by"
    if trial.seen.latency is not None:
        middle, _, tail, *_ = trial.seen.latency.within or (0.0,) * 4
        yield (
            f"latency {latency_in_words(trial.seen.latency.p50, middle)} in the median, "
            f"99 % {latency_in_words(trial.seen.latency.p99, tail)}"
        )
    if places := losses(trial).places:
        yield "lost: " + ", ".join(f"{thousands(one.packets)} {one.where}" for one in places)
    for name, counted in sorted(trial.seen.counter_changes.items()):
        place = Place.parse(name)
        if place.kind == "heartbeat" and counted.get("beats"):
            longest = counted.get("longest_wait", 0) / 1e6
            missed = f", {thousands(missed)} missed" if (missed := counted.get("missed", 0)) else ""
            yield f"CPU {place.name}: {thousands(counted['beats'])} beats{missed}, the latest by {longest:.1f} ms"


def _boots(trials: Sequence[Trial], places: Sequence[float], step: float) -> Iterator[tuple[float, str]]:
    """Places where the boot is another one than before."""
    last, room = "", 0.0
    for one, x in zip(trials, places, strict=True):
        if one.belonging.boot != last:
            label = f"{one.belonging.side} {one.belonging.pair}".strip() if one.belonging.side else ""
            fits = room <= x <= _RIGHT - 7 * len(label)
            yield round(x - step / 2, 1), label if fits else ""
            room = x + 7 * len(label) + 6 if fits else room
            last = one.belonging.boot
