"""Builds that differ by more than their change: what differs is told, and no IMPROVEMENT is claimed of it."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from console_lines import verdict_lines
from fake_testbed import CONFIG, FakeTestbed, Watcher, gate, new_session
from known_noise import KnownNoise
from made_results import result, scenario
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut

from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.living_boots.packets_on_cpus import SeveralCpusSeen
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.gate.verdicts.build_pair import BuildPair
from pdrgate.gate.verdicts.change_verdict import comparison
from pdrgate.history.results import read_result, write_result
from pdrgate.hosts.host import local_host
from pdrgate.observers.build_options import OPTION, OPTIONS, PRINT_OPTIONS, WORDS, OptionKind, set_options
from pdrgate.observers.environment import Environment, capture_environment, parse_environment
from pdrgate.reports.ci.junit import junit
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.pages.evidence import evidence_html
from pdrgate.reports.pages.overview import evidence
from pdrgate.reports.pages.summary import summary_page
from pdrgate.results.model import ChangeResult, RunResult, Side
from pdrgate.results.verdict import Judgement, Verdict

TEXT = """\
#
# Automatically generated file; DO NOT EDIT.
#
CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14) 12.2.0"
CONFIG_HZ_250=y
CONFIG_HZ=250
# CONFIG_PREEMPT_RT is not set
CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y
CONFIG_RETPOLINE=y
CONFIG_NETFILTER=y
CONFIG_SND_SOC=m
"""
RETPOLINES = "Mitigation: Retpolines; STIBP: disabled; RSB filling"


def sut(version: str = "#1", **more: Any) -> dict[str, Any]:
    """A SUT's environment: a kernel whose configuration is known."""
    return {
        "kernel_release": "6.1.0", "kernel_version": version, "cmdline": "console=ttyS0 nokaslr", "cpu_model": "a CPU",
        "mitigations": {"meltdown": "Not affected", "spectre_v2": RETPOLINES},
        "config_options": {"INIT_ON_ALLOC_DEFAULT_ON": "y", "HZ": "250", "NETFILTER": "y"},
    } | more  # fmt: skip


def without(option: str) -> dict[str, str]:
    options: dict[str, str] = sut()["config_options"]
    return {name: value for name, value in options.items() if name != option}


FASTER = Judgement(Verdict.IMPROVEMENT, "faster: PDR 25 kpps against 18.4 kpps")
SLOWER = Judgement(Verdict.REGRESSION, "slower: PDR 13 kpps against 18.4 kpps")
SPARED = BuildPair.of(sut(), sut("#2", config_options=without("INIT_ON_ALLOC_DEFAULT_ON")))
"""The candidate is spared the zeroing of buffers."""


# --- What is read ---


def told_by(config: str) -> dict[str, str] | None:
    done = subprocess.run(["sh", "-c", PRINT_OPTIONS], input=config, capture_output=True, text=True, check=True)
    return set_options(done.stdout)


def test_the_options_that_matter_are_told_by_their_newer_names():
    assert told_by(TEXT) == {
        "CC_VERSION_TEXT": "gcc-12 (Debian 12.2.0-14) 12.2.0", "HZ": "250", "INIT_ON_ALLOC_DEFAULT_ON": "y",
        "MITIGATION_RETPOLINE": "y", "NETFILTER": "y",
    }  # fmt: skip
    assert told_by("") == {}


