"""A release: what is written of it in several files agrees, and its steps do what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import pdrgate

ROOT = Path(__file__).parents[2]


def release(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((place / "ci/release", *words), capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the first step reads."""
    for name in ("ci/release", "CITATION.cff", "CHANGELOG.md", "libraries/pdrgate/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_tag_must_be_the_version_and_have_its_changes(checkout: Path) -> None:
    tag = f"v{pdrgate.__version__}"
    assert "is not v" in release(checkout, "check", "v99.0.0").stderr
    changes = checkout / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("not released yet", "2026-12-01"))
    done = release(checkout, "check", tag)
    assert (done.returncode, done.stderr) == (0, "")
    changes.write_text("# Changes\n")
    assert "CHANGELOG.md has no section" in release(checkout, "check", tag).stderr


def test_the_citation_names_this_version() -> None:
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]) == pdrgate.__version__


def test_the_job_is_a_workflow_and_calls_steps_that_are_there() -> None:
    workflow = ROOT / ".github/workflows/release.yml"
    schema = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)
    done = subprocess.run(schema, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    called = [step["run"].split()[1] for step in jobs["build"]["steps"] if "run" in step]
    assert called == ["check", "build", "try"]
    # What runs the repository's code may write nothing, and what may write runs none of it.
    assert "permissions" not in jobs["build"]
    assert not any("checkout" in step.get("uses", "") for step in jobs["release"]["steps"])


def test_a_step_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    assert "is not empty" in release(ROOT, "build", str(tmp_path)).stderr
    assert "there is no wheel" in release(ROOT, "try", str(tmp_path)).stderr


def test_a_download_is_checked_as_the_page_says(tmp_path: Path) -> None:
    """The sums; Sigstore's servers are not asked by a test."""
    (sums,) = (line.strip() for line in (ROOT / "ci/release").read_text().splitlines() if "sha256sum" in line)
    (check,) = (line.strip() for line in (ROOT / "SECURITY.md").read_text().splitlines() if "sha256sum" in line)
    for name in ("pdrgate-1.whl", "pdrgate-1.tar.gz"):
        (tmp_path / name).write_bytes(b"all of it")
    subprocess.run(("bash", "-ec", sums), cwd=tmp_path, env={**os.environ, "into": "."}, check=True)
    (tmp_path / "pdrgate-1.tar.gz").unlink()  # who downloads one file has no other

    def checked() -> int:
        return subprocess.run(check.split(), cwd=tmp_path, capture_output=True, check=False).returncode

    assert checked() == 0
    (tmp_path / "pdrgate-1.whl").write_bytes(b"all of iT")
    assert checked() == 1


def test_who_verifies_asks_for_the_identity_that_the_job_asks_for() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    (signs,) = (step["with"] for step in jobs["release"]["steps"] if "sigstore" in step.get("uses", ""))
    asked = signs["verify-cert-identity"]
    for expression, value in (
        ("${{ github.server_url }}", "https://github.com"),
        ("${{ github.repository }}", "OWNER/pdrgate"),
        ("${{ github.ref }}", f"refs/tags/v{pdrgate.__version__}"),
    ):
        asked = asked.replace(expression, value)
    assert f"--cert-identity {asked}\n" in (ROOT / "SECURITY.md").read_text()
