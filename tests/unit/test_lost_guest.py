"""What becomes of an error of a guest's shell: the guest's own, or that of a program in it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pdrgate.crashes.source_lines import SourceLines
from pdrgate.guests import guest_bridge, guest_console
from pdrgate.guests.guest import Guest, GuestError
from pdrgate.guests.guest_console import GuestConsole
from pdrgate.guests.guest_ports import GuestPorts
from pdrgate.hosts.host import HostError, NoJsonError


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    """One whose QEMU runs."""
    made = Guest.__new__(Guest)
    made._silent, made._closed, made._process = "", False, SimpleNamespace(poll=lambda: None)  # type: ignore[assignment]
    made.build, made._console = SimpleNamespace(name="linux-a"), GuestConsole(tmp_path, "1")  # type: ignore[assignment]
    made._threads, made._asked = SimpleNamespace(waits=dict), (time.monotonic(), {})  # type: ignore[assignment]
    made.console, made._lines, made.boot_time, made._seen = made._console.path, SourceLines(None), None, 0
    made.console.write_text("[ 1.0] it is up\n")
    return made


def test_a_program_that_answers_otherwise_than_in_json_is_no_lost_guest(guest: Guest) -> None:
    with pytest.raises(NoJsonError, match=r"^`ip -j link` said nothing of use$"), guest._explained():
        raise NoJsonError("`ip -j link` said nothing of use")


def test_a_lost_shell_is_a_lost_guest_whatever_it_was_asked(guest: Guest) -> None:
    """What an error is once was told by words in it."""
    with (
        pytest.raises(
            GuestError, match=r"^linux-a took no `echo printed no JSON` and does not answer; its console ends"
        ),
        guest._explained(),
    ):
        raise HostError("took no `echo printed no JSON`")


@pytest.mark.parametrize(("waited", "starved"), [(9.0, True), (2.0, False)])
def test_a_guest_that_waited_for_a_cpu_most_of_the_time_is_starved(guest: Guest, waited: float, starved: bool) -> None:
    guest._threads = SimpleNamespace(waits=lambda: {"7": waited, "8": 0.5})  # type: ignore[assignment]
    guest._asked = time.monotonic() - 10.0, {"8": 0.4}
    with pytest.raises(GuestError) as error:
        guest._fail("took no `true`")
    assert error.value.starved is starved
    assert ("while this machine had no CPU for it during 9 of 10 s" in str(error.value)) is starved


def test_faults_on_the_console_are_told_once_each_and_what_is_new_is_read_once(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = GuestConsole._bytes

    def counting(console: GuestConsole, at: int, most: int) -> bytes:
        found = real(console, at, most)
        read.append(len(found))
        return found

    monkeypatch.setattr(GuestConsole, "_bytes", counting)
    told = []
    for number in range(50):
        with guest.console.open("a") as file:
            file.write(f"[ {number}.000000] WARNING: CPU: 0 PID: 1 at net/one.c:{number} f{number}+0x1/0x2\n")
            file.write("[ 9.000000] a line\n" * 100)
        told += guest.check()
        assert guest.check() == ()
    assert [crash.where for crash in told] == [(f"f{number}",) for number in range(50)]
    assert sum(read) == guest.console.stat().st_size


def test_a_report_that_is_being_written_is_told_with_its_trace(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is written while the first half is being looked at; the moment is the test's and no clock's."""
    rest = iter(["  path_one+0x1/0x2\n", "  path_two+0x1/0x2\n", " </TASK>\n"])

    def writes(seconds: float) -> None:
        with guest.console.open("a") as file:
            file.write(next(rest))

    monkeypatch.setattr(guest_console.time, "sleep", writes)
    with guest.console.open("a") as file:
        file.write("[ 2.0] BUG: sleeping function called\n[ 2.0] Call Trace:\n <TASK>\n")
    (warning,) = guest.check()
    assert warning.where == ("path_one", "path_two")


@pytest.mark.parametrize("most", [1000])
def test_a_guest_that_wrote_too_much_is_ended_and_blamed(
    guest: Guest, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(guest_console, "MOST_OUTPUT", most)
    monkeypatch.setattr(guest, "_end", lambda: ended.append(True))
    guest.console.write_text("a flood\n" * 125)
    with pytest.raises(
        GuestError, match=r"^linux-a wrote more than 0 MiB to its console; its console ends with: a flood"
    ):
        guest.check()
    assert ended == [True]


def test_what_a_guest_says_is_no_command_of_a_terminals(guest: Guest) -> None:
    guest.console.write_text("\x1b]0;title\x07[ 1.0] \x1b[31mlast\x9b2J words\0\n")
    with pytest.raises(GuestError) as error:
        guest._fail("is\x1b[2J gone")
    assert str(error.value).isprintable()
    assert "its console ends with: last\ufffd2J words" in str(error.value)


@contextlib.contextmanager
def chatty(names: tuple[str, ...]) -> Iterator[tuple[GuestPorts, list[int]]]:
    """Sockets as a guest's, which say anything but what they are asked, for ever; and what was taken of it."""
    ports, taken, over = GuestPorts(names), [0], threading.Event()
    listeners = [socket.socket(fileno=ports.hand_over(name)) for name in names]

    def talk(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one, _ = listener.accept()
            with one:
                while not over.is_set():
                    taken[0] += one.send(b"hello to all and open to all\n" * 100)

    threads = [threading.Thread(target=talk, args=(one,), daemon=True) for one in listeners]
    for thread in threads:
        thread.start()
    yield ports, taken
    over.set()
    ports.close()
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(10.0)


def test_a_guest_that_was_ended_is_asked_nothing_any_more(guest: Guest) -> None:
    """Its sockets' descriptors may by then be those of another guest."""
    guest._closed = True
    with pytest.raises(GuestError, match=r"^linux-a: this boot of it has been ended already$"), guest._explained():
        pytest.fail("a shell is asked")


def test_the_sockets_of_a_guest_have_no_name_and_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 30)))
    Path(tempfile.gettempdir()).mkdir()
    with GuestPorts(("control", "shell")) as ports:
        assert list(tmp_path.glob("*/*")) == []
        inode = os.fstat(ports._listeners["control"].fileno()).st_ino
        (known,) = (line for line in Path("/proc/net/unix").read_text().splitlines() if line.split()[6] == str(inode))
        assert "@" not in known
        with socket.socket(fileno=ports.hand_over("control")) as listener, socket.socket(socket.AF_UNIX) as one:
            one.connect(ports.address("control"))
            listener.accept()[0].close()
    assert ports._descriptors == {}


def test_a_guest_that_says_all_but_hello_is_not_listened_to_for_ever(guest: Guest) -> None:
    with chatty(("control",)) as (ports, taken):
        guest._ports, guest.boot_id, guest._started = ports, "1234", time.monotonic()
        guest._process = SimpleNamespace(poll=lambda: None, pid=os.getpid())  # type: ignore[assignment]
        with pytest.raises(GuestError, match=r"^linux-a says all but hello on its control port and does not answer; "):
            guest._answers(60.0)
    assert taken[0] < 4 << 20


def test_a_guest_that_opens_no_shell_and_says_all_else_has_none() -> None:
    names = ("control", "shell", "errors")
    with chatty(names) as (ports, taken):
        bridge = (sys.executable, "-I", "-S", str(Path(guest_bridge.__file__)), *map(ports.address, names))
        done = subprocess.run(bridge, capture_output=True, text=True, timeout=60.0, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (1, "the guest opens no shell and says all else\n")
    assert taken[0] < 4 << 20
