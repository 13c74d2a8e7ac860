"""News of a series of runs: once, by a webhook, by mail and as an issue, against real servers on loopback."""

from __future__ import annotations

import dataclasses
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from flat_values import changed
from made_results import compared, result, written
from mail_server import Mails, mail_server

from pdrgate.cli import main
from pdrgate.news.standing import StandingChange, news_of
from pdrgate.results.acknowledgement import Acknowledgement
from pdrgate.results.model import FunctionChange, LeftOutPath, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict


def slower(by: float = 0.04, function: str = "nft_do_chain", word: str = "REGRESSION") -> ScenarioResult:
    """NAT, whose packets cost that much more, nearly all of it in one function."""
    found = compared(word)
    assert found.comparison is not None
    change = dataclasses.replace(
        found.comparison.changes[0], measurand="cost", unit="instructions/packet", better="lower", baseline=5000.0,
        candidate=5000.0 * (1 + by), change=by, lower=by, upper=by, tolerance=0.01, verdict=Verdict(word),
    )  # fmt: skip
    of = FunctionChange(function=function, before=100.0, after=100.0 + 5000.0 * by, change=5000.0 * by, sure=True)
    whole = dataclasses.replace(found.comparison, changes=(change,), functions=(of,))
    return changed(found, name="nat-1cpu", test="NAT", comparison=whole, pdr=None)


def passing() -> ScenarioResult:
    """NAT as it was."""
    return changed(compared("PASS"), name="nat-1cpu", test="NAT", pdr=None)


def heard(*runs: RunResult) -> list[list[tuple[str, str]]]:
    """The kinds and paths of the news of each run in turn."""
    known: dict[str, StandingChange] = {}
    found = []
    for one in runs:
        news = news_of(one, known)
        found.append([(item.kind, item.path) for item in news.items])
        known = dict(news.standing)
    return found


def test_a_change_is_news_when_it_appears_and_when_it_goes_and_not_between() -> None:
    days = [result(one) for one in (passing(), slower(), slower(0.041), slower(0.039), passing(), passing())]
    assert heard(*days) == [[], [("new", "NAT")], [], [], [("gone", "NAT")], []]


def test_another_function_and_another_size_are_news() -> None:
    days = [result(one) for one in (slower(), slower(function="ip_rcv"), slower(0.08, "ip_rcv"))]
    assert heard(*days) == [[("new", "NAT")], [("changed", "NAT")], [("changed", "NAT")]]


def test_a_creep_in_steps_below_the_tolerance_is_news_once_it_adds_up() -> None:
    days = [result(slower(size)) for size in (0.04, 0.048, 0.056)]
    assert heard(*days) == [[("new", "NAT")], [], [("changed", "NAT")]]


@pytest.mark.parametrize("word", ["INCONCLUSIVE", "DISTURBED", "ERROR"])
def test_a_night_without_an_answer_neither_ends_nor_repeats_a_change(word: str) -> None:
    blind = changed(slower(), verdict=Verdict(word))
    paths = [path for day in heard(result(slower()), result(blind), result(slower())) for _, path in day]
    assert paths.count("NAT") == 1


def test_a_fault_of_the_testbed_is_news_of_its_own() -> None:
    days = [result(one) for one in (passing(), compared("DISTURBED"), compared("DISTURBED"), passing())]
    assert heard(*days) == [[], [("new", "the testbed local-netns")], [], [("gone", "the testbed local-netns")]]


def test_a_path_that_a_tool_kept_from_being_measured_is_a_fault_of_the_testbed() -> None:
    left = (LeftOutPath(path="VXLAN", reason="apt-get download failed", is_fault=True),)
    red = dataclasses.replace(result(slower()), left_out=left)
    assert heard(result(slower()), red, red, result(slower())) == [
        [("new", "NAT")], [("new", "the testbed local-netns")], [], [("gone", "the testbed local-netns")]
    ]  # fmt: skip
    (item,) = news_of(red, {"nat-1cpu": news_of(result(slower()), {}).standing["nat-1cpu"]}).items
    assert item.sentence == "VXLAN was not measured: apt-get download failed"


def test_a_change_that_is_acknowledged_goes() -> None:
    known = Acknowledgement(path="NAT", tolerance=0.05, reason="a lock", until="2100-01-31", by="Ann")
    quiet = changed(slower(), acknowledged=(known,))
    assert heard(result(slower()), result(quiet, verdict=Verdict.PASS)) == [[("new", "NAT")], [("gone", "NAT")]]


@dataclass
class Chat:
    """A chat's server, and what was posted there."""

    url: str = ""
    status: int = 200
    got: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)


@pytest.fixture
def chat() -> Iterator[Chat]:
    own = Chat()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            own.got.append((self.command, self.path, dict(self.headers), json.loads(content)))
            self.send_response(own.status)
            self.end_headers()

        do_POST = do_PUT = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        own.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield own
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def mails() -> Iterator[Mails]:
    with mail_server() as own:
        yield own


