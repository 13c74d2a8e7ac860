"""Results that a Jenkins job archived, over its JSON API.

A build that a person keeps ("Keep this build forever") is the pin of a baseline: without being asked for by name, no
other build is taken, so that a job's baseline never moves by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Self, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import jenkins
import msgspec
import requests

from pdrgate.history.results import RESULT_FILE
from pdrgate.values.errors import DataError, UsageError
from pdrgate.values.printable import redacted
from pdrgate.values.units import Duration

KEPT = "kept"
"""The newest build that is kept forever and succeeded."""
USER, TOKEN = "JENKINS_USER_ID", "JENKINS_API_TOKEN"
"""Environment variables; Jenkins' own command line client reads the same."""

_BUILD = re.compile(r"\d+|last[A-Za-z]*Build")
_PART = re.compile(r"[^=]+=.*|[^$]+\$.+|default")
"""A configuration of a matrix project, by its axes (``label=rack1,compiler=gcc``; ``default`` without axes), or a
module of a Maven project (``GROUP$ARTIFACT``)."""
_BLUE = re.compile(
    r"(?P<root>.*/)blue/organizations/[^/]+/(?P<job>[^/]+)/(?:detail/(?P<leaf>[^/]+)/(?P<build>\d+)|activity|)"
)
"""An address of the interface Blue Ocean: the full name of a job as one part, and its own name or a branch as one."""
_VIEWS = re.compile(r"(?P<root>.*?)(?:/(?:user/[^/]+|me)/my-views)?(?:/view/.*)?")
"""The path before a job: the server's own, and views, which may be a person's."""
_LARGEST = 64 << 20
"""Bytes of an answer. A result has a few megabytes at most; what is larger is none, and must not fill the memory."""
_MOST_PATIENCE = 86400.0
"""Seconds; a socket does not take a month."""
_HERE = ("localhost", "127.0.0.1", "::1")
_NAMED = 6
"""Folders that a message names."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job on a Jenkins server, and perhaps one of its builds."""

    server: str
    """The server's root, with a slash at its end."""
    path: str
    """``job/folder/job/name/``, quoted as in the address that was given. A part of a job follows: its axes or its
    module, which has builds and archives of its own."""
    build: str | None = None

    @classmethod
    def parse(cls, url: str) -> Self:
        """The job that a browser shows at ``url``; views in it are left out.

        Raises:
            UsageError: it is no address of a job, or holds a password.
        """
        try:
            parts = urlsplit(url.strip())
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise UsageError(f"{redacted(url)!r} is no address of a Jenkins job; it looks like https://HOST/job/NAME/")
        if "@" in parts.netloc:
            raise UsageError(f"the address of a job must hold no password, for it is printed; set {USER} and {TOKEN}")
        segments = [segment for segment in _classic(parts.path).split("/") if segment]
        if "job" not in segments:
            raise UsageError(f"{redacted(url)!r} names no job: its path has no /job/NAME/")
        first = segments.index("job")
        before = _VIEWS.fullmatch("".join(f"/{one}" for one in segments[:first]))
        assert before is not None
        names, rest = [], segments[first:]
        while len(rest) > 1 and rest[0] in ("job", "view"):
            if rest[0] == "job":
                names.append(rest[1])
            rest = rest[2:]
        if not names:
            raise UsageError(f"{redacted(url)!r} names no job: its path has no /job/NAME/")
        # A part of a job stands before or behind the number of its build.
        part = next((one for one in rest[:2] if _PART.fullmatch(unquote(one))), None)
        if part is not None and (part == rest[0] or _BUILD.fullmatch(rest[0])):
            rest.remove(part)
            names[-1] += f"/{part}"
        build = rest[0] if rest and _BUILD.fullmatch(rest[0]) else None
        base = f"{before['root']}/"
        return cls(
            urlunsplit((parts.scheme, parts.netloc, base, "", "")), "".join(f"job/{name}/" for name in names), build
        )

    @property
    def url(self) -> str:
        """The address where a browser finds the build."""
        return self.server + self.path

    @property
    def name(self) -> str:
        """``folder/name``, as Jenkins shows it."""
        return "/".join(unquote(name) for name in self.path.removeprefix("job/").rstrip("/").split("/job/"))


def _classic(path: str) -> str:
    """The path of a job's address as Jenkins' own pages have it, of one of Blue Ocean's; any other as it is.

    A branch is a job of the pipeline's, whose name is quoted: quoted again in an address, ``feature%252Fx``.
    """
    if (blue := _BLUE.match(path)) is None:
        return path
    names = [quote(name, safe="") for name in unquote(blue["job"]).split("/")]
    if (leaf := unquote(blue["leaf"] or "")) and quote(leaf, safe="") != names[-1]:
        names.append(quote(quote(leaf, safe=""), safe=""))
    return blue["root"] + "".join(f"job/{name}/" for name in names) + (blue["build"] or "")


