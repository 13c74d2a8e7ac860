"""No program that pdrgate starts sees the secrets of its environment: a stranger's file may make it tell them."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

import pdrgate
from pdrgate.builds.architecture import X86_64
from pdrgate.crashes import source_lines
from pdrgate.crashes.faults import Crash
from pdrgate.crashes.source_lines import SourceLines
from pdrgate.guests.emulator import qemu
from pdrgate.guests.emulator.accelerator import ProbeError, probe_time
from pdrgate.guests.guest_programs import MachinePrograms
from pdrgate.hosts.host import ShellHost
from pdrgate.safety.journal import MARK, Journal
from pdrgate.this_process.child_environment import PROXIES, bounded, child_environment

SECRETS = {
    "GITHUB_TOKEN": "s3cret",
    "AWS_SECRET_ACCESS_KEY": "s3cret",
    "CI_JOB_TOKEN": "s3cret",
    "LD_PRELOAD": "s3cret",
}

OWN = {
    "watch.py": "the user's own command, a gate of its own with all that gates are told by",
    "workers.py": "gates of the same user, of which each measures a part",
}
"""Modules that hand their whole environment on, and why."""


STARTS = re.compile(
    r"subprocess\.(run|Popen|call|check_\w+)|os\.(exec|spawn|posix_spawn|popen|system)|asyncio.create_sub"
)


def starts(path: Path) -> list[ast.Call]:
    """The calls of a module that start a program."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [call for call in calls if STARTS.match(ast.unparse(call.func))]


def test_whoever_starts_a_program_says_what_it_sees() -> None:
    """Also whoever comes later: each call names the environment of what it starts, made of child_environment."""
    found = {}
    for path in Path(pdrgate.__file__).parent.rglob("*.py"):
        for call in starts(path):
            given = next((word.value for word in call.keywords if word.arg == "env"), None)
            named = given is not None and "child_environment(" in ast.unparse(given)
            found[f"{path.name}:{call.lineno}"] = named or path.name in OWN or ast.unparse(call).endswith("**options)")
    assert len(found) > 10
    assert [where for where, right in found.items() if not right] == []


def test_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, "https_proxy": "http://a:b@proxy"}.items():
        monkeypatch.setenv(name, value)
    seen = child_environment()
    assert "s3cret" not in seen.values()
    assert not set(PROXIES) & set(seen)
    assert (seen["PATH"], seen["LC_ALL"]) == (os.environ["PATH"], "C")
    assert child_environment(*PROXIES)["https_proxy"] == "http://a:b@proxy"


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs on PATH that write down their environment; the file that they do it to."""
    file = tmp_path / "seen"
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("nm", "addr2line", "busybox", "qemu-system-x86_64", "setpriv"):
        (tools / name).write_text(f'#!/bin/sh\n/usr/bin/env >>"{file}"\n')
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return file


def test_what_reads_a_strangers_file_is_told_no_secret(seen: Path, tmp_path: Path) -> None:
    """Stand-ins for binutils, busybox and QEMU write down what they are given; the local shell is the real one."""
    qemu.qemu_version.cache_clear()
    qemu.qemu_version(X86_64)
    qemu.qemu_version.cache_clear()
    with pytest.raises(ProbeError):
        probe_time("qemu-system-x86_64", "tcg", 10.0)
    MachinePrograms().applets()
    SourceLines(tmp_path / "vmlinux").decode([Crash("oops", "BUG", rip="a+0x1/0x2")])
    with Journal(tmp_path / "state") as journal:
        journal.start(["busybox"]).wait()
        assert f"{MARK}={journal.mark}" in seen.read_text()
    with contextlib.closing(ShellHost("local", ("sh",))) as host:
        text = seen.read_text() + host.run("env").stdout + host.run("sh", "-c", "cat /proc/$$/environ").stdout
    assert seen.read_text().count("LC_ALL=C\n") >= 4
    assert "s3cret" not in text


def test_what_reads_a_vmlinux_fills_neither_memory_nor_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for nm says more of it than any kernel has, and would not end."""
    tool = tmp_path / "nm"
    tool.write_text(f"#!/bin/sh\n/bin/yes 'no T symbol'\necho went on >{tmp_path}/ended\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(source_lines, "_LARGEST_OUTPUT", 1 << 20)
    crash = Crash("oops", "BUG", rip="a+0x1/0x2")
    assert SourceLines(tmp_path / "vmlinux").decode([crash]) == (crash,)


def test_a_bounded_program_is_the_program_with_bounds() -> None:
    """Of the real kernel: its limits are those of the process that runs it."""
    done = subprocess.run(
        bounded("cat", "/proc/self/limits", written=1 << 20), capture_output=True, text=True, check=True
    )
    limits = {line[:26].strip(): line[26:47].strip() for line in done.stdout.splitlines()}
    assert (limits["Max address space"], limits["Max cpu time"], limits["Max file size"]) == (
        str(4 << 30), "60", str(1 << 20),
    )  # fmt: skip
