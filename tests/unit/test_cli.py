"""The command line as a user meets it: text, JSON, one line per error, exit codes."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flat_values import changed
from said_options import said
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut

import pdrgate
from pdrgate.cli import cli, main
from pdrgate.cli.gate import _asked
from pdrgate.gate.run.options import FEWEST_BOOTS, RunOptions
from pdrgate.results.verdict import Verdict
from pdrgate.stability.checks import Bounds
from pdrgate.values.errors import DataError
from pdrgate.values.units import Duration

NETNS = "resources/testbeds/local-netns.yaml"
LOADS = [4e5, 6e5, 8e5, 9.5e5, 1.1e6, 1.3e6, 1.5e6]


def trials(path: Path, *, behaviour: Behaviour | None = None, ceiling: Ceiling | None = None) -> Path:
    sut = SimulatedSut(IdealCurve(1e6), behaviour or Behaviour(0.002), seed=4, ceiling=ceiling)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{trial.to_json()}\n" for trial in sut.repeat(LOADS, 1.0, 10)))
    return path


@pytest.fixture
def stable(tmp_path: Path) -> Path:
    return trials(tmp_path / "stable" / "trials.jsonl")


@pytest.fixture
def unstable(tmp_path: Path) -> Path:
    return trials(tmp_path / "unstable" / "trials.jsonl", behaviour=Behaviour(0.002, modes=(1.0, 0.8)))


def test_one_stable_experiment_is_told_in_full(stable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", str(stable)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "STABLE"
    assert told[1] == f"  source  {stable}"
    assert told[2] == "  labels  GOOD strict, GOOD tolerant, GOOD published (verdict by the strict reading)"
    assert told[3].startswith("  PDR     1.00")
    assert "95 % interval 1.00" in told[3]
    assert told[5].split() == ["LOAD", "RUNS", "PLR", "SD", "95", "%", "LIMITS", "THROUGHPUT", "TIR"]
    assert [line.split()[0] for line in told[6:13]] == ["400", "600", "800", "950", "1.1", "1.3", "1.5"]
    assert told[11].endswith("<- potential saturation <- saturated from here")
    assert len([line for line in told if line.startswith(("  ok  ", "  ?   "))]) == 8


def test_an_unstable_experiment_says_why_in_its_first_line(unstable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", str(unstable)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("UNSTABLE: ")
    assert ", needs <" in told[0]
    assert any(line.startswith("  FAIL  ") for line in told)


def test_several_experiments_are_a_table(
    stable: Path, unstable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", str(tmp_path)]) == 1
    head, first, second, total = capsys.readouterr().out.splitlines()
    assert head.split()[:6] == ["VERDICT", "STRICT", "TOLERANT", "PUBLISHED", "PDR", "WHY"]
    assert head.endswith(f"EXPERIMENT in {tmp_path}/")
    assert first.split()[:4] == ["STABLE", "GOOD", "GOOD", "GOOD"]
    assert first.endswith("stable/trials.jsonl")
    assert second.startswith("UNSTABLE")
    assert total == "2 experiments: 1 STABLE, 1 UNSTABLE"


def test_json_has_every_experiment(stable: Path, unstable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", str(stable), str(unstable), "--format", "json"]) == 1
    experiments = json.loads(capsys.readouterr().out)["experiments"]
    assert [(each["source"], each["verdict"]) for each in experiments] == [
        (str(stable), "STABLE"),
        (str(unstable), "UNSTABLE"),
    ]


def test_a_comparison_in_json_has_the_change_that_was_computed(
    stable: Path, unstable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = tmp_path / "slower" / "trials.jsonl"
    slower.parent.mkdir()
    sut = SimulatedSut(IdealCurve(0.9e6), Behaviour(0.002), seed=5)
    slower.write_text("".join(f"{trial.to_json()}\n" for trial in sut.repeat(LOADS, 1.0, 10)))
    for candidate, verdict, accepted in ((slower, "REGRESSION", True), (unstable, "UNSTABLE", False)):
        assert main(["compare", str(stable), str(candidate), "--format", "json", "--boots-deviate", "0.1%"]) == 1
        told = json.loads(capsys.readouterr().out)
        assert told["verdict"] == verdict
        assert told["comparison"]["accepted"] is accepted
        assert told["comparison"]["change"] < -0.05
        assert [change["measurand"] for change in told["comparison"]["changes"]] == ["PDR", "saturation throughput"]
    assert main(["compare", str(stable), str(slower), "--tolerance", "20%", "--boots-deviate", "0.1%"]) == 0
    assert capsys.readouterr().out.startswith("PASS: not slower: ")


def test_of_boots_of_which_nobody_knows_what_they_deviate_by_none_is_slower(
    stable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = tmp_path / "slower" / "trials.jsonl"
    slower.parent.mkdir()
    sut = SimulatedSut(IdealCurve(0.9e6), Behaviour(0.002), seed=5)
    slower.write_text("".join(f"{trial.to_json()}\n" for trial in sut.repeat(LOADS, 1.0, 10)))
    assert main(["compare", str(stable), str(slower)]) == 3
    told = capsys.readouterr().out
    assert told.startswith("INCONCLUSIVE: unpaired boots do not decide: saturation throughput 899.9 kpps ")
    assert told.endswith("or measure on 3 days: pdrgate calibrate\n")
    assert main(["compare", str(stable), str(stable)]) == 0
    assert capsys.readouterr().out.startswith("NO_BASELINE: not judged: PDR ")


def test_the_options_reach_the_assessment(stable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["assess", str(stable), "--format", "json", "--reading", "tolerant", "--loss", "20%", "--eta", "0.2"])
    (found,) = json.loads(capsys.readouterr().out)["experiments"]
    assert code == 0
    assert found["reading"] == "tolerant"
    assert found["pdr"]["plr_threshold"] == 0.2
    assert found["pdr"]["bracket"] == [1.1e6, 1.3e6]
    saturation = next(check for check in found["checks"] if check["name"] == "saturation")
    assert saturation["bound"] == pytest.approx(0.6)


def test_a_torn_line_is_told_as_a_note(stable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with stable.open("a") as file:
        file.write('{"intended_load":')
    assert main(["assess", str(stable)]) == 0
    assert f"  note: {stable}, line 71: torn by a kill while it was written; left out" in capsys.readouterr().out


def test_empty_files_below_a_directory_are_left_out(
    stable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = tmp_path / "killed" / "trials.jsonl"
    killed.parent.mkdir()
    killed.touch()
    assert main(["assess", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("STABLE\n")
    assert told.err == f"pdrgate: note: {killed} is empty; left out\n"
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"pdrgate: note: {killed} is empty; left out\n" * 2
    for named, problem in (
        (killed, "is empty; it should hold one line of JSON per trial or per load"),
        (killed.parent, "every file of trials in this directory is empty; name one that is not"),
    ):
        assert main(["assess", str(named)]) == 2
        assert capsys.readouterr().err == f"pdrgate: {named}: {problem}\n"


@pytest.mark.parametrize("left", ["", "\n", '{"intended_load": 1000.0, "inten', "\0\0\0"])
def test_a_run_that_was_killed_in_its_first_trial_aborts_no_other(
    stable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], left: str
) -> None:
    killed = tmp_path / "killed" / "trials.jsonl"
    killed.parent.mkdir()
    killed.write_text(left)
    (tmp_path / "verdict.txt").write_text("ERROR: killed\n")  # as a pipeline's folder has it
    for named in ([tmp_path], [stable.parent, killed.parent], [stable, killed]):
        assert main(["assess", *map(str, named)]) == 0
        told = capsys.readouterr()
        assert told.out.startswith("STABLE\n")
        assert told.err == f"pdrgate: note: {killed} is empty; left out\n"


def measured_for(path: Path, loss: str, seed: int) -> Path:
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.002), seed=seed)
    made = [changed(one, scenario=f"s-1cpu{loss}") for one in sut.repeat(LOADS, 1.0, 10)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{trial.to_json()}\n" for trial in made))
    return path


def test_trials_are_assessed_and_compared_at_the_goal_that_they_were_measured_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, loose = (measured_for(tmp_path / f"run{loss}/trials.jsonl", loss, 4) for loss in ("", "-loss10"))

    def assessed(*more: str) -> list[tuple[float, float]]:
        main(["assess", str(plain), str(loose), "--format", "json", *more])
        found = json.loads(capsys.readouterr().out)["experiments"]
        return [(one["pdr"]["plr_threshold"], round(one["pdr"]["load"] / 1e6, 2)) for one in found]

    assert assessed() == [(0.005, 1.0), (0.1, 1.11)]
    assert assessed("--loss", "0.5%") == [(0.005, 1.0), (0.005, 1.0)]
    main(["assess", str(tmp_path)])
    _, *rows, _ = capsys.readouterr().out.splitlines()
    assert sorted("Mpps at 0.5 %" in row for row in rows) == [False, True]
    assert sorted("Mpps at 10 %" in row for row in rows) == [False, True]
    assert main(["compare", str(plain), str(loose), "--boots-deviate", "0.1%"]) == 2
    assert "say with --loss at which both are judged" in capsys.readouterr().err
    assert main(["compare", str(plain), str(loose), "--boots-deviate", "0.1%", "--loss", "0.5%"]) == 0
    assert main(["compare", str(loose), str(loose), "--boots-deviate", "0.1%", "--format", "json"]) == 0
    told = capsys.readouterr().out
    assert json.loads(told[told.index("{") :])["comparison"]["changes"][0]["candidate"] == pytest.approx(
        1.11e6, rel=0.01
    )


def test_of_several_that_a_file_holds_the_command_line_chooses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "trials.jsonl"
    lines = []
    for scenario, build in (("s", "b"), ("s", "c"), ("t", "b")):
        for pair in range(1, 5):
            for side, label in (("baseline", "a"), ("candidate", build)):
                slow = 0.9 if (scenario, label) == ("s", "b") else 1.0
                sut = SimulatedSut(IdealCurve(1e6 * slow), Behaviour(0.002), seed=pair)
                own = {"scenario": scenario, "side": side, "build": label, "pair": pair}
                lines += [changed(trial, **own).to_json() for trial in sut.repeat(LOADS, 1.0, 2)]
    run.write_text("".join(f"{line}\n" for line in lines))
    twice = ["compare", str(run), str(run)]
    for more, code, told in (
        ([], 2, "holds trials of 2 scenarios (s, t); choose one with --scenario"),
        (
            ["--scenario", "s"],
            2,
            "holds 2 measurements of one scenario (b against a, c against a); choose one with --bu",
        ),
        (["--scenario", "s", "--build", "b"], 1, "REGRESSION: "),
        (["--scenario", "s", "--build", "c"], 0, "PASS: "),
        (["--scenario", "t"], 0, "PASS: "),
    ):
        assert main([*twice, *more]) == code, more
        captured = capsys.readouterr()
        assert told in captured.out + captured.err


def test_what_the_command_line_does_not_say_is_what_the_options_have_by_themselves() -> None:
    context = cli.commands["gate"].make_context("gate", [])
    assert _asked(**said(context), testbed=Path("one.yaml")) == RunOptions(testbed=Path("one.yaml"))


def test_the_fewest_boots_are_those_that_can_be_stable() -> None:
    assert Bounds().min_runs == FEWEST_BOOTS


def test_a_limited_generator_is_a_testbed_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trials(tmp_path / "trials.jsonl", ceiling=Ceiling(1.2e6))
    assert main(["assess", str(path)]) == 2
    assert capsys.readouterr().out.startswith("GENERATOR_LIMITED: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{path}: is empty; it should hold one line of JSON per trial or per load"),
        (b"\x00\x01", "{path}, line 1: binary data; it should hold one line of JSON per trial or per load"),
        (b"[[1000, 0], [NaN, 1]]", "{path}, line 1: it is not JSON (NaN is no number); "
         "[[load, discards], [tx, rx, …], …] belongs there"),
        (b"[[1000, 0], [0, 1]]", "{path}, line 1: tx of run 1 is 0: a packet count above 0 belongs there"),
        (b'[["a", 0], [1, 1]]', "{path}, line 1: the load is a text: a number of packets/s above 0 belongs there"),
        (b"{}", "{path}, line 1: Object missing required field `intended_load`; a trial belongs there"),
        (None, "{path}: no such file; name a file of trials, or a directory of such files"),
        ("directory", "{path}: no trials.jsonl or *.txt of PASTRAMI's in this directory; "
         "name a file of trials"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line_and_exit_code_2(
    content: bytes | str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.txt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "directory":
        path.mkdir()
    assert main(["assess", str(path)]) == 2
    told = capsys.readouterr()
    assert told.err == f"pdrgate: {message.format(path=path)}\n"
    assert told.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["assess"], "Missing argument 'FILE...'; see 'pdrgate assess --help'"),
        (["nonsense"], "No such command 'nonsense'; see 'pdrgate --help'"),
        (["assess", "x", "--reading", "lax"], "'lax' is not one of 'strict', 'tolerant', 'published'"),
        (["assess", "x", "--loss", "a lot"], "'a lot' is not a ratio"),
        (["assess", "x", "--loss", "100%"], "'100%' must be at least 0 and below 100%"),
        (["compare", "x", "y", "--tolerance", "3"], "'3' must be at least 0 and below 100%; did you mean 3%?"),
        (["assess", "x", "--eta", "-1"], "'-1' must be at least 0"),
        (["assess", "x", "--nope"], "No such option"),
        (["assess", ""], "it is empty; name a file or a folder, such as '.' for this one"),
        (["compare", "", "x"], "Invalid value for 'BASELINE': it is empty"),
        (["compare", "x", ""], "Invalid value for 'CANDIDATE': it is empty"),
        (["compare", "x", "y", "--tolerance", "much"], "Invalid value for '--tolerance': 'much' is not a ratio"),
        (["doctor", ""], "Invalid value for 'TESTBED': it is empty"),
        (["doctor", NETNS, "--wait", "bad"], "Invalid value for '--wait': 'bad' is not a duration"),
        (["gate", "--wait", "bad"], "Invalid value for '--wait': 'bad' is not a duration"),
        (["gate", "--set", "budget=9 parsec"], "--set budget: '9 parsec': unknown time unit"),
        (["gate", "--tolerance", "200%"], "Invalid value for '--tolerance': '200%' must be at least 0"),
        (["gate", "--baseline", ""], "Invalid value for '--baseline': it is empty"),
        (["gate", "--suite", ""], "Invalid value for '--suite': it is empty"),
        (["gate", "--kernel", "", "--against", ""], "Invalid value for '--kernel': it is empty; name a file or a pack"),
        (["gate", "--set", "boots=2"], "--set boots: '2' is no whole number from 3 to 500"),
        (["gate", "--scenario", "smal-buffers"], "did you mean small-buffers or large-buffers or "),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_64(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 64
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.startswith("pdrgate: ")
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 64
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["assess", "--help"]])
def test_help_is_no_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage: pdrgate" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pdrgate {pdrgate.__version__}\n"


def test_debug_raises_what_is_otherwise_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        main(["--debug", "assess", str(tmp_path / "nope")])


def test_a_fault_of_ours_is_one_line_too(
    stable: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("pdrgate.stability.assess", broken)
    assert main(["assess", str(stable)]) == 2
    assert capsys.readouterr().err == "pdrgate: internal error: RuntimeError: two lines; run again with --debug\n"


def test_a_link_that_leads_back_to_itself_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.o").symlink_to("other.o")
    Path("other.o").symlink_to("one.o")
    assert main(["gate", "--bpf", "one.o"]) == 2
    told = capsys.readouterr().err
    assert "one.o" in told and "internal error" not in told and told.count("\n") == 1


def test_a_folder_that_is_gone_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["gate", "--bpf", "one.o"]) == 2
    assert capsys.readouterr().err == (
        "pdrgate: the folder that it was started in is gone; change to one that is there (cd), and run again\n"
    )


def run(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(pdrgate.__file__).parents[1])}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_starting_up_computes_nothing() -> None:
    done = run("import sys, pdrgate.cli; print(sorted({'numpy', 'scipy', 'matplotlib'} & set(sys.modules)))")
    assert done.stdout == "[]\n"


def test_assessing_does_not_load_the_slow_half_of_scipy(stable: Path) -> None:
    done = run(
        f"import sys; from pdrgate.cli import main; code = main(['assess', {str(stable)!r}]); "
        "print(code, 'scipy.stats' in sys.modules)"
    )
    assert done.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize(
    "command", ["assess <(cat FILE)", "assess /dev/stdin < <(cat FILE)", "compare <(cat FILE) FILE"]
)
def test_a_pipe_is_a_file_too(stable: Path, command: str) -> None:
    """Its first line was read to see what it holds, and then it was empty."""
    line = f"{sys.executable} -m pdrgate.cli {command.replace('FILE', shlex.quote(str(stable)))}"
    done = subprocess.run(["bash", "-c", line], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("STABLE\n" if "assess" in command else ("NO_BASELINE: ", "INCONCLUSIVE: "))


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pdrgate.__file__).parents[1])}


def test_a_reader_that_leaves_early_is_no_error(stable: Path) -> None:
    command = f"{sys.executable} -m pdrgate.cli assess {shlex.quote(str(stable))} --format json | head -c 1"
    done = subprocess.run(["sh", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{", "")


def test_a_command_goes_on_when_its_reader_has_left(tmp_path: Path) -> None:
    """`pdrgate calibrate | head -1` once ended at its second sentence, and told that nothing was measured."""
    program = (
        "import click, pathlib, sys; from pdrgate.cli import cli, main\n"
        "from pdrgate.cli.boots_session import Sentences\n"
        "@cli.command()\n"
        "def talk():\n"
        "    for number in range(100_000): Sentences(to_stderr=False).said(f'sentence {number}')\n"
        f"    pathlib.Path({str(tmp_path / 'ended')!r}).touch()\n"
        "    return 1\n"
        f"pathlib.Path({str(tmp_path / 'code')!r}).write_text(str(main(['talk'])))"
    )
    command = ["bash", "-c", '"$0" -c "$1" | head -n 1', sys.executable, program]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("  sentence 0\n", "")
    assert (tmp_path / "ended").exists()
    assert (tmp_path / "code").read_text() == "1"


@pytest.mark.parametrize(
    ("command", "redirected", "code", "says"),
    [
        ("assess nosuch", ">&$UNREAD 2>&$UNREAD", 2, ""),  # it once was 1: to a pipeline, the build's fault
        ("assess nosuch", "2>/dev/full", 2, ""),
        ("assess nosuch", "2>&-", 2, ""),
        ("nosuch", "2>&$UNREAD", 64, ""),
        ("assess STABLE", ">&$UNREAD", 0, ""),
        ("assess STABLE", ">&-", 0, ""),
        ("assess STABLE", ">&- 2>&-", 0, ""),
        ("assess STABLE", ">/dev/full", 2, "pdrgate: standard output cannot be written: No space left on device; make"),
        ("assess UNSTABLE", ">/dev/full", 1, ""),
        ("--help", ">/dev/full", 2, "pdrgate: standard output cannot be written: No space left on device; make"),
    ],
)
def test_output_that_cannot_be_written_is_no_fault_of_the_builds(
    stable: Path, unstable: Path, command: str, redirected: str, code: int, says: str
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    named = command.replace("UNSTABLE", shlex.quote(f"{unstable}")).replace("STABLE", shlex.quote(f"{stable}"))
    line = f"exec {sys.executable} -m pdrgate.cli {named} {redirected.replace('$UNREAD', str(writes))}"
    try:
        done = subprocess.run(
            ["bash", "-c", line], env=ENVIRONMENT, pass_fds=(writes,), capture_output=True, text=True, check=False
        )
    finally:
        os.close(writes)
    assert done.returncode == code
    assert done.stderr.startswith(says) and done.stderr.count("\n") == bool(says)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--bisect"], 255, "--bisect needs a build that is known to be good"),
        (["--bisect", "--nonsense"], 255, "No such option"),
        (["--bisect", "--kernel", "a", "--against", "b", "--testbed", "none.yaml"], 125, "none.yaml: cannot read it"),
        (["--kernel", "a", "--against", "b", "--testbed", NETNS], 64, "boots no kernels"),
        (["--kernel", "a"], 64, "name that with --against BUILD"),
        (
            ["--bpf", "a.o", "--kernel", "b"],
            64,
            "--kernel with --bpf is the kernel under both programs: name the other",
        ),
        (["--bpf", "a.o", "--kernel", "b", "--against", "c"], 2, "a.o: cannot read it"),
        (["--spike-in"], 64, "--spike-in slows the baseline of a comparison down; name one: --kernel BUILD --against"),
        (["--spike-in", "--kernel", "a", "--against", "b", "--tolerance", "0%"], 64, "twice 0% is none; ask for more"),
        (["--kernel", "a", "--against", "b", "--tolerance", "1%"], 64, "--measure pdr (a cost has --cost-tolerance)"),
        (
            ["--kernel", "a", "--against", "b", "--set", "traffic=udp"],
            64,
            "name the path with --scenario, such as path-nat",
        ),
        (["--kernel", "a", "--against", "b", "--measure", "mrr"], 64, "--measure mrr is of one build: leave out --aga"),
        (["--measure", "cost"], 64, "--measure cost is of two builds: --kernel BUILD --against BUILD"),
        (["--measure", "pdr", "--scenario", "path-tcp-requests"], 64, "is offered a load; ask for --measure transfer"),
        (["--measure", "transfer"], 64, "none of the chosen paths is a closed loop; ask for --measure pdr"),
        (["--resume", "x", "--set", "boots=3"], 64, "leave out --set boots"),
        (["--bisect", "--boots", "3"], 255, "there is no option --boots; write --set boots=VALUE"),
        (["--bpf", "none.o", "--against", "c"], 2, "none.o: cannot read it"),
        (["--bpf", "none.o", "--against", "c", "--set", "program=one"], 2, "none.o: cannot read it"),
        (["--set", "maps=a.yaml"], 64, "maps is of eBPF objects; name one with --bpf OBJECT, or two"),
        (
            ["--bpf", "a", "--against", "c", "--set", "maps=none.yaml", "--scenario", "path-ipv6-routing"],
            2,
            "none.yaml: No such file or directory; name a",
        ),
        (["--set", "program=one"], 64, "program is of eBPF objects; name one with --bpf OBJECT"),
    ],
)
def test_what_cannot_be_gated_is_told_at_once(
    arguments: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a build that was measured may look good or bad to git bisect."""
    assert main(["gate", "--output", str(tmp_path), *arguments]) == code
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed: run ci/bootstrap")
def test_a_program_is_chosen_of_both_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, objects = tmp_path / "several.c", [tmp_path / "old.o", tmp_path / "new.o"]
    text = '__attribute__((section("{0}"), used)) int {1}(void *ctx) {{ return 2; }}\n'
    source.write_text(text.format("xdp", "first") + text.format("xdp", "second"))
    for compiled in objects:
        subprocess.run(("clang", "-O2", "-target", "bpf", "-c", str(source), "-o", str(compiled)), check=True)
    asked = ["gate", "--output", str(tmp_path / "runs"), "--bpf", str(objects[1]), "--against", str(objects[0])]
    assert main(asked) == 2
    assert "holds several programs (first in xdp, second in xdp); name one of them" in capsys.readouterr().err
    assert main([*asked, "--set", "program=third"]) == 2
    assert "has no program third, but first in xdp, second in xdp" in capsys.readouterr().err
    assert main([*asked, "--set", "program=second", "--testbed", "none.yaml"]) == 2
    assert "none.yaml: cannot read it" in capsys.readouterr().err  # the program is there


