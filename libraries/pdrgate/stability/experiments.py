"""Experiments in a file: the trials of one scenario and boot, or of one side of one comparison of builds.

A file has all that a run measured, in measured order, and no separator between two comparisons. They are distinguished
by the test that asked for them, if it is known, by their builds, and by a pair's number that comes again: no comparison
measures a pair twice, except for one that failed or was killed, which is begun anew at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pdrgate.record.trial import Trial
from pdrgate.stability.throughput_increase import DEFAULT_PLR_THRESHOLD

_GOAL = re.compile(r"-loss(\d[\d.]*(?:e-\d+)?)(?=-|$)")
"""The loss ratio that a PDR was measured for, in the name of its scenario."""


@dataclass(slots=True)
class _Comparison:
    """Comparison whose trials are being separated from those of others."""

    question: tuple[str, ...]
    builds: dict[str, str]
    """The builds, by side."""
    pairs: set[int] = field(default_factory=set)

    def takes(self, question: tuple[str, ...], builds: dict[str, str], pair: int) -> bool:
        """Whether a pair may belong to the comparison."""
        alike = all(self.builds.get(side, build) == build for side, build in builds.items())
        return self.question == question and alike and not (pair and pair in self.pairs)


def comparisons(measured: Sequence[Trial]) -> list[int]:
    """The number of the comparison of builds that each trial was measured for, from 1; 0 for none.

    Args:
        measured: all of one file, in measured order.
    """
    found: list[_Comparison] = []
    numbers = [0] * len(measured)
    for places in _pairs(measured):
        builds = {measured[place].belonging.side: measured[place].belonging.build for place in places}
        question, pair = _question(measured[places[0]]), measured[places[0]].belonging.pair
        # The latest first: a run that is resumed goes on with what it ended with.
        number = next((n for n in range(len(found), 0, -1) if found[n - 1].takes(question, builds, pair)), 0)
        if not number:
            found.append(_Comparison(question, builds))
            number = len(found)
        found[number - 1].builds |= builds
        found[number - 1].pairs.add(pair)
        for place in places:
            numbers[place] = number
    return numbers


def experiments(measured: Sequence[Trial]) -> list[tuple[str, list[Trial]]]:
    """Trials of one file by what they are an experiment of, with its name, in order of appearance.

    It is one scenario and boot under one fingerprint; where builds were compared, one build of one comparison over all
    of its boots.
    """
    groups: dict[tuple[str, int, str, str], list[Trial]] = {}
    for one, number in zip(measured, comparisons(measured), strict=True):
        key = (
            one.belonging.scenario,
            number,
            one.belonging.side or one.belonging.boot,
            "" if number else one.belonging.fingerprint,
        )
        groups.setdefault(key, []).append(one)
    names = [", ".join(filter(None, (scenario, which))) for scenario, _, which, _ in groups]
    found = []
    for name, ((_, number, _, fingerprint), members) in zip(names, groups.items(), strict=True):
        more = f" {members[0].belonging.build}, comparison {number}" if number else f", {fingerprint}"
        found.append((f"{name}{more}" if names.count(name) > 1 else name, members))
    return found


def _question(one: Trial) -> tuple[str, ...]:
    """Scenario and test of a trial. Trials with different ones are never of one comparison."""
    return one.belonging.scenario, one.belonging.test


def _pairs(measured: Sequence[Trial]) -> Iterator[list[int]]:
    """The places of each pair's trials, where they follow each other: both boots of one are measured in turn."""
    places: list[int] = []
    builds: dict[str, str] = {}
    for place, one in enumerate(measured):
        if places:
            last = measured[places[-1]]
            same = (
                one.belonging.side and one.belonging.pair == last.belonging.pair and _question(one) == _question(last)
            )
            if not same or builds.get(one.belonging.side, one.belonging.build) != one.belonging.build:
                yield places
                places, builds = [], {}
        if one.belonging.side:
            places.append(place)
            builds[one.belonging.side] = one.belonging.build
    if places:
        yield places


def goal_of(scenario: str) -> float:
    """The goal of a scenario by its name, which `pdrgate.gate.run.scenario` makes: the usual one is not in it."""
    found = _GOAL.search(scenario)
    return float(found[1]) / 100 if found else DEFAULT_PLR_THRESHOLD


def without_goal(scenario: str) -> str:
    """The rest of the name: what was measured, whatever was asked of it."""
    return _GOAL.sub("", scenario)
