"""What a run that does not decide says to do next is a command that the gate takes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from flat_values import changed
from made_results import compared, result, scenario
from portfolio_paths import FILES, scenario_of_path
from said_options import said

from pdrgate.cli import cli
from pdrgate.cli.gate import _asked
from pdrgate.gate.run.options import RunOptions
from pdrgate.reports.words.headline import lines_below
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

VM = Path("resources/testbeds/local-vm.yaml")


def undecided(name: str, needs: int | None) -> ScenarioResult:
    one = compared("INCONCLUSIVE")
    assert one.comparison is not None
    (change,) = one.comparison.changes
    assert change.evidence is not None
    change = replace(change, verdict=Verdict.INCONCLUSIVE, evidence=replace(change.evidence, needs=needs))
    return replace(changed(one, comparison=replace(one.comparison, changes=(change,))), name=name)


def run(*scenarios: ScenarioResult, **more: object) -> RunResult:
    asked = RunOptions(testbed=VM, kernel="new.deb", against="old.deb", measure="cost", scenarios=("portfolio",))
    return result(*scenarios, verdict=Verdict.INCONCLUSIVE, command=asked.command, **more)


def command(told: RunResult) -> list[str]:
    (line,) = [line for line in lines_below(told) if line.startswith("to decide")]
    return shlex.split(line.partition(": ")[2])


def test_the_gate_takes_the_command_and_boots_as_often() -> None:
    name = scenario_of_path("nat").name
    words = command(run(undecided(name, 38), compared("PASS")))
    assert words[0] == "./ci/gate"
    with cli.commands["gate"].make_context("gate", words[1:]) as context:
        given = said(context)
    assert (given["scenarios"], given["boots"]) == ((name,), 48)
    asked = _asked(**given)
    assert (asked.measure, asked.scenarios, asked.boots) == ("cost", (FILES["nat"].tag,), 48)


def test_there_is_none_where_more_pairs_are_no_way_out() -> None:
    for needs in (None, 4000):
        assert not any(line.startswith("to decide") for line in lines_below(run(undecided("a", needs))))


def test_packets_of_another_fate_get_the_command_that_counts_them() -> None:
    reason = "IPv4 packets were let pass; if it is to let them pass: --set fate=passed, or name the path beneath it"
    asked = RunOptions(testbed=VM, bpf="new.o", against="old.o").command
    failed = result(changed(scenario("ERROR"), reason=reason), verdict=Verdict.ERROR, command=asked)
    assert f"to count it so: {asked} --set fate=passed" in lines_below(failed)
    other = result(changed(scenario("ERROR"), reason="no iperf3"), verdict=Verdict.ERROR, command=asked)
    assert not any("to count it" in line for line in lines_below(other))
