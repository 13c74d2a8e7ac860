"""A server that answers as Jenkins' JSON API does, as far as `pdrgate fetch` asks: jobs, builds, archives, logins.

It stands for a Jenkins, which cannot be had here; what it answers follows the API's documentation.
"""

from __future__ import annotations

import base64
import http.server
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LOGIN = "<html><body>Sign in</body></html>"


@dataclass
class Build:
    number: int
    result: str | None = "SUCCESS"
    """None while it runs."""
    keep: bool = False
    archive: Mapping[str, bytes] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        return {
            "_class": "org.jenkinsci.plugins.workflow.job.WorkflowRun",
            "number": self.number,
            "building": self.result is None,
            "result": self.result,
            "keepLog": self.keep,
            "artifacts": [{"fileName": path.rpartition("/")[2], "relativePath": path} for path in self.archive],
        }


@dataclass
class Jenkins:
    """``jobs`` by path (``folder/name``); a job of None is a folder, which has no builds."""

    jobs: dict[str, list[Build] | None] = field(default_factory=dict)
    root: str = "/"
    user: str = ""
    token: str = ""
    """Where they are set, only this user may read."""
    page: str | None = None
    """Sent in place of everything, as a proxy's page of a login would be."""
    status: int | None = None
    """Of everything, where it is set."""
    silent: bool = False
    torn: bool = False
    """Whether archived files end in the middle."""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.root}"

    def job(self, name: str) -> str:
        return self.url + "".join(f"job/{part}/" for part in name.split("/"))

    def answer(self, path: str, authorization: str | None) -> tuple[int, str, bytes]:
        """Status, media type and content."""
        self.asked.append(path)
        if self.status is not None:
            return self.status, "text/html", b"<html>\n<h1>Oops</h1>\n</html>"
        if self.page is not None:
            return 200, "text/html;charset=utf-8", self.page.encode()
        if self.user:
            if authorization is None:
                return 403, "text/html", LOGIN.encode()
            if base64.b64decode(authorization.removeprefix("Basic ")).decode() != f"{self.user}:{self.token}":
                return 401, "text/html", LOGIN.encode()
        return self._found(urlsplit(path).path.removeprefix(self.root), parse_qs(urlsplit(path).query))

    def _found(self, path: str, query: Mapping[str, list[str]]) -> tuple[int, str, bytes]:
        missing = 404, "text/html", b"<html>Not Found</html>"
        match = re.fullmatch(r"((?:job/[^/]+/)+)(?:(\w+)/)?(?:api/json|artifact/(.+))", path)
        if match is None:
            return missing
        name = "/".join(unquote(part) for part in re.findall(r"job/([^/]+)/", match[1]))
        if name not in self.jobs:
            return missing
        builds = self.jobs[name]
        if match[2] is None or builds is None:
            told = {"_class": "com.cloudbees.hudson.plugins.folder.Folder"}
            if builds is not None:
                told = {"_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob"}
                told |= {"allBuilds": [build.told() for build in reversed(builds)]}
            return 200, "application/json;charset=utf-8", json.dumps(pruned(told, query["tree"][0])).encode()
        build = self._build(builds, match[2])
        if build is None:
            return missing
        if match[3] is None:
            return 200, "application/json;charset=utf-8", json.dumps(pruned(build.told(), query["tree"][0])).encode()
        content = build.archive.get(unquote(match[3]))
        return missing if content is None else (200, "application/json", content)

    @staticmethod
    def _build(builds: list[Build], called: str) -> Build | None:
        if called == "lastSuccessfulBuild":
            return next((build for build in reversed(builds) if build.result == "SUCCESS"), None)
        return next((build for build in builds if str(build.number) == called), None)


def pruned(told: Any, tree: str) -> Any:
    """Only the keys of ``tree``, as ``a,b[c]``, and ``_class``, which Jenkins always tells."""
    kept = {"_class": told["_class"]} if "_class" in told else {}
    for key, inner in re.findall(r"(\w+)(?:\[([^\]]*)\])?", tree):
        if key in told:
            kept[key] = [pruned(entry, inner) for entry in told[key]] if inner else told[key]
    return kept


@contextmanager
def serving(jenkins: Jenkins) -> Iterator[Jenkins]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if jenkins.silent:
                jenkins.released.wait()
                return
            status, kind, content = jenkins.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("X-Jenkins", "2.492.3")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if jenkins.torn and "/artifact/" in self.path else content)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        jenkins.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield jenkins
        finally:
            jenkins.released.set()
            server.shutdown()
            thread.join()
