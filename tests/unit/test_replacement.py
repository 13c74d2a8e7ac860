"""What replaces something on a SUT: what its shell prints is read, and what trials of it come to."""

from __future__ import annotations

import subprocess

import pytest

from pdrgate.data_paths.replacing import Replacement, replaced
from pdrgate.measurands.rates.replacement import (
    ReplacementLoss,
    Replacements,
    ReplacementTime,
    called_more,
    per_replacement,
)
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE, Occasion, Seen
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult, FunctionChange
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import SutError, UsageError


def _trial(kernel: int, waited: int, *, forwarded: int = 1000, done: int = 4) -> Trial:
    told = {"done": done} | ({"waited": waited} if waited else {})  # what stays 0 is not stored
    return Trial(
        intended_load=500.0, intended_duration=2.0, offered=1000, forwarded=forwarded,
        occasion=Occasion(phase=Phase.REPLACEMENT),
        seen=Seen(
            counters_before={"replacement": dict.fromkeys(told, 0)}, counters_after={"replacement": told},
            functions={"commit": (kernel, 4), USER_SPACE: (10**9, 0)},
        ),
    )  # fmt: skip


def _change(function: str, before: float, after: float, *, sure: bool = True) -> FunctionChange:
    return FunctionChange(
        function=function, before=30 * before, after=30 * after, change=30 * (after - before), sure=sure,
        calls_before=before, calls_after=after, calls_changed=sure,
    )  # fmt: skip


def test_a_script_runs_its_command_so_often_and_its_looks_are_read() -> None:
    script = Replacement("echo done >&2; echo printed", 3).script
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.count("done") == ran.stderr.count("printed") == 3
    told = replaced(ran.stdout, 3)
    assert told["done"] == 3
    assert told["waited"] >= 0


def test_a_command_that_fails_ends_the_script() -> None:
    ran = subprocess.run(["sh", "-c", Replacement("echo one >&2; false").script], capture_output=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.count(b"one") == 1


@pytest.mark.parametrize("printed", ["", "1 2 3 4\n", "1 2 3 4\nfive\n"])
def test_what_is_no_look_is_the_suts_fault(printed: str) -> None:
    with pytest.raises(SutError, match="printed no times"):
        replaced(printed, 4)


def test_only_the_time_in_which_no_cpu_works_is_waited() -> None:
    # Of 100 ms two CPUs idle 130 ms: one of them has nothing to do all the time, and the other waits for 30.
    assert replaced("0 0 0 2\n100000 12 1 2\n", 4)["waited"] == 30_000
    assert replaced("0 5 0 1\n100000 5 0 1\n", 4)["waited"] == 0


@pytest.mark.parametrize(("command", "times"), [(" ", 4), ("nft -f rules", 0), ("nft -f rules", 2000)])
def test_a_replacement_that_makes_no_sense_is_refused(command: str, times: int) -> None:
    with pytest.raises(UsageError):
        Replacement(command, times)


def test_trials_are_asked_for_until_there_are_enough() -> None:
    asked = Replacements(load=500.0, duration=2.0, count=2)
    ask = asked.next([_trial(1, 0)])
    assert ask is not None
    assert (ask.load, ask.phase) == (500.0, Phase.REPLACEMENT)
    assert asked.next([_trial(1, 0), _trial(1, 0)]) is None


def test_the_time_is_the_kernels_work_and_the_least_wait() -> None:
    trials = [_trial(40_000_000, 120_000), _trial(44_000_000, 40_000), _trial(40_000_000, 80_000)]
    assert ReplacementTime().value(trials) == pytest.approx(0.010 + 0.010)
    assert ReplacementTime().value([_trial(40_000_000, 0)]) == pytest.approx(0.010)
    assert ReplacementTime().value([]) is None
    assert per_replacement(trials[0]) == {"commit": (10_000_000, 1.0)}


def test_packets_that_are_lost_meanwhile_are_told() -> None:
    assert ReplacementLoss().value([_trial(1, 0)]) == 1.0
    assert ReplacementLoss().value([_trial(1, 0, forwarded=980)]) == pytest.approx(1000 / 980)


def test_what_is_called_once_more_for_each_is_named_first() -> None:
    found = called_more([
        _change("try_to_wake_up", 30, 36), _change("call_rcu", 109, 110), _change("synchronize_rcu", 0, 1),
        _change("nft_do_chain", 2, 1), _change("tick", 5, 6, sure=False),
    ])  # fmt: skip
    assert [one.function for one in found] == ["synchronize_rcu", "call_rcu"]


def test_a_longer_time_names_what_is_called_more_often() -> None:
    change = ChangeResult(
        measurand=ReplacementTime.name, change=0.25, lower=0.2, upper=0.3, confidence=0.95, tolerance=0.1,
        baseline=0.040, candidate=0.050, unit="s", better="lower", verdict=Verdict.REGRESSION,
    )  # fmt: skip
    said = ReplacementTime.about.told(change, [_change("synchronize_rcu", 1, 2)])
    assert said == (
        "a replacement takes the kernel 50 ms, was 40 ms (+25.0 %, +20.0 to +30.0), by calls of "
        "synchronize_rcu (2, was 1)"
    )
