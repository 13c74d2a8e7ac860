"""What the tests over SSH share: a real sshd on the loopback, with throw-away keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rack import Rack
from ssh_server import SshServer, sshd

from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.safety.locks import Lease, whole_machine

LOCK_WAIT = 900.0


@pytest.fixture(scope="session")
def sshd_is_there() -> None:
    """Skips where there can be no server of ours."""
    if sshd() is None:
        pytest.skip("sshd is not installed; run ./ci/bootstrap --dev")
    if os.geteuid() != 0:
        pytest.skip("an sshd that lets root in takes root: run with sudo")


@pytest.fixture(scope="module")
def shared_server(sshd_is_there: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A server for tests that leave it as it is."""
    with SshServer(tmp_path_factory.mktemp("ssh")) as server:
        yield server


@pytest.fixture
def server(sshd_is_there: None, tmp_path: Path) -> Iterator[SshServer]:
    """A server of one's own."""
    with SshServer(tmp_path / "ssh") as server:
        yield server


@pytest.fixture(scope="module")
def machine(sshd_is_there: None) -> Iterator[None]:
    """The machine for ourselves."""
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        yield


@pytest.fixture
def rack(machine: None) -> Iterator[Rack]:
    with Rack() as rack:
        yield rack


@pytest.fixture(scope="module")
def at_rest(machine: None) -> dict[str, str]:
    """The state of a rack that nothing was done to, which is that of any."""
    with Rack() as rack:
        return rack.state()


@pytest.fixture
def host(shared_server: SshServer) -> Iterator[SshHost]:
    with SshHost(SshConnection(shared_server.target), owns=True) as host:
        yield host