@dataclass(frozen=True, slots=True)
class ArchivedResult:
    """The result.json of a build, not yet read as one."""

    build: int
    path: str
    """The path of the result in the archive of the build."""
    url: str
    content: bytes


class _Artifact(msgspec.Struct):
    relativePath: str  # noqa: N815


class _Build(msgspec.Struct):
    """Fields of a build that Jenkins' API returns, by the names that they have there."""

    number: int
    building: bool = False
    result: str | None = None
    keepLog: bool = False  # noqa: N815
    artifacts: list[_Artifact] = []


class _Builds(msgspec.Struct):
    allBuilds: list[_Build] | None = None  # noqa: N815
    """The builds of the job; None for what is no job, such as a folder."""


_Answer = TypeVar("_Answer", _Build, _Builds)


class JenkinsBuilds:
    """The builds of one job, and what they archived.

    Args:
        patience: how long the server may be silent.
        environ: has the user and its API token under ``USER`` and ``TOKEN``, or neither of them.

    Raises:
        UsageError: of user and token, one is set and the other is not; or no patience at all, or for ever.
    """

    def __init__(self, job: Job, patience: Duration, environ: Mapping[str, str] = os.environ) -> None:
        self.job = job
        self._patience = patience
        self._user, token = environ.get(USER) or None, environ.get(TOKEN) or None
        if (self._user is None) != (token is None):
            unset = USER if self._user is None else TOKEN
            raise UsageError(f"{unset} is not set: set both {USER} and {TOKEN}, or neither")
        if not 0 < patience <= _MOST_PATIENCE:
            raise UsageError(
                "a server needs some patience, and a day at most; leave --patience out, or name a time such as 30 s"
            )
        self._server = jenkins.Jenkins(job.server, self._user, token, timeout=float(patience))

    def result(self, build: str, folder: str | None = None) -> ArchivedResult:
        """The result.json that a build archived.

        Args:
            build: ``kept``, a number, or a name that Jenkins keeps for one, such as ``lastSuccessfulBuild``.
            folder: of several results, the one that lies in such a folder of the archive (``testbed/scenario``, or a
                glob); None where there is but one.

        Raises:
            UsageError: no build can be called so.
            DataError: the server, the job, the build or its archive does not have it; the message says what to do.
        """
        if build != KEPT and not _BUILD.fullmatch(build):
            raise UsageError(f"no build is called {build!r}: a number, lastSuccessfulBuild, or {KEPT}")
        number = str(self._kept()) if build == KEPT else build
        tree = "number,building,artifacts[relativePath]"
        found = self._asked(f"{number}/", tree, _Build, f"has no build {number}; {self.job.url} lists them")
        exact = found.number  # a name may mean another build a moment later
        if found.building:
            raise DataError(f"build {exact} of {self.job.name} is still running; wait for it, or name another --build")
        path = _chosen([one.relativePath for one in found.artifacts], folder, f"build {exact} of {self.job.name}")
        place = f"{exact}/artifact/{quote(path)}"
        gone = f"has no {path} in build {exact} any more, or {self._hidden}"
        return ArchivedResult(exact, path, f"{self.job.url}{place}", self._get(place, {}, gone)[0])

    def _kept(self) -> int:
        found = self._asked("", "allBuilds[number,result,keepLog]", _Builds, f"is not there, or {self._hidden}")
        if found.allBuilds is None:
            raise DataError(f"{self.job.url} is no job with builds (a folder?); name a job in it, such as …/job/main/")
        kept = [build for build in found.allBuilds if build.keepLog]
        passed = [build.number for build in kept if build.result == "SUCCESS"]
        if not passed:
            failed = f" that passed ({len(kept)} that did not)" if kept else ""
            raise DataError(
                f"job {self.job.name} keeps no build forever{failed}, so that no baseline is pinned; press 'Keep this "
                f"build forever' on the build to compare with, or ask for --build lastSuccessfulBuild"
            )
        return max(passed)

    @property
    def in_the_clear(self) -> bool:
        """Whether the token goes over a network without encryption."""
        parts = urlsplit(self.job.server)
        return self._user is not None and parts.scheme == "http" and parts.hostname not in _HERE

    @property
    def _hidden(self) -> str:
        """Why it may look as if something were not there."""
        if self._user:
            return f"user {self._user} may not read it"
        return f"it is only shown after a login (set {USER} and {TOKEN})"

    def _asked(self, place: str, tree: str, answer: type[_Answer], missing: str) -> _Answer:
        """Answer of the API at ``place``, below the job, with the keys of ``tree``.

        Raises DataError where the answer is not the JSON that was asked for, or where `_get` fails.
        """
        content, kind = self._get(f"{place}api/json", {"tree": tree}, missing)
        try:
            return msgspec.json.decode(content, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DataError(
                f"{self.job.url} answered with {kind or 'something'} that is no answer of Jenkins' API (the page of a "
                f"login or of a proxy?); name the address of a job, and set {USER} and {TOKEN} where a login is needed"
            ) from None

    def _get(self, place: str, query: Mapping[str, str], missing: str) -> tuple[bytes, str]:
        """The content at ``place``, below the job, and its media type; ``missing`` says what 404 means."""
        url = self.job.url + place
        try:
            response = self._server.jenkins_request(
                requests.Request("GET", url, params=dict(query)), add_crumb=False, stream=True
            )
            with response:
                content = bytearray()
                for chunk in response.iter_content(1 << 16):
                    content += chunk
                    if len(content) > _LARGEST:
                        raise DataError(f"{url} is larger than {_LARGEST >> 20} MiB, which no result is; was it named?")
                return bytes(content), response.headers.get("Content-Type", "").partition(";")[0]
        except jenkins.NotFoundException:
            raise DataError(f"job {self.job.name} {missing} (404 at {url})") from None
        except (jenkins.TimeoutException, requests.Timeout):
            raise self._silent() from None
        except (jenkins.JenkinsException, requests.RequestException) as error:
            raise self._fault(error) from None

    def _silent(self) -> DataError:
        return DataError(
            f"{self.job.server} has said nothing for {self._patience}; is Jenkins up? ask again, or with a longer "
            "--patience"
        )

    def _fault(self, error: Exception) -> DataError:
        """Error with the cause of a failed request, in one line.

        The library gives the status only as text, so the answer itself is taken from the exception's context.
        """
        cause = error if isinstance(error, requests.RequestException) else error.__context__
        where = self.job.server
        if isinstance(cause, requests.HTTPError):
            status = cause.response.status_code
            if status == requests.codes.unauthorized:
                refused = f"the API token of user {self._user}" if self._user else "a caller who does not log in"
                return DataError(
                    f"{where} refuses {refused} (401); set {USER} and {TOKEN}, made on the user's own page"
                )
            if status == requests.codes.forbidden:
                return DataError(f"job {self.job.name}: {self._hidden} (403); it takes the permission Job/Read there")
            return DataError(
                f"{where} fails with {status} {cause.response.reason}; see the log of Jenkins, or of its proxy"
            )
        if isinstance(cause, requests.exceptions.SSLError) and "CERTIFICATE" in str(cause):
            return DataError(
                f"the certificate of {where} is not trusted here; name the file of its authority in REQUESTS_CA_BUNDLE"
            )
        if isinstance(cause, requests.ConnectionError) and "timed out" in str(cause):
            return self._silent()  # silent in the middle of its answer
        if isinstance(cause, requests.exceptions.SSLError):
            return DataError(f"{where} does not speak TLS; is it http:// there?")
        if isinstance(cause, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
            return DataError(f"{where} cannot be reached, or hung up; check the address, the network and the proxy")
        return DataError(f"{where} cannot be asked: {error}")


def _chosen(paths: Sequence[str], folder: str | None, source: str) -> str:
    """The one result among archived files that lies in ``folder``."""
    results = sorted(path for path in paths if PurePosixPath(path).name == RESULT_FILE)
    if not results:
        raise DataError(f"{source} archived no {RESULT_FILE}; have its pipeline archive the folder of the run")
    wanted = (folder or "*").strip("/")
    fitting = [
        path for path in results if folder is None or fnmatchcase(f"/{PurePosixPath(path).parent}/", f"*/{wanted}/*")
    ]
    if len(fitting) == 1:
        return fitting[0]
    offered = fitting or results
    folders = ", ".join(str(PurePosixPath(path).parent) for path in offered[:_NAMED])
    more = f" and {len(offered) - _NAMED} more" if len(offered) > _NAMED else ""
    if fitting:
        raise DataError(f"{source} archived {len(fitting)} results; choose one with --in FOLDER: {folders}{more}")
    raise DataError(f"{source} archived no result in a folder {wanted}; there are {folders}{more}")
