"""The command line of a guest, and as whom QEMU runs."""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.emulator import confinement, qemu
from pdrgate.guests.emulator.confinement import SANDBOX, Confinement, confine
from pdrgate.hosts import sandbox


@pytest.mark.parametrize(
    ("version", "accelerator", "end"),
    [
        ("7.2.22", "tcg", "-mpx,-fsrm,-cx16"), ("8.2.2", "tcg", "-mpx,-fsrm"), ("10.0.13", "tcg", "-mpx,-fsrm"),
        ("", "tcg", "-mpx,-fsrm"), ("7.2.22", "kvm", "host"),
    ],
)  # fmt: skip
def test_an_emulator_that_gets_flags_wrong_has_not_the_instruction(
    monkeypatch: pytest.MonkeyPatch, version: str, accelerator: qemu.Accelerator, end: str
) -> None:
    monkeypatch.setattr(qemu, "qemu_version", lambda architecture: version)
    monkeypatch.setattr(qemu, "find_qemu", lambda architecture: "/usr/bin/qemu")
    monkeypatch.setattr(qemu, "known_flags", lambda path: frozenset({"fsrm", "mpx"}))
    words = qemu.command_line(
        X86_64,
        accelerator=accelerator, vcpus=1, memory=256, image="bzImage", initrd="initrd", cmdline="", console=3,
        channels=[], ports=[],
    )  # fmt: skip
    assert words[words.index("-cpu") + 1].endswith(end)


def test_qemu_has_no_device_that_is_not_needed_and_no_file_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "find_qemu", lambda architecture: "/usr/bin/qemu")
    monkeypatch.setattr(qemu, "qemu_version", lambda architecture: "7.2.22")
    monkeypatch.setattr(qemu, "known_flags", lambda path: frozenset({"fsrm"}))
    ports = [
        (qemu.NetworkPort("t0", "02:00:00:00:00:01"), [7]),
        (qemu.NetworkPort("t1", "02:00:00:00:00:02", queues=2), [8, 9]),
    ]
    words = qemu.command_line(
        X86_64,
        accelerator="tcg", vcpus=1, memory=256, image="/proc/self/fd/4", initrd="/proc/self/fd/5", cmdline="",
        console=3, channels=[("shell", 6)], ports=ports, sandbox=SANDBOX,
        plugins=["/proc/self/fd/10,memory=/proc/self/fd/11"],
    )  # fmt: skip
    assert {"-nodefaults", "-no-user-config"} <= set(words)
    assert words[words.index("-sandbox") + 1] == SANDBOX
    assert {"usb=off", "vmport=off", "smbus=off"} <= set(words[words.index("-machine") + 1].split(","))
    netdevs = [words[at + 1] for at, word in enumerate(words) if word == "-netdev"]
    assert netdevs == ["tap,id=net0,fd=7,vhost=off", "tap,id=net1,fds=8:9,vhost=off"]
    assert not any("tx=timer" in word for word in words)  # a packet leaves as soon as QEMU runs
    assert [
        word
        for word in words[1:]
        if "/" in word and not word.startswith(("/proc/self/fd/", "file,id=console,path=/dev/fdset/"))
    ] == []


def test_packets_of_a_port_that_gathers_them_leave_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "find_qemu", lambda architecture: "/usr/bin/qemu")
    monkeypatch.setattr(qemu, "qemu_version", lambda architecture: "7.2.22")
    monkeypatch.setattr(qemu, "known_flags", lambda path: frozenset({"fsrm"}))
    words = qemu.command_line(
        X86_64,
        accelerator="tcg", vcpus=1, memory=256, image="bzImage", initrd="initrd", cmdline="", console=3, channels=[],
        ports=[(qemu.NetworkPort("t0", "02:00:00:00:00:01", gathers=0.001), [7])],
    )  # fmt: skip
    assert words[-1].endswith(",tx=timer,x-txtimer=1000000")


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sandbox, "_may_change_user", lambda: True)
    monkeypatch.setattr(sandbox, "_maps", lambda: ["0 0 4294967295"])
    monkeypatch.setattr(confinement, "lacking", lambda: "")
    return monkeypatch


def words_of(found: Confinement) -> set[str]:
    return set(found.command("qemu", namespace="tg"))


