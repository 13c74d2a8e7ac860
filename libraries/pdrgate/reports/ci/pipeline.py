"""The job of a CI that a report is made in, read from the environment variables that the CI sets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

_ADDRESS = re.compile(r"https?://[!-'*-;=?-Z_a-z~\[\]]+")
"""An address that ends neither a link of Markdown nor an attribute of HTML."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A job of a CI, or none."""

    kind: str
    name: str
    number: str = ""
    url: str = ""
    """The job's page; empty where none is known."""
    pages: str = ""
    """Address of the files that the job keeps; empty where nobody does."""
    commits: str = ""
    """An address that a commit completes to its page; empty where none is known."""
    commit: str = ""
    """The commit that the job is of."""

    def page_of(self, commit: str) -> str:
        """The page of a commit; empty where none is known."""
        wanted = commit or self.commit
        return f"{self.commits}{wanted}" if self.commits and _COMMIT.fullmatch(wanted) else ""


def pipeline(variables: Mapping[str, str] = os.environ) -> Pipeline:
    """The job that this program runs in; without one it is pdrgate itself."""
    get = variables.get
    if "JENKINS_URL" in variables and "BUILD_URL" in variables:
        url = _address(get("BUILD_URL", ""))
        repository = _address(get("GIT_URL", "").removesuffix(".git"))
        return Pipeline(
            "jenkins", "Jenkins", get("BUILD_NUMBER", ""), url, _below(url, "artifact/"),
            _below(repository, "commit/"), get("GIT_COMMIT", ""),
        )  # fmt: skip
    if get("GITHUB_ACTIONS") == "true":
        repository = _below(get("GITHUB_SERVER_URL", "https://github.com"), get("GITHUB_REPOSITORY", ""))
        url = _below(repository, f"actions/runs/{get('GITHUB_RUN_ID', '')}")
        return Pipeline(
            "github", "GitHub Actions", get("GITHUB_RUN_NUMBER", ""), url, f"{url}#artifacts" if url else "",
            _below(repository, "commit/"), get("GITHUB_SHA", ""),
        )  # fmt: skip
    if get("GITLAB_CI") == "true":
        url = _address(get("CI_JOB_URL", ""))
        return Pipeline(
            "gitlab", "GitLab CI", get("CI_PIPELINE_IID", ""), url, _below(url, "artifacts/browse"),
            _below(get("CI_PROJECT_URL", ""), "-/commit/"), get("CI_COMMIT_SHA", ""),
        )  # fmt: skip
    return Pipeline("pdrgate", "pdrgate")


def _below(address: str, path: str) -> str:
    known = _address(address)
    return f"{known.rstrip('/')}/{path}" if known else ""


def _address(told: str) -> str:
    """An address that may be shown as a link; empty for anything else."""
    return told if _ADDRESS.fullmatch(told) else ""
