"""How answers of a shell are told apart, whatever the bytes travel by and wherever they are cut."""

from __future__ import annotations

import re
import threading

import pytest

from pdrgate.hosts.host import ShellHost
from pdrgate.hosts.shell import Exchange, ProcessStreams, Shell, ShellError, ShellStreams


class ScriptedStreams:
    """Answers every command with ``out`` and ``err``, cut into pieces; takes ``takes`` bytes at a time."""

    def __init__(self, out: bytes = b"", err: bytes = b"", piece: int = 1 << 16, takes: int = 1 << 16) -> None:
        self.out, self.err, self.piece, self.takes = out, err, piece, takes
        self.heard = b""
        self.pending: list[tuple[bytes, bytes]] = []
        self.ends = False
        self.lost = False
        self.killed = 0
        self.finished = 0
        self.after = b" 7"
        """What stands behind the mark of what a command printed."""

    def exchange(self, pending: bytes, timeout: float) -> Exchange:
        if pending:
            taken = pending[: self.takes]
            self.heard += taken
            if len(taken) == len(pending):
                self._answer()
            return Exchange(sent=len(taken))
        if self.pending:
            out, err = self.pending.pop(0)
            return Exchange(out=out, err=err)
        return Exchange(ended=self.ends)

    def _answer(self) -> None:
        found = re.search(rb"printf '\\n(\w+) %d", self.heard)
        assert found is not None
        mark = found[1]
        self.heard = b""
        if self.ends:
            self.pending = [(b"", b"sh: 1: no more\n")]
            return
        for text, out in (
            (self.out + b"\n" + mark + self.after + b"\n", True),
            (self.err + b"\n" + mark + b"\n", False),
        ):
            pieces = [text[at : at + self.piece] for at in range(0, len(text), self.piece)]
            self.pending += [(piece, b"") if out else (b"", piece) for piece in pieces]

    def end_in_words(self) -> str:
        return "its shell fell asleep"

    def finish(self) -> None:
        self.finished += 1

    def kill(self) -> None:
        self.killed += 1


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 33, 1 << 16])
@pytest.mark.parametrize("text", [b"", b"x", b"\n", b"a\n\nb\n", b"\n0123456789abcdef\n", bytes(range(256))])
def test_answers_are_whole_wherever_they_are_cut(text: bytes, piece: int) -> None:
    shell = Shell(ScriptedStreams(text, text[::-1], piece))
    for _ in range(3):
        assert shell.execute("command", 5) == (7, text, text[::-1])
        assert shell.in_step


def test_a_command_is_sent_piece_by_piece() -> None:
    streams = ScriptedStreams(b"ok", takes=3)
    assert Shell(streams).execute("x" * 1000, 5)[1] == b"ok"


def test_silence_is_told_and_leaves_the_shell_out_of_step() -> None:
    shell = Shell(ScriptedStreams())
    shell.streams.exchange = lambda pending, timeout: Exchange()  # type: ignore[method-assign]
    with pytest.raises(ShellError, match=r"^did not end within 5 s and was killed"):
        shell.execute("command", 5)
    assert not shell.in_step


@pytest.mark.parametrize(("starved", "answers"), [((3.0, 7.0), True), ((3.0, 3.05), False)])
def test_a_machine_without_a_cpu_has_that_much_longer_to_answer(starved: tuple[float, ...], answers: bool) -> None:
    shell = Shell(ScriptedStreams(b"ok"), iter(starved).__next__)
    exchange, silences = shell.streams.exchange, iter((True, True, False))
    shell.streams.exchange = (  # type: ignore[method-assign]
        lambda pending, timeout: Exchange() if next(silences, False) else exchange(pending, timeout)
    )
    if answers:
        assert shell.execute("command", 5)[1] == b"ok"
    else:
        with pytest.raises(ShellError, match=r"^did not end within 5 s and was killed"):
            shell.execute("command", 5)


def test_an_end_is_told_with_the_last_words() -> None:
    streams = ScriptedStreams()
    streams.ends = True
    with pytest.raises(ShellError, match=r"^got no answer: its shell fell asleep: no more$"):
        Shell(streams).execute("command", 5)


class ScriptedHost(ShellHost):
    """Opens scripted shells, and keeps them."""

    def __init__(self) -> None:
        super().__init__("lab", ("sh",))
        self.opened: list[ScriptedStreams] = []

    def _start(self) -> ShellStreams:
        self.opened.append(ScriptedStreams(b"ok"))
        return self.opened[-1]


def test_a_way_that_is_known_to_be_lost_is_replaced_before_anything_is_sent() -> None:
    host = ScriptedHost()
    assert host.run("x", check=False).stdout == "ok"
    host.opened[0].lost = True
    assert host.run("x", check=False).stdout == "ok"
    assert [streams.killed for streams in host.opened] == [1, 0]
    host.close()
    assert (host.opened[1].finished, host.opened[1].killed) == (1, 1)


@pytest.mark.parametrize(
    "after", [b"", b" ", b" x", b" -1", b"7", b" 7 8", b" 1e3", b" " + b"9" * 5000, b" \xb2", b"\0"]
)
def test_a_mark_without_an_exit_code_is_the_hosts_fault_and_the_shell_is_ended(after: bytes) -> None:
    streams = ScriptedStreams()
    streams.after = after
    shell = Shell(streams)
    with pytest.raises(ShellError, match=r"^got an answer without an exit code and was killed; "):
        shell.execute("true", 1.0)
    assert not shell.in_step


def test_a_shell_that_another_thread_ends_has_ended_and_is_no_bad_descriptor() -> None:
    streams = ProcessStreams(("sh",))
    threading.Timer(0.2, streams.kill).start()
    assert any(streams.exchange(b"", 0.5).ended for _ in range(20))
    assert streams.exchange(b"true\n", 0.5).ended
    streams.finish()
    streams.kill()
