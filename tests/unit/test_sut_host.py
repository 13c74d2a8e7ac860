"""The shell behind a host, on this machine: no root and no namespaces are needed."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from host_contract import check_a_folder_goes_with_the_shell, check_a_program_runs_beside_others

from pdrgate.hosts import shell as shell_module
from pdrgate.hosts.host import (
    CommandError,
    Completed,
    HostError,
    NoJsonError,
    ShellHost,
    local_host,
    netns_host,
    open_host,
    read_files,
    split_files,
)


@pytest.fixture
def host():
    with local_host() as host:
        yield host


def assert_group_ends(group):
    """Fails when a process of the group still runs after the kernel had ample time to end it."""
    for _ in range(500):
        running = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _parent, of_group = stat.read_text().rpartition(")")[2].split()[:3]
                if int(of_group) == group and state != "Z":
                    running.append(stat.parent.name)
        if not running:
            return
        time.sleep(0.01)
    raise AssertionError(f"{running} of process group {group} still run")


def test_a_command_and_its_output(host):
    assert host.run("printf", "a b") == Completed(("printf", "a b"), 0, "a b", "")
    assert host.run("printf", "x\n\n").stdout == "x\n\n"
    assert host.run("true") == Completed(("true",), 0, "", "")


@pytest.mark.parametrize(
    "argument",
    ["two words", "two\nlines", "'", '"', "$HOME `id` $(id)", "*", "\\", "-n", "", ";exit 3", "ü€", "\t", "!"],
)
def test_arguments_arrive_as_they_are(host, argument):
    assert host.run("printf", "%s|", argument, "z").stdout == f"{argument}|z|"


def test_exit_codes_and_both_streams(host):
    completed = host.run("sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (completed.exit_code, completed.stdout, completed.stderr) == (3, "out\n", "err\n")
    assert host.run("sh", "-c", "kill -TERM $$", check=False).exit_code == 128 + signal.SIGTERM


def test_a_failing_command_is_one_line(host):
    with pytest.raises(CommandError) as error:
        host.run("sh", "-c", "echo first >&2; echo 'it broke' >&2; exit 3")
    assert str(error.value) == (
        "`sh -c 'echo first >&2; echo '\"'\"'it broke'\"'\"' >&2; exit 3'` on local failed with exit code 3: it broke"
    )
    assert error.value.completed.exit_code == 3


def test_a_missing_program_is_told(host):
    with pytest.raises(CommandError, match=r"^`pdrgate-nope x` on local failed .* not found; is it installed there\?$"):
        host.run("pdrgate-nope", "x")


@pytest.mark.parametrize("builtin", ["exit", "exec", "set", "return"])
def test_only_programs_are_run_never_the_shells_own_commands(host, builtin):
    shell = host.run("sh", "-c", "echo $PPID").stdout
    assert host.run(builtin, "0", check=False).exit_code in (126, 127)
    assert host.run("sh", "-c", "echo $PPID").stdout == shell


def test_standard_input_is_empty(host):
    assert host.run("cat").stdout == ""
    assert host.run("echo", "next").stdout == "next\n"


def test_large_output_on_both_streams_does_not_block(host):
    completed = host.run("sh", "-c", "head -c 5000000 /dev/zero | tee /dev/stderr")
    assert (len(completed.stdout), len(completed.stderr)) == (5_000_000, 5_000_000)


def test_large_input_does_not_block(host, tmp_path):
    text = "0123456789\n" * 100_000
    host.write(str(tmp_path / "big"), text)
    assert host.read(str(tmp_path / "big")) == text


def test_output_that_is_no_text_is_replaced(host):
    assert host.run("printf", r"a\377\000b").stdout == "a\ufffd\0b"


def test_the_shells_environment(host):
    words = host.run("sh", "-c", "echo $LC_ALL $PATH").stdout.split()
    assert words[0] == "C"
    assert "/usr/sbin" in words[1].split(":")


def test_json(host):
    assert host.run_json("echo", '[{"a": 1}]') == [{"a": 1}]
    assert host.run_json("true") == []
    with pytest.raises(
        NoJsonError, match=r"`echo nope` on local printed no JSON \(.*\); is that program too old there\?"
    ):
        host.run_json("echo", "nope")


def test_files(host, tmp_path):
    path = tmp_path / "a file"
    assert not host.exists(str(path))
    host.write(str(path), "-n 7\n")
    assert host.exists(str(path))
    assert host.read(str(path)) == "-n 7\n"
    with pytest.raises(CommandError, match=f"^reading {tmp_path}/nope on local failed with exit code 2: cannot open"):
        host.read(str(tmp_path / "nope"))
    with pytest.raises(CommandError, match=f"^writing 1 to {tmp_path}/no/pe on local failed"):
        host.write(str(tmp_path / "no/pe"), "1\n")


def test_a_write_that_fails_after_the_open_is_noticed(host):
    with pytest.raises(CommandError, match=r"writing 1 to /dev/full on local failed .*No space left on device"):
        host.write("/dev/full", "1\n")


@pytest.mark.parametrize("content", [b"", b"\n", b"exit 3\n", bytes(range(256)) * 20_000], ids=len)
def test_bytes_become_a_file_as_they_are(host, tmp_path, content):
    host.put(f"{tmp_path}/a file", content, 0o750)
    assert (tmp_path / "a file").read_bytes() == content
    assert (tmp_path / "a file").stat().st_mode & 0o777 == 0o750
    assert host.run("echo", "in step").stdout == "in step\n"


@pytest.mark.parametrize("place", ["/no/such/folder/file", "/dev/full"])
def test_bytes_that_find_no_place_are_never_taken_for_commands(host, tmp_path, place):
    witness = tmp_path / "witness"
    with pytest.raises(CommandError, match=rf"making {place} of \d+ bytes on local failed"):
        host.put(place, f"touch {witness}\n".encode() * 40_000)
    assert host.run("echo", "in step").stdout == "in step\n"
    assert not witness.exists()


def test_several_files_at_once(host, tmp_path):
    for name, text in (("a", "1\n"), ("b", ""), ("c", "no newline")):
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in ("a", "nope", "b", "c")]
    assert read_files(host, paths) == {paths[0]: "1\n", paths[2]: "", paths[3]: "no newline"}
    assert read_files(host, paths[:1]) == {paths[0]: "1\n"}
    assert read_files(host, paths[1:2]) == {}


def test_split_files_of_nothing():
    assert split_files("") == {}


def test_a_command_that_takes_too_long_is_killed_and_the_host_goes_on(host):
    shell = int(host.run("sh", "-c", "echo $PPID").stdout)
    with pytest.raises(HostError, match=r"^`sleep 600` on local did not end within 0.1 s and was killed"):
        host.run("sleep", "600", timeout=0.1)
    assert_group_ends(shell)
    assert host.run("echo", "again").stdout == "again\n"


def test_a_shell_that_dies_is_told_with_its_command(host):
    with pytest.raises(HostError) as error:
        host.run("sh", "-c", "kill -KILL $PPID; sleep 600")
    assert str(error.value) == (
        "`sh -c 'kill -KILL $PPID; sleep 600'` on local got no answer: its shell was killed by SIGKILL"
    )
    assert host.run("echo", "again").stdout == "again\n"


def test_a_shell_that_died_between_commands_is_told_and_replaced(host):
    shell = int(host.run("sh", "-c", "echo $PPID").stdout)
    os.kill(shell, signal.SIGKILL)
    with pytest.raises(HostError, match=r"^`echo lost` on local got no answer: its shell was killed by SIGKILL"):
        host.run("echo", "lost")
    assert host.run("echo", "again").stdout == "again\n"


def test_output_without_end_is_stopped(host, monkeypatch):
    monkeypatch.setattr(shell_module, "MAX_OUTPUT", 1 << 20)
    with pytest.raises(HostError, match=r"^`yes` on local printed more than 1 MiB and was killed; send its output"):
        host.run("yes")
    assert host.run("echo", "again").stdout == "again\n"


def test_an_interrupt_leaves_no_half_read_answer_behind(host):
    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            host.run("sh", "-c", "echo late; sleep 600")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert host.run("echo", "again").stdout == "again\n"


def test_closing_ends_the_shell_and_what_runs_in_it():
    host = local_host()
    host.run("sh", "-c", "sleep 600 >/dev/null 2>&1 &")
    shell = int(host.run("sh", "-c", "echo $PPID").stdout)
    host.close()
    host.close()
    assert_group_ends(shell)


def test_descriptors_are_not_leaked():
    def used():
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    with local_host() as host:
        host.run("true")
    before = used()
    for _ in range(3):
        with local_host() as host:
            host.run("true")
            with pytest.raises(HostError):
                host.run("sh", "-c", "kill -KILL $PPID; sleep 600")
            host.run("true")
    assert used() == before


def test_threads_take_turns(host):
    answers = {}

    def ask(number):
        answers[number] = [host.run("echo", str(number)).stdout for _ in range(20)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [f"{number}\n"] * 20 for number in range(4)}


def test_a_host_that_cannot_be_opened_says_why():
    with pytest.raises(
        HostError, match=r"^cannot start a shell on lab with `pdrgate-nope sh`: No such file .* on the PATH"
    ):
        ShellHost("lab", ("pdrgate-nope", "sh")).run("true")
    with pytest.raises(
        HostError, match=r"^cannot open a shell on lab: `sh -c .*` got no answer: its shell ended with exit"
    ):
        ShellHost("lab", ("sh", "-c", "echo 'no route' >&2; exit 255")).run("true")
    with pytest.raises(HostError, match=r"netns:pdrgate-t-nope"):
        netns_host("pdrgate-t-nope").run("true")


def test_hosts_by_name():
    assert open_host("local").name == "local"
    assert open_host("netns:a").name == "netns:a"
    with pytest.raises(HostError, match=r"unknown host 'rack'; known are local and netns:NAME"):
        open_host("rack")


@pytest.mark.parametrize("argv", [(), ("",), ("echo", "a\0b")])
def test_what_is_no_command_is_refused(host, argv):
    with pytest.raises(ValueError, match=r"is no command"):
        host.run(*argv)


# --- Programs that run beside others ---


def test_a_program_runs_beside_others_until_it_is_stopped(host):
    check_a_program_runs_beside_others(host)


def test_a_program_that_ended_by_itself_has_told_all(host):
    with host.start("sh", "-c", "head -c 3000000 /dev/zero; exit 7") as running:
        stat = f"/proc/${running._job}/stat"
        while host._script(("ended?",), f"[ ! -e {stat} ] || grep -q ') Z' {stat}", 10).exit_code:
            pass
        completed = running.stop()
    assert (completed.exit_code, len(completed.stdout)) == (7, 3_000_000)


def test_several_programs_at_once(host):
    programs = [host.start("sh", "-c", f"echo {number}; exec sleep 600") for number in range(3)]
    for number in (1, 0, 2):
        while host.read(f"{programs[number]._folder}/out") == "":
            pass
        assert programs[number].stop().stdout == f"{number}\n"


def test_a_program_that_ignores_being_told_is_killed(host):
    running = host.start("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
    while host.read(f"{running._folder}/out") == "":
        pass
    assert running.stop().exit_code == 128 + signal.SIGKILL


def test_a_program_ends_with_the_shell_at_the_latest():
    with local_host() as host:
        group = int(host.run("sh", "-c", "echo $PPID").stdout)
        running = host.start("sleep", "600")
        assert Path(running._folder).exists()
    assert_group_ends(group)
    assert not Path(running._folder).exists()


def test_a_folder_goes_with_the_shell(host):
    check_a_folder_goes_with_the_shell(host)


def test_a_program_ends_with_a_gate_that_is_killed():
    gate = (
        "from pdrgate.hosts.host import local_host; host = local_host()\n"
        "running = host.start('sh', '-c', 'sleep 600; true')\n"
        "print(host.run('sh', '-c', 'echo $PPID').stdout.strip(), running._folder, flush=True); input()"
    )
    with subprocess.Popen((sys.executable, "-c", gate), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        group, folder = running.stdout.readline().decode().split()
        assert Path(folder).exists()
        running.kill()
    assert_group_ends(int(group))
    assert not Path(folder).exists()


def test_a_program_that_was_lost_with_its_shell_is_told(host):
    group = int(host.run("sh", "-c", "echo $PPID").stdout)
    running = host.start("sleep", "600")
    with pytest.raises(HostError):
        host.run("sleep", "600", timeout=0.1)
    with pytest.raises(HostError, match=r"^`sleep 600` on local was ended before it was stopped: its shell was lost$"):
        running.stop()
    assert_group_ends(group)
    assert not list(Path(running._folder).parent.glob(Path(running._folder).name))
