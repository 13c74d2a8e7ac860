"""A server that keeps comments of pull requests and issues as GitHub does, and as GitLab does."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

LISTS = re.compile(r"/repos/me/linux/issues/5/comments|/projects/9/merge_requests/5/notes")
ISSUES = re.compile(r"/repos/me/linux/issues|/projects/9/issues")
ISSUE = re.compile(r"(?:/repos/me/linux|/projects/9)/issues/(\d+)(/comments|/notes)?")
ONE = re.compile(r"(?:/repos/me/linux/issues/comments|/projects/9/merge_requests/5/notes)/(\d+)")


@dataclass
class Comments:
    token: str
    bodies: list[str] = field(default_factory=list)
    theirs: set[int] = field(default_factory=set)
    """Comments of somebody else, which an owner's token could edit all the same."""
    may_ask: bool = True
    """Whether the token may ask whose it is: that of a workflow may not."""
    url: str = ""
    issues: list[dict[str, Any]] = field(default_factory=list)
    """Issues, each with its title, text, state and comments."""

    def answer(self, method: str, path: str, token: str, content: bytes) -> tuple[int, Any]:
        if token != self.token:
            return 401, {"message": "Bad credentials"}
        where, query = urlsplit(path).path, parse_qs(urlsplit(path).query)
        if where == "/user" and method == "GET":
            us = {"login": "us", "username": "us"}
            return (200, us) if self.may_ask else (403, {"message": "Resource not accessible by integration"})
        if LISTS.fullmatch(where) and method == "GET":
            size, page = int(query["per_page"][0]), int(query["page"][0])
            ours = "us" if self.may_ask else "github-actions[bot]"
            name = {number: "them" if number in self.theirs else ours for number in range(len(self.bodies))}
            by = "login" if where.startswith("/repos") else "username"
            key = "user" if by == "login" else "author"
            told = [{"id": number, "body": body, key: {by: name[number]}} for number, body in enumerate(self.bodies)]
            return 200, told[(page - 1) * size : page * size]
        if LISTS.fullmatch(where) and method == "POST":
            self.bodies.append(json.loads(content)["body"])
            return 201, {}
        on_github = where.startswith("/repos")
        if ISSUES.fullmatch(where):
            return self.all_issues(method, on_github, query, content)
        issue = ISSUE.fullmatch(where)
        if issue:
            return self.one_issue(method, on_github, self.issues[int(issue[1]) - 1], issue[2], json.loads(content))
        one = ONE.fullmatch(where)
        if one and method == ("PATCH" if where.startswith("/repos") else "PUT"):
            self.bodies[int(one[1])] = json.loads(content)["body"]
            return 200, {}
        return 404, {}

    def all_issues(self, method: str, on_github: bool, query: dict[str, list[str]], content: bytes) -> tuple[int, Any]:
        text, number, by = ("body", "number", "login") if on_github else ("description", "iid", "username")
        if method == "POST":
            asked = json.loads(content)
            self.issues.append({"title": asked["title"], "text": asked[text], "open": True, "comments": []})
            return 201, {}
        assert query["state"] == ["open" if on_github else "opened"]
        author = "user" if on_github else "author"
        return 200, [
            {number: at, text: one["text"], author: {by: one.get("by", "us")}}
            for at, one in enumerate(self.issues, start=1)
            if one["open"]
        ]

    def one_issue(
        self, method: str, on_github: bool, issue: dict[str, Any], below: str, asked: dict[str, str]
    ) -> tuple[int, Any]:
        if below:
            if below != ("/comments" if on_github else "/notes") or method != "POST":
                return 404, {}
            issue["comments"].append(asked["body"])
            return 201, {}
        if method != ("PATCH" if on_github else "PUT"):
            return 404, {}
        text, closes = ("body", ("state", "closed")) if on_github else ("description", ("state_event", "close"))
        issue["text"] = asked.get(text, issue["text"])
        if asked.get(closes[0]) == closes[1]:
            issue["open"] = False
        return 200, {}


@contextmanager
def keeping(comments: Comments) -> Iterator[Comments]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("PRIVATE-TOKEN") or self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, told = comments.answer(self.command, self.path, token, content)
            raw = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        comments.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield comments
        finally:
            server.shutdown()
            thread.join()
