"""Runs of several machines as one: one verdict, the same numbers, and what was lost costs only itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from flat_values import changed
from made_results import compared, result, scenario, written

from pdrgate.cli import main
from pdrgate.history.results import RESULT_FILE, read_result, results_below, write_result
from pdrgate.reports.ci.junit import junit
from pdrgate.results.model import ScenarioResult, TestbedResult
from pdrgate.results.verdict import Verdict

HOSTILE = "<script>alert(1)</script> \"'ядро"


def run(folder: Path, testbed: str, *scenarios: object, **changes: object) -> Path:
    folder.mkdir(parents=True)
    found = result(*scenarios, run=folder.name, testbed=TestbedResult(name=testbed, kind="local-netns"), **changes)  # type: ignore[arg-type]
    write_result(folder / RESULT_FILE, found)
    return folder


def test_three_machines_and_one_that_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "rack/1", "rack", compared("REGRESSION"), compared())
    run(tmp_path / "guest/deep/1", HOSTILE, compared())
    (tmp_path / "killed/2").mkdir(parents=True)
    (tmp_path / "killed/2/run.json").write_text("{}")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/verdict.txt").write_text("testbed fault: pdrgate: no QEMU\n")
    places = [str(tmp_path / name) for name in ("rack", "guest", "killed", "full", "gone")]
    into = tmp_path / "merged"
    assert main(["merge", *places, "--into", str(into)]) == 1
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "REGRESSION: IPv6 routing on rack (../rack/1): because; 3 of 6 came to no result"
    assert f"{tmp_path}/killed/2: ERROR" in lines
    assert "  no result: it was killed before a scenario had ended; measure it again" in lines
    assert "  pdrgate: no QEMU" in lines
    assert any(line.startswith(f"  no result: no run lies in {tmp_path}/gone") for line in lines)
    merged = read_result(into / "merged.json")
    own = read_result(tmp_path / "guest/deep/1").scenarios[0]
    assert merged.scenarios[2].findings.measurands == own.findings.measurands
    assert merged.scenarios[2].comparison == own.comparison
    assert [one.origin.run for one in merged.scenarios] == ["../rack/1", "../rack/1", "../guest/deep/1", "", "", ""]
    page = (into / "summary.html").read_text()
    assert '<a href="./../guest/deep/1/log.html">' in page
    assert "<script" not in page
    assert "because" in (into / "summary.md").read_text()
    tests = ElementTree.parse(into / "xunit.xml").getroot()
    assert (tests.get("tests"), tests.get("failures"), tests.get("errors")) == ("6", "1", "3")
    assert len(list((into / "plots").glob("*-pairs.png"))) == 3
    # A folder of runs has each once, whoever counts them.
    assert len(list(results_below(into))) == 0
    # What was merged before is no run: nothing is counted twice.
    assert main(["merge", str(tmp_path), "--into", str(into)]) == 1
    assert len(read_result(into / "merged.json").scenarios) == 5


def test_one_change_on_two_architectures_has_a_column_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = []
    for machine, verdict in (("x86_64", "PASS"), ("aarch64", "REGRESSION")):
        one = changed(compared(verdict), environment={"architecture": machine})
        places.append(str(run(tmp_path / machine, "local-vm", one)))
    assert main(["merge", *places, "--into", str(tmp_path / "merged")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("REGRESSION: PASS on amd64, REGRESSION on arm64; IPv6 routing on arm64: because")
    assert ["path", "amd64", "arm64"] in [line.lower().split() for line in lines]
    merged = read_result(tmp_path / "merged/merged.json")
    assert [one.title for one in merged.scenarios] == ["IPv6 routing on amd64", "IPv6 routing on arm64"]
    for name in ("summary.md", "summary.html"):
        page = (tmp_path / "merged" / name).read_text()
        assert page.index("amd64") < page.index("arm64"), name


def test_what_passes_everywhere_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(run(tmp_path / name, name, compared())) for name in ("a", "b", "c")]
    assert main(["merge", *runs, "--into", str(tmp_path / "merged")]) == 0
    assert capsys.readouterr().out.startswith("PASS: IPv6 routing on a: because; and 2 more pass\n")


def test_what_is_too_large_to_be_read_again_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [str(run(tmp_path / name, name, compared(), compared())) for name in ("a", "b", "c")]
    into = tmp_path / "merged"
    largest = 3 * (tmp_path / "a" / RESULT_FILE).stat().st_size // 2
    monkeypatch.setattr("pdrgate.history.results.LARGEST_RESULT", largest)
    for some, said in ((runs[:1], False), (runs, True)):
        assert main(["merge", *some, "--into", str(into)]) == 0
        told = capsys.readouterr()
        assert told.out.startswith("PASS: ") and (into / "summary.html").is_file()
        assert ("pdrgate: note: merged.json has " in told.err) is said
        assert (main(["report", str(into / "merged.json"), "--format", "sentence"]) == 2) is said
        capsys.readouterr()


def test_a_worker_that_died_is_no_pass(tmp_path: Path) -> None:
    alive = written(tmp_path / "a", compared())
    into = tmp_path / "merged"
    assert main(["merge", str(alive), str(tmp_path / "gone"), "--into", str(into)]) == 2
    ended = read_result(alive)
    write_result(alive / RESULT_FILE, replace(ended, finished=None))
    assert main(["merge", str(alive), "--into", str(into)]) == 2
    assert "--resume" in (into / "summary.md").read_text()
    write_result(alive / RESULT_FILE, replace(ended, verdict=Verdict.ERROR, reason="no namespaces"))
    assert main(["merge", str(alive), "--into", str(into)]) == 2
    (alive / RESULT_FILE).write_text("{")
    assert main(["merge", str(alive), "--into", str(into)]) == 2


def judged_otherwise(one: ScenarioResult, **fields: Any) -> ScenarioResult:
    """A comparison whose change has these fields."""
    assert one.comparison is not None
    change = replace(one.comparison.changes[0], **fields)
    return replace(one, comparison=replace(one.comparison, changes=(change,)))


def slower_boots(one: ScenarioResult) -> ScenarioResult:
    boots = [
        replace(boot, values=dict.fromkeys(boot.values, (0.7 if boot.side == "candidate" else 1.0) * 1000000.0))
        for boot in one.builds.boots
    ]
    return changed(one, boots=tuple(boots))


def failed_boots(one: ScenarioResult) -> ScenarioResult:
    boots = [replace(boot, values={}, failure="panic") for boot in one.builds.boots if boot.side == "candidate"]
    return changed(one, boots=(*one.builds.boots, *boots))


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        (scenario("PASS"), "nothing was compared"),
        (scenario("IMPROVEMENT"), "nothing was compared"),
        (judged_otherwise(compared(), verdict=Verdict.REGRESSION), "its PDR REGRESSION"),
        (judged_otherwise(compared(), verdict=Verdict.INCONCLUSIVE), "its PDR INCONCLUSIVE"),
        (judged_otherwise(compared("NO_BASELINE"), verdict=Verdict.REGRESSION), "its PDR REGRESSION"),
        (judged_otherwise(compared(), change=-0.3, lower=-0.31, upper=-0.29),
         "its PDR changed by -30.0%, tolerance 2.0%"),
        (judged_otherwise(compared(), change=0.3, better="lower"), "its PDR changed by +30.0%, tolerance 2.0%"),
        (judged_otherwise(compared(), change=-1.0), "its PDR changed by -100.0%, tolerance 2.0%"),
        (judged_otherwise(compared(), evidence=replace(compared().comparison.changes[0].evidence, slower=9.0)),  # type: ignore
         "the evidence of its PDR is for a slower build"),
        (slower_boots(compared()), "its boots' PDR differ by -30.0%, tolerance 2.0%"),
        (failed_boots(compared()), "boots of its candidate failed"),
        (replace(compared(), comparison=replace(compared().comparison, accepted=False)),  # type: ignore[type-var]
         "its comparison was not accepted"),
    ],
)  # fmt: skip
def test_a_verdict_that_its_own_numbers_contradict_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], forged: ScenarioResult, told: str
) -> None:
    folder = written(tmp_path / "a", forged)
    assert main(["merge", str(folder), "--into", str(tmp_path / "merged")]) == 2
    out = capsys.readouterr().out
    assert out.startswith(f"ERROR: its result is refused: IPv6 routing says {forged.verdict}, and {told}; measure it")


def test_a_run_that_says_better_of_itself_than_its_scenarios_is_refused(tmp_path: Path) -> None:
    for number, scenarios in enumerate(((), (compared("REGRESSION"),))):
        folder = run(tmp_path / str(number), "a", *scenarios, verdict=Verdict.PASS)
        assert main(["merge", str(folder), "--into", str(tmp_path / "merged")]) == 2
        assert "refused" in read_result(tmp_path / "merged/merged.json").reason


@pytest.mark.parametrize("verdict", ["REGRESSION", "UNSTABLE", "INCONCLUSIVE", "NO_BASELINE", "IMPROVEMENT"])
def test_what_a_gate_writes_is_not_refused(tmp_path: Path, verdict: str) -> None:
    folder = written(tmp_path / "a", compared(verdict))
    assert main(["merge", str(folder), "--into", str(tmp_path / "merged")]) == Verdict(verdict).exit_code


def test_results_of_another_commit_or_another_build_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = "a" * 40, "b" * 40
    one = compared()
    one = changed(
        one, sides=tuple(replace(side, digest=digit * 64) for side, digit in zip(one.builds.sides, "12", strict=True))
    )
    into = ["--into", str(tmp_path / "merged")]
    folder = str(run(tmp_path / "a", "a", one, commit=ours))
    assert main(["merge", folder, *into, "--commit", ours, "--build", "1" * 64, "--build", "2" * 64]) == 0
    assert read_result(tmp_path / "merged/merged.json").commit == ours
    capsys.readouterr()
    assert main(["merge", folder, *into, "--commit", theirs]) == 2
    assert f"it is of commit {ours}, and not of {theirs}" in capsys.readouterr().out
    monkeypatch.setenv("PDRGATE_COMMIT", theirs)
    assert main(["merge", folder, *into]) == 2
    monkeypatch.delenv("PDRGATE_COMMIT")
    assert main(["merge", str(written(tmp_path / "old", compared())), *into, "--commit", ours]) == 2
    assert f"it is of no commit, and not of {ours}" in capsys.readouterr().out
    assert main(["merge", folder, *into, "--build", "1" * 64]) == 2
    assert "its candidate linux-6.19 is another build (2222" in capsys.readouterr().out
    assert main(["merge", str(written(tmp_path / "run", scenario())), *into, "--build", "1" * 64]) == 2
    assert "it compares no builds" in capsys.readouterr().out
    assert main(["merge", folder, *into, "--commit", "HEAD\n"]) == 64


@pytest.mark.parametrize("word", ["failure", "cancelled", "skipped", "a\nb"])
def test_nothing_passes_where_the_ci_says_that_measuring_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    """An artifact of a gate's name may have been put there by whoever built the change."""
    passing = str(written(tmp_path / "a", compared()))
    into = ["--into", str(tmp_path / "merged")]
    assert main(["merge", passing, *into, "--gates", "success"]) == 0
    capsys.readouterr()
    assert main(["merge", passing, *into, "--gates", word]) == 2
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        f"ERROR: the gates: the CI says that measuring ended in '{' '.join(word.split())}', and all"
    )
    slower = str(written(tmp_path / "b", compared("REGRESSION")))
    assert main(["merge", slower, *into, "--gates", word]) == 1


