"""Allure's results, told by the stored result: one history per question, categories without numbers, trends."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from flat_values import changed
from made_results import compared, result, scenario, trial

from pdrgate.reports.ci.allure import tell_allure
from pdrgate.reports.ci.allure.folder import CONFIGURATION_FILE
from pdrgate.reports.ci.allure.settings import categories, environment, executor, job_links, labelled
from pdrgate.reports.ci.pipeline import pipeline
from pdrgate.reports.pages.scenario_pictures import Picture
from pdrgate.reports.words.headline import scenario_fault, scenario_headline
from pdrgate.results.model import BootResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

HOSTILE = "<script>'\"=1+1\\u0000\x1b[31m\n\u202eÄ漢" + 300 * "x"


def a_test(folder: Path, name: str = "One", **changes: Any) -> Path:
    """What allure-robotframework leaves of a test."""
    results = folder / "allure-results"
    results.mkdir(exist_ok=True)
    path = results / f"{name}-{len(list(results.iterdir()))}-result.json"
    found = {
        "name": name, "status": "failed", "fullName": f"pdrgate.Gate.{name}", "historyId": "theirs",
        "testCaseId": "case", "statusDetails": {"message": "whatever"}, "start": 1, "steps": [],
    }  # fmt: skip
    path.write_text(json.dumps(found | changes))
    return path


def told(folder: Path, *scenarios: ScenarioResult, **changes: Any) -> list[dict[str, Any]]:
    run: RunResult = result(*scenarios, **changes)
    (folder / "result.json").write_text("{}")
    tell_allure(folder, run, {0: [Picture("p", "Pairs of boots", b"png")]}, [trial(1), trial(2, build=HOSTILE)])
    return [json.loads(path.read_text()) for path in sorted((folder / "allure-results").glob("*-result.json"))]


def one(verdict: str = "REGRESSION", **further: Any) -> ScenarioResult:
    return changed(compared(verdict, **further), test="One")


def test_a_test_gets_its_verdict_parameters_and_attachments(tmp_path: Path) -> None:
    a_test(tmp_path)
    (found,) = told(tmp_path, one())
    assert found["status"] == "failed"
    assert found["statusDetails"] == {
        "message": f"REGRESSION: because, on IPv6 routing\n{scenario_fault(one())}", "trace": "REGRESSION: because"
    }  # fmt: skip
    assert {each["name"]: (each["value"], each["excluded"]) for each in found["parameters"]} == {
        "testbed": ("local-netns", False), "profile": ("quick", False), "baseline": ("linux-6.18.44", False),
        "scenario": ("IPv6 routing", False), "kernel": ("6.19", True), "candidate": ("linux-6.19", True),
    }  # fmt: skip
    assert found["description"].startswith("**REGRESSION:** because")
    assert [each["name"] for each in found["attachments"]] == ["Pairs of boots", "Trials", "result.json"]
    files = [tmp_path / "allure-results" / each["source"] for each in found["attachments"]]
    assert files[0].read_bytes() == b"png"
    head, *rows = csv.reader(io.StringIO(files[1].read_text()))
    assert [dict(zip(head, row, strict=True))["loss_ratio"] for row in rows] == ["0.002", "0.002"]


def test_the_next_build_goes_on_with_the_history_and_another_question_does_not(tmp_path: Path) -> None:
    found = []
    for number, (candidate, kernel, changes) in enumerate(
        [
            ("6.19", "6.18.44", {}),
            ("6.20", "6.18.44", {}),
            ("6.19", "6.17", {}),
            ("6.19", "6.18.44", {"profile": "smoke"}),
        ]
    ):
        (folder := tmp_path / str(number)).mkdir()
        a_test(folder)
        found += [each["historyId"] for each in told(folder, one(candidate=candidate, kernel=kernel), **changes)]
    assert found[0] == found[1]
    assert len({*found, "theirs"}) == 4


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("REGRESSION", "failed"), ("UNSTABLE", "failed"), ("INCONCLUSIVE", "failed"), ("DISTURBED", "broken"),
     ("GENERATOR_LIMITED", "broken"), ("ERROR", "broken")],
)  # fmt: skip
def test_each_verdict_that_fails_has_one_category_whatever_its_numbers(
    verdict: str, status: str, tmp_path: Path
) -> None:
    a_test(tmp_path)
    (found,) = told(tmp_path, dataclasses.replace(one(verdict), reason="TIR 0.46 after PDR 701 kpps"))
    assert found["status"] == status
    said = found["statusDetails"]["message"]
    assert said.startswith(f"{verdict}: TIR 0.46 after PDR 701 kpps")
    matching = [
        each["name"] for each in categories()
        if found["status"] in each["matchedStatuses"] and re.match(each["messageRegex"], said)
    ]  # fmt: skip
    assert len(matching) == 1 and matching[0].startswith(f"{verdict}: ")


def test_the_red_box_has_the_numbers() -> None:
    found = one()
    assert found.comparison is not None
    change = dataclasses.replace(found.comparison.changes[0], verdict=Verdict.REGRESSION)
    worse = dataclasses.replace(found, comparison=dataclasses.replace(found.comparison, changes=(change,)))
    assert re.match(r"REGRESSION: slower: PDR .* -1\.0% \(-1\.2% to -0\.8%\) on IPv6 routing", scenario_headline(worse))


def test_the_pipeline_and_the_commit_are_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {
        "JENKINS_URL": "https://ci/", "BUILD_URL": "https://ci/1/", "BUILD_NUMBER": "7",
        "GIT_URL": "https://git.example/a/b.git", "GIT_COMMIT": "0123456789abcdef",
    }  # fmt: skip
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    a_test(tmp_path)
    for _ in range(2):  # done again it is the same
        (found,) = told(tmp_path, one())
        assert found["links"] == [
            {"type": "link", "name": "Jenkins 7", "url": "https://ci/1/"},
            {"type": "link", "name": "Commit 0123456789ab", "url": "https://git.example/a/b/commit/0123456789abcdef"},
        ]
    assert "](https://ci/1/artifact/)" in found["description"]
    hostile = {**job, "GIT_URL": "javascript:alert(1)", "BUILD_URL": "https://ci/) [x](y"}
    assert job_links(result(one()), pipeline(hostile)) == []


def test_owner_and_severity_are_told_by_tags_and_severity_by_the_verdict_else() -> None:
    tags = [{"name": "tag", "value": "owner:routing team"}, {"name": "tag", "value": "severity:Minor"}]
    told = {one["name"]: one["value"] for one in labelled(tags, Verdict.REGRESSION) if one["name"] != "tag"}
    assert told == {"owner": "routing team", "severity": "minor"}
    assert labelled([], Verdict.REGRESSION) == [{"name": "severity", "value": "critical"}]
    assert labelled([], Verdict.PASS) == [{"name": "severity", "value": "normal"}]
    once = labelled(tags, Verdict.PASS)
    assert labelled(once, Verdict.PASS) == once


def test_a_testbed_that_was_not_there_is_broken_and_a_suites_own_failure_is_not(tmp_path: Path) -> None:
    a_test(tmp_path, "Away", statusDetails={"message": "Parent suite setup failed:\nERROR: no QEMU"})
    a_test(tmp_path, "Mine", statusDetails={"message": "1 != 2"})
    a_test(tmp_path, "Well", status="passed", statusDetails=None)
    away, mine, well = told(tmp_path)
    assert (away["status"], away["statusDetails"]["message"]) == ("broken", "ERROR: the testbed or a tool failed")
    assert (mine["status"], mine["statusDetails"]["message"], well["status"]) == ("failed", "1 != 2", "passed")


def test_a_passing_test_keeps_its_status_and_a_skipped_one_of_its_name_is_not_it(tmp_path: Path) -> None:
    a_test(tmp_path, status="skipped", start=1)
    a_test(tmp_path, status="passed", start=2)
    skipped, passed = told(tmp_path, one("PASS"))
    assert "parameters" not in skipped and skipped["status"] == "skipped"
    assert (passed["status"], passed["statusDetails"]["message"]) == ("passed", "whatever")
    assert passed["parameters"]


def test_trends_have_names_units_and_directions(tmp_path: Path) -> None:
    a_test(tmp_path)
    told(tmp_path, one())
    trends = json.loads((tmp_path / "allure-results" / "performance.json").read_text())
    metrics = json.loads((tmp_path / CONFIGURATION_FILE).read_text())["performance"]["metrics"]
    assert {each["key"] for each in trends} == set(metrics)
    key = "pdr.local-netns.ipv6-routing"
    assert metrics[key] == {"title": "PDR: IPv6 routing, local-netns", "unit": "pps", "better": "higher"}
    (pdr,) = (each for each in trends if each["key"] == key)
    assert (pdr["value"], pdr["start"], pdr["stop"]) == (1e6, 1000, 2000)
    assert metrics[f"change-{key}"]["unit"] == "%"


def test_done_again_it_is_the_same(tmp_path: Path) -> None:
    a_test(tmp_path)
    told(tmp_path, one())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    told(tmp_path, one())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_where_allure_wrote_nothing_nothing_is_written(tmp_path: Path) -> None:
    tell_allure(tmp_path, result(one()), {}, [])
    assert list(tmp_path.iterdir()) == []


def test_robots_log_as_an_attachment_goes_and_small_ones_stay(tmp_path: Path) -> None:
    attached = [{"name": "Keyword Log", "source": f"{name}.html", "type": "text/html"} for name in ("large", "small")]
    a_test(tmp_path, steps=[{"name": "a", "steps": [{"name": "b", "attachments": attached}]}])
    (tmp_path / "allure-results" / "large.html").write_bytes(b"x" * 100_000)
    (tmp_path / "allure-results" / "small.html").write_bytes(b"x")
    (found,) = told(tmp_path, one())
    assert [each["source"] for each in found["steps"][0]["steps"][0]["attachments"]] == ["small.html"]
    assert not (tmp_path / "allure-results" / "large.html").exists()


def test_consoles_are_attached_where_a_boot_failed(tmp_path: Path) -> None:
    a_test(tmp_path)
    (tmp_path / "consoles").mkdir()
    (tmp_path / "consoles" / "guest-1.log").write_text("Kernel panic")
    failed = BootResult(side="candidate", pair=4, boot="b", kernel="6.19", failure="it does not boot")
    (found,) = told(tmp_path, changed(one("ERROR"), boots=(failed,)))
    assert found["attachments"][-1]["name"] == "Console of a kernel: guest-1.log"
    assert found["attachments"][-1]["type"] == "text/plain"


def test_hostile_names_are_texts_in_all_of_it(tmp_path: Path) -> None:
    a_test(tmp_path)
    evil = dataclasses.replace(one(candidate=HOSTILE, kernel=HOSTILE), title=HOSTILE, reason=HOSTILE)
    (found,) = told(tmp_path, evil, run=HOSTILE, command=HOSTILE)
    assert all("\x1b" not in each["value"] and "\n" not in each["value"] for each in found["parameters"])
    assert "<script>" not in re.sub(r"```.*?```|`.*?`", "", found["description"], flags=re.DOTALL)  # code is text
    properties = (tmp_path / "allure-results" / "environment.properties").read_text().splitlines()
    assert len(properties) == len(environment(result(evil, run=HOSTILE, command=HOSTILE)))
    rows = list(csv.reader(io.StringIO((tmp_path / "allure-results" / found["attachments"][1]["source"]).read_text())))
    assert len(rows) == 3 and all("\x1b" not in cell for row in rows for cell in row)
    json.loads((tmp_path / CONFIGURATION_FILE).read_text())


@pytest.mark.parametrize(
    ("variables", "kind", "url"),
    [
        ({"JENKINS_URL": "https://ci/", "BUILD_URL": "https://ci/1/", "BUILD_NUMBER": "7"}, "jenkins", "https://ci/1/"),
        ({"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "9", "GITHUB_RUN_NUMBER": "7"},
         "github", "https://github.com/a/b/actions/runs/9"),
        ({"GITLAB_CI": "true", "CI_JOB_URL": "javascript:alert(1)", "CI_PIPELINE_IID": "7"}, "gitlab", None),
        ({}, "pdrgate", None),
    ],
)  # fmt: skip
def test_the_executor_is_the_job_of_the_ci(variables: dict[str, str], kind: str, url: str | None) -> None:
    found = executor(result(scenario(), started=5.0), pipeline(variables))
    assert (found["type"], found.get("buildUrl"), found["buildOrder"]) == (kind, url, 7 if variables else 5)


def test_a_torn_result_is_left_as_it_is(tmp_path: Path) -> None:
    shutil.copy(a_test(tmp_path), tmp_path / "allure-results" / "z-result.json")
    torn = tmp_path / "allure-results" / "z-result.json"
    torn.write_text("{")
    tell_allure(tmp_path, result(one()), {}, [])
    assert torn.read_text() == "{"
