"""Several runs as one result with one verdict: what was measured on several machines, what these have in common, and
what was lost of it."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pdrgate.results.acknowledgement import AcknowledgedPath, Acknowledgement
from pdrgate.results.model import SCHEMA, RunResult, ScenarioResult, TestbedResult
from pdrgate.results.selection import Selection
from pdrgate.results.verdict import ALL_ACKNOWLEDGED, Judgement, Verdict, gravest_verdict

_WEIGHT = ("exceeded", "ended", "holds", "not needed", "not measured")
"""States of acknowledgements, what a reader must know first."""

_SHARD = re.compile(r" --shard[ =]([1-9]\d{0,2})/([1-9]\d{0,2})(?= |$)")
"""The part of several that a run measured, in the command that asked for it."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run that left a result."""

    place: str
    """Place of the run, as people read it."""
    link: str
    """Link to the place of the run, from a page beside the merged result."""
    result: RunResult


@dataclass(frozen=True, slots=True)
class LostPart:
    """What was to leave a result, and left none."""

    place: str
    reason: str


def shards_nobody_measured(runs: Iterable[RunResult]) -> Iterator[str]:
    """``2/4``, for each part of the same paths that none of these runs measured, though one measured another part."""
    measured = defaultdict[tuple[str, int], set[int]](set)
    for run in runs:
        if (found := _SHARD.search(run.command)) is not None:
            measured[_SHARD.sub("", run.command), int(found[2])].add(int(found[1]))
    for (_, of), numbers in measured.items():
        yield from (f"{number}/{of}" for number in range(1, of + 1) if number not in numbers)


def merged(
    name: str, parts: Sequence[RunPart | LostPart], architectures: Mapping[str, str] = MappingProxyType({})
) -> RunResult:
    """A result of all runs: the gravest verdict is its verdict, and no number is another one.

    What was lost is a scenario that is an ERROR: it costs itself, and no scenario of another run. So is what a run
    still had before it when it was killed.

    Args:
        name: what the whole is called.
        architectures: names for people by what ``uname -m`` prints; a scenario is named by its architecture where the
            runs are of several.
    """
    runs = [part.result for part in parts if isinstance(part, RunPart)]
    testbeds = _distinct(run.testbed.name for run in runs)
    known = _distinct(architectures.get(architecture_of(one), "") for run in runs for one in run.scenarios)
    scenarios = _told_apart([
        _of_architecture(scenario, architectures if len(known) > 1 else {})
        for part in parts for scenario in _scenarios(part, names_testbed=len(testbeds) > 1)
    ])  # fmt: skip
    selection = _selection(runs)
    judged = _judged(scenarios)
    if len(known) > 1:
        judged = replace(judged, reason=f"{_by_architecture(scenarios, architectures)}; {judged.reason}")
    if not scenarios and runs and all(map(_has_nothing_to_measure, runs)):
        judged = Judgement(Verdict.PASS, "all paths run the same code in both builds")
    lost = sum(one.verdict is Verdict.ERROR and not one.trials for one in scenarios)
    if lost and judged.verdict is not Verdict.ERROR:
        judged = judged.remarked(f"{lost} of {len(scenarios)} came to no result")
    return RunResult(
        schema=SCHEMA,
        pdrgate=", ".join(_distinct(run.pdrgate for run in runs)),
        run=name,
        started=min((run.started for run in runs), default=0.0),
        finished=_last(runs),
        profile=", ".join(_distinct(run.profile for run in runs)),
        testbed=TestbedResult(name=", ".join(testbeds), kind="", sentence=f"{len(runs)} of {len(parts)} runs merged"),
        environment=in_common(scenarios),
        verdict=judged.verdict,
        reason=judged.reason,
        scenarios=tuple(scenarios),
        command="\n".join(_distinct(run.command for run in runs)),
        commit=", ".join(_distinct(run.commit for run in runs)),
        selection=selection,
        left_out=tuple(dict.fromkeys(one for run in runs for one in run.left_out)),
        acknowledged=_acknowledged(runs),
    )


def _acknowledged(runs: Sequence[RunResult]) -> tuple[AcknowledgedPath, ...]:
    """What became of each acknowledgement: a run that measured its path knows more than one that did not."""
    found: dict[Acknowledgement, AcknowledgedPath] = {}
    for one in (one for run in runs for one in run.acknowledged):
        known = found.get(one.acknowledgement)
        if known is None or _WEIGHT.index(one.state) < _WEIGHT.index(known.state):
            found[one.acknowledgement] = one
    return tuple(found.values())


def _selection(runs: Sequence[RunResult]) -> Selection | None:
    """The paths of all runs, where these compared the same code; None where they did not, or measured all."""
    found = [one.selection for one in runs if one.selection is not None]
    if (
        not found
        or len(found) < len(runs)
        or any(replace(one, paths=()) != replace(found[0], paths=()) for one in found)
    ):
        return None
    paths = {path.scenario: path for one in found for path in sorted(one.paths, key=lambda path: path.is_measured)}
    return replace(found[0], paths=tuple(paths.values()))