@pytest.mark.skipif(shutil.which("busybox") is None, reason="there is no busybox here")
def test_busybox_tells_them_as_awk_does():
    done = subprocess.run(
        ["busybox", "sh", "-c", PRINT_OPTIONS.replace("awk", "busybox awk", 1)], input=TEXT, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert set_options(done.stdout) == told_by(TEXT)


def test_a_configuration_that_was_not_told_to_its_end_is_not_known():
    assert set_options("CONFIG_HZ=250\n") is None
    assert parse_environment("==> config options <==\nCONFIG_HZ=250\n").config_options is None
    assert parse_environment("==> config options <==\n# end of the options\n").config_options == {}


def test_this_machine_tells_the_options_of_the_configuration_that_it_tells():
    found = capture_environment(local_host())
    assert (found.config_options is None) == (found.config_sha256 is None)


def test_a_strangers_configuration_tells_nothing_but_options():
    told = told_by("AWS_SECRET=1\nCONFIG_SECRET=2\n==> uname <==\nCONFIG_HZ=" + "9" * 5000 + "\nCONFIG_KASAN=y\n")
    assert told == {"KASAN": "y"}


def test_each_option_is_named_once_and_says_why():
    names = [name for one in OPTIONS for name in (one.name, one.formerly) if name]
    assert len(set(names)) == len(names) == len(OPTION)
    assert all(one.why and not one.name.startswith("CONFIG_") for one in (*OPTIONS, *WORDS))
    assert {one.kind for one in OPTIONS} == set(OptionKind) - {OptionKind.CPU}


# --- What differs ---


def test_equal_builds_differ_in_nothing_and_nothing_is_told():
    pair = BuildPair.of(sut(), sut("#2"))
    assert pair == BuildPair()
    assert pair.weighed(FASTER, allowed=False) == FASTER
    assert BuildPair.of({}, {}) == BuildPair()


def test_a_build_that_zeroes_no_buffers_is_no_improvement():
    (one,) = SPARED.differences
    assert (one.kind, one.name, one.baseline, one.candidate, one.weighty) == (
        "hardening", "INIT_ON_ALLOC_DEFAULT_ON", "y", "n", True,
    )  # fmt: skip
    found = SPARED.weighed(FASTER, allowed=False)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == (
        "not comparable: the builds differ by hardening (INIT_ON_ALLOC_DEFAULT_ON n, was y); "
        "--set allow_config_differences=true compares them; faster: PDR 25 kpps against 18.4 kpps"
    )


def test_who_allows_it_has_the_improvement_and_what_differs():
    found = SPARED.weighed(FASTER, allowed=True)
    assert found.verdict is Verdict.IMPROVEMENT
    assert found.reason.endswith("; the builds differ by hardening (INIT_ON_ALLOC_DEFAULT_ON n, was y)")


def test_a_slower_build_is_one_though_its_hardening_differs():
    found = BuildPair.of(sut(config_options={}), sut("#2")).weighed(SLOWER, allowed=False)
    assert found.verdict is Verdict.REGRESSION
    assert found.reason.startswith("slower: PDR")
    assert "the builds differ by hardening (INIT_ON_ALLOC_DEFAULT_ON y, was n)" in found.reason


def test_a_real_time_kernel_is_judged_as_before():
    pair = BuildPair.of(sut(), sut("#2", config_options=sut()["config_options"] | {"PREEMPT_RT": "y"}))
    assert [(one.kind, one.name, one.weighty) for one in pair.differences] == [("scheduling", "PREEMPT_RT", False)]
    assert pair.weighed(SLOWER, allowed=False) == SLOWER
    assert pair.weighed(FASTER, allowed=False) == FASTER


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.UNSTABLE])
def test_other_verdicts_stay(verdict):
    assert SPARED.weighed(Judgement(verdict, "so"), allowed=False) == Judgement(verdict, "so")


def test_a_configuration_that_nobody_knows_is_told():
    pair = BuildPair.of(sut(config_options=None), sut("#2"))
    assert pair.unknown == ("baseline",)
    found = pair.weighed(FASTER, allowed=False)
    assert found.verdict is Verdict.IMPROVEMENT
    assert "the baseline's configuration is not known" in found.reason
    neither = BuildPair.of(sut(config_options=None), sut("#2", config_options=None)).weighed(FASTER, allowed=False)
    assert "the configuration of neither build is known" in neither.reason


def test_of_one_kernel_on_both_sides_nothing_needs_to_be_known():
    """Two eBPF objects on one kernel."""
    assert BuildPair.of(sut(config_options=None), sut(config_options=None)) == BuildPair()


