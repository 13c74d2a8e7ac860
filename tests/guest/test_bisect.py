"""The bisection of docs/bisect.md over real kernels of the distribution, one of which is slower."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from machine_noise import UNDECIDED

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.history.results import read_result
from pdrgate.results.verdict import Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs")]

_TELLING = {Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION}

CHECKOUT = Path(__file__).parents[2]
PDRGATE = (sys.executable, "-m", "pdrgate.cli")


def recipe() -> str:
    """The commands of the section on lists, as a reader would copy them."""
    section = (CHECKOUT / "docs" / "bisect.md").read_text().split("## A list of builds")[1]
    match = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_first_slow_build_of_a_list_is_found(cloud: KernelBuild, rt: KernelBuild, tmp_path: Path) -> None:
    """good, slow, slow again: a step. What git makes of several, tests/unit/test_bisection.py shows.

    Where the guests' speed wavers too much for that, saying that it cannot be told is right, and naming another is not.
    """
    names = []
    for number, build in enumerate((cloud, rt, rt), start=1):
        # Each build needs a name of its own, or there is nothing to commit.
        link = tmp_path / f"build-{number}"
        link.symlink_to(build.image.parents[1])
        names.append(str(link))
    environment = os.environ | {
        "GATE": str(CHECKOUT), "BUILDS": " ".join(names),
        "OPTIONS": "--measure pdr --profile smoke --set boots=3 --tolerance 5% --wait 600s",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
        "HOME": str(tmp_path), "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
    }  # fmt: skip
    script = recipe().replace('"$GATE/results"', str(tmp_path / "results"))
    done = subprocess.run(
        ("sh", "-ec", script), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    results = [read_result(path) for path in (tmp_path / "results").glob("2*/result.json")]
    assert results, done.stdout + done.stderr
    if all(result.verdict in _TELLING for result in results):
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(results) == 1
        assert "is the first bad commit" in done.stdout
        assert names[1] in done.stdout.split("is the first bad commit")[1], done.stdout
    else:
        assert {result.verdict for result in results} - _TELLING <= UNDECIDED, done.stdout
        assert "The first bad commit could be any of" in done.stdout + done.stderr


def test_the_first_slow_build_is_found_by_counting_a_path_that_is_named(
    cloud: KernelBuild, rt: KernelBuild, tmp_path: Path
) -> None:
    """Counts do not waver with the machine, so that there is a verdict."""
    command = (*PDRGATE, "bisect", cloud.source, cloud.source, rt.source, "--scenario", "path-ipv4-routing")
    done = subprocess.run(
        (*command, "--format", "json", "--wait", "900 s", "--output", str(tmp_path / "results")),
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "libraries")}, capture_output=True, text=True, timeout=1500,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["good"], found["bad"], found["between"]) == (cloud.source, rt.source, [])
    assert [(step["build"], step["verdict"]) for step in found["steps"]] == [(cloud.source, "PASS")]
