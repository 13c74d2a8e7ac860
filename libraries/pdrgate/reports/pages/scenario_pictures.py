"""A scenario's result becomes pictures, the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.measurands.slower_paths import by_cost_alone
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports.words.assessment_words import assessed_builds
from pdrgate.reports.words.build_words import kernel_release
from pdrgate.reports.words.latencies import latency_by_build
from pdrgate.reports.words.loss_words import by_build
from pdrgate.results.file_name import distinct_names
from pdrgate.results.model import AssessmentResult, ScenarioResult, SearchResult
from pdrgate.results.verdict import STABLE, Verdict

_KEPT = 256
_drawn: dict[str, bytes | None] = {}
"""The last pictures, by what they show: a run needs each in Robot's log and, somewhat later, on its page."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG; ``name`` is its file's without the ending, ``title`` says what it shows."""

    name: str
    title: str
    png: bytes


@dataclass(frozen=True, slots=True)
class _Part:
    """What pictures and headings use alike of a scenario and, where builds were compared, of each build."""

    label: str
    """The build's label; empty for the only one."""
    stem: str
    subtitle: str
    assessment: AssessmentResult | None
    search: SearchResult | None
    trials: Sequence[Trial]
    """The trials of the search."""

    @property
    def of(self) -> str:
        """The end of a picture's title: whose it is."""
        return f" of the {self.label}" if self.label else ""

    def title(self, scenario: ScenarioResult) -> str:
        return f"{scenario.label}: {self.label}" if self.label else scenario.label


def stem(scenario: ScenarioResult, earlier: Sequence[ScenarioResult] = ()) -> str:
    """What the names of a scenario's pictures begin with: its label, numbered where ``earlier`` ones have it too."""
    return distinct_names(one.label for one in (*earlier, scenario))[-1]


def pictures(
    scenario: ScenarioResult, trials: Sequence[Trial] = (), earlier: Sequence[ScenarioResult] = ()
) -> Iterator[Picture]:
    """Everything there is to draw. A path that passes by what a packet costs is a line of a table: nothing.

    Args:
        trials: those of the run, for the way that the search went; without them it is not drawn.
        earlier: the run's scenarios before this one, see `stem`.
    """
    compared = scenario.comparison
    if scenario.verdict is Verdict.PASS and compared is not None and by_cost_alone(compared) and not compared.notice:
        return
    from pdrgate.reports import plots  # half a second of matplotlib, which runs that end early need not wait for

    begin = stem(scenario, earlier)
    labels = [(side.side, side.build, side.findings.measurands) for side in scenario.builds.sides]
    shown: tuple[object, ...] = (
        scenario.label, scenario.verdict, labels, scenario.builds.boots, scenario.findings.measurands,
        scenario.comparison,
    )  # fmt: skip
    yield from _picture(f"{begin}-pairs", "Pairs of boots", plots.pairs, scenario, told_by=shown)
    shown = (scenario.label, scenario.comparison, scenario.findings.cost)
    title = "Instructions per packet by function"
    yield from _picture(f"{begin}-functions", title, plots.functions, scenario, told_by=shown)
    shown = (scenario.label, scenario.verdict, tuple(latency_by_build(scenario)))
    title = "Latency at shares of the PDR"
    yield from _picture(f"{begin}-latency", title, plots.latency_plot, scenario, told_by=shown)
    parts = list(_parts(scenario, trials, begin))
    # A build's own assessment stands for itself; the only one's is what the verdict rests on.
    judged = plots.Stamp(scenario.verdict, scenario.reason) if not scenario.builds.sides else None
    # The other pictures show whether it is stable, unless that could not be found out.
    stable = None if scenario.verdict in STABLE else judged
    for part in parts:
        found = part.assessment
        if found is not None and (found.loads or found.generator_limited_loads):
            words = {"title": part.title(scenario), "subtitle": part.subtitle}
            title = f"Load-loss curve{part.of}"
            yield from _picture(f"{part.stem}-load-loss", title, plots.load_loss, found, **words, judged=judged)
            yield from _picture(f"{part.stem}-rates", f"Rates{part.of}", plots.rates, found, **words, judged=stable)
    shown = (scenario.label, scenario.verdict, scenario.details.transfers)
    yield from _picture(f"{begin}-transfers", "Transfers", plots.transfers, scenario, told_by=shown)
    shown, title = (scenario.label, tuple(by_build(scenario))), "Where packets were lost"
    yield from _picture(f"{begin}-losses", title, plots.lost_packets_plot, scenario, told_by=shown)
    yield from search_pictures(scenario, trials, earlier)
    for part in parts:
        found = part.assessment
        if found is not None and any(point.throughputs for point in found.loads):
            words = {"title": part.title(scenario)}
            yield from _picture(
                f"{part.stem}-repeats", f"Repeats{part.of}", plots.repeats, found, **words, judged=stable
            )


def search_pictures(
    scenario: ScenarioResult, trials: Sequence[Trial], earlier: Sequence[ScenarioResult] = ()
) -> Iterator[Picture]:
    """The way that each search went, of a scenario that had one; arguments as of `pictures`."""
    from pdrgate.reports import plots

    for part in _parts(scenario, trials, stem(scenario, earlier)):
        if part.search is not None and part.trials:
            words = {"title": part.title(scenario), "subtitle": part.subtitle, "goals": part.search.goals}
            title = f"The search{part.of}, trial by trial"
            yield from _picture(f"{part.stem}-search", title, plots.search_path, part.trials, **words)


def main_picture(scenario: ScenarioResult) -> Picture | None:
    """The one that shows what a scenario came to: its pairs of boots, else its load-loss curve, else its transfers."""
    drawn = {picture.name.removeprefix(f"{stem(scenario)}-"): picture for picture in pictures(scenario)}
    return next(
        (drawn[name] for name in ("pairs", "load-loss", "candidate-load-loss", "transfers") if name in drawn), None
    )


def _picture(
    name: str, title: str, draw: Callable[..., Any], /, *shown: object, told_by: object = None, **words: object
) -> Iterator[Picture]:
    """The picture that ``draw`` makes of ``shown``, made once for each key; nothing where there is nothing to draw.

    The key is the repr of ``told_by``, or else of ``shown``, and must hold all that the drawing shows.
    """
    from pdrgate.reports.plots import png

    key = f"{draw.__name__}{told_by or shown!r}{words!r}"
    if key not in _drawn:
        while len(_drawn) >= _KEPT:
            del _drawn[next(iter(_drawn))]
        figure = draw(*shown, **words)
        _drawn[key] = None if figure is None else png(figure)
    content = _drawn[key]
    if content is not None:
        yield Picture(name, title, content)


def _parts(scenario: ScenarioResult, trials: Sequence[Trial], begin: str) -> Iterator[_Part]:
    searched = [
        trial for trial in trials if trial.belonging.scenario == scenario.name and trial.occasion.phase == Phase.SEARCH
    ]
    release = kernel_release(scenario)
    for name, assessment, search in assessed_builds(scenario):
        if side := scenario.builds.side(name) if name else None:
            mine = [trial for trial in searched if trial.belonging.side == name]
            yield _Part(side.side, f"{begin}-{name}", side.build, assessment, search, mine)
        else:
            mine = [trial for trial in searched if trial.belonging.boot == scenario.origin.boot]
            yield _Part("", begin, f"kernel {release}" if release else "", assessment, search, mine)
