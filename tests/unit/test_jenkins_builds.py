"""`pdrgate fetch`: a result that a Jenkins job archived, from a real HTTP server that answers as Jenkins does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jenkins_server import Build, Jenkins, serving
from made_results import result, scenario

from pdrgate.cli import main
from pdrgate.history.jenkins_builds import Job
from pdrgate.history.results import encoded, read_result
from pdrgate.values.errors import UsageError

RESULT = encoded(result(scenario()))
OTHER = encoded(result(scenario(), run="other"))
ONE = {"gate/local-vm/default/20261101-120000/result.json": RESULT, "gate/local-vm/default/log.html": b"<html>"}
TWO = ONE | {"gate/rack/default/20261101-120000/result.json": OTHER}


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a login nor a proxy of whoever runs the tests."""
    for name in ("JENKINS_USER_ID", "JENKINS_API_TOKEN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def jenkins() -> Iterator[Jenkins]:
    with serving(Jenkins()) as server:
        yield server


def fetched(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output, and what was said beside it."""
    code = main(["fetch", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line that says why there is no result."""
    found, out, err = fetched(capsys, *arguments)
    assert (found, out, err.count("\n")) == (code, "", 1), err
    assert "internal error" not in err
    assert not Path("baseline.json").exists()
    return err


class TestJob:
    @pytest.mark.parametrize(
        ("url", "server", "path", "name", "build"),
        [
            ("https://ci/job/gate/", "https://ci/", "job/gate/", "gate", None),
            ("https://ci:84/jenkins/job/net/job/gate", "https://ci:84/jenkins/", "job/net/job/gate/", "net/gate", None),
            ("https://ci/view/all/job/gate/42/", "https://ci/", "job/gate/", "gate", "42"),
            ("http://ci/job/net/view/x/job/gate/lastStableBuild/", "http://ci/", "job/net/job/gate/", "net/gate",
             "lastStableBuild"),
            ("https://ci/job/kernel/job/feature%252Fx/", "https://ci/", "job/kernel/job/feature%252Fx/",
             "kernel/feature%2Fx", None),
            ("https://ci/j/user/me/my-views/view/all/job/gate/9/", "https://ci/j/", "job/gate/", "gate", "9"),
            ("https://ci/me/my-views/view/all/job/gate/", "https://ci/", "job/gate/", "gate", None),
            ("https://ci/me/job/gate/", "https://ci/me/", "job/gate/", "gate", None),
            ("https://ci/blue/organizations/jenkins/net%2Fgate/detail/gate/12/pipeline", "https://ci/",
             "job/net/job/gate/", "net/gate", "12"),
            ("https://ci/j/blue/organizations/jenkins/gate/detail/feature%2Fx/3/pipeline/36", "https://ci/j/",
             "job/gate/job/feature%252Fx/", "gate/feature%2Fx", "3"),
            ("https://ci/blue/organizations/jenkins/My%20Gate/activity", "https://ci/", "job/My%20Gate/", "My Gate",
             None),
            ("https://[::1]:80/job/a%20b/console", "https://[::1]:80/", "job/a%20b/", "a b", None),
            ("https://ci/job/net/job/gate/arch=x86,cc=gcc/7/artifact/a=b/", "https://ci/",
             "job/net/job/gate/arch=x86,cc=gcc/", "net/gate/arch=x86,cc=gcc", "7"),
            ("https://ci/job/gate/7/arch%3Dx86/console", "https://ci/", "job/gate/arch%3Dx86/", "gate/arch=x86", "7"),
            ("https://ci/job/gate/arch=x86/", "https://ci/", "job/gate/arch=x86/", "gate/arch=x86", None),
            ("https://ci/job/gate/arch=x86/lastStableBuild/", "https://ci/", "job/gate/arch=x86/", "gate/arch=x86",
             "lastStableBuild"),
            ("https://ci/job/gate/default/7/", "https://ci/", "job/gate/default/", "gate/default", "7"),
            ("https://ci/job/gate/org.example$router/7/", "https://ci/", "job/gate/org.example$router/",
             "gate/org.example$router", "7"),
            ("https://ci/job/gate/7/org.example%24router/", "https://ci/", "job/gate/org.example%24router/",
             "gate/org.example$router", "7"),
            ("https://ci/job/gate/7/artifact/a=b/", "https://ci/", "job/gate/", "gate", "7"),
            ("https://ci/job/gate/ws/a=b/", "https://ci/", "job/gate/", "gate", None),
        ],
    )  # fmt: skip
    def test_it_is_what_a_browser_shows(self, url: str, server: str, path: str, name: str, build: str | None) -> None:
        job = Job.parse(url)
        assert (job.server, job.path, job.name, job.build) == (server, path, name, build)

    @pytest.mark.parametrize(
        "url", ["", "gate", "ftp://ci/job/x/", "https:///job/x/", "http://[::1/job/x", "https://ci:x/job/x/", "https://ci/",
                "https://ci/job/", "https://ci/view/all/"],
    )  # fmt: skip
    def test_any_other_text_is_a_usage_error(self, url: str) -> None:
        with pytest.raises(UsageError, match=r"no address of a Jenkins job|names no job"):
            Job.parse(url)

    def test_a_password_in_it_is_refused_and_not_repeated(self) -> None:
        with pytest.raises(UsageError, match="must hold no password") as caught:
            Job.parse("https://me:secret@ci/job/gate/")
        assert "secret" not in str(caught.value)


class TestWhichBuild:
    def test_the_newest_that_is_kept_and_passed_is_the_pin(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]
    ) -> None:
        jenkins.jobs["gate"] = [
            Build(1, keep=True), Build(2, keep=True, archive=ONE), Build(3, "FAILURE", keep=True),
            Build(4), Build(5, None),
        ]  # fmt: skip
        code, out, err = fetched(capsys, jenkins.job("gate"))
        assert (code, out) == (0, "baseline.json\n")
        assert err == (
            "pdrgate: note: build 2 of gate: NO_BASELINE (gate/local-vm/default/20261101-120000/result.json)\n"
        )
        assert Path("baseline.json").read_bytes() == RESULT

    def test_none_is_taken_for_a_pin_that_nobody_kept(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]
    ) -> None:
        jenkins.jobs["gate"] = [Build(1, archive=ONE), Build(2, archive=ONE)]
        assert refused(capsys, jenkins.job("gate")) == (
            "pdrgate: job gate keeps no build forever, so that no baseline is pinned; press 'Keep this build forever' "
            "on the build to compare with, or ask for --build lastSuccessfulBuild\n"
        )
        jenkins.jobs["gate"] = [Build(1, "FAILURE", keep=True, archive=ONE)]
        assert "keeps no build forever that passed (1 that did not), so" in refused(capsys, jenkins.job("gate"))

    @pytest.mark.parametrize("asked", ["1", "lastSuccessfulBuild"])
    def test_one_that_is_asked_for_by_name(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], asked: str
    ) -> None:
        jenkins.jobs["gate"] = [Build(1, archive=ONE), Build(2, "FAILURE", keep=True)]
        assert fetched(capsys, jenkins.job("gate"), "--build", asked)[0] == 0
        assert fetched(capsys, f"{jenkins.job('gate')}{asked}/", "--output", "again.json")[:2] == (0, "again.json\n")
        # What a name means is looked up once: another build may bear it by now.
        assert jenkins.asked[-1].endswith("/1/artifact/gate/local-vm/default/20261101-120000/result.json")

    def test_one_that_is_not_there_or_still_running(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.jobs["gate"] = [Build(7, None)]
        assert "job gate has no build 6; http" in refused(capsys, jenkins.job("gate"), "--build", "6")
        name = "lastSuccessfulBuild"
        assert f"has no build {name}; " in refused(capsys, jenkins.job("gate"), "--build", name)
        assert "build 7 of gate is still running; wait" in refused(capsys, jenkins.job("gate"), "--build", "7")
        assert "no build is called '../x'" in refused(capsys, jenkins.job("gate"), "--build", "../x", code=64)


class TestWhichResult:
    def test_of_several_the_one_in_a_folder(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.jobs["net/gate"] = [Build(1, keep=True, archive=TWO)]
        for folder in ("rack", "rack/default", "/gate/r*/"):
            assert fetched(capsys, jenkins.job("net/gate"), "--in", folder)[0] == 0
            assert read_result(Path("baseline.json")).run == "other"

    def test_which_there_are_is_told_otherwise(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.jobs["gate"] = [Build(1, keep=True, archive=TWO), Build(2, archive={"log.html": b""})]
        folders = "gate/local-vm/default/20261101-120000, gate/rack/default/20261101-120000"
        assert refused(capsys, jenkins.job("gate")).endswith(
            f"build 1 of gate archived 2 results; choose one with --in FOLDER: {folders}\n"
        )
        assert refused(capsys, jenkins.job("gate"), "--in", "rac").endswith(
            f"archived no result in a folder rac; there are {folders}\n"
        )
        assert "build 2 of gate archived no result.json" in refused(capsys, jenkins.job("gate"), "--build", "2")

    @pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'{"schema": 99}', RESULT[:-9]])
    def test_what_is_no_result_leaves_the_last_one(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], content: bytes
    ) -> None:
        jenkins.jobs["gate"] = [Build(1, keep=True, archive={"result.json": content})]
        Path("kept.json").write_bytes(RESULT)
        err = refused(capsys, jenkins.job("gate"), "--output", "kept.json")
        assert f"{jenkins.job('gate')}1/artifact/result.json " in err
        assert Path("kept.json").read_bytes() == RESULT

    def test_a_folder_that_is_not_there_is_made(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.jobs["gate"] = [Build(1, keep=True, archive=ONE)]
        assert fetched(capsys, jenkins.job("gate"), "--output", "new/b.json")[:2] == (0, "new/b.json\n")
        assert Path("new/b.json").is_file()


class TestLogin:
    @pytest.fixture
    def jenkins(self) -> Iterator[Jenkins]:
        jobs: dict[str, list[Build] | None] = {"gate": [Build(1, keep=True, archive=ONE)]}
        with serving(Jenkins(jobs, "/jenkins/", "alice", "s3cret")) as server:
            yield server

    def login(self, monkeypatch: pytest.MonkeyPatch, user: str, token: str) -> None:
        monkeypatch.setenv("JENKINS_USER_ID", user)
        monkeypatch.setenv("JENKINS_API_TOKEN", token)

    def test_the_environments_is_used(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.login(monkeypatch, "alice", "s3cret")
        assert fetched(capsys, jenkins.job("gate"))[0] == 0

    def test_a_wrong_one_is_told_and_never_printed(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.login(monkeypatch, "alice", "0ther")
        err = refused(capsys, jenkins.job("gate"))
        assert "refuses the API token of user alice (401); set JENKINS_USER_ID and JENKINS_API_TOKEN" in err
        assert "0ther" not in err

    def test_without_one(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        assert refused(capsys, jenkins.job("gate")) == (
            "pdrgate: job gate: it is only shown after a login (set JENKINS_USER_ID and JENKINS_API_TOKEN) (403); it "
            "takes the permission Job/Read there\n"
        )

    def test_half_of_one_is_a_usage_error(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.login(monkeypatch, "alice", "")
        assert "JENKINS_API_TOKEN is not set: set both" in refused(capsys, jenkins.job("gate"), code=64)
        assert not jenkins.asked

    def test_what_the_user_may_not_see_looks_as_if_it_were_not_there(
        self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.login(monkeypatch, "alice", "s3cret")
        assert "job other is not there, or user alice may not read it (404" in refused(capsys, jenkins.job("other"))


class TestServer:
    def test_a_silent_one(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.silent = True
        assert "has said nothing for 50 ms; is Jenkins up?" in refused(
            capsys, jenkins.job("gate"), "--patience", "50 ms"
        )
        for patience in ("0", "25 h"):  # a socket takes no more than 24 days
            told = refused(capsys, jenkins.job("gate"), "--patience", patience, code=64)
            assert "a server needs some patience, and a day at most" in told

    def test_one_that_sends_a_page(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.page = "<html>\nlog in\n</html>"
        for arguments in ((), ("--build", "1")):
            assert "answered with text/html that is no answer of Jenkins' API" in refused(
                capsys, jenkins.job("gate"), *arguments
            )

    @pytest.mark.parametrize(
        "page", ids=range(5), argvalues=["[1]", "[" * 100_000, '{"allBuilds":', '{"allBuilds": [{}]}', "\xff"]
    )
    def test_one_that_sends_other_json(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], page: str) -> None:
        jenkins.page = page
        assert "no answer of Jenkins' API" in refused(capsys, jenkins.job("gate"))

    def test_a_folder_is_no_job(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.jobs["net"] = None
        assert "is no job with builds (a folder?); name a job in it" in refused(capsys, jenkins.job("net"))

    @pytest.mark.parametrize("status", [500, 503])
    def test_one_that_fails(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str], status: int) -> None:
        jenkins.status = status
        assert f"fails with {status} " in refused(capsys, jenkins.job("gate"))

    def test_one_that_hangs_up_in_the_middle(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        jenkins.jobs["gate"] = [Build(1, keep=True, archive=ONE)]
        jenkins.torn = True
        assert "cannot be reached, or hung up" in refused(capsys, jenkins.job("gate"))

    def test_one_that_is_not_there(self, jenkins: Jenkins, capsys: pytest.CaptureFixture[str]) -> None:
        assert "cannot be reached" in refused(capsys, "http://127.0.0.1:1/job/gate/")
        assert "does not speak TLS" in refused(capsys, jenkins.job("gate").replace("http:", "https:"))
