"""The wheel, installed where there is no checkout: what a user of ``pip install`` has.

Nothing is downloaded: the environment takes all but pdrgate itself from the one that runs the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("libraries", "resources", "robot", "pyproject.toml", "README.md", "LICENSE")
"""What a build reads of a checkout."""
SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
SUITE = """\
*** Settings ***
Library           PdrGate
Resource          pdrgate/resources/gate.resource

Suite Setup       Open Testbed    ${TESTBED}    profile=smoke    wait=10 min
Suite Teardown    Close Testbed


*** Test Cases ***
A Suite Of One's Own
    Given The SUT Routes IPv4
    Measure Load    20 kpps    200 ms
    Get Loss Ratio    <    100%
"""


@dataclass(frozen=True)
class Foreign:
    """An environment without a checkout."""

    venv: Path
    folder: Path
    """Empty at first: where the user works."""

    def run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Start a program of the environment as its user would."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return subprocess.run(
            [self.venv / "bin" / program, *arguments],
            cwd=self.folder, env=kept, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip

    def ask(self, code: str) -> str:
        """What a line of Python prints there."""
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def make_wheel(source: Path, into: Path) -> Path:
    """The wheel that pip makes of a folder."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", into, source),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = into.glob("*.whl")
    return wheel


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build reads of the checkout, copied: a build leaves folders behind."""
    source = tmp_path_factory.mktemp("source")
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / part, source / part, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / part, source)
    return source


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def foreign(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    base = tmp_path_factory.mktemp("foreign")
    venv, folder = base / "venv", base / "empty"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", venv / "bin" / "python"),
            *("install", "--quiet", "--no-index", "--no-deps", wheel),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    (packages,) = venv.glob("lib/python*/site-packages")
    # Folders in a .pth are searched last, and the .pth files in them, an editable pdrgate's for one, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return Foreign(venv, folder)


def test_it_holds_all_that_the_checkout_holds_for_users(wheel: Path) -> None:
    folders = {"pdrgate/": "libraries/pdrgate", "pdrgate/robot/": "robot", "pdrgate/resources/": "resources"}
    wanted = {
        prefix + path.relative_to(ROOT / folder).as_posix()
        for prefix, folder in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in names(wheel) if ".dist-info/" not in name} == wanted | {"PdrGate.py"}


def test_a_source_distribution_makes_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SDIST, tmp_path], cwd=source, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        # Python 3.11.2, Debian 12's, knows no filter.
        packed.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert names(make_wheel(unpacked, tmp_path)) == names(wheel)


def test_every_module_of_it_can_be_imported(foreign: Foreign) -> None:
    assert Path(foreign.ask("import pdrgate; print(pdrgate.__file__)")).is_relative_to(foreign.venv)
    foreign.ask(
        "import importlib, pkgutil, pdrgate, PdrGate\n"
        "for module in pkgutil.walk_packages(pdrgate.__path__, 'pdrgate.'):\n"
        "    importlib.import_module(module.name)"
    )


def test_its_own_programs_compile(foreign: Foreign) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    foreign.ask("from pdrgate.builds import bpf_build; bpf_build.compile_own_builds()")


@pytest.fixture(scope="module")
def documentation(foreign: Foreign) -> dict[str, Any]:
    """What Robot tells of its library."""
    done = foreign.run("python", "-m", "robot.libdoc", "PdrGate", "documentation.json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads((foreign.folder / "documentation.json").read_text())
    return told


def test_robot_documents_its_library(documentation: dict[str, Any]) -> None:
    assert "Search Partial Drop Rate" in [keyword["name"] for keyword in documentation["keywords"]]


def test_the_example_in_its_documentation_has_its_asterisks_and_is_a_suite(
    foreign: Foreign, documentation: dict[str, Any]
) -> None:
    example = re.sub("<[^>]*>", "", re.findall("<pre>(.*?)</pre>", documentation["doc"], re.DOTALL)[0]).strip()
    assert example.startswith("*** Settings ***\n")
    assert "\n*** Test Cases ***\n" in example
    (foreign.folder / "example.robot").write_text(example)
    done = foreign.run("python", "-m", "robot", "--dryrun", "--output", "NONE", "example.robot")
    assert done.returncode == 0, done.stdout


def test_the_command_finds_what_comes_with_it(foreign: Foreign) -> None:
    assert foreign.run("pdrgate", "--help").returncode == 0
    paths = ("robot/gate", *(f"resources/testbeds/{name}.yaml" for name in ("local-netns", "steady-guest")))
    found = foreign.ask(
        "from pdrgate.launch import found; from pathlib import Path\n"
        f"for path in {paths!r}: print(found(Path(path)).resolve())"
    ).splitlines()
    assert len(found) == len(paths)
    assert all(Path(path).is_relative_to(foreign.venv) for path in found), found


def test_its_suites_and_ones_own_pass_a_dry_run(foreign: Foreign) -> None:
    suite = foreign.folder / "own.robot"
    suite.write_text(SUITE)
    its = next(foreign.venv.glob("lib/python*/site-packages/pdrgate/robot"))
    done = foreign.run("python", "-m", "robot", "--dryrun", "--output", "NONE", suite, its)
    assert done.returncode == 0, done.stdout


@pytest.mark.datapath
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces take root: run with sudo")
class TestMeasuring:
    def test_a_suite_of_ones_own(self, foreign: Foreign) -> None:
        suite = foreign.folder / "own.robot"
        suite.write_text(SUITE)
        done = foreign.run("python", "-m", "robot", "--outputdir", "own", suite)
        # What a busy machine comes to is not the business of these tests.
        assert done.returncode == 0 or any(word in done.stdout for word in ("GENERATOR_LIMITED", "DISTURBED")), (
            done.stdout
        )
        assert (foreign.folder / "own" / "trials.jsonl").read_text()

    def test_the_gate_and_what_reads_its_trials(self, foreign: Foreign) -> None:
        # The default testbed is a guest's, which the suite above has measured; it is read before a suite is missed.
        assert "there is no suite absent" in foreign.run("pdrgate", "gate", "--suite", "absent").stderr
        testbed = "resources/testbeds/local-netns.yaml"
        done = foreign.run("pdrgate", "gate", "--testbed", testbed, "--profile", "smoke", "--wait", "10 min")
        assert done.returncode in (0, 1, 2), done.stderr
        (folder,) = (path for path in (foreign.folder / "results").iterdir() if path.is_dir() and not path.is_symlink())
        (scenario,) = json.loads((folder / "result.json").read_text())["scenarios"]
        assert scenario["trials"] > 0, done.stdout
        told = foreign.run("pdrgate", "assess", folder, "--format", "json")
        assert [Path(one["source"]).parent for one in json.loads(told.stdout)["experiments"]] == [folder]

    def test_the_doctor(self, foreign: Foreign) -> None:
        testbed = "resources/testbeds/local-netns.yaml"
        done = foreign.run("pdrgate", "doctor", testbed, "--wait", "10 min", "--format", "json")
        told = json.loads(done.stdout)
        assert Path(told["source"]).is_relative_to(foreign.venv)
        assert told["findings"]