def notified(tmp_path: Path, number: int, scenario: ScenarioResult, *words: str) -> int:
    run = written(tmp_path / "runs" / str(number), scenario, started=float(number))
    return main(["notify", str(run), "--history", str(tmp_path / "history.db"), *words])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slack", lambda got: got["text"]),
        ("mattermost", lambda got: got["text"]),
        ("matrix", lambda got: got["body"]),
        ("teams", lambda got: " ".join(one["text"] for one in got["attachments"][0]["content"]["body"])),
    ],
)
def test_each_chat_hears_of_a_change_once(
    name: str, text: Any, chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDRGATE_WEBHOOK", chat.url)
    for number, one in enumerate((passing(), slower(), slower(), passing())):
        assert notified(tmp_path, number, one, "--webhook", name, "--link", "https://ci.example/7") == 0
    assert [method for method, *_ in chat.got] == ["POST", "POST"]
    new, gone = (text(got) for *_, got in chat.got)
    assert "1 new" in new and "NAT" in new and "https://ci.example/7" in new.replace("&#", "")
    assert "1 gone" in gone and "as fast as before again" in gone


def test_matrix_gets_a_name_for_each_message_and_a_token(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDRGATE_WEBHOOK", f"{chat.url}/send/m.room.message/{{id}}")
    monkeypatch.setenv("PDRGATE_WEBHOOK_TOKEN", "secret")
    assert notified(tmp_path, 1, slower(), "--webhook", "matrix") == 0
    ((method, path, headers, _),) = chat.got
    assert method == "PUT" and len(path.rpartition("/")[2]) == 32
    assert headers["Authorization"] == "Bearer secret"


def test_a_file_of_ones_own_is_a_template(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDRGATE_WEBHOOK", chat.url)
    (tmp_path / "own.json").write_text('{"word": "{verdict}", "lines": ["{run}", 7]}')
    assert notified(tmp_path, 1, slower(), "--webhook", str(tmp_path / "own.json")) == 0
    assert chat.got[0][3] == {"word": "REGRESSION", "lines": ["1", 7]}


def test_what_a_server_does_not_take_is_reported_by_the_next_run(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PDRGATE_WEBHOOK", f"{chat.url}?key=secret")
    chat.status = 500
    assert notified(tmp_path, 1, slower(), "--webhook", "slack") == 2
    error = capsys.readouterr().err
    assert "HTTP status 500" in error and "secret" not in error and chat.url not in error
    chat.status = 200
    assert notified(tmp_path, 2, slower(), "--webhook", "slack") == 0
    assert len(chat.got) == 2


def test_a_build_calls_nobody_by_its_name(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDRGATE_WEBHOOK", chat.url)
    evil = changed(slower(), test="<!channel> @all")
    assert notified(tmp_path, 1, evil, "--webhook", "slack") == 0
    text = chat.got[0][3]["text"]
    assert "<!channel>" not in text and "@all" not in text


def test_mail_goes_out_once(mails: Mails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDRGATE_SMTP", mails.address)
    monkeypatch.setenv("PDRGATE_MAIL_FROM", "gate@example.org")
    for number, one in enumerate((slower(), slower(), passing())):
        assert notified(tmp_path, number, one, "--mail", "net@example.org", "--mail", "ann@example.org") == 0
    assert [to for to, _ in mails.got] == 2 * [("net@example.org", "ann@example.org")]
    first = mails.got[0][1]
    assert first["From"] == "gate@example.org" and first["Auto-Submitted"] == "auto-generated"
    assert first["Subject"].startswith("pdrgate nightly: 1 new: REGRESSION")


def test_a_mail_that_is_refused_is_sent_by_the_next_run(
    mails: Mails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDRGATE_SMTP", mails.address)
    mails.refuses = True
    assert notified(tmp_path, 1, slower(), "--mail", "net@example.org") == 2
    mails.refuses = False
    assert notified(tmp_path, 2, slower(), "--mail", "net@example.org") == 0
    assert len(mails.got) == 1


def test_no_password_goes_to_a_mail_server_in_clear_text(
    mails: Mails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PDRGATE_SMTP", mails.address.replace("smtp://", "smtp://ci:hunter2@"))
    assert notified(tmp_path, 1, slower(), "--mail", "net@example.org") == 64
    told = capsys.readouterr().err
    assert "has no TLS, and no password is sent without it; use smtps" in told
    assert "hunter2" not in told
    assert mails.got == []


def test_sendmail_is_asked_where_no_server_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "sendmail"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/words\ncat >{tmp_path}/mail\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.delenv("PDRGATE_SMTP", raising=False)
    assert notified(tmp_path, 1, slower(), "--mail", "net@example.org") == 0
    assert (tmp_path / "words").read_text().split() == ["-t", "-oi"]
    assert "To: net@example.org" in (tmp_path / "mail").read_text()


def test_what_stands_is_a_file_that_is_the_same_from_day_to_day(tmp_path: Path) -> None:
    file, texts = tmp_path / "standing.md", []
    for number, one in enumerate((slower(), slower(0.041), passing())):
        assert notified(tmp_path, number, one, "--standing", str(file)) == 0
        texts.append(file.read_text())
    assert "NAT" in texts[0] and "(since 1970-01-01)" in texts[0]
    assert texts[1:] == [texts[0], ""]


def test_each_way_and_each_series_is_reported_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, of in enumerate(("net", "net", "bpf")):
        assert notified(tmp_path, number, slower(), "--of", of) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "pdrgate net", "new", "pdrgate bpf", "new",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--webhook", "slack"), "PDRGATE_WEBHOOK names no address"),
        (("--webhook", "none.json"), "cannot read the template none.json"),
    ],
)
def test_what_cannot_work_is_a_usage_error(
    words: tuple[str, ...], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if "none.json" in words:
        monkeypatch.setenv("PDRGATE_WEBHOOK", "http://127.0.0.1:9/")
    assert notified(tmp_path, 1, slower(), *words) == 64
    assert error in capsys.readouterr().err
