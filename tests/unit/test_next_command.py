"""What is undecided names the command that decides it, and that command is one that the gate takes."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from made_results import compared, result
from said_options import said

from pdrgate.cli import cli
from pdrgate.cli.gate import _asked
from pdrgate.reports.words.headline import lines_below
from pdrgate.reports.words.next_command import next_command
from pdrgate.results.model import Evidence, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

COMMAND = (
    "./ci/gate --testbed resources/testbeds/local-vm.yaml --kernel new.deb --against old.deb --scenario portfolio "
    "--set budget='5 min' --set boots=12 --cost-tolerance 1%"
)
EVIDENCE = Evidence(slower=0.0, faster=0.0, pairs=6, deviation=0.02, resolves=0.03, needs=38)


def undecided(name: str, evidence: Evidence | None = EVIDENCE) -> ScenarioResult:
    one = compared("INCONCLUSIVE")
    assert one.comparison is not None
    change = replace(one.comparison.changes[0], verdict=Verdict.INCONCLUSIVE, evidence=evidence)
    return replace(one, name=name, comparison=replace(one.comparison, changes=(change,), pairs=6))


def run(*scenarios: ScenarioResult, command: str = COMMAND) -> RunResult:
    return result(*scenarios, started=0.0, finished=120.0, command=command, verdict=Verdict.INCONCLUSIVE)


def test_the_command_asks_for_what_is_undecided_with_what_it_needs() -> None:
    told = next_command(run(compared(), undecided("nat-1cpu-4096-64B")))
    assert told == (
        "./ci/gate --testbed resources/testbeds/local-vm.yaml --kernel new.deb --against old.deb --cost-tolerance 1% "
        "--scenario nat-1cpu-4096-64B --set boots=38 --set 'budget=13 min'"
    )
    assert f"to decide it: {told}" in lines_below(run(compared(), undecided("nat-1cpu-4096-64B")))


@pytest.mark.parametrize("measure", ["cost", "pdr"])
def test_the_gate_takes_it(measure: str) -> None:
    words = shlex.split(next_command(run(*map(undecided, "abcdefgh"), command=f"{COMMAND} --measure={measure}")))
    asked = _asked(**said(cli.commands["gate"].make_context("gate", words[1:])))
    assert (asked.boots, asked.measure, str(asked.budget)) == (38, measure, "3 min 00 s")
    assert asked.scenarios == ("portfolio",)


def test_there_is_none_where_pairs_would_not_decide() -> None:
    narrow = replace(EVIDENCE, narrow=True)
    for one in (run(undecided("a", None)), run(undecided("a", narrow)), run(undecided("a"), command="")):
        assert next_command(one) == ""
    assert next_command(result(compared(), command=COMMAND)) == ""
