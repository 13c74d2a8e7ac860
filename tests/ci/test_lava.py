"""LAVA's test definition and job, by LAVA's own schemas, and what LAVA hears of a run."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from flat_values import changed
from made_results import compared, result

from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.results.acknowledgement import Acknowledgement
from pdrgate.results.model import LeftOutPath

ROOT = Path(__file__).parents[2]
LAVA = ROOT / "ci/lava"


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """LAVA's own, from Debian's package lava-common."""
    folder = tmp_path_factory.mktemp("lava")
    for package in ("lava-common", "python3-voluptuous"):
        done = subprocess.run(
            ["apt-get", "download", package], cwd=folder, capture_output=True, text=True, check=False, timeout=300
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"{package} cannot be downloaded here: {done.stderr.strip()[-200:]}")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    sys.path.append(str(folder / "usr/lib/python3/dist-packages"))
    try:
        import lava_common.schemas
        import lava_common.schemas.test.testdef
    finally:
        sys.path.pop()
    return lava_common


def test_the_definition_is_one_by_lavas_schema(schemas: ModuleType) -> None:
    schemas.schemas.test.testdef.validate(yaml.safe_load((LAVA / "pdrgate.yaml").read_text()))


def test_the_job_is_one_by_lavas_schema(schemas: ModuleType) -> None:
    schemas.schemas.validate(yaml.safe_load((LAVA / "job.yaml").read_text()), strict=True)


def test_the_jobs_parameters_are_those_of_the_definition() -> None:
    definition, job = (yaml.safe_load((LAVA / name).read_text()) for name in ("pdrgate.yaml", "job.yaml"))
    (asked,) = job["actions"][0]["test"]["definitions"]
    assert set(asked["parameters"]) <= set(definition["params"])
    assert asked["path"] == "ci/lava/pdrgate.yaml"


@pytest.mark.parametrize(("code", "word"), [(0, "pass"), (1, "fail"), (2, "unknown"), (3, "unknown")])
def test_each_path_is_a_test_case_and_the_verdict_is_one(tmp_path: Path, code: int, word: str) -> None:
    checkout = tmp_path / "pdrgate"
    shutil.copytree(LAVA, checkout / "ci/lava")
    (checkout / ".venv/bin").mkdir(parents=True)
    program = checkout / ".venv/bin/pdrgate"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "libraries"} exec {sys.executable} -m pdrgate.cli "$@"\n')
    (tmp_path / "bin").mkdir()
    lava = tmp_path / "bin/lava-test-case"
    lava.write_text('#!/bin/sh\necho "$@" >>cases\n')
    gate = tmp_path / "gate"
    gate.write_text(f"#!/bin/sh\nexit {code}\n")
    for script in (program, lava, gate):
        script.chmod(0o755)
    known = Acknowledgement(path="NAT", tolerance=0.05, reason="a lock", until="2100-01-31", by="Ann")
    run = result(
        changed(compared("PASS"), title="IPv4 Routing"), changed(compared("REGRESSION"), title="$(touch pwned) IPVS"),
        changed(compared("REGRESSION"), title="NAT", acknowledged=(known,)),
    )  # fmt: skip
    run = dataclasses.replace(run, left_out=(LeftOutPath(path="TCP With Loss", reason="no netem"),))
    (tmp_path / "results/1").mkdir(parents=True)
    write_result(tmp_path / "results/1" / RESULT_FILE, run)
    done = subprocess.run(
        [checkout / "ci/lava/report", gate], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "cases").read_text().splitlines() == [
        "IPv4-Routing --result pass", "-touch-pwned-IPVS --result fail", "NAT --result skip",
        "TCP-With-Loss --result skip", f"gate --result {word}",
    ]  # fmt: skip
    assert not list(tmp_path.rglob("pwned"))
