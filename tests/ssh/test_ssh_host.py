"""A host over a real sshd: it does what every host does, and loses no connection for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest
from host_contract import check_a_folder_goes_with_the_shell, check_a_program_runs_beside_others
from ssh_server import SshServer

from pdrgate.hosts.host import CommandError, Completed, HostError
from pdrgate.hosts.ssh import SshConnection, SshHost, host_from_record
from pdrgate.hosts.ssh_login import UnreachableError

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def marked(mark: str) -> list[str]:
    """The processes of this machine whose command line holds ``mark``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_bytes().decode(errors="replace").split("\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def begun(mark: str) -> bool:
    """Whether one of them starts, given ample time."""
    return in_time(lambda: bool(marked(mark)))


def ended(mark: str) -> bool:
    """Whether they end, given ample time."""
    return in_time(lambda: not marked(mark))


def in_time(is_so: Callable[[], bool]) -> bool:
    for _ in range(500):
        if is_so():
            return True
        time.sleep(0.01)
    return False


def test_a_command_and_its_output(host: SshHost) -> None:
    assert host.name == "ssh:sut"
    assert host.run("printf", "a b") == Completed(("printf", "a b"), 0, "a b", "")
    completed = host.run("sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (completed.exit_code, completed.stdout, completed.stderr) == (3, "out\n", "err\n")
    assert host.run("sh", "-c", "kill -TERM $$", check=False).exit_code == 128 + signal.SIGTERM
    with pytest.raises(CommandError, match=r"^`false` on ssh:sut failed with exit code 1$"):
        host.run("false")
    with pytest.raises(CommandError, match=r"^`pdrgate-nope` on ssh:sut failed .* is it installed there\?$"):
        host.run("pdrgate-nope")


@pytest.mark.parametrize("argument", ["two words", "two\nlines", "'", "$HOME `id`", "*", "\\", "ü€", "-n", ""])
def test_arguments_arrive_as_they_are(host: SshHost, argument: str) -> None:
    assert host.run("printf", "%s|", argument, "z").stdout == f"{argument}|z|"


def test_it_runs_over_there_and_not_here(host: SshHost) -> None:
    connection = host.run("sh", "-c", "echo $SSH_CONNECTION").stdout.split()
    assert connection[2:] == ["127.0.0.1", str(host.connection.target.port)]


def test_output_that_is_large_or_no_text(host: SshHost) -> None:
    completed = host.run("sh", "-c", "head -c 5000000 /dev/zero | tee /dev/stderr", timeout=60)
    assert (len(completed.stdout), len(completed.stderr)) == (5_000_000, 5_000_000)
    assert host.run("printf", r"a\377\000b").stdout == "a\ufffd\0b"
    assert host.run("echo", "next").stdout == "next\n"


def test_files(host: SshHost, tmp_path: Path) -> None:
    path = str(tmp_path / "a file")
    assert not host.exists(path)
    text = "0123456789\n" * 300_000  # more than a channel takes at once
    host.write(path, text)
    assert host.read(path) == text
    assert host.exists(path)
    with pytest.raises(CommandError, match=r"^reading /nope on ssh:sut failed"):
        host.read("/nope")
    with pytest.raises(CommandError, match=r"writing 1 to /dev/full on ssh:sut failed .*No space left on device"):
        host.write("/dev/full", "1\n")


def test_json(host: SshHost) -> None:
    assert any(link["ifname"] == "lo" for link in host.run_json("ip", "-j", "link"))
    with pytest.raises(HostError, match=r"`echo nope` on ssh:sut printed no JSON"):
        host.run_json("echo", "nope")


def test_a_file_is_copied_byte_for_byte(host: SshHost, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "local").write_bytes(data)
    host.copy(tmp_path / "local", str(tmp_path / "re mote"))
    assert (tmp_path / "re mote").read_bytes() == data
    (tmp_path / "empty").touch()
    host.copy(tmp_path / "empty", str(tmp_path / "none"))
    assert (tmp_path / "none").read_bytes() == b""
    with pytest.raises(HostError, match=r"^copying .*local to /no/pe on ssh:sut failed: .*nonexistent|No such file"):
        host.copy(tmp_path / "local", "/no/pe")
    with pytest.raises(HostError, match=r"^copying .*local to /dev/full on ssh:sut failed: .*No space left"):
        host.copy(tmp_path / "local", "/dev/full")
    with pytest.raises(FileNotFoundError):
        host.copy(tmp_path / "nope", str(tmp_path / "x"))


def test_a_command_that_takes_too_long_is_killed_over_there(host: SshHost) -> None:
    with pytest.raises(HostError, match=r"^`sleep 6061` on ssh:sut did not end within 0.3 s and was killed"):
        host.run("sleep", "6061", timeout=0.3)
    assert ended("6061")
    assert host.run("echo", "again").stdout == "again\n"


def test_closing_ends_what_runs_over_there(shared_server: SshServer) -> None:
    with SshHost(SshConnection(shared_server.target), owns=True) as host:
        host.run("sh", "-c", "sleep 6062 >/dev/null 2>&1 &")
        assert begun("6062")
    assert ended("6062")


def test_a_program_runs_beside_others_until_it_is_stopped(host: SshHost) -> None:
    check_a_program_runs_beside_others(host)


def test_a_program_does_not_outlive_its_connection(server: SshServer) -> None:
    with SshHost(SshConnection(server.target), owns=True) as host:
        host.start("sleep", "6066")
        assert begun("6066")
    assert ended("6066")
    with SshHost(SshConnection(server.target), owns=True) as host:
        running = host.start("sleep", "6067")
        server.drop()
        assert ended("6067")
        with pytest.raises(HostError, match=r"^`sleep 6067` on ssh:sut was ended before it was stopped"):
            running.stop()


def test_a_folder_goes_with_the_shell(host: SshHost) -> None:
    check_a_folder_goes_with_the_shell(host)


def test_a_program_does_not_outlive_a_gate_that_is_killed(server: SshServer) -> None:
    """One that is started, beside a command that prints when nobody reads it any more."""
    gate = (
        "import sys; from pdrgate.hosts.ssh import SshConnection, SshHost; from pdrgate.hosts.ssh_target import *\n"
        "host = SshHost(SshConnection(SshTarget.from_record(eval(sys.argv[1]))))\n"
        "host.start('sh', '-c', 'sleep 6068; true'); host.run('sh', '-c', 'sleep 6069; echo late')"
    )
    running = subprocess.Popen((sys.executable, "-c", gate, repr(server.target.to_record())))
    assert begun("6068") and begun("6069")
    running.kill()
    running.wait()
    subprocess.run(("kill", *marked("6069")), check=True)  # as if it had ended by itself
    assert ended("6068")


def test_threads_take_turns(host: SshHost) -> None:
    answers: dict[int, list[str]] = {}

    def ask(number: int) -> None:
        answers[number] = [host.run("echo", str(number)).stdout for _ in range(10)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [f"{number}\n"] * 10 for number in range(4)}


def test_several_hosts_share_a_connection(server: SshServer) -> None:
    connection = SshConnection(server.target)
    hosts = [SshHost(connection) for _ in range(3)]
    assert len({host.run("sh", "-c", "echo $PPID").stdout for host in hosts}) == 3
    assert server.logins == 1
    for host in hosts:
        host.close()
    connection.close()


def test_an_idle_connection_costs_next_to_nothing(host: SshHost) -> None:
    host.run("true")
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.05  # 1 ms was measured: the CPU is the generator's


def test_no_descriptors_are_leaked(shared_server: SshServer) -> None:
    def used() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    def use() -> None:
        with SshHost(SshConnection(shared_server.target), owns=True) as host:
            host.run("true")
            with pytest.raises(HostError):
                host.run("sleep", "600", timeout=0.05)
            host.run("true")

    use()
    before = used()
    for _ in range(3):
        use()
    assert used() == before


# --- Losses ---


def test_a_connection_lost_between_commands_is_made_again_unseen(server: SshServer) -> None:
    with SshHost(SshConnection(server.target), owns=True) as host:
        assert host.boot_id == BOOT
        assert server.drop() == 1
        assert host.run("echo", "again").stdout == "again\n"
        assert server.logins == 2
        assert host.boot_id == BOOT


def test_a_connection_lost_in_a_command_is_told_and_made_again(server: SshServer) -> None:
    with SshHost(SshConnection(server.target), owns=True) as host:
        host.run("true")
        threading.Timer(0.3, server.drop).start()
        with pytest.raises(HostError) as error:
            host.run("sleep", "6063")
        assert str(error.value) == (
            f"`sleep 6063` on ssh:sut got no answer: the connection to root@127.0.0.1:{server.port} was lost"
        )
        assert host.run("echo", "again").stdout == "again\n"
    subprocess.run(("kill", *marked("6063")), check=False)
    assert ended("6063")


def test_a_loss_that_shows_only_while_sending_is_told_in_one_line(
    host: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.run("true")

    def gone(channel: paramiko.Channel, data: bytes) -> int:
        raise EOFError  # what the library says where the socket is closed and its thread has not seen it

    with monkeypatch.context() as patched:
        patched.setattr(paramiko.Channel, "send", gone)
        with pytest.raises(HostError, match=r"^`true` on ssh:sut got no answer: the connection to \S+ was lost$"):
            host.run("true")
    assert host.run("echo", "again").stdout == "again\n"


def test_a_server_that_is_away_for_a_while_is_waited_for(server: SshServer) -> None:
    with SshHost(SshConnection(server.target), owns=True) as host:
        host.run("true")
        server.stop()
        threading.Timer(1.0, server.start).start()
        assert host.run("echo", "again").stdout == "again\n"


def test_a_server_that_stays_away_is_told_and_not_waited_for_again(server: SshServer) -> None:
    connection = SshConnection(server.target, patience=0.5)
    with SshHost(connection, owns=True) as host:
        host.run("true")
        server.stop()
        with pytest.raises(UnreachableError) as error:
            host.run("true")
        assert str(error.value) == (
            f"cannot reach sut (root@127.0.0.1:{server.port}): Connection refused; is it up, and does an SSH server "
            "listen there?"
        )
        tried = []
        connection._login = lambda target: tried.append(target)  # type: ignore[assignment,return-value]
        for _ in range(20):  # so many settings may be to put back
            with pytest.raises(UnreachableError):
                host.run("true")
        assert tried == []


def test_the_first_connection_is_not_waited_for(server: SshServer) -> None:
    server.stop()
    tries = []

    def login(target: object) -> object:
        tries.append(target)
        raise UnreachableError("away")

    with pytest.raises(UnreachableError):
        SshHost(SshConnection(server.target, login)).run("true")  # type: ignore[arg-type]
    assert len(tries) == 1


def test_the_boot_id_is_read_anew_with_each_connection(server: SshServer) -> None:
    with SshHost(SshConnection(server.target), owns=True) as host:
        assert host.boot_id == BOOT
        host._boot = "of a boot before"
        assert host.boot_id == "of a boot before"
        server.stop()
        threading.Timer(1.0, server.start).start()
        assert host.boot_id == BOOT
        assert host.run("echo", "again").stdout == "again\n"


# --- Users ---


def test_commands_run_by_sudo_where_asked(server: SshServer) -> None:
    if not Path("/usr/bin/sudo").exists():
        pytest.skip("sudo is not installed")
    with SshHost(SshConnection(server.other(sudo=True)), owns=True) as host:
        assert host.run("id", "-u").stdout == "0\n"
        assert host.run("sh", "-c", "echo $SUDO_USER").stdout == "root\n"
        with pytest.raises(HostError, match="did not end within"):
            host.run("sleep", "6064", timeout=0.3)
        assert ended("6064")
        host.run("sh", "-c", "sleep 6065 >/dev/null 2>&1 &")
        assert begun("6065")
    assert ended("6065")


def test_a_sudo_that_asks_for_a_password_is_told(sshd_is_there: None, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin" / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    with (
        SshServer(tmp_path / "ssh", f"SetEnv PATH={tmp_path}/bin:/usr/bin:/bin") as server,
        SshHost(SshConnection(server.other(sudo=True)), owns=True) as host,
        pytest.raises(HostError) as error,
    ):
        host.run("true")
    assert str(error.value) == (
        "cannot open a shell on ssh:sut: `sudo -n sh` got no answer: its shell ended with exit code 1: sudo: a "
        f"password is required (at root@127.0.0.1:{server.port}); let root use sudo there without a password "
        "(NOPASSWD), or log in as root"
    )


def test_a_namespace_that_is_not_there_is_told(shared_server: SshServer) -> None:
    with SshHost(SshConnection(shared_server.target), "pdrgate-t-nope", owns=True) as host:
        assert host.name == "ssh:sut/pdrgate-t-nope"
        with pytest.raises(HostError) as error:
            host.run("true")
    assert str(error.value).startswith(
        "cannot open a shell on ssh:sut/pdrgate-t-nope: `ip netns exec pdrgate-t-nope sh`"
    )
    assert str(error.value).endswith("; is there a namespace pdrgate-t-nope (ip netns list), and ip?")


def test_a_user_without_a_shell_is_told(sshd_is_there: None, tmp_path: Path) -> None:
    with (
        SshServer(tmp_path / "ssh", "ForceCommand echo This account is not available; exit 1") as server,
        SshHost(SshConnection(server.target), owns=True) as host,
        pytest.raises(
            HostError, match=r"^cannot open a shell on ssh:sut: .* has root a login shell there that runs sh"
        ),
    ):
        host.run("true")


def test_a_record_opens_the_same_host(server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(server.folder)
    target = server.other(key=Path("user_key"), password="secret")
    record = SshHost(SshConnection(target)).to_record()
    assert "secret" not in str(record)
    monkeypatch.chdir(tmp_path)
    with host_from_record(record) as host:
        assert host.name == "ssh:sut"
        assert host.run("echo", "x").stdout == "x\n"