def test_verdicts_as_git_bisect_takes_them() -> None:
    codes = {verdict.value: verdict.bisect_code for verdict in Verdict}
    assert codes.pop("PASS") == codes.pop("IMPROVEMENT") == 0
    assert codes.pop("REGRESSION") == 1
    assert set(codes.values()) == {125}


def test_scenarios_are_listed_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "--list-scenarios", "--scenario", "srv6"]) == 0
    head, row, *_ = capsys.readouterr().out.splitlines()
    assert head == "Srv6 Encapsulation: Packets are put into others with a routing header."
    assert row.split("  ") == ["", "Encapsulation In IPv6 Segments", "path-srv6-encapsulation portfolio srv6"]
    assert main(["gate", "--list-scenarios", "--format", "json"]) == 0
    assert {"default", "path-nat"} <= {tag for one in json.loads(capsys.readouterr().out) for tag in one["tags"]}
    assert main(["gate", "--list-scenarios", "--scenario", "nothing"]) == 64


COMPLETIONS = {
    ("pdrgate", "ga"): ["gate"],
    ("pdrgate", "gate", "--list-"): ["--list-scenarios"],
    ("pdrgate", "gate", "--profile", "s"): ["smoke", "standard"],
    ("pdrgate", "gate", "--scenario", "small"): ["small-buffers"],
    ("pdrgate", "gate", "--suite", "none", "--scenario", "small"): [],
    ("pdrgate", "history", "pr"): ["prune"],
    ("pdrgate", "report", "libr"): ["the shell's own files"],
}


