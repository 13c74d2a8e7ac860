"""Runs a Jenkinsfile as a whole, by Groovy: what Jenkins would do with it, as far as the one here goes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GROOVY = Path("/usr/share/java/groovy-all.jar")
RUNNER = Path(__file__).with_suffix(".groovy")


def runs_here() -> bool:
    """Whether there is a Java and a Groovy."""
    return GROOVY.exists() and shutil.which("java") is not None


@dataclass(frozen=True)
class JenkinsBuild:
    """A build that has ended."""

    place: Path
    """Has the workspaces (agent-1 and so on, in the order of their use), stashes and archive."""
    result: str
    description: str
    errors: tuple[str, ...]
    stages: tuple[str, ...]
    """Those that were run, each with the cell of the matrix."""
    labels: tuple[str, ...]
    published: tuple[str, ...]
    said: str


def built(
    jenkinsfile: Path,
    place: Path,
    repository: Path,
    branch: str,
    environment: Mapping[str, str],
    variables: Mapping[str, str],
    parameters: Mapping[str, str],
) -> JenkinsBuild:
    """Build a branch of a repository.

    Args:
        environment: what shell steps have of the agent.
        variables: what the server sets, such as JOB_NAME.
    """
    place.mkdir(parents=True)
    asked, told = place / "asked.json", place / "told.json"
    asked.write_text(
        json.dumps({
            "place": str(place), "repository": str(repository), "branch": branch, "environment": dict(environment),
            "variables": dict(variables), "parameters": dict(parameters),
        })
    )  # fmt: skip
    command = (
        "java",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        GROOVY,
        "groovy.ui.GroovyMain",
        RUNNER,
        jenkinsfile,
        asked,
        told,
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the Jenkinsfile cannot be run: {done.stdout}{done.stderr}")
    found = json.loads(told.read_text())
    return JenkinsBuild(
        place, found["result"], found["description"], tuple(found["errors"]), tuple(found["stages"]),
        tuple(found["labels"]), tuple(found["published"]), found["said"],
    )  # fmt: skip
