"""The command that would decide what a run left undecided, ready to be pasted."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_NAMED = 6
"""Scenarios that a command names."""
_MOST_PAIRS = 500
"""Boots of each build that the gate takes at most."""
_MARGIN = 1.5
"""Times as long as the run's own pairs took: a machine that others use may be slower then."""
_REPLACED = ("--scenario", "--set=boots", "--set=budget", "--resume")


def next_command(result: RunResult) -> str:
    """The run's command, for the undecided scenarios alone, with as many pairs and as much time as they need.

    It is empty where nothing is undecided, where no number of pairs decides, and where nobody knows the command.
    """
    undecided = [one for one in result.scenarios if one.verdict is Verdict.INCONCLUSIVE and one.comparison is not None]
    needs = [needed for one in undecided if (needed := _pairs(one))]
    if result.verdict is not Verdict.INCONCLUSIVE or "\n" in result.command or not (result.command and needs):
        return ""
    made = sum(one.comparison.pairs for one in result.scenarios if one.comparison is not None)
    seconds = (result.finished or result.started) - result.started
    pairs = min(_MOST_PAIRS, max(needs))
    minutes = max(2, math.ceil(_MARGIN * pairs * seconds / max(1, made) / 60))
    words = list(_kept(shlex.split(result.command), others=len(undecided) <= _NAMED))
    if len(undecided) <= _NAMED:
        words += [word for one in undecided for word in ("--scenario", one.name)]
    return shlex.join([*words, "--set", f"boots={pairs}", "--set", f"budget={minutes} min"])


def _pairs(scenario: ScenarioResult) -> int:
    """Pairs that would decide it; 0 where it is not pairs that lack."""
    assert scenario.comparison is not None
    found = [one.evidence for one in scenario.comparison.changes if one.verdict is Verdict.INCONCLUSIVE]
    return max((one.needs or 2 * one.pairs for one in found if one is not None and not one.narrow), default=0)


def _kept(words: list[str], *, others: bool) -> Iterator[str]:
    """The words of a command without its options that are said anew; scenarios only where ``others`` are."""
    replaced = tuple(one for one in _REPLACED if others or one != "--scenario")
    at = 0
    while at < len(words):
        two = "=".join(words[at : at + 2])
        if words[at].startswith(replaced) and (words[at] in replaced or "=" in words[at]):
            at += 1 if "=" in words[at] else 2
        elif two.startswith(replaced):
            at += 2
        else:
            yield words[at]
            at += 1
