"""What GitHub does with a workflow, as far as ours use it: jobs, matrices, expressions, composite actions.

Steps of shell are executed for real. Of actions/… the runner does itself what they are for: checkouts are clones,
artifacts folders; caches are empty, and what is to be kept is noted.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(r"'(?:[^']|'')*'|&&|\|\||[!=]=|[!()]|,|[\w.-]+")
_WORDS = {"&&": " and ", "||": " or ", "!": " not ", "true": "True", "false": "False"}
_SHELLS = {
    "": ("bash", "-e"),
    "bash": ("bash", "--noprofile", "--norc", "-eo", "pipefail"),
}


@dataclass
class Job:
    """A job of a matrix that was run."""

    name: str
    workspace: Path
    succeeded: bool = True
    said: str = ""
    """Standard output of its steps."""
    kept: list[str] = field(default_factory=list)
    """Keys of caches that it has saved."""
    restored: list[str] = field(default_factory=list)
    """Keys of caches that it has asked for."""
    credentials: bool = False
    """Whether its checkout holds a token."""
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass
class GitHub:
    """Runs a workflow.

    Args:
        place: where workspaces and artifacts go.
        remote: the repository that is checked out.
        ours: where actions of OWNER/pdrgate are.
        github: the context of that name, such as ``{"event_name": "pull_request"}``.
        environment: variables that every step has.
    """

    place: Path
    remote: Path
    ours: Path
    github: Mapping[str, Any]
    environment: Mapping[str, str]
    jobs: dict[str, list[Job]] = field(default_factory=dict)
    after: Callable[[Job], None] = lambda job: None
    """Called when a job has ended, such as to do what its code could have done."""

    def run(self, workflow: Path) -> None:
        """Run all jobs whose condition holds, in their order."""
        content = yaml.safe_load(workflow.read_text())
        for name, job in content["jobs"].items():
            needs = job.get("needs", [])
            results = {one: self._result(one) for one in ([needs] if isinstance(needs, str) else needs)}
            ready = all(result == "success" for result in results.values())
            needed = {
                one: {"result": told, "outputs": dict(self.jobs[one][0].outputs) if one in self.jobs else {}}
                for one, told in results.items()
            }
            context = {"github": self.github, "needs": needed}
            if not _holds(job.get("if", ""), context, ready):
                continue
            self.jobs[name] = [self._job(name, job, {**context, "matrix": one}) for one in _cells(job, context)]

    def _result(self, name: str) -> str:
        if name not in self.jobs:
            return "skipped"
        return "success" if all(job.succeeded for job in self.jobs[name]) else "failure"

    def _job(self, name: str, job: Mapping[str, Any], context: Mapping[str, Any]) -> Job:
        workspace = self.place / "-".join((name, *map(str, context["matrix"].values())))
        workspace.mkdir(parents=True)
        made = Job(name, workspace)
        context = {**context, "steps": {}}
        self._steps(made, job["steps"], context, {})
        made.outputs = {key: _text(_filled(value, context)) for key, value in job.get("outputs", {}).items()}
        self.after(made)
        return made

    def _steps(self, job: Job, steps: Any, context: Mapping[str, Any], more: Mapping[str, str]) -> None:
        """Run steps, and put what they output into the context."""
        for step in steps:
            if not _holds(step.get("if", ""), context, job.succeeded):
                continue
            given = {key: _filled(value, context) for key, value in step.get("with", {}).items()}
            outputs: Mapping[str, str] = {}
            if "run" in step:
                (self.place / "outputs").write_text("")
                job.succeeded &= self._shell(job, step, context, more)
                outputs = _outputs((self.place / "outputs").read_text())
            elif step["uses"].startswith("actions/"):
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), f"{step['uses']} may be moved"
                job.succeeded &= self._builtin(job, step["uses"].partition("@")[0], given)
            else:
                outputs = self._action(job, step["uses"], given, context)
            context["steps"][step.get("id", "")] = {"outputs": outputs}

    def _action(
        self, job: Job, uses: str, given: Mapping[str, Any], context: Mapping[str, Any]
    ) -> Mapping[str, str]:  # fmt: skip
        """Run the steps of an action of ours; what it outputs."""
        words, _, reference = uses.partition("@")
        assert words.startswith("OWNER/pdrgate"), uses
        assert reference == "REF", uses
        place = self.ours / words.removeprefix("OWNER/pdrgate").strip("/")
        action = yaml.safe_load((place / "action.yml").read_text())
        assert given.keys() <= action["inputs"].keys(), f"{uses} has no input {given.keys() - action['inputs'].keys()}"
        inputs = {name: _filled(str(one.get("default", "")), context) for name, one in action["inputs"].items()} | given
        inner = {**context, "inputs": {name: _text(value) for name, value in inputs.items()}, "steps": {}}
        self._steps(job, action["runs"]["steps"], inner, {"GITHUB_ACTION_PATH": str(place)})
        return {name: _text(_filled(one["value"], inner)) for name, one in action.get("outputs", {}).items()}

    def _shell(self, job: Job, step: Mapping[str, Any], context: Mapping[str, Any], more: Mapping[str, str]) -> bool:
        script = _text(_filled(step["run"], context))
        own = {key: _text(_filled(value, context)) for key, value in step.get("env", {}).items()}
        files = {"GITHUB_OUTPUT": str(self.place / "outputs"), "GITHUB_STEP_SUMMARY": str(self.place / "summary")}
        done = subprocess.run(
            (*_SHELLS[step.get("shell", "")], "-c", script), cwd=job.workspace, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**self.environment, **files, **more, **own},
        )  # fmt: skip
        job.said += done.stdout
        return done.returncode == 0

    def _builtin(self, job: Job, name: str, given: Mapping[str, Any]) -> bool:
        artifacts = self.place / "artifacts"
        match name:
            case "actions/checkout":
                job.credentials = given.get("persist-credentials", True)
                options = ["--quiet", *([f"--filter={given['filter']}"] if "filter" in given else [])]
                if given.get("fetch-depth", 1) != 0:
                    options.append("--depth=1")
                for words in (("clone", *options, f"file://{self.remote}", "."), ("checkout", "-q", given["ref"])):
                    subprocess.run(("git", *words), cwd=job.workspace, check=True, capture_output=True)
            case "actions/upload-artifact":
                found = [job.workspace / one for one in given["path"].split("\n") if one and not one.startswith("!")]
                if not any(one.exists() for one in found):
                    return bool(given["if-no-files-found"] == "ignore")
                shutil.copytree(found[0], artifacts / given["name"], symlinks=True, dirs_exist_ok=True)
            case "actions/download-artifact":
                if "name" in given:
                    if not (artifacts / given["name"]).exists():
                        return False
                    shutil.copytree(artifacts / given["name"], job.workspace / given["path"], symlinks=True)
                else:
                    for one in artifacts.glob(given["pattern"]):
                        shutil.copytree(one, job.workspace / given["path"] / one.name, symlinks=True)
            case "actions/cache/save":
                job.kept.append(given["key"])
            case "actions/cache/restore":
                job.restored.append(given["key"])
            case _:
                raise AssertionError(f"the runner does not know {name}")
        return True


def _outputs(text: str) -> dict[str, str]:
    """What a step has written to its file of outputs: ``name=value``, or ``name<<END`` and lines."""
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition("=")
        if "<<" in name or not equals:
            name, _, end = line.partition("<<")
            value = "\n".join(iter(lambda end=end: next(lines), end))  # type: ignore[misc]
        found[name] = value
    return found


def _cells(job: Mapping[str, Any], context: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The cells of a matrix; of no matrix an empty one."""
    matrix = job.get("strategy", {}).get("matrix", {})
    axes = [_filled(values, context) if isinstance(values, str) else values for values in matrix.values()]
    for cell in itertools.product(*axes):
        yield dict(zip(matrix, cell, strict=True))


