"""The first of some builds that is slower: each compared with the first, as the gate compares two builds."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from counting_testbed import CountingTestbed
from fake_testbed import CONFIG, QUICK, Watcher
from hypothesis import given
from hypothesis import strategies as st
from made_kernels import flat_image, image
from simulated_sut import Behaviour, IdealCurve, SimulatedSut

from pdrgate.builds.bpf_build import own_build
from pdrgate.builds.handed_over import BuildError
from pdrgate.cli import main
from pdrgate.gate.comparisons import bisection as module
from pdrgate.gate.comparisons.bisection import (
    BisectionRequest,
    BisectionStep,
    Steps,
    bisected,
    first_bad,
    judged_series,
)
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build
from pdrgate.gate.run.run_record import STEPS_TRIALS, RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import TestbedError

command = importlib.import_module("pdrgate.cli.bisect")  # the package has the command by that name
ASKED = BisectionRequest(scenario=Scenario(), measure="pairs", bpf=False)
PATH = {"ip6_forward": 1000.0, "fib6_lookup": 4000.0}
SLOW = PATH | {"fib_rules_lookup": 500.0}
SCATTER = (1.0, 1.001, 0.999, 1.0005, 0.9995)


class Builds:
    """Boots builds by what their packets cost by function; one that is not there does not boot."""

    def __init__(self) -> None:
        self.known: dict[str, Mapping[str, float]] = {"a": PATH, "z": SLOW}
        self._scatter = itertools.cycle(SCATTER)
        self._number = itertools.count(1)

    def __call__(self, session: Session, asked: BisectionRequest, before: str, after: str) -> dict[Side, Build]:
        return {side: self._build(side, source) for side, source in zip(SIDES, (before, after), strict=True)}

    def _build(self, side: Side, source: str) -> Build:
        if source not in self.known:
            raise TestbedError(f"{source} does not boot")

        def boot(journal: Journal) -> CountingTestbed:
            more, seed = next(self._scatter), next(self._number)
            path = {name: each * more for name, each in self.known[source].items()}
            sut = SimulatedSut(IdealCurve(5e9 / sum(path.values())), Behaviour(0.001), seed=seed)
            booted = CountingTestbed(sut, lambda: path, boot_id=f"boot-{seed}", kernel=source)
            booted.steady = True
            return booted

        return Build(side, source, boot)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    made = Builds()
    monkeypatch.setattr(module, "builds_of", made)
    return made


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    record = RunRecord(tmp_path / "run", "quick")
    with contextlib.closing(Session(CONFIG, QUICK, record, Watcher(), state=tmp_path / "state")) as session:
        session.take()
        yield session


def judged(verdicts: Mapping[str, Verdict], against: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have builds judged by a list in place of measurements."""

    def judge(steps: Steps, build: str, before: str) -> BisectionStep:
        against.append((before, build))
        return BisectionStep(build=build, against=before, verdict=verdicts[build], reason=f"as {build} is")

    monkeypatch.setattr(Steps, "judge", judge)


def test_the_first_slower_build_is_found_by_comparisons_with_the_good_end(builds: Builds, session: Session) -> None:
    builds.known |= {"b": PATH, "c": SLOW}
    steps = Steps(session, ASKED)
    judgement, end = steps.ends("a", "z")
    assert (judgement.verdict, end.bad) == (Verdict.REGRESSION, True)
    found = bisected("abcdz", steps, end)  # d does not boot
    assert (found.good, found.bad, found.between) == ("b", "c", ())
    assert [(step.build, step.against, step.bad) for step in found.steps] == [("c", "a", True), ("b", "a", False)]
    assert re.fullmatch(
        r"c is the first bad build: .*fib_rules_lookup \(\+500\).*; b is the last good one", found.sentence
    )
    assert steps.judge("d", "a").sentence == "d has no verdict: d does not boot"
    # What reads the run's own trials must not take those of steps for them.
    assert (session.record.folder / STEPS_TRIALS).read_text()
    assert [one.builds.sides[1].build for one in session.record.scenarios] == ["z"]