def test_a_copy_of_a_result_stands_for_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (str(written(tmp_path / name, compared())) for name in ("a", "b"))
    (tmp_path / "b" / RESULT_FILE).write_bytes((tmp_path / "a" / RESULT_FILE).read_bytes())
    assert main(["merge", first, second, "--into", str(tmp_path / "merged")]) == 2
    assert f"its result is that of {first}; measure it again" in capsys.readouterr().out


def test_a_part_of_the_paths_that_nobody_measured_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "./ci/gate --kernel new.deb --against old.deb --shard {}/3 --profile quick"
    places = [str(run(tmp_path / str(part), "guest", compared(), command=command.format(part))) for part in (1, 2, 3)]
    again = str(run(tmp_path / "again", "guest", compared(), command=command.format(1)))
    into = ("--into", str(tmp_path / "merged"))
    assert main(["merge", *places, *into]) == 0
    capsys.readouterr()
    # The same part twice, by another run, and of another kernel.
    assert main(["merge", places[0], again, places[1], *into]) == 2
    told = capsys.readouterr().out
    assert "--shard 3/3: ERROR" in told
    assert "  no run measured this part of the paths, and other parts were measured; name its run, too" in told
    other = command.replace("new.deb", "other.deb").format(3)
    assert main(["merge", *places[:2], str(run(tmp_path / "other", "guest", compared(), command=other)), *into]) == 2
    told = capsys.readouterr().out
    assert [told.count(f"--shard {part}/3: ERROR") for part in (1, 2, 3)] == [1, 1, 1]


