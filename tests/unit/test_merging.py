"""Runs of several machines as one: one verdict, the same numbers, and what was lost costs only itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_results import compared, result, scenario, written

from pdrgate.cli import main
from pdrgate.history.results import RESULT_FILE, read_result, results_below, write_result
from pdrgate.reports.junit import junit
from pdrgate.results.model import TestbedResult
from pdrgate.results.verdict import Verdict

HOSTILE = "<script>alert(1)</script> \"'ядро"


def run(folder: Path, testbed: str, *scenarios: object, **changes: object) -> Path:
    folder.mkdir(parents=True)
    found = result(*scenarios, run=folder.name, testbed=TestbedResult(name=testbed, kind="local-netns"), **changes)  # type: ignore[arg-type]
    write_result(folder / RESULT_FILE, found)
    return folder


def test_three_machines_and_one_that_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "rack/1", "rack", compared("REGRESSION"), scenario("PASS"))
    run(tmp_path / "guest/deep/1", HOSTILE, scenario("PASS"))
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
    assert merged.scenarios[2].measurands == own.measurands
    assert merged.scenarios[2].comparison == own.comparison
    assert [one.run for one in merged.scenarios] == ["../rack/1", "../rack/1", "../guest/deep/1", "", "", ""]
    page = (into / "summary.html").read_text()
    assert '<a href="./../guest/deep/1/log.html">' in page
    assert "<script" not in page
    assert "because" in (into / "summary.md").read_text()
    tests = ElementTree.parse(into / "xunit.xml").getroot()
    assert (tests.get("tests"), tests.get("failures"), tests.get("errors")) == ("6", "1", "3")
    assert len(list((into / "plots").glob("*-pairs.png"))) == 1
    # A folder of runs has each once, whoever counts them.
    assert len(list(results_below(into))) == 0
    # What was merged before is no run: nothing is counted twice.
    assert main(["merge", str(tmp_path), "--into", str(into)]) == 1
    assert len(read_result(into / "merged.json").scenarios) == 5


def test_what_passes_everywhere_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(run(tmp_path / name, name, scenario("PASS"))) for name in ("a", "b", "c")]
    assert main(["merge", *runs, "--into", str(tmp_path / "merged")]) == 0
    assert capsys.readouterr().out.startswith("PASS: IPv6 routing on a: because; and 2 more pass\n")


def test_a_worker_that_died_is_no_pass(tmp_path: Path) -> None:
    alive = written(tmp_path / "a", scenario("PASS"))
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


def test_an_assertion_of_the_suite_s_own_fails_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "a", scenario("PASS"))
    own = junit(read_result(folder)).replace(
        b'</properties>\n  </testcase>', b'</properties><failure message="PDR is 1 kpps" /></testcase>'
    )  # fmt: skip
    (folder / "xunit.xml").write_bytes(own)
    assert main(["merge", str(folder), "--into", str(tmp_path / "merged")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("PASS: because\n")
    assert "PDR is 1 kpps" in out


def test_folders_that_are_called_by_no_text_are_told_by_their_codes(tmp_path: Path) -> None:
    """A name may hold any bytes; a result, a page and a test's name may not."""
    odd = tmp_path / os.fsdecode(b"odd\xff")
    written(odd / "a", scenario("PASS"), trials=3)
    into = tmp_path / os.fsdecode(b"into\xff")
    assert main(["merge", str(odd), f"{odd}-gone", "--into", str(into)]) == 2
    result = read_result(into / "merged.json")
    assert (result.run, result.scenarios[0].run) == (r"into\xff", r"../odd\xff/a")
    assert result.scenarios[1].name == rf"{tmp_path}/odd\xff-gone"
    assert rf"no run lies in {tmp_path}/odd\xff-gone" in result.reason
    assert rf"no run lies in {tmp_path}/odd\xff-gone" in (into / "xunit.xml").read_text()


@pytest.mark.parametrize(("into", "why"), [("file", "File exists"), ("file/x", "Not a directory")])
def test_a_folder_that_cannot_be_made_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], into: str, why: str
) -> None:
    (tmp_path / "file").touch()
    assert main(["merge", str(written(tmp_path / "a", scenario("PASS"))), "--into", str(tmp_path / into)]) != 0
    assert capsys.readouterr().err.startswith(f"pdrgate: cannot make the folder {tmp_path / into}: {why}; name another")
