"""What bare metal needs of a host, over a real sshd: files that arrive whole, and a restart that is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
from ssh_server import SshServer

from pdrgate.bare_metal.booting import RestartError, wait_for_boot
from pdrgate.bare_metal.host_files import FileSink, put_checked
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.values.errors import TestbedError

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def test_a_host_by_ssh_is_a_sink_of_files(host: SshHost, tmp_path: Path) -> None:
    sink: FileSink = host
    content = bytes(range(256)) * 4096
    (tmp_path / "modules.tar").write_bytes(content)
    with (tmp_path / "modules.tar").open("rb") as file:
        put_checked(host, sink, file, Path("modules.tar"), str(tmp_path / "arrived"))
    assert (tmp_path / "arrived").read_bytes() == content
    with (tmp_path / "modules.tar").open("rb") as file, pytest.raises(TestbedError, match="/nowhere/arrived"):
        put_checked(host, sink, file, Path("modules.tar"), "/nowhere/arrived")


@pytest.fixture
def machine(sshd_is_there: None, tmp_path: Path):
    """A server that passes for a machine which can be restarted."""
    with SshServer(tmp_path / "machine", own_boot=True) as server:
        yield server


def test_a_restart_is_known_by_its_boot_id(machine: SshServer) -> None:
    with SshHost(SshConnection(machine.target, patience=0.0), owns=True) as host:
        before = host.read(_BOOT_ID).strip()
        machine.stop()
        attempts = []

        def pause(seconds: float) -> None:
            attempts.append(seconds)
            if len(attempts) == 3:
                machine.restart()
                machine.start()

        after = wait_for_boot(host, before, 30, pause=pause)
        assert after != before
        assert after == host.read(_BOOT_ID).strip()
        assert len(attempts) == 3


def test_a_host_that_stays_away(machine: SshServer) -> None:
    with SshHost(SshConnection(machine.target, patience=0.0), owns=True) as host:
        before = host.read(_BOOT_ID).strip()
        machine.stop()
        with pytest.raises(RestartError) as error:
            wait_for_boot(host, before, 0, pause=lambda seconds: None, remedy="power-cycle it")
        assert not error.value.back
        assert str(error.value).startswith("ssh:sut did not come back within 0 s of its restart (")
        assert str(error.value).endswith("); power-cycle it")
