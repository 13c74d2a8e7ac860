"""Changes that a project's file acknowledges: what they cover, what they never hide, and where they are shown."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from flat_values import changed
from made_results import compared, result

from pdrgate.cli import main
from pdrgate.gate.run.project_file import read_project
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.history.results import read_result
from pdrgate.reports.ci.exports.kcidb import kcidb
from pdrgate.reports.ci.exports.ktap import ktap
from pdrgate.reports.ci.junit import junit
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.words.headline import headline, lines_below
from pdrgate.results.acknowledgement import Acknowledgement
from pdrgate.results.consistency import contradictions
from pdrgate.results.merging import RunPart, merged
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import UsageError

NAT = Acknowledgement(path="NAT", tolerance=0.05, reason="a lock more", until="2100-01-31", by="Ann")
FILE = """
gate:
  cost_tolerance: 2%
  scenario: [path-nat, path-bridge]
  against: v6.12
acknowledged:
  - path: NAT
    tolerance: 5%
    reason: a lock more
    until: 2027-01-31
    by: Ann
"""


def slower(
    by: float = 0.04, *, upper: float | None = None, test: str = "NAT", word: str = "REGRESSION"
) -> ScenarioResult:
    """A path that is slower by that much: its PDR is lower, up to ``upper``."""
    found = compared(word)
    assert found.comparison is not None
    (change,) = found.comparison.changes
    loss = by if upper is None else upper
    change = dataclasses.replace(
        change, change=-by, lower=-loss, upper=-by / 2, candidate=change.baseline * (1 - by), verdict=Verdict(word)
    )
    return changed(
        found, name=f"{test.lower()}-1cpu", test=test,
        comparison=dataclasses.replace(found.comparison, changes=(change,), change=-by, lower=-loss, upper=-by / 2),
    )  # fmt: skip


def recorded(tmp_path: Path, *scenarios: ScenarioResult, known: tuple[Acknowledgement, ...] = (NAT,)) -> RunResult:
    """The result that a run over these scenarios leaves on disk."""
    record = RunRecord(tmp_path / "run", "quick", acknowledgements=known)
    for one in scenarios:
        record.add(one)
    record.write(finished=True)
    record.close()
    return read_result(tmp_path / "run")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()


def test_an_acknowledged_path_is_shown_and_turns_no_run_red(tmp_path: Path) -> None:
    found = recorded(tmp_path, compared("PASS"), slower())
    assert (found.verdict, found.verdict.exit_code) == (Verdict.PASS, 0)
    assert found.scenarios[1].verdict is Verdict.REGRESSION
    assert found.acknowledged[0].state == "holds"
    assert headline(found).endswith("; 1 of 2 acknowledged: NAT, until 2100-01-31")
    assert "acknowledged: NAT, up to 5%, until 2100-01-31: a lock more (Ann)" in lines_below(found)
    assert not list(contradictions(found))


def test_each_report_shows_it(tmp_path: Path) -> None:
    found = recorded(tmp_path, compared("PASS"), slower())
    for report in (run_markdown(found), summary_page(found, {})):
        assert "1 of 2 acknowledged: NAT, until 2100-01-31" in report
    assert "ok 2 NAT # XFAIL acknowledged until 2100-01-31" in ktap(found)
    assert b"<skipped" in junit(found) and b"<failure" not in junit(found)
    test = json.loads(kcidb(found))["tests"][1]
    assert test["status"] == "FAIL" and test["misc"]["acknowledged"][0]["by"] == "Ann"


@pytest.mark.parametrize(
    "scenario",
    [slower(0.06), slower(0.04, upper=0.051), slower(test="Bridge"), compared("CRASH")],
    ids=["a larger change", "an interval that reaches further", "another path", "a crash"],
)
def test_a_change_that_is_worse_than_named_stays_red(tmp_path: Path, scenario: ScenarioResult) -> None:
    found = recorded(tmp_path, compared("PASS"), changed(scenario, test=scenario.origin.test or "NAT"))
    assert found.verdict is scenario.verdict
    assert not found.scenarios[1].details.acknowledged


def test_an_exceeded_one_says_so(tmp_path: Path) -> None:
    found = recorded(tmp_path, compared("PASS"), slower(0.06))
    assert found.acknowledged[0].state == "exceeded"
    assert any(
        line.startswith("acknowledged up to 5%, and it may be worse than that: NAT") for line in lines_below(found)
    )


def test_it_ends_by_itself_after_its_last_day(tmp_path: Path) -> None:
    found = recorded(tmp_path, slower(), known=(dataclasses.replace(NAT, until="2026-01-01"),))
    assert found.verdict is Verdict.REGRESSION
    assert found.acknowledged[0].state == "ended"
    assert any(line.startswith("no longer acknowledged, since 2026-01-01 has passed") for line in lines_below(found))


def test_another_measurand_is_not_covered(tmp_path: Path) -> None:
    found = recorded(tmp_path, slower(), known=(dataclasses.replace(NAT, measurand="cost"),))
    assert found.verdict is Verdict.REGRESSION


def test_one_that_is_not_needed_any_more_is_reported(tmp_path: Path) -> None:
    found = recorded(tmp_path, changed(compared("PASS"), test="NAT"))
    assert found.acknowledged[0].state == "not needed"
    assert "acknowledged, and it passes by itself: NAT; the entry can be deleted" in lines_below(found)


def test_an_undecided_path_is_covered_too(tmp_path: Path) -> None:
    assert recorded(tmp_path, compared("PASS"), slower(word="INCONCLUSIVE")).verdict is Verdict.PASS


def test_a_run_of_acknowledged_paths_alone_passes(tmp_path: Path) -> None:
    found = recorded(tmp_path, slower())
    assert headline(found) == (
        "PASS: no path got worse than is acknowledged; 1 of 1 acknowledged: NAT, until 2100-01-31"
    )


def test_merged_runs_keep_it(tmp_path: Path) -> None:
    one = recorded(tmp_path, slower())
    other = result(compared("PASS"), run="other")
    whole = merged("all", [RunPart("a", "a", one), RunPart("b", "b", other)])
    assert whole.verdict is Verdict.PASS
    assert whole.acknowledged == one.acknowledged
    assert "1 of 2 acknowledged" in headline(whole)


def test_a_result_whose_own_numbers_are_worse_than_it_says_is_acknowledged_is_refused(tmp_path: Path) -> None:
    found = recorded(tmp_path, compared("PASS"), slower(0.06))
    forged = changed(found.scenarios[1], acknowledged=(NAT,))
    told = dataclasses.replace(found, verdict=Verdict.PASS, scenarios=(found.scenarios[0], forged))
    assert any("does not cover" in one for one in contradictions(told))


def test_a_file_has_options_and_acknowledgements(tmp_path: Path) -> None:
    (tmp_path / "pdrgate.yaml").write_text(FILE)
    found = read_project(tmp_path / "pdrgate.yaml")
    assert found.options == {"cost_tolerance": 0.02, "scenarios": ("path-nat", "path-bridge"), "against": "v6.12"}
    assert found.acknowledgements == (dataclasses.replace(NAT, until="2027-01-31"),)


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("by: Ann", "bye: Ann", "11: acknowledged.0.bye: unknown key; did you mean by? (and 1 more)"),
        ("5%", "lots", "8: acknowledged.0.tolerance: 'lots' is not a ratio; write a number and a unit, such as"),
        ("2027-01-31", "soon", "10: acknowledged.0.until: 'soon' does not fit; write the last day of it, such as"),
        ("2027-01-31", '"2027-02-31"', "10: acknowledged.0.until: 2027-02-31 is no day; write one such as 2027-01-31"),
        ("cost_tolerance", "cost_tolerence", "3: gate.cost_tolerence: there is no such key; did you mean cost_toler"),
        ("against: v6.12", "shard: 1/2", "5: gate.shard: there is no such key; "),
        ("acknowledged:", "acknowledge:", "6: acknowledge: unknown key; did you mean acknowledged?"),
        (
            "by: Ann",
            "by: Ann\n    measurand: costs",
            "12: acknowledged.0.measurand: there is none of this name; did you",
        ),
        ("path: NAT", "path: NAT\n    path: IPVS", "8: acknowledged.0.path: is there twice, also in line 7; keep one"),
    ],
)
def test_a_fault_is_one_line_with_file_and_key(tmp_path: Path, right: str, wrong: str, error: str) -> None:
    file = tmp_path / "pdrgate.yaml"
    file.write_text(FILE.replace(right, wrong, 1))
    with pytest.raises(UsageError) as caught:
        read_project(file)
    assert str(caught.value).startswith(f"{file}:{error}")
    assert "\n" not in str(caught.value)


def test_a_path_that_there_is_not_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pdrgate.yaml").write_text(FILE.replace("path: NAT", "path: NATT"))
    found = read_project(tmp_path / "pdrgate.yaml")
    with pytest.raises(UsageError, match=r"pdrgate.yaml:7: there is no path NATT; did you mean NAT\?"):
        found.check_paths({"NAT", "IPVS"})


def test_the_gate_takes_options_of_the_file_where_the_command_line_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pdrgate.yaml").write_text("gate: {scenario: path-nat, against: nowhere.deb, tolerance: 3%}\n")
    words = ["gate", "--kernel", "nowhere-either.deb", "--project", str(tmp_path / "pdrgate.yaml")]
    assert main([*words, "--output", str(tmp_path / "out")]) == 64
    # It is the file's own tolerance that is refused, where packets are counted.
    assert "tolerance" in capsys.readouterr().err