@pytest.mark.parametrize(
    ("there", "here", "differs"),
    [
        ("Mitigation: Full generic retpoline, IBPB", "Mitigation: Retpolines; STIBP: disabled", False),
        ("Mitigation: Enhanced IBRS", "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional", False),
        ("Mitigation: Retpolines", "Mitigation: Enhanced / Automatic IBRS", True),
        ("Mitigation: Retpolines", "Vulnerable, IBPB: disabled", True),
        ("Not affected", "Vulnerable", False),
        ("Mitigation: PTI", "Not affected", True),
        (None, "Not affected", False),
        (None, "Mitigation: Clear CPU buffers", True),
    ],
)
def test_mitigations_are_compared_by_what_is_done_not_by_words(there, here, differs):
    known = {} if there is None else {"spectre_v2": there}
    pair = BuildPair.of(sut(mitigations=known), sut("#2", mitigations={"spectre_v2": here}))
    assert [one.name for one in pair.differences] == ["spectre_v2"] * differs
    assert pair.weighed(FASTER, allowed=False).verdict is (Verdict.INCONCLUSIVE if differs else Verdict.IMPROVEMENT)


@pytest.mark.parametrize(
    ("more", "kind", "name"),
    [
        ({"cmdline": "nokaslr mitigations=off"}, "mitigations", "mitigations"),
        ({"cmdline": "nokaslr init_on_alloc=0 quiet"}, "hardening", "init_on_alloc"),
        ({"cmdline": "nokaslr slub_debug=FZ"}, "debugging", "slab_debug"),
        ({"cpu_model": "another CPU"}, "CPU", "model"),
    ],
)
def test_what_a_kernel_is_started_with_and_runs_on_counts_as_well(more, kind, name):
    pair = BuildPair.of(sut(), sut("#2", **more))
    assert [(one.kind, one.name) for one in pair.differences] == [(kind, name)]
    assert pair.weighed(FASTER, allowed=False).verdict is Verdict.INCONCLUSIVE


# --- In comparisons ---


class _Configured(FakeTestbed):
    """A simulated SUT that tells its kernel's options."""

    def __init__(self, speed: float, seed: int, options: dict[str, str] | None) -> None:
        sut = SimulatedSut(IdealCurve(speed), Behaviour(0.003), seed=seed, ceiling=Ceiling(4e6))
        super().__init__(sut, boot_id=f"boot-{seed}")
        self._options = options

    def environment(self) -> Environment:
        version = f"with {self._options}"
        return dataclasses.replace(super().environment(), kernel_version=version, config_options=self._options)


HARDENED, SPARING = {"INIT_ON_ALLOC_DEFAULT_ON": "y"}, {"HZ": "1000"}


def compared(folder: Path, before: float, after: float, *, allow: bool = False) -> RunResult:
    """A hardened build against one that is not, in pairs of boots."""
    asked = Options(profile="quick", allow_config_differences=allow)
    session = Session(CONFIG, asked, RunRecord(folder / "run", "quick"), Watcher(), state=folder / "state")
    numbers = itertools.count()
    sides: tuple[tuple[Side, float, dict[str, str]], ...] = (
        ("baseline", before, HARDENED), ("candidate", after, SPARING),
    )  # fmt: skip
    builds = {
        side: Build(side, f"linux-{side}", lambda journal, at=speed, has=options: _Configured(at, next(numbers), has))
        for side, speed, options in sides
    }
    session.take()
    subject = comparison_of(ComparisonTask(session, Scenario(), builds, Plan(12, 1e9, 0.02)))
    subject.measure()
    subject.judge(0.02)
    subject.finish()
    session.close()
    return read_result(folder / "run")


def test_a_build_that_is_faster_without_hardening_is_not_comparable(tmp_path: Path):
    found = compared(tmp_path, 0.74e6, 1e6)
    assert found.verdict is Verdict.INCONCLUSIVE
    differ = "hardening (INIT_ON_ALLOC_DEFAULT_ON n, was y)"
    assert found.reason.startswith(f"not comparable: the builds differ by {differ}; ")
    assert "PDR 1.005 Mpps against" in found.reason
    told = found.scenarios[0].comparison
    assert told is not None
    assert [one.name for one in told.build_differences] == ["INIT_ON_ALLOC_DEFAULT_ON", "HZ"]
    assert told.change == pytest.approx(0.35, abs=0.02)
    lines = [" ".join(line.split()) for line in verdict_lines(found)]
    assert f"the builds differ by more than their change: {differ}, scheduling (HZ 1000, was n)" in lines


