"""Retis on a host over a real sshd: what it has seen comes here, and it leaves nothing there. Only the collector is a
stand-in; what it writes is of a real one."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from retis_server import EVENTS, server_with_retis
from ssh_server import SshServer

from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.observers.retis.collector import Collection
from pdrgate.observers.retis.events import bindings_missing, read_events
from pdrgate.values.errors import TestbedError

NAMESPACE = 4_000_000_000
"""Of no network that there is."""
HOLDS = """
import sys, time
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.hosts.ssh_target import *
from pdrgate.observers.retis.collector import Collection
collection = Collection(SshHost(SshConnection(SshTarget.from_record(eval(sys.argv[1])))))
print(collection._folder, collection._running._folder, flush=True)
time.sleep(600)
"""


@pytest.fixture
def mount() -> str:
    return f"retis-{uuid.uuid4().hex}"


@pytest.fixture
def server(sshd_is_there: None, tmp_path: Path, mount: str) -> Iterator[SshServer]:
    with server_with_retis(tmp_path / "ssh", netns=NAMESPACE, mount=mount) as server:
        yield server


def in_time(is_so: Callable[[], bool]) -> bool:
    for _ in range(3000):
        if is_so():
            return True
        time.sleep(0.01)
    return False


def test_what_it_has_seen_comes_here_and_is_removed_there(server: SshServer, tmp_path: Path) -> None:
    fetched = tmp_path / "fetched"
    with SshHost(SshConnection(server.target), owns=True) as host:
        with Collection(host) as collection:
            there = [Path(collection._folder), Path(collection._running._folder)]  # type: ignore[union-attr]
            assert all(path.is_dir() for path in there)
            collection.end(fetched)
        assert not any(path.exists() for path in there)
    written = gzip.decompress(EVENTS.read_bytes()).decode()
    assert fetched.read_text() == written.replace('"inum":4026531840', f'"inum":{NAMESPACE}')
    if not bindings_missing():
        assert {one.netns for one in read_events(fetched)} == {NAMESPACE}
    assert server.logins == 1


@pytest.mark.parametrize("how", ["the gate is killed", "the connection breaks"])
def test_a_killed_gate_leaves_nothing_there(server: SshServer, mount: str, how: str) -> None:
    command = (sys.executable, "-c", HOLDS, repr(server.target.to_record()))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gate:
        try:
            assert gate.stdout is not None
            there = [Path(word) for word in gate.stdout.readline().split()]
            pid = int((there[0] / "pid").read_text())
            assert mount in Path(f"/proc/{pid}/mounts").read_text()
            # As tracefs, which the collector unmounts only where it ends by itself.
            assert mount not in Path("/proc/self/mounts").read_text()
            if how == "the gate is killed":
                gate.kill()
            else:
                server.drop()
            assert in_time(lambda: not any(path.exists() for path in there))
            assert in_time(lambda: not running(pid))
        finally:
            gate.kill()


def running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_connection_that_breaks_meanwhile_is_told(server: SshServer, tmp_path: Path) -> None:
    with SshHost(SshConnection(server.target), owns=True) as host, Collection(host) as collection:
        server.drop()
        with pytest.raises(TestbedError, match=r"^`sh -c .*` on ssh:sut was ended before it was stopped: its shell"):
            collection.end(tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists()