def _has_nothing_to_measure(run: RunResult) -> bool:
    """Whether all of its paths run the same code in both builds."""
    return not run.scenarios and run.verdict is Verdict.PASS and run.selection is not None


def _scenarios(part: RunPart | LostPart, names_testbed: bool) -> Iterator[ScenarioResult]:
    if isinstance(part, LostPart):
        yield _without_numbers(part.place, Verdict.ERROR, part.reason)
        return
    result = part.result
    on = f" on {result.testbed.name}" if names_testbed else ""
    for one in result.scenarios:
        yield _of_run(replace(one, title=f"{one.title}{on}"), part.link)
    if result.finished is None:
        reason = f"it did not come to its end, and may lack scenarios; go on with: --resume {part.place}"
        yield _of_run(_without_numbers(part.place, Verdict.ERROR, reason), part.link)
    elif _has_nothing_to_measure(result):
        return
    elif result.verdict is not gravest_verdict(one.counts_as for one in result.scenarios) or not result.scenarios:
        # Something failed before a scenario could be measured.
        yield _of_run(_without_numbers(part.place, result.verdict, result.reason), part.link)


def architecture_of(scenario: ScenarioResult) -> str:
    """What ``uname -m`` prints on the SUT of a scenario; empty where that is not known."""
    return str(scenario.findings.environment.get("architecture", ""))


def _of_architecture(one: ScenarioResult, architectures: Mapping[str, str]) -> ScenarioResult:
    """The scenario with its architecture in its name, where that has a name."""
    name = architectures.get(architecture_of(one))
    if name is None:
        return one
    test = one.origin.test and f"{one.origin.test} on {name}"
    return replace(one, title=f"{one.title} on {name}", origin=replace(one.origin, test=test))


def _by_architecture(scenarios: Sequence[ScenarioResult], architectures: Mapping[str, str]) -> str:
    """The verdict of each architecture, such as *PASS on amd64, REGRESSION on arm64*."""
    verdicts: dict[str, list[Verdict]] = {}
    for one in scenarios:
        if name := architectures.get(architecture_of(one)):
            verdicts.setdefault(name, []).append(one.counts_as)
    return ", ".join(f"{gravest_verdict(found)} on {name}" for name, found in verdicts.items())


def _of_run(one: ScenarioResult, folder: str) -> ScenarioResult:
    return replace(one, origin=replace(one.origin, run=folder))


def _without_numbers(place: str, verdict: Verdict, reason: str) -> ScenarioResult:
    return ScenarioResult(name=place, title=place, verdict=verdict, reason=reason)


def _told_apart(scenarios: Sequence[ScenarioResult]) -> list[ScenarioResult]:
    """The scenarios; those of equal titles are named by their runs as well."""
    known = Counter(one.title for one in scenarios)
    return [replace(one, title=f"{one.title} ({one.origin.run})") if known[one.title] > 1 else one for one in scenarios]


def _judged(scenarios: Sequence[ScenarioResult]) -> Judgement:
    counting = [one for one in scenarios if not one.details.acknowledged]
    if scenarios and not counting:
        return Judgement(Verdict.PASS, ALL_ACKNOWLEDGED)
    word = gravest_verdict(one.verdict for one in counting)
    found = [one for one in counting if one.verdict is word]
    if not found:
        return Judgement(word, "there is no run to merge")
    reason = f"{found[0].label}: {found[0].reason}" if len(scenarios) > 1 else found[0].reason
    left = len(counting) - 1 if word.passes else len(found) - 1
    others = f"and {left} more {'pass' if word.passes else 'like it'}" if left else ""
    return Judgement(word, reason).remarked(others)


def _last(runs: Sequence[RunResult]) -> float | None:
    """When the last run ended; None where one did not."""
    ends = [math.nan if run.finished is None else run.finished for run in runs]
    last = max(ends, default=math.nan)
    return None if any(map(math.isnan, ends)) or math.isnan(last) else last


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))


def in_common(scenarios: Iterable[ScenarioResult]) -> dict[str, Any]:
    """The entries in which all SUTs of these scenarios are equal; of none that is not known.

    Two builds are two SUTs: the kernel of one is not in it.
    """
    found = [one for scenario in scenarios for one in _environments(scenario) if one]
    first = found[0] if found else {}
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in found)}


def _environments(scenario: ScenarioResult) -> list[Mapping[str, Any]]:
    """Environments of both builds where two were compared: that of the scenario is the candidate's then."""
    return (
        [side.findings.environment for side in scenario.builds.sides]
        if scenario.builds.sides
        else [scenario.findings.environment]
    )
