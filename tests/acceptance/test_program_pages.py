"""The pages on others' eBPF programs: their files are written, and their commands run, as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from machine_noise import UNDECIDED

from pdrgate.results.verdict import Verdict
from tests.acceptance.conftest import ROOT, Ended, run

pytestmark = pytest.mark.guest

KATRAN = "PDRGATE_KATRAN"
"""The variable of the environment that names a checkout of katran, which no package has."""

_BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?:most|the largest parts) of it in (.*?)(?:;|\n|$)")
_CLONE = re.compile(r"^git clone .*\n", re.MULTILINE)


def blocks(page: str, sort: str) -> list[tuple[str, str]]:
    """Titles and texts of a page's blocks of a sort."""
    found = _BLOCK.findall((ROOT / "docs" / page).read_text())
    return [(title, text) for kind, title, text in found if kind == sort]


def followed(page: str, folder: Path) -> Ended:
    """What comes of doing what a page says, in a folder of its own; other runs are waited for."""
    for title, text in blocks(page, "yaml"):
        (folder / title).write_text(text)
    commands = _CLONE.sub("", "".join(text for _, text in blocks(page, "sh")))
    commands = commands.replace("./ci/gate ", f"'{ROOT}/ci/gate' --wait '15 min' ")
    return run(["sh", "-ec", commands], folder / "results", cwd=folder, timeout=2400)


def told(page: str) -> str:
    """The verdict that a page shows, with its numbers."""
    ((_, text),) = blocks(page, "text")
    return text


def named(text: str) -> set[str]:
    """The functions that a sentence gives the blame to."""
    found = _NAMED.search(text)
    return set(re.findall(r"([\w:]+)\s\(\+\d", found[1])) if found else set()


def judged_as_told(page: str, ended: Ended) -> None:
    """The verdict of a page's run is the one that the page shows, unless the machine did not let it be told."""
    assert ended.folder is not None, ended.stdout + ended.stderr
    verdict = ended.result["verdict"]
    assert verdict in {told(page).partition(":")[0]} | UNDECIDED, ended.stdout + ended.stderr
    assert ended.code == Verdict(verdict).exit_code
    if verdict not in UNDECIDED:
        assert named(told(page)) & named(ended.result["reason"])


def test_xdp_filter_with_rules(tmp_path: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("this distribution has no package libxdp1 of Debian's: no apt-get")
    tried = subprocess.run(("apt-get", "download", "--print-uris", "libxdp1"), capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("apt-get knows no package libxdp1; run apt-get update")
    judged_as_told("xdp-filter.md", followed("xdp-filter.md", tmp_path))


def test_katrans_balancer_with_a_vip(tmp_path: Path) -> None:
    if not (checkout := os.environ.get(KATRAN)):
        pytest.skip(f"no package has katran's source; clone it, and name the checkout by {KATRAN}")
    shutil.copytree(checkout, tmp_path / "katran", symlinks=True)
    judged_as_told("katran.md", followed("katran.md", tmp_path))


@pytest.mark.parametrize("page", ["xdp-filter.md"])
def test_robot_takes_the_suite_of_a_page(page: str, tmp_path: Path) -> None:
    ((_, text),) = blocks(page, "robot")
    (tmp_path / "own.robot").write_text(text)
    words = ("--dryrun", "--pythonpath", str(ROOT / "libraries"), "--outputdir", str(tmp_path), "own.robot")
    command = (sys.executable, "-m", "robot", *words)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
