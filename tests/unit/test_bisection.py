"""git bisect over builds of which the gate says what is written: its exit codes lead to the first slow one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = Path(__file__).parents[2] / "libraries"
GATE = "import sys; from pdrgate.results.verdict import Verdict; sys.exit(Verdict(open('build').read()).bisect_code)"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("builds", "end"),
    [
        ("PASS PASS PASS REGRESSION REGRESSION", r"is the first bad commit.* build 4\n"),
        ("PASS IMPROVEMENT REGRESSION REGRESSION REGRESSION REGRESSION", r"is the first bad commit.* build 3\n"),
        ("PASS UNSTABLE REGRESSION", r"The first bad commit could be any of:\n"),
        ("PASS DISTURBED INCONCLUSIVE PASS REGRESSION", r"is the first bad commit.* build 5\n"),
        ("PASS ERROR REGRESSION", r"The first bad commit could be any of:\n"),
    ],
)
def test_git_is_led_to_the_first_slow_build(tmp_path: Path, builds: str, end: str) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(LIBRARIES), "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip

    def git(*words: str) -> str:
        done = subprocess.run(
            ("git", *words), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    git("init", "--quiet")
    verdicts = builds.split()
    for number, verdict in enumerate(verdicts, start=1):
        (tmp_path / "build").write_text(verdict)
        git("add", "build")
        git("commit", "--quiet", "--allow-empty", "--message", f"build {number}")
    git("bisect", "start", "HEAD", f"HEAD~{len(verdicts) - 1}")
    said = git("bisect", "run", sys.executable, "-c", GATE)
    assert re.search(end, said, re.DOTALL), said
