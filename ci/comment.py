#!/usr/bin/env python3
"""One comment on a pull request (GitHub) or merge request (GitLab), edited from run to run; or one issue.

Usage: ci/comment.py FILE KEY [--issue]. The comment is FILE, below a mark that is not shown and by which the next run
finds it; several gates of one request have a KEY each. The rest comes from the variables that the two systems set, and
the token from GITHUB_TOKEN or GITLAB_TOKEN. Only a comment of the token's own author is edited: anybody can copy a
mark, and what stands below it then would be said in our name, or ours in theirs. Where there is no request nothing is
done; what fails is one line, exit code 2.

With --issue it is an issue of the repository. It is opened when FILE has something, edited while that changes, with a
comment so that people hear of it, and closed when FILE is empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = 100
LONGEST = 60_000
"""Characters: GitHub takes 65,536 of a comment."""
PATIENCE = 30.0


@dataclass(frozen=True)
class Request:
    """Where the comments of one request are, and how one of them is edited."""

    comments: str
    one: str
    edit: str
    header: tuple[str, str]
    user: str
    """Who we are, where a token may ask that."""
    author: tuple[str, str]
    """The keys of a comment that say by whom it is."""
    otherwise: str = ""
    """Who we are where the token may not ask."""


def github(environ: Mapping[str, str]) -> Request | None:
    number = environ.get("PULL_REQUEST", "")
    if not number:
        return None
    base = f"{environ['GITHUB_API_URL']}/repos/{environ['GITHUB_REPOSITORY']}/issues"
    token = "Authorization", f"Bearer {environ['GITHUB_TOKEN']}"
    user = f"{environ['GITHUB_API_URL']}/user"
    # The token of a workflow may not ask who it is.
    return Request(
        f"{base}/{number}/comments", f"{base}/comments", "PATCH", token, user, ("user", "login"), "github-actions[bot]"
    )


def gitlab(environ: Mapping[str, str]) -> Request | None:
    number = environ.get("CI_MERGE_REQUEST_IID", "")
    if not number:
        return None
    # A merge request lives in the project that it is for, also when the pipeline runs in a fork.
    project = environ.get("CI_MERGE_REQUEST_PROJECT_ID") or environ["CI_PROJECT_ID"]
    notes = f"{environ['CI_API_V4_URL']}/projects/{project}/merge_requests/{number}/notes"
    token = "PRIVATE-TOKEN", environ["GITLAB_TOKEN"]
    return Request(notes, notes, "PUT", token, f"{environ['CI_API_V4_URL']}/user", ("author", "username"))


@dataclass(frozen=True)
class Issues:
    """Where the issues of a repository are, in the words of one of both systems."""

    request: Request
    """As of comments: who we are, and how issues are edited."""
    open: str
    """The state of open ones, in a query."""
    body: str
    """The key of an issue's text."""
    number: str
    close: tuple[str, str]
    """What closes one."""
    comments: str
    """What the address of an issue's comments ends with."""


def github_issues(environ: Mapping[str, str]) -> Issues:
    base = f"{environ['GITHUB_API_URL']}/repos/{environ['GITHUB_REPOSITORY']}/issues"
    token = "Authorization", f"Bearer {environ['GITHUB_TOKEN']}"
    user = f"{environ['GITHUB_API_URL']}/user"
    request = Request(base, base, "PATCH", token, user, ("user", "login"), "github-actions[bot]")
    return Issues(request, "open", "body", "number", ("state", "closed"), "comments")


def gitlab_issues(environ: Mapping[str, str]) -> Issues:
    base = f"{environ['CI_API_V4_URL']}/projects/{environ['CI_PROJECT_ID']}/issues"
    token = "PRIVATE-TOKEN", environ["GITLAB_TOKEN"]
    request = Request(base, base, "PUT", token, f"{environ['CI_API_V4_URL']}/user", ("author", "username"))
    return Issues(request, "opened", "description", "iid", ("state_event", "close"), "notes")


def ask(request: Request, method: str, url: str, **body: str) -> Any:
    content = json.dumps(body).encode() if body else None
    headers = dict([request.header]) | {"Content-Type": "application/json", "Accept": "application/json"}
    asked = urllib.request.Request(url, content, headers, method=method)
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        return json.load(answer)


