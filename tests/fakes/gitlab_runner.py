"""What GitLab does with a pipeline, as far as the template here uses it: strategies of checkouts, jobs, variables,
matrices, artifacts.

Scripts are executed for real, by a shell without bash's ways.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass
class Ran:
    """A job that was run."""

    workspace: Path
    code: int
    said: str
    cache: str


@dataclass
class GitLab:
    """Runs the jobs of a file, each in a clone of the project.

    Args:
        place: where workspaces and artifacts go.
        remote: the project's repository.
        environment: variables that every script has.
        predefined: variables of the pipeline, CI_COMMIT_SHA for one.
    """

    place: Path
    remote: Path
    environment: Mapping[str, str]
    predefined: Mapping[str, str]
    jobs: dict[str, list[Ran]] = field(default_factory=dict)
    after: Callable[[str, Path], None] = lambda name, artifacts: None
    """Called with a job that has ended and its artifacts, such as to do what its code could have done."""

    def run(self, template: Path) -> None:
        """Run all jobs, in their order."""
        content = yaml.safe_load(template.read_text())
        for name, job in content.items():
            if not name.startswith("."):
                whole = {**content[job["extends"]], **job}
                own = {**content[job["extends"]].get("variables", {}), **job.get("variables", {})}
                self._run(name, whole, own)

    def _run(self, name: str, job: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        needed = [one if isinstance(one, str) else one["job"] for one in job.get("needs", [])]
        failed = any(one not in self.jobs or any(ran.code for ran in self.jobs[one]) for one in needed)
        always = any(rule.get("when") == "always" for rule in job.get("rules", []))
        if failed and not always:
            return
        self.jobs[name] = []
        for cell in _cells_of(job):
            variables = _expanded({**self.predefined, **own, **cell})
            workspace = self.place / "-".join((name, *cell.values()))
            if variables.get("GIT_STRATEGY") == "empty":
                workspace.mkdir(parents=True)
            else:
                clone = ("git", "clone", "--quiet", "--depth=1", f"file://{self.remote}")
                subprocess.run((*clone, "--branch", variables["CI_COMMIT_REF_NAME"], str(workspace)), check=True)
            for one in needed:
                if (artifacts := self.place / "artifacts" / one).exists():
                    shutil.copytree(artifacts, workspace, symlinks=True, dirs_exist_ok=True)
            variables["CI_PROJECT_DIR"] = str(workspace)
            variables = _expanded(variables)
            code, said = self._scripts(workspace, [*job["before_script"], *job["script"]], variables)
            said += self._scripts(workspace, job.get("after_script", []), variables)[1]
            for path in job["artifacts"]["paths"] if not code or job["artifacts"].get("when") == "always" else []:
                asked = _put_in(path, variables)
                if (workspace / asked).exists():
                    kept = self.place / "artifacts" / name / asked
                    shutil.copytree(workspace / asked, kept, symlinks=True, dirs_exist_ok=True)
            cache = _put_in(job.get("cache", {}).get("key", ""), variables)
            self.jobs[name].append(Ran(workspace, code, said, cache))
            self.after(name, self.place / "artifacts" / name)

    def _scripts(self, workspace: Path, lines: list[str], variables: Mapping[str, str]) -> tuple[int, str]:
        done = subprocess.run(
            ("sh", "-e", "-c", "\n".join(lines)), cwd=workspace, env={**self.environment, **variables}, check=False,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, done.stdout


def _cells_of(job: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The cells of a matrix; of no matrix an empty one."""
    if "parallel" not in job:
        yield {}
        return
    for axes in job["parallel"]["matrix"]:
        for cell in itertools.product(*axes.values()):
            yield dict(zip(axes, map(str, cell), strict=True))


def _expanded(variables: Mapping[str, Any]) -> dict[str, str]:
    """Variables in which others of them are put in; what is not known yet stays."""
    return {name: _put_in(str(value), variables) for name, value in variables.items()}


def _put_in(text: str, variables: Mapping[str, Any]) -> str:
    for _ in range(3):  # variables of variables
        text = _VARIABLE.sub(lambda found: str(variables.get(found[1] or found[2], found[0])), text)
    return text