def test_a_guest_has_a_user_of_its_own(root: pytest.MonkeyPatch) -> None:
    users = {confine(X86_64, "tcg").user for _ in range(20)}
    assert len(users) > 15 and None not in users
    # That it dies with its parent is said in the same step: a change of user takes it back.
    needed = {"setpriv", "--pdeathsig", "--reuid", "--regid", "--clear-groups", "--no-new-privs"}
    assert needed | {"bwrap", "netns", "tg"} <= words_of(confine(X86_64, "tcg"))
    assert "--unshare-net" not in words_of(confine(X86_64, "tcg"))
    assert "--unshare-net" in confine(X86_64, "tcg").command("qemu", namespace=None)
    assert confine(X86_64, "tcg").sentence == ""


def test_a_signal_that_ends_qemu_is_reported_as_one_whatever_it_runs_in(root: pytest.MonkeyPatch) -> None:
    assert [confine(X86_64, "tcg").exit_code(code) for code in (0, 1, 128 + 9, -9)] == [0, 1, -9, -9]
    assert Confinement().exit_code(137) == 137


def test_where_no_sandbox_can_be_had_that_is_said_and_the_user_is_another_all_the_same(
    root: pytest.MonkeyPatch,
) -> None:
    root.setattr(confinement, "lacking", lambda: "bubblewrap is not installed")
    found = confine(X86_64, "tcg")
    assert found.sentence == "QEMU sees the files of this machine: bubblewrap is not installed"
    assert "--reuid" in words_of(found) and "bwrap" not in words_of(found)


def test_where_root_must_stay_root_that_is_said(root: pytest.MonkeyPatch) -> None:
    root.setattr(sandbox, "_maps", lambda: ["0 100000 1000"])  # a container's user namespace
    assert confine(X86_64, "tcg").user is None
    assert confine(X86_64, "tcg").sentence.startswith("QEMU runs as root: no user from ")
    assert "--reuid" not in words_of(confine(X86_64, "tcg"))
    root.setattr(sandbox, "_may_change_user", lambda: False)
    assert confine(X86_64, "tcg").sentence == "QEMU runs as root: root may not become another user here"


def test_a_qemu_of_another_place_is_seen_with_its_data(root: pytest.MonkeyPatch) -> None:
    for program, place in (("/opt/qemu/bin/qemu", "/opt/qemu"), ("/opt/qemu/qemu", "/opt/qemu"), ("/usr/bin/q", None)):
        root.setattr(confinement, "find_qemu", lambda architecture, program=program: program)
        assert confinement._elsewhere(X86_64) == ({} if place is None else {place: Path(place)})


def test_a_qemu_that_only_root_may_start_is_started_as_root(root: pytest.MonkeyPatch) -> None:
    """One in a folder of root's own did not start: permission denied."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        _try_qemu_in(Path(made), root)


def _try_qemu_in(place: Path, root: pytest.MonkeyPatch) -> None:
    program = place / "qemu-system-x86_64"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    place.chmod(0o755)
    root.setattr(confinement, "find_qemu", lambda architecture: str(program))
    assert confine(X86_64, "tcg").user is not None
    place.chmod(0o700)
    assert confine(X86_64, "tcg").sentence == f"QEMU runs as root: only root may use {place}, where QEMU is"
    place.chmod(0o755)
    program.chmod(0o750)
    assert confine(X86_64, "tcg").sentence == f"QEMU runs as root: only root may use {program}, where QEMU is"


@pytest.mark.parametrize(
    ("mode", "group", "groups", "sentence"),
    [
        (0o20666, 0, (), ""), (0o20660, 104, (104,), ""),
        (0o20600, 0, (), "QEMU runs as root: only root may open /dev/kvm"),
        (0o20660, 0, (), "QEMU runs as root: only root may open /dev/kvm"),
    ],
)  # fmt: skip
def test_kvm_is_opened_by_the_group_that_may(
    root: pytest.MonkeyPatch, mode: int, group: int, groups: tuple[int, ...], sentence: str
) -> None:
    root.setattr(confinement, "_KVM", _Device(lambda: SimpleNamespace(st_mode=mode, st_gid=group)))
    found = confine(X86_64, "kvm")
    assert (found.user.groups if found.user else (), found.sentence) == (groups, sentence)
    assert (found.user is None) == bool(sentence)
    assert sentence or (found.sandbox is not None and found.sandbox.devices == (confinement._KVM,))


class _Device:
    """A device file, simulated."""

    def __init__(self, stat: object) -> None:
        self.stat = stat

    def __str__(self) -> str:
        return "/dev/kvm"


def test_who_is_not_root_stays_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for lacks in ("no sandbox can be had", ""):
        monkeypatch.setattr(confinement, "lacking", lambda lacks=lacks: lacks)
        found = confine(X86_64, "tcg")
        assert (found.user, found.sentence, found.sandbox is None) == (None, "", bool(lacks))
        assert "--reuid" not in words_of(found)
