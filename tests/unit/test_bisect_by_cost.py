"""The first of some builds whose packets cost more: both ends compared whole, those between by a boot each."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from counting_testbed import CountingTestbed
from fake_testbed import CONFIG, QUICK, Watcher
from hypothesis import given
from hypothesis import strategies as st
from simulated_sut import Behaviour, IdealCurve, SimulatedSut

from pdrgate.builds.bpf_build import own_build
from pdrgate.cli import main
from pdrgate.gate.comparisons import bisection as module
from pdrgate.gate.comparisons.bisection import BisectionEnds, BisectionRequest, Steps, bisected, compare_ends, first_bad
from pdrgate.gate.comparisons.judged_series import JudgedSeries, judged_series
from pdrgate.gate.comparisons.pairs.compared_builds import Build
from pdrgate.gate.run.run_record import STEPS_TRIALS, RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import DataError, TestbedError

command = importlib.import_module("pdrgate.cli.bisect")  # the package has the command by that name
ASKED = BisectionRequest(testbed="made-up.yaml", scenario=Scenario().name, profile="quick", bpf=False)
PATH = {"ip6_forward": 1000.0, "fib6_lookup": 4000.0}
SLOW = PATH | {"fib_rules_lookup": 150.0}
SCATTER = (1.0, 1.001, 0.999, 1.0005, 0.9995)


class Builds:
    """Boots builds by what their packets cost by function; one that is not there does not boot."""

    def __init__(self) -> None:
        self.known: dict[str, Mapping[str, float]] = {"a": PATH, "z": SLOW}
        self._scatter = itertools.cycle(SCATTER)
        self._number = itertools.count(1)

    def __call__(self, session: Session, asked: BisectionRequest, side: Side, source: str) -> Build:
        def boot(journal: Journal) -> CountingTestbed:
            if source not in self.known:
                raise TestbedError(f"{source} does not boot")
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
    monkeypatch.setattr(module, "build_of", made)
    return made


def taken(folder: Path) -> Session:
    session = Session(CONFIG, QUICK, RunRecord(folder / "run", "quick"), Watcher(), state=folder / "state")
    session.take()
    return session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with contextlib.closing(taken(tmp_path)) as session:
        yield session


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> BisectionEnds:
    """Of a and z, as measured."""
    session = taken(tmp_path_factory.mktemp("ends"))
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(session):
        patch.setattr(module, "build_of", Builds())
        judgement, found = compare_ends(session, ASKED, "a", "z", 0.02)
    assert judgement.verdict is Verdict.REGRESSION
    assert isinstance(found, BisectionEnds)
    return found


def test_the_first_build_that_costs_more_is_found_by_a_boot_of_each_step(
    builds: Builds, session: Session, ends: BisectionEnds
) -> None:
    builds.known |= dict.fromkeys("bcdef", PATH) | dict.fromkeys("gh", SLOW) | {"e": PATH | {"fib6_lookup": 3990.0}}
    with session.recorded_in(session.record.steps):
        found = bisected("abcdefghz", Steps(session, ends))
    assert (found.good, found.bad, found.between) == ("f", "g", ())
    assert [(step.build, step.verdict, step.boots) for step in found.steps] == [
        ("e", Verdict.PASS, 1), ("g", Verdict.REGRESSION, 1), ("f", Verdict.PASS, 1),
    ]  # fmt: skip
    assert re.fullmatch(
        r"g is the first bad build: a packet costs [23]\.\d % more instructions \(.*\), most of it in fib_rules_lookup "
        r"\(\+150\), than under f",
        found.sentence,
    )
    # What reads the run's own trials must not take those of steps for them.
    assert (session.record.folder / STEPS_TRIALS).read_text().count('"saturation"') == 9
    assert not {trial for trial in "efg" if f'"build":"{trial}"' in session.record.trials.path.read_text()}


def test_where_a_boot_does_not_tell_there_are_more_and_then_it_is_passed_over(
    builds: Builds, session: Session, ends: BisectionEnds
) -> None:
    near = PATH | {"fib_rules_lookup": 50.0}  # as much as is tolerated
    builds.known |= {"b": PATH, "c": near, "e": SLOW}
    found = bisected("abcdez", Steps(session, ends))
    assert (found.good, found.bad, found.between) == ("b", "e", ("c", "d"))
    told = {step.build: (step.verdict, step.boots) for step in found.steps}
    assert told["c"] == (Verdict.INCONCLUSIVE, module.MOST_BOOTS)
    assert told["d"] == (Verdict.ERROR, 0)
    assert "e is the first build that is surely bad; c, d could not be told: " in found.sentence


def test_ends_of_which_none_costs_more_leave_nothing_to_look_for(builds: Builds, session: Session) -> None:
    builds.known |= {"a": SLOW, "z": PATH}
    _, found = compare_ends(session, ASKED, "a", "z", 0.02)
    assert str(found).startswith("the last build's packets do not surely cost more than the first one's: IMPROVEMENT: ")


def test_ends_are_known_to_other_processes_while_all_but_the_build_is_the_same(
    builds: Builds, session: Session, ends: BisectionEnds, tmp_path: Path
) -> None:
    builds.known |= {"b": SLOW}
    ends.keep(tmp_path)
    assert BisectionEnds.kept(tmp_path) == ends
    assert Steps(session, BisectionEnds.kept(tmp_path)).judge("b").bad
    others = replace(ends, fingerprint={**ends.fingerprint, "testbed": "another"})
    with pytest.raises(DataError, match=r"what the ends cost is no measure for b: testbed another there, .* here; "):
        Steps(session, others).judge("b")
    with pytest.raises(DataError, match=r"compare both ends first: pdrgate bisect GOOD BAD$"):
        BisectionEnds.kept(tmp_path / "none")


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
    builds: Builds,
    session: Session,
    ends: BisectionEnds,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    builds.known |= {"b": PATH, "c": SLOW}
    monkeypatch.setattr(command, "_session", lambda *_: contextlib.nullcontext(session))
    monkeypatch.setattr(command, "_look_at", lambda *_, bpf: None)  # the builds are known by letters, and no files
    monkeypatch.setattr(module, "compare_ends", lambda *_, each: (Judgement(Verdict.REGRESSION, "slower"), ends))
    assert main(["bisect", "a", "b", "c", "z", "--output", "ends"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith("c is the first bad build: a packet costs ")
    assert told[2].startswith("  Instructions per packet by function")
    assert told[4].split()[:2] == ["fib_rules_lookup", "0.0"]
    assert any(line.split()[:2] == ["a", "packet"] for line in told[5:])
    assert main(["bisect", "a", "b", "z", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["bad"] == "z"
    folder = str(session.record.folder)  # where the ends are kept now
    for build, code, verdict in (("b", 0, "PASS: "), ("c", 1, "REGRESSION: a packet costs "), ("none", 125, "ERROR: ")):
        assert main(["bisect", "--ends", folder, build]) == code
        assert capsys.readouterr().out.startswith(verdict)
    monkeypatch.setattr(
        module, "compare_ends", lambda *_, each: (Judgement(Verdict.PASS, "equal"), "nothing to look for")
    )
    assert main(["bisect", "a", "z"]) == 1
    assert capsys.readouterr().out == "nothing to look for\n"


def test_a_program_is_loaded_into_the_data_path_that_runs_it(session: Session) -> None:
    program = own_build("tc_redirect").path
    asked = replace(ASKED, bpf=True, scenario=command._scenario(str(program)))
    assert asked.scenario == "tc-redirect-1cpu-4096-64B"
    build = module.build_of(session, asked, "candidate", str(program))
    assert (build.program.path, build.label.partition(" ")[0]) == (program, program.name)
    with pytest.raises(TestbedError, match="xdp"):
        module.build_of(session, replace(asked, scenario=Scenario("xdp-ipv6-routing").name), "candidate", str(program))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        (["a"], 64, "a bisection is between two builds"),
        (["a", "b", "--ends", "run"], 255, "--ends judges one build"),
        (["a", "--ends", "run", "--profile", "smoke"], 255, "--ends has the terms of that run; leave out --profile"),
        (["a", "--ends", str(tmp_path)], 125, "compare both ends first"),
        (["none.o", "none.o", "--bpf"], 2, "none.o: cannot read it"),
    ]
    for words, code, said in cases:
        assert main(["bisect", *words, "--output", str(tmp_path)]) == code
        assert said in capsys.readouterr().err


def test_in_a_series_each_build_is_judged_against_the_one_before(
    builds: Builds, session: Session, ends: BisectionEnds
) -> None:
    more = SLOW | {"fib6_lookup": 4200.0}
    builds.known |= {"b": PATH, "c": SLOW, "e": SLOW, "f": PATH, "g": PATH, "h": SLOW, "z": more}
    found = judged_series("abcdefghz", Steps(session, ends))  # d does not boot
    assert [(step.build, step.verdict) for step in found.steps] == [
        ("b", Verdict.PASS), ("c", Verdict.REGRESSION), ("d", Verdict.ERROR), ("e", Verdict.PASS),
        ("f", Verdict.IMPROVEMENT), ("g", Verdict.PASS), ("h", Verdict.REGRESSION), ("z", Verdict.REGRESSION),
    ]  # fmt: skip
    assert re.fullmatch(
        r"c is the first that is slower than the one before \(and 2 later\): a packet costs .* most of it in "
        r"fib_rules_lookup \(\+150\); 1 could not be told",
        found.sentence,
    )
    assert JudgedSeries(steps=found.steps[:1]).sentence == "none of 1 builds surely costs more than the one before"