def us(request: Request) -> str:
    """The name by which the token comments."""
    try:
        return str(ask(request, "GET", request.user)[request.author[1]])
    except (urllib.error.HTTPError, KeyError, TypeError) as error:
        refused = isinstance(error, urllib.error.HTTPError) and error.code in (401, 403, 404)
        if not (refused and request.otherwise):
            raise ValueError(f"the server does not say whose the token is ({error})") from error
        return request.otherwise


def ours(request: Request, mark: str, key: str = "body", state: str = "") -> Iterator[dict[str, Any]]:
    """The comments of our own that begin with the mark, the oldest first; or issues, whose text has another key."""
    kind, name = request.author
    we = us(request)
    page = 1
    of = f"&state={state}" if state else ""
    while True:
        found = ask(request, "GET", f"{request.comments}?per_page={PAGE}&page={page}&sort=asc&order_by=created_at{of}")
        yield from (one for one in found if (one[key] or "").startswith(mark) and (one.get(kind) or {}).get(name) == we)
        if len(found) < PAGE:
            return
        page += 1


def keep_issue(issues: Issues, mark: str, title: str, text: str) -> None:
    """Open, edit or close the issue below the mark: it is open while there is a text."""
    request = issues.request
    body = f"{mark}\n{text[:LONGEST]}"
    known = next(ours(request, mark, issues.body, issues.open), None)
    if known is None:
        if text.strip():
            ask(request, "POST", request.comments, title=title, **{issues.body: body})
        return
    one = f"{request.one}/{known[issues.number]}"
    if not text.strip():
        ask(request, "POST", f"{one}/{issues.comments}", body="Nothing of it stands any more.")
        ask(request, request.edit, one, **dict([issues.close]))
    elif known[issues.body].strip() != body.strip():
        ask(request, request.edit, one, **{issues.body: body})
        ask(request, "POST", f"{one}/{issues.comments}", body=f"What stands has changed:\n\n{text[:LONGEST]}")


def comment(request: Request, mark: str, text: str) -> None:
    body = f"{mark}\n{text[:LONGEST]}"
    for known in ours(request, mark):
        try:
            ask(request, request.edit, f"{request.one}/{known['id']}", body=body)
        except urllib.error.HTTPError as error:
            if error.code not in (401, 403, 404):
                raise
            continue  # somebody else's, with our mark copied into it
        return
    ask(request, "POST", request.comments, body=body)


def content(file: Path) -> str:
    """The text of a file that no link leads to: what stands there is published in our name.

    Raises:
        OSError: it cannot be read, is no plain file, or lies behind a link.
    """
    with contextlib.ExitStack() as stack:
        place = None
        for part in (".", *file.parts[:-1]):
            place = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            stack.callback(os.close, place)
        opened = os.open(file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        text = stack.enter_context(open(opened, "rb"))  # noqa: PTH123 - it is a descriptor
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(f"{file} is no plain file")
        return text.read(4 * LONGEST).decode(errors="replace")


def main(file: str, key: str, what: str = "") -> int:
    on_github = bool(os.environ.get("GITHUB_ACTIONS"))
    try:
        if what == "--issue":
            issues = github_issues(os.environ) if on_github else gitlab_issues(os.environ)
            request: Request | None = issues.request
        else:
            issues, request = None, github(os.environ) if on_github else gitlab(os.environ)
    except KeyError as error:
        print(f"ci/comment.py: {error.args[0]} is not set; see docs/ci.md", file=sys.stderr)
        return 2
    if request is None:
        return 0
    mark = f"<!-- pdrgate {re.sub(r'[^A-Za-z0-9_. /]+', '-', key)} -->"
    try:
        if issues is not None:
            keep_issue(issues, mark, f"pdrgate {key}: the data path changed", content(Path(file)))
        else:
            comment(request, mark, content(Path(file)))
    except (OSError, ValueError) as error:
        # Of an HTTPError this is the status; a token that may not write is the usual reason.
        print(
            f"ci/comment.py: no {'issue' if issues else 'comment'} was written: {error}; may the token write there?",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