def test_an_assertion_of_the_suite_s_own_fails_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "a", compared())
    own = junit(read_result(folder)).replace(
        b'</properties>\n  </testcase>', b'</properties><failure message="PDR is 1 kpps" /></testcase>'
    )  # fmt: skip
    (folder / "xunit.xml").write_bytes(own)
    assert main(["merge", str(folder), "--into", str(tmp_path / "merged")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("PASS: because, on IPv6 routing\n")
    assert "PDR is 1 kpps" in out


def test_folders_that_are_called_by_no_text_are_told_by_their_codes(tmp_path: Path) -> None:
    """A name may hold any bytes; a result, a page and a test's name may not."""
    odd = tmp_path / os.fsdecode(b"odd\xff")
    written(odd / "a", compared(), trials=3)
    into = tmp_path / os.fsdecode(b"into\xff")
    assert main(["merge", str(odd), f"{odd}-gone", "--into", str(into)]) == 2
    result = read_result(into / "merged.json")
    assert (result.run, result.scenarios[0].origin.run) == (r"into\xff", r"../odd\xff/a")
    assert result.scenarios[1].name == rf"{tmp_path}/odd\xff-gone"
    assert rf"no run lies in {tmp_path}/odd\xff-gone" in result.reason
    assert rf"no run lies in {tmp_path}/odd\xff-gone" in (into / "xunit.xml").read_text()


@pytest.mark.parametrize(("into", "why"), [("file", "File exists"), ("file/x", "Not a directory")])
def test_a_folder_that_cannot_be_made_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], into: str, why: str
) -> None:
    (tmp_path / "file").touch()
    assert main(["merge", str(written(tmp_path / "a", compared())), "--into", str(tmp_path / into)]) != 0
    assert capsys.readouterr().err.startswith(f"pdrgate: cannot make the folder {tmp_path / into}: {why}; name another")