def _holds(condition: str, context: Mapping[str, Any], succeeded: bool) -> bool:
    """Whether a condition holds; one that asks for no status asks for success as well."""
    text = _EXPRESSION.sub(r"\1", str(condition))
    asks = re.search(r"\b(always|cancelled|failure|success)\(", text)
    return (succeeded or asks is not None) and (not text or bool(_evaluated(text, context, succeeded)))


def _filled(value: Any, context: Mapping[str, Any]) -> Any:
    """A value with its expressions put in; one that is an expression alone keeps its type."""
    if not isinstance(value, str):
        return value
    whole = _EXPRESSION.fullmatch(value.strip())
    if whole is not None and "}}" not in whole[1]:
        return _evaluated(whole[1], context)
    return _EXPRESSION.sub(lambda found: _text(_evaluated(found[1], context)), value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _evaluated(text: str, context: Mapping[str, Any], succeeded: bool = True) -> Any:
    """What an expression comes to."""
    functions = {
        "fromJSON": json.loads, "always": lambda: True, "cancelled": lambda: False, "failure": lambda: not succeeded,
        "success": lambda: succeeded,
    }  # fmt: skip

    def known(name: str) -> Any:
        found: Any = context
        for part in name.split("."):
            found = found.get(part, "") if isinstance(found, Mapping) else ""
        return found

    words = []
    for token in _TOKEN.findall(text):
        if token in _WORDS:
            words.append(_WORDS[token])
        elif token[0] in "'(),=!" or token in functions:
            words.append(token)
        else:
            words.append(f"known({token!r})")
    return eval("".join(words).strip(), {**functions, "known": known})  # ours, of this repository
