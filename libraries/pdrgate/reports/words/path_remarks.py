"""Remarks below the table of a run over several paths: what the paths share, and what searches show besides."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from statistics import median

from pdrgate.measurands.slower_paths import searched_besides
from pdrgate.reports.words.build_words import nameless_lines
from pdrgate.reports.words.headline import scenario_headline
from pdrgate.reports.words.path_table import paths_of
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_FEWEST = 2
"""Paths that a function changed on, from which on it is named once for all of them."""
_TOLD = 5
"""Largest number of functions, and of notices, that are named so."""
_PAIRS = (
    "paths are compared by instructions; pairs of boots give packets/s of IPv6 routing: the same command with "
    "--measure pdr"
)


def shared_changes(result: RunResult) -> list[str]:
    """``in 14 of 26 paths, instructions per packet (median): __alloc_skb +91``; the most instructions first."""
    found: dict[str, list[float]] = defaultdict(list)
    paths = paths_of(result)
    for scenario in (result.scenarios[number] for number in paths):
        for one in scenario.comparison.functions if scenario.comparison is not None else ():
            if one.sure:
                found[one.label].append(one.change)
    several = {name: changes for name, changes in found.items() if len(changes) >= _FEWEST}
    lines: dict[int, list[str]] = defaultdict(list)
    for name in sorted(several, key=lambda name: -abs(sum(several[name])))[:_TOLD]:
        lines[len(several[name])].append(f"{name} {median(several[name]):+z.3g}")
    return [
        f"in {number} of {len(paths)} paths, instructions per packet (median): {', '.join(told)}"
        for number, told in lines.items()
    ]


def noticed(result: RunResult) -> list[str]:
    """``notice on NAT, and on 2 other paths that pass: dst_release is called twice for each packet, was once``."""
    found = (
        (one, one.comparison.notice)
        for one in result.scenarios
        if one.verdict is Verdict.PASS and one.comparison is not None and one.comparison.notice
    )
    return [f"notice on {names}: {notice}" for notice, names in _by_sentence(found)]


def unmeasured(result: RunResult) -> list[str]:
    """``on A Bridge: what several CPUs share was not measured: the guest has ended``, of paths that pass."""
    found = ((one, line) for one in result.scenarios if one.verdict.passes for line in one.details.unmeasured)
    return [f"on {names}: {line}" for line, names in _by_sentence(found)]


def _by_sentence(said: Iterable[tuple[ScenarioResult, str]]) -> Iterator[tuple[str, str]]:
    """Each sentence with the paths that it is said of; those of the most paths."""
    paths: dict[str, list[str]] = defaultdict(list)
    for scenario, sentence in said:
        paths[sentence].append(scenario.label)
    for sentence, names in sorted(paths.items(), key=lambda one: -len(one[1]))[:_TOLD]:
        yield sentence, _and_others(names)


def nameless(result: RunResult) -> list[str]:
    """What of the builds' cache lines could have no names, and on how many paths, where not on all."""
    paths = paths_of(result)
    counted = Counter(line for number in paths for line in nameless_lines(result.scenarios[number]))
    return [
        line if number == len(paths) else f"{line} (on {number} of {len(paths)} paths)"
        for line, number in counted.most_common(_TOLD)
    ]


def said_of_paths(result: RunResult) -> list[str]:
    """What stands below the lines of the paths: what was not measured and what surely changed where they pass, what
    several share, what has no names, and what a search shows of what is slower, or would."""
    searches = [_search_in_words(one, result) for one in searched_besides(result.scenarios)]
    slower = any(one.verdict is Verdict.REGRESSION for one in result.scenarios)
    last = searches or ([_PAIRS] if slower else [])
    return [*unmeasured(result), *shared_changes(result), *noticed(result), *nameless(result), *last]


def _search_in_words(search: ScenarioResult, result: RunResult) -> str:
    """A search's path and verdict in a line."""
    named = (result.scenarios[number].origin.test for number in paths_of(result)
             if result.scenarios[number].name == search.name)  # fmt: skip
    path = next(named, "") or search.title
    return f"{path} by pairs of boots: {scenario_headline(search)}"


def _and_others(paths: list[str]) -> str:
    first, *others = paths
    if not others:
        return f"{first}, which passes"
    return f"{first}, and on {len(others)} other path{'s that pass' if len(others) > 1 else ' that passes'}"