def test_a_build_without_a_verdict_is_passed_over(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    verdicts = {"b": Verdict.PASS, "c": Verdict.INCONCLUSIVE, "d": Verdict.CRASH, "e": Verdict.REGRESSION}
    judged(verdicts, asked, monkeypatch)
    end = BisectionStep(build="z", against="a", verdict=Verdict.REGRESSION, reason="slower")
    found = bisected("abcdez", Steps(session, ASKED), end)
    assert (found.good, found.bad, found.between) == ("b", "e", ("c", "d"))
    assert {before for before, _ in asked} == {"a"}
    assert found.sentence == (
        "e is the first build that is surely bad; c, d had no verdict: as e is; b is the last good one"
    )


@given(st.integers(2, 40), st.data())
def test_every_build_that_can_be_told_is_on_the_right_side(count: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(1, count - 1))
    untold = data.draw(st.sets(st.integers(1, max(1, count - 2))))
    asked: list[int] = []

    def judge(number: int) -> bool | None:
        asked.append(number)
        return None if number in untold else number >= turn

    good, bad = first_bad(count, judge)
    assert good < turn <= bad
    assert set(range(good + 1, bad)) <= untold
    assert len(asked) == len(set(asked))
    assert set(asked) & untold or len(asked) <= count.bit_length()


def test_what_the_command_prints_and_exits_with(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[BisectionRequest] = []

    def steps(session: Session, request: BisectionRequest) -> Steps:
        asked.append(request)
        return Steps(session, request)

    def ends(steps: Steps, good: str, bad: str) -> tuple[Judgement, BisectionStep]:
        verdict = Verdict.REGRESSION if bad == "z" else Verdict.PASS
        return Judgement(verdict, "both"), BisectionStep(build=bad, against=good, verdict=verdict, reason="both")

    monkeypatch.setattr(command, "boots_session", lambda *_: contextlib.nullcontext(session))
    monkeypatch.setattr(command, "_look_at", lambda *_, bpf: None)  # the builds are known by letters, and no files
    monkeypatch.setattr(module, "Steps", steps)
    judged({"b": Verdict.PASS, "c": Verdict.REGRESSION, "z": Verdict.PASS}, [], monkeypatch)
    monkeypatch.setattr(Steps, "ends", ends)
    assert main(["bisect", "a", "b", "c", "z", "--scenario", "path-nat", "--output", "ends"]) == 0
    assert "\nc is the first bad build: as c is; b is the last good one" in capsys.readouterr().out
    assert (asked[-1].measure, asked[-1].scenario.set_up is None) == ("cost", False)
    assert main(["bisect", "a", "b", "z", "--format", "json", "--measure", "pdr"]) == 0
    assert json.loads(capsys.readouterr().out)["bad"] == "z"
    assert (asked[-1].measure, asked[-1].scenario) == ("pairs", Scenario())
    assert main(["bisect", "a", "y"]) == 1
    assert capsys.readouterr().out == "the last build is not surely slower than the first one: PASS: both\n"
    assert main(["bisect", "--each", "a", "b", "c"]) == 1
    assert "c is the first that is slower than the one before: as c is" in capsys.readouterr().out


def test_a_program_is_loaded_into_the_data_path_that_runs_it(session: Session) -> None:
    program = own_build("tc_redirect").path
    asked = BisectionRequest(scenario=command._scenario(None, (), str(program)), measure="pairs", bpf=True)
    assert asked.scenario.name == "tc-redirect-1cpu-4096-64B"
    build = module.builds_of(session, asked, str(program), str(program))["candidate"]
    assert (build.program.path, build.label.partition(" ")[0]) == (program, program.name)
    other = BisectionRequest(scenario=Scenario("xdp-ipv6-routing"), measure="pairs", bpf=True)
    with pytest.raises(TestbedError, match="xdp"):
        module.builds_of(session, other, str(program), str(program))


def test_builds_of_two_architectures_are_not_bisected(session: Session, tmp_path: Path) -> None:
    (tmp_path / "Image").write_bytes(flat_image())
    (tmp_path / "bzImage").write_bytes(image())
    named = [str(tmp_path / one) for one in ("bzImage", "Image")]
    with pytest.raises(BuildError, match="one for arm64; name two of one architecture"):
        module.builds_of(session, ASKED, *named)


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    looks = command._look_at
    cases = [
        (["a"], 64, "a bisection is between two builds"),
        (["none.o", "none.o", "--bpf"], 2, "none.o: cannot read it"),
        (["a", "b", "--tolerance", "1%"], 64, "name --cost-tolerance, or --measure pdr"),
        (["a", "b", "--measure", "mrr"], 64, "such builds are not bisected by --measure mrr; choose cost, pdr or tra"),
        (["a", "b", "--measure", "transfer"], 64, "has no transfer: --measure pdr"),
    ]
    monkeypatch.setattr(command, "_look_at", lambda builds, bpf: bpf and looks(builds, bpf=bpf))
    for words, code, said in cases:
        assert main(["bisect", *words, "--output", str(tmp_path)]) == code
        assert said in capsys.readouterr().err


def test_in_a_series_each_build_is_judged_against_the_one_before(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    verdicts = {
        "b": Verdict.PASS, "c": Verdict.REGRESSION, "d": Verdict.ERROR, "e": Verdict.PASS, "f": Verdict.IMPROVEMENT,
        "g": Verdict.REGRESSION,
    }  # fmt: skip
    judged(verdicts, asked, monkeypatch)
    series = judged_series("abcdefg", Steps(session, ASKED))
    assert asked == [("a", "b"), ("b", "c"), ("c", "d"), ("c", "e"), ("e", "f"), ("f", "g")]
    assert series.sentence == (
        "c is the first that is slower than the one before (and 1 later): as c is; 1 had no verdict"
    )
    judged({"b": Verdict.PASS}, asked, monkeypatch)
    equal = judged_series("ab", Steps(session, ASKED))
    assert equal.sentence == "none of 1 builds is surely slower than the one before"