def test_what_several_cpus_did_not_show_is_part_of_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lost = SeveralCpusSeen(unmeasured=("what several CPUs share was not measured: the guest has ended",))
    monkeypatch.setattr(SeveralCpuSuts, "seen", lambda *_: lost)
    monkeypatch.setattr(PreparedSut, "sees_memory", True)
    (found,) = compared(tmp_path, 1e6, 1e6).scenarios
    assert found.details.unmeasured == lost.unmeasured


def test_it_is_an_improvement_where_such_builds_are_compared_all_the_same(tmp_path: Path):
    found = compared(tmp_path, 0.74e6, 1e6, allow=True)
    assert found.verdict is Verdict.IMPROVEMENT
    assert "the builds differ by hardening" in found.reason


def test_a_build_that_is_slower_without_hardening_is_a_regression_still(tmp_path: Path):
    found = compared(tmp_path, 1e6, 0.8e6)
    assert found.verdict is Verdict.REGRESSION
    assert "the builds differ by hardening" in found.reason


@pytest.mark.parametrize("known", [True, False])
def test_a_stored_baseline_is_compared_in_the_same_way(tmp_path: Path, known: bool):
    """Of a result that an older version has stored the configuration is not known."""
    known_noise = KnownNoise(0.001)
    before = _Configured(0.74e6, 1, HARDENED if known else None)
    session = new_session(before, tmp_path / "before", Watcher(), tmp_path / "state", experience=known_noise)
    session.open()
    gate(session)
    session.close()
    asked = Options(profile="quick", baseline=tmp_path / "before")
    after = _Configured(1e6, 2, SPARING)
    session = new_session(after, tmp_path / "after", Watcher(), tmp_path / "state", asked, experience=known_noise)
    session.open()
    _, found = gate(session)
    session.close()
    told = read_result(tmp_path / "after").scenarios[0].comparison
    assert told is not None
    if known:
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.reason.startswith("not comparable: the builds differ by hardening")
    else:
        assert found.verdict is Verdict.IMPROVEMENT
        assert told.unknown_configs == ("baseline",)


# --- Where it is told ---


def told_run(pair: BuildPair) -> RunResult:
    change = ChangeResult(
        measurand="PDR", change=0.359, lower=0.35, upper=0.37, confidence=0.95, tolerance=0.02, baseline=18.4e3,
        candidate=25e3, unit="packets/s", better="higher", verdict=Verdict.IMPROVEMENT,
    )  # fmt: skip
    found = pair.weighed(Judgement(Verdict.PASS, "not slower"), allowed=False)
    compared = comparison([change], "the distribution's", {}, pairs=2, builds=pair)
    one = dataclasses.replace(scenario(), verdict=found.verdict, reason=found.reason, comparison=compared)
    return result(one, reason=found.reason)


def test_what_differs_stands_beside_the_verdict_on_every_page_and_in_the_comment(tmp_path: Path):
    run = told_run(SPARED)
    words = "the builds differ by more than their change: hardening (INIT_ON_ALLOC_DEFAULT_ON n, was y)"
    (one,) = run.scenarios
    assert words.replace("_", "\\_") in run_markdown(run) or words in run_markdown(run).replace("- The", "the")
    assert words in evidence_html(one)
    assert words[1:] in summary_page(run, {})
    assert words in junit(run).decode()
    assert any(words in line.replace("\N{ZERO WIDTH SPACE}", "") for line in evidence(one))
    assert "each buffer is zeroed when it is allocated" in summary_page(run, {})
    path = tmp_path / "result.json"
    write_result(path, run)
    read = read_result(path).scenarios[0].comparison
    assert read is not None
    assert read.build_differences == SPARED.differences


def test_an_unknown_configuration_stands_there_too():
    run = told_run(BuildPair(unknown=("candidate",)))
    assert "he candidate's configuration is not known" in run_markdown(run)
    assert "he candidate&#39;s configuration is not known" in summary_page(run, {})


def test_many_differences_are_told_in_one_line():
    options = {one.name: "y" for one in OPTIONS if one.kind is OptionKind.HARDENING}
    found = BuildPair.of(sut(config_options={}), sut("#2", config_options=options)).weighed(SLOWER, allowed=False)
    assert f"; {len(options) - 2} more)" in found.reason
    assert len(found.reason) < 200