def test_bash_completes_as_the_reference_says(tmp_path: Path) -> None:
    """Bash itself calls the function that it was told of; where files are meant it is to look for them itself."""
    program = tmp_path / "pdrgate"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pdrgate.cli "$@"\n')
    program.chmod(0o755)
    asked = "\n".join(
        f"COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1} COMPREPLY=(); _pdrgate_completion pdrgate; "
        'echo "${COMPREPLY[*]}"'
        for words in COMPLETIONS
    )
    script = f"""
        compopt() {{ [[ $1$2 != "-odefault" ]] || COMPREPLY=("the shell's own files"); }}
        eval "$(_PDRGATE_COMPLETE=bash_source pdrgate)"
        [[ $(complete -p pdrgate) == *_pdrgate_completion* ]] || exit 1
        {asked}
    """
    environment = {
        **os.environ, "PYTHONPATH": str(Path(pdrgate.__file__).parents[1]), "PATH": f"{tmp_path}:{os.environ['PATH']}"
    }  # fmt: skip
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [" ".join(proposed) for proposed in COMPLETIONS.values()]


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["doctor", LONG], "'TESTBED'"), (["gate", "--testbed", LONG], "'--testbed'"),
        (["gate", "--baseline", LONG], "'--baseline'"), (["gate", "--resume", LONG], "'--resume'"),
        (["gate", "--suite", LONG], "'--suite'"), (["report", LONG], "'RUN'"), (["assess", LONG], "'FILE...'"),
        (["compare", LONG, "a"], "'BASELINE'"), (["merge", "a", "--into", LONG], "'--into'"),
        (["history", "list", "--history", LONG], "'--history'"), (["restore", "--state", LONG], "'--state'"),
        (["calibrate", LONG], "'[TESTBED]'"), (["trend", LONG], "'RESULTS...'"),
    ],
)  # fmt: skip
def test_a_name_that_no_file_can_have_is_a_usage_error(
    words: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 64
    told = capsys.readouterr().err
    assert f"Invalid value for {option}: 5000 characters are too many for the name of a file; see" in told


def test_a_file_that_cannot_be_looked_at_is_no_error_of_the_programs_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "ungated", LONG, "--history", str(tmp_path / "h.db")]) == 2
    told = capsys.readouterr().err
    assert told == f"pdrgate: {LONG[:200]}…: File name too long; name another, or run as who may use it\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gate", "--set", "soak=0 s"], "soak: 0 s offers nothing; name a time such as 1 h, or leave it out"),
        (["doctor", "resources/testbeds/local-vm.yaml", "--kernel", ""], "Invalid value for '--kernel': it is empty"),
        (["fetch", "http://localhost:1/job/x/", "--patience", "1e300"], "'1e300' is longer than a century"),
        (["gate", "--set", "budget=1e300 h"], "'1e300 h' is longer than a century"),
    ],
)
def test_what_has_no_meaning_is_a_usage_error_before_anything_is_done(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 64
    told = capsys.readouterr()
    assert says in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ("history", "list", "URL"),
        ("gate", "--no-such=URL"),
        ("gate", "URL"),
        ("report", "--format", "URL", "URL"),
        ("URL",),
    ],
    ids=" ".join,
)
def test_a_usage_error_quotes_no_password(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A URL that stood where none belongs was told whole, in the log of a CI job."""
    url = "postgresql://user:se@cret@server/base"
    assert main([word.replace("URL", url) for word in words]) == 64
    assert "cret" not in capsys.readouterr().err


RACK = Path("resources/testbeds/rack-trex.yaml")


def test_two_kernels_are_counted_on_all_paths_unless_something_else_is_to_be_measured() -> None:
    def chosen(testbed: str = "local-vm", **given: Any) -> tuple[str | None, tuple[str, ...]]:
        asked = _asked(testbed=Path(f"resources/testbeds/{testbed}.yaml"), kernel="a", against="b", **given)
        return asked.measure, asked.scenarios

    assert chosen() == chosen(profile="standard") == chosen(bisect=True) == ("cost", ("portfolio",))
    assert chosen("steady-guest") == ("cost", ("portfolio",))  # a guest as well: its name changes nothing
    assert chosen(measure="pdr", boots=8, changes=("latency=true",)) == ("pdr", ("default",))
    assert chosen(scenarios=("path-nat",), changes=("traffic=udp",)) == ("cost", ("path-nat",))
    rack = _asked(testbed=RACK, kernel="a", against="b", boots=8)
    assert (rack.measure, rack.scenarios) == (None, ("default",))
    soak = _asked(testbed=RACK, measure="soak", soak=Duration(90))
    assert (soak.measure, soak.scenarios) == ("soak", ("default",))
