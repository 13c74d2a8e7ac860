"""A scenario as a fragment of HTML for Robot's log: what its verdict rests on first, all else folded."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pdrgate.record.cause import causes_in_words
from pdrgate.record.trial import Trial
from pdrgate.reports.markup.html import rendered
from pdrgate.reports.pages.blocks import block_html, further_html, measurands_html, whole_html
from pdrgate.reports.pages.scenario_pictures import Picture, main_picture
from pdrgate.reports.tree import Paragraph
from pdrgate.reports.words.build_words import lines_beside
from pdrgate.reports.words.headline import left_out, scenario_headline
from pdrgate.reports.words.measurand_tables import evidence_tables
from pdrgate.reports.words.scenario_tree import facts_tables, scenario_parts
from pdrgate.results.model import ScenarioResult
from pdrgate.values.printable import printable
from pdrgate.values.units import Duration, Rate

_COLOURS = {0: "#00795a", 1: "#b3261e", 2: "#5b5f97", 3: "#b3261e"}
"""Colours by exit code; the word says it too."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What is shown to who asks for it."""

    title: str
    fragments: Sequence[Markup]


def evidence_html(scenario: ScenarioResult) -> str:
    """Verdict, numbers, the main picture, and the tables that they rest on."""
    said = Fold("What else was said", list(_said(scenario)))
    return _page(scenario, list(_open(scenario)), [said] if said.fragments else [])


def scenario_html(scenario: ScenarioResult, pictures: Sequence[Picture], trials: Sequence[Trial]) -> str:
    """The page of a scenario with all evidence: folded below it all other pictures, each trial, and what was measured
    on."""
    main = main_picture(scenario)
    others = [picture_html(one) for one in pictures if main is None or one.png != main.png]
    folds = [
        Fold(
            "What else was said, and what the verdict rests on",
            [*_said(scenario), *map(block_html, evidence_tables(scenario))],
        ),
        Fold("All pictures", others),
        Fold("Tables: cost by function, loads, search, boots", list(further_html(scenario_parts(scenario)))),
        trials_fold(trials),
        Fold("Knobs, environment and all else that made these trials", [*map(block_html, facts_tables(scenario))]),
    ]
    return _page(scenario, list(_open(scenario)), [one for one in folds if one.fragments])


def fold_html(fold: Fold) -> str:
    """The HTML of a fold that stands alone."""
    return rendered("evidence.html.j2", verdict="", reason="", colour="", open=(), folds=[fold]).strip()


def picture_html(picture: Picture) -> Markup:
    """The picture, in the page itself."""
    data = base64.b64encode(picture.png).decode()
    return Markup('<img alt="{}" style="max-width:100%" src="data:image/png;base64,{}">').format(picture.title, data)


def trials_fold(trials: Sequence[Trial]) -> Fold:
    """A line for each trial, in measured order."""
    title = f"{len(trials)} trials" if len(trials) != 1 else "1 trial"
    lines = "\n".join(_line(number, trial) for number, trial in enumerate(trials, start=1))
    style = '<pre style="overflow-x:auto;white-space:pre;margin:0;">{}</pre>'
    return Fold(title, [Markup(style).format(lines)] if trials else [])


def _page(scenario: ScenarioResult, open_: Sequence[Markup], folds: Sequence[Fold]) -> str:
    return rendered(
        "evidence.html.j2", verdict=scenario.verdict,
        reason=scenario_headline(scenario).removeprefix(f"{scenario.verdict}: "),
        colour=_COLOURS[scenario.verdict.exit_code], open=open_, folds=folds,
    ).strip()  # fmt: skip


def _said(scenario: ScenarioResult) -> Iterator[Markup]:
    """What the headline leaves out of the reason."""
    for clause in left_out(scenario_headline(scenario), scenario.reason):
        yield block_html(Paragraph(clause))


def _open(scenario: ScenarioResult) -> Iterator[Markup]:
    for line in lines_beside(scenario):
        yield block_html(Paragraph(line))
    if measurands := measurands_html(scenario):
        yield measurands
    main = main_picture(scenario)
    if main is not None:
        yield picture_html(main)
    yield from whole_html(scenario_parts(scenario))


def _line(number: int, trial: Trial) -> str:
    of = f"{trial.belonging.pair:3d} {trial.belonging.side:9s} " if trial.belonging.side else ""
    rate = Rate(trial.forwarding_rate)
    told = f"lost {trial.loss_ratio:8.3%}  steady {trial.steady_loss_ratio:8.3%}  {trial.aside.fate} {rate}"
    if not trial.sound:
        why = "generator-limited" if trial.generator_limited else f"disturbed: {causes_in_words(trial.seen.disturbed)}"
        told += f"  {printable(why)}"
    load, duration = Rate(trial.intended_load), Duration(trial.intended_duration)
    return f"{number:4d} {of}{trial.occasion.phase:11s} {load!s:>11s} {duration!s:>7s}  {told}"
