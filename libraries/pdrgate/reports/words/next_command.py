"""The command that would decide what a run left undecided, or count packets as they ended, ready to paste."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator

from pdrgate.gate.run.options import MOST_BOOTS
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.this_process.checkout import GATE_COMMAND

_MARGIN = 1.25
"""Times the pairs that would decide: how many it takes is an estimate."""
_BUDGET = "budget=1 h"
_FATE = re.compile(r"--set (fate=[a-z]+)")


def next_commands(result: RunResult) -> Iterator[str]:
    """``to decide it: ./ci/gate … --scenario … --set boots=48 --set 'budget=1 h'``; none where more pairs are no way
    out. Where packets had another fate than was counted: ``to count it so: ./ci/gate … --set fate=passed``."""
    # Whoever wrote a result decides what its command is: what is not the gate's is nobody's to paste.
    try:
        words = shlex.split(result.command) if "\n" not in result.command else []
    except ValueError:
        return
    if words[:1] not in ([GATE_COMMAND], ["pdrgate"]):
        return
    if result.verdict is Verdict.ERROR and len(result.scenarios) == 1:
        if fate := _FATE.search(result.scenarios[0].reason):
            yield f"to count it so: {shlex.join([*words, '--set', fate[1]])}"
        return
    undecided = [(one, _pairs(one)) for one in result.scenarios if one.verdict is Verdict.INCONCLUSIVE]
    pairs = [wanted for _, wanted in undecided if wanted]
    if result.verdict is not Verdict.INCONCLUSIVE or not pairs:
        return
    if len(result.scenarios) > 1:
        words = [*_without_scenarios(words), *(word for one, wanted in undecided if wanted for word in _named(one))]
    command = shlex.join([*words, "--set", f"boots={max(pairs)}", "--set", _BUDGET])
    yield f"to decide {'it' if len(pairs) == 1 else 'them'}: {command}"


def _named(scenario: ScenarioResult) -> tuple[str, str]:
    return "--scenario", scenario.origin.test or scenario.name


def _without_scenarios(words: list[str]) -> Iterator[str]:
    """A command's words without the paths, and the part of the paths, that it was to measure."""
    left = iter(words)
    for word in left:
        if word in ("--scenario", "--shard", "--paths"):
            next(left, None)
        else:
            yield word


def _pairs(scenario: ScenarioResult) -> int:
    """Boots of each build that would decide a scenario; 0 where that is not known, or too many."""
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    needs = [
        one.evidence.needs
        for one in changes
        if one.verdict is Verdict.INCONCLUSIVE and one.evidence is not None and one.evidence.needs
    ]
    boots = math.ceil(_MARGIN * max(needs)) if needs else 0
    return boots if boots <= MOST_BOOTS else 0
