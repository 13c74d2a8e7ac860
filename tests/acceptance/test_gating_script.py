"""The script of docs/watch.md: it gates each build once, and is silent while nothing moved.

The script is run as it stands there; ``pdrgate gate`` is a stand-in that puts a made result into the history, and all
other commands are pdrgate's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made_kernels import image

from pdrgate.cli import main

ROOT = Path(__file__).parents[2]
(SCRIPT,) = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/watch.md").read_text(), re.MULTILINE | re.DOTALL)
STAND_IN = """\
#!{python}
import dataclasses, os, sys
from pathlib import Path
from pdrgate.cli import main
if sys.argv[1] != "gate":
    sys.exit(main())
from flat_values import changed
from made_results import compared, written
from pdrgate.builds.kernel_build import kernel_build
from pdrgate.results.verdict import Verdict
words = dict(zip(sys.argv[-6::2], sys.argv[-5::2]))
assert words["--against"] == "good build" and sys.argv[2:5] == ["--profile", "smoke", "--quiet"], sys.argv
build = kernel_build(words["--kernel"], cache=Path("cache"))
verdict, speed = Path(words["--kernel"]).with_suffix(".verdict").read_text().split()
entry = compared(Verdict(verdict), candidate=build.release)
(value,) = entry.findings.measurands
value = dataclasses.replace(value, value=float(speed) * value.value)
sides = (entry.builds.sides[0], changed(entry.builds.sides[1], build=build.label, measurands=(value,)))
day = 1 + len(list(Path().glob("run-*")))
path = written(Path(f"run-{{day}}"), changed(entry, sides=sides), started=86400.0 * day)
with open(os.devnull, "w") as sys.stdout:
    assert main(["history", "import", str(path), "--history", words["--history"]]) == 0
print(f"{{verdict}}: of {{build.release}}", file=sys.__stdout__)
sys.exit(Verdict(verdict).exit_code)
"""


class Archive:
    """A folder of kernels, and what a gate comes to for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "kernels of mine"
        self.place.mkdir()
        (script := folder / "gate-new").write_text(SCRIPT)
        (command := folder / "pdrgate").write_text(STAND_IN.format(python=sys.executable))
        for each in (script, command):
            each.chmod(0o755)

    def put(self, release: str, verdict: str, speed: float = 1.0) -> None:
        (self.place / f"vmlinuz-{release}").write_bytes(image(release))
        (self.place / f"vmlinuz-{release}").with_suffix(".verdict").write_text(f"{verdict} {speed}")

    @property
    def gated(self) -> int:
        return len(list(self.folder.glob("run-*")))

    def passed(self) -> tuple[int, list[str]]:
        """The exit code of a pass over the archive, and what it told."""
        known = {
            "PATH": f"{self.folder}:{os.environ['PATH']}", "HISTORY": "history.db", "AGAINST": "good build",
            "OPTIONS": "--profile smoke", "XDG_CACHE_HOME": str(self.folder / "cache"),
            "PYTHONPATH": f"{ROOT / 'libraries'}:{ROOT / 'tests/fakes'}",
        }  # fmt: skip
        done = subprocess.run(
            (self.folder / "gate-new", self.place), cwd=self.folder, env={**os.environ, **known}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout.splitlines()


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def test_each_build_is_gated_once_and_nothing_is_said_of_those_that_pass(archive: Archive) -> None:
    archive.put("6.10.0", "PASS")
    archive.put("6.9.0", "IMPROVEMENT")
    assert archive.passed() == (0, [f"{archive.place}/vmlinuz-6.9.0", "IMPROVEMENT: of 6.9.0"])
    archive.put("6.11.0", "PASS")
    assert archive.passed() == (0, [])
    assert archive.passed() == (0, [])
    assert archive.gated == 3


def test_a_build_that_fails_is_told_once_and_one_that_nothing_can_be_said_of_three_times(archive: Archive) -> None:
    archive.put("6.1.0", "PASS")
    archive.put("6.2.0", "DISTURBED")
    archive.put("6.3.0", "REGRESSION")
    code, told = archive.passed()
    disturbed = [f"{archive.place}/vmlinuz-6.2.0", "DISTURBED: of 6.2.0"]
    assert code == 1
    assert told[:4] == [*disturbed, f"{archive.place}/vmlinuz-6.3.0", "REGRESSION: of 6.3.0"]
    assert "(6.1.0)" in told[-1] and " PASS " in told[-1]  # where a bisection begins
    assert archive.passed() == (2, disturbed)
    assert archive.passed() == (2, disturbed)
    assert archive.passed() == (0, [])
    assert archive.gated == 5


def test_a_trend_that_bends_is_told_though_every_build_passed(archive: Archive) -> None:
    for number in range(14):
        archive.put(f"6.{number}.0", "PASS", speed=0.985 if number > 7 else 1.0)
    code, told = archive.passed()
    assert code == 1
    assert "6.7.0" in told[0] and "6.8.0" in told[0]


def test_a_history_that_is_not_there_yet_has_gated_nothing(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.put("6.1.0", "PASS")
    where = archive.folder / "none.db"
    assert main(["history", "ungated", str(archive.place), "--history", str(where)]) == 0
    assert capsys.readouterr().out == f"{archive.place}/vmlinuz-6.1.0\n"
    assert not where.exists()
