"""Two controllers and one SUT, over a real sshd: one has it, and whoever dies or is cut off leaves it to others."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_testbed import QUICK, Watcher
from rack import Rack
from ssh_server import SshServer

from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.session import Session
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.hosts.ssh_login import SshError
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import MACHINE, Lease, Resource
from pdrgate.safety.recovery import recover_stale
from pdrgate.safety.state_folder import sut_lock
from pdrgate.safety.sut_lock import SutInUseError, SutLock
from pdrgate.testbeds import load_testbed, open_testbed
from pdrgate.values.errors import TestbedError

OURS = r"^ssh:sut is in use by this run's other testbed; close that one first$"
LIBRARIES = Path(__file__).parents[2] / "libraries"

OTHER = """
import sys
from pathlib import Path
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.safety.sut_lock import SutLock
port, key, known, path = sys.argv[1:]
target = SshTarget("sut", "127.0.0.1", int(port), key=Path(key), known_hosts=Path(known))
lock = SutLock.acquire(SshHost(SshConnection(target), owns=True), path)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A lock of the test's own."""
    return str(tmp_path / "sut.lock")


class Controller:
    """Another controller, in a process of its own, that has the SUT."""

    def __init__(self, server: SshServer, path: str) -> None:
        self.process = subprocess.Popen(
            (sys.executable, "-c", OTHER, str(server.port), str(server.user_key), str(server.known_hosts), path),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(LIBRARIES)},
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "held\n"

    def end(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.communicate()


@pytest.fixture
def hosts(server: SshServer) -> Iterator[tuple[SshHost, SshHost]]:
    """Two ways to one SUT, each by a connection of its own."""
    with (
        SshHost(SshConnection(server.target), owns=True) as one,
        SshHost(SshConnection(server.target), owns=True) as two,
    ):
        yield one, two


def acquired(host: SshHost, path: str) -> SutLock:
    """The lock, once the kernel over there has taken it back from whoever has just died."""
    for _ in range(200):
        try:
            return SutLock.acquire(host, path)
        except SutInUseError:
            continue
    return SutLock.acquire(host, path)


def test_the_second_controller_is_told_who_has_it_and_the_death_of_the_first_frees_it(
    server: SshServer, path: str, hosts: tuple[SshHost, SshHost]
) -> None:
    other = Controller(server, path)
    try:
        with pytest.raises(SutInUseError) as error:
            SutLock.acquire(hosts[0], path)
        there = json.loads(Path(path).read_text())["there"]
        assert re.fullmatch(
            rf"ssh:sut is in use by pdrgate on {re.escape(socket.gethostname())} \(pid {other.process.pid}, since "
            rf"\d\d:\d\d:\d\d\); wait for it to end, or, should that machine be gone, end what it left on the SUT: "
            rf"kill {there}",
            str(error.value),
        )
        assert not error.value.ours
    finally:
        other.end()
    acquired(hosts[0], path).release()


def test_what_is_released_is_free_at_once(path: str, hosts: tuple[SshHost, SshHost]) -> None:
    one, two = hosts
    for _ in range(5):
        with SutLock.acquire(one, path), pytest.raises(SutInUseError, match=OURS):
            SutLock.acquire(two, path)
        SutLock.acquire(two, path).release()


def test_a_connection_that_is_made_anew_takes_it_again(
    server: SshServer, path: str, hosts: tuple[SshHost, SshHost]
) -> None:
    one, two = hosts
    with SutLock.acquire(one, path):
        server.drop()
        assert one.run("echo", "again").stdout == "again\n"
        with pytest.raises(SutInUseError):
            SutLock.acquire(two, path)
    SutLock.acquire(two, path).release()
    server.drop()
    assert one.run("echo", "and on").stdout == "and on\n"  # released: not taken again
    SutLock.acquire(two, path).release()


def test_nothing_passes_when_another_was_faster(server: SshServer, path: str, hosts: tuple[SshHost, SshHost]) -> None:
    one, two = hosts
    target = Path(path).with_name("changed")
    with SutLock.acquire(one, path) as lock:
        server.drop()
        theirs = acquired(two, path)
        for _ in range(2):
            with pytest.raises(SutInUseError, match=r"^ssh:sut is in use by "):
                one.write(str(target), "x")
        with pytest.raises(SutInUseError):
            lock.renew()
        assert not target.exists()
        theirs.release()
        one.write(str(target), "x")
    assert target.exists()


def test_our_own_of_a_connection_that_only_we_know_to_be_lost_gives_way(
    path: str, hosts: tuple[SshHost, SshHost]
) -> None:
    one, two = hosts
    with SutLock.acquire(one, path) as lost:
        again = SutLock(two, path)
        again._token = lost._token
        again._hold(two.connection.client().get_transport())
        assert lost._channel is not None
        assert lost._channel.status_event.wait(30)
        with pytest.raises(SutInUseError):
            SutLock.acquire(one, path)
        again.release()


def test_a_holder_that_somebody_ended_is_noticed(path: str, hosts: tuple[SshHost, SshHost]) -> None:
    one, two = hosts
    with SutLock.acquire(one, path) as lock:
        two.run("kill", str(json.loads(Path(path).read_text())["there"]))
        assert lock._channel is not None
        assert lock._channel.status_event.wait(30)
        lock.renew()
        with pytest.raises(SutInUseError):
            SutLock.acquire(two, path)


def test_a_controller_and_runs_on_the_sut_itself_keep_each_other_out(
    hosts: tuple[SshHost, SshHost], tmp_path: Path
) -> None:
    path = str(sut_lock(tmp_path))
    with Lease.acquire((MACHINE, Resource("cpu", "1")), tmp_path):
        with pytest.raises(SutInUseError) as error, SutLock.acquire(hosts[0], path):
            pass
        assert str(error.value) == (
            "ssh:sut is in use by a run of pdrgate on that machine itself; wait for it to end, or end it there: "
            "lslocks shows its pid"
        )
        assert not error.value.ours
    with SutLock.acquire(hosts[0], path):
        with pytest.raises(TestbedError) as other, Lease.acquire((MACHINE,), tmp_path):
            pass
        there = json.loads(Path(path).read_text())["there"]
        assert re.match(
            rf"this machine, as a SUT, is in use by another pdrgate run \(pid {os.getpid()} on "
            rf"{re.escape(socket.gethostname())}, since \d\d:\d\d:\d\d, by process {there} here\); wait for it to end",
            str(other.value),
        )
    with Lease.acquire((MACHINE,), tmp_path), Lease.acquire((MACHINE,), tmp_path):
        pass


def test_a_host_without_locks_is_told(hosts: tuple[SshHost, SshHost], tmp_path: Path) -> None:
    with pytest.raises(SshError) as error:
        SutLock.acquire(hosts[0], str(tmp_path / "no" / "lock"))
    assert re.fullmatch(
        rf"cannot lock {tmp_path}/no/lock on ssh:sut: .*; is flock \(util-linux\) installed there, and may one write "
        "there\\?",
        str(error.value),
    )


@pytest.mark.datapath
def test_a_rack_holds_its_sut_and_recovery_leaves_it_to_whoever_has_it(
    rack: Rack, tmp_path: Path, server: SshServer
) -> None:
    config = load_testbed(rack.testbed(tmp_path / "x.yaml", server))
    with Journal.begin(tmp_path / "state") as journal:
        testbed = open_testbed(config, journal)
        with Journal.begin(tmp_path / "other") as second, pytest.raises(SutInUseError, match=OURS):
            open_testbed(config, second)
        server.drop()
        assert testbed.check() == ()
        testbed.close()
        open_testbed(config, journal).close()
    assert recover_stale(tmp_path / "state") == []


@pytest.mark.datapath
def test_a_session_has_its_sut_also_between_two_testbeds(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    """Between two boots of a comparison another controller took it, and the build was blamed for boots that failed."""
    config = load_testbed(rack.testbed(tmp_path / "x.yaml", server))
    record = RunRecord(tmp_path / "run", "quick")
    session = Session(config, QUICK, record, Watcher(), state=tmp_path / "state")
    with SshHost(SshConnection(server.target), owns=True) as other:
        session.take()
        try:
            for _ in range(2):
                with pytest.raises(SutInUseError, match=OURS):
                    SutLock.acquire(other)
                session.leave([session.begin(session.make)])
            with pytest.raises(SutInUseError, match=OURS):
                SutLock.acquire(other)
            assert server.logins == 2  # one of each: testbeds use the connection that the lock is held by
            server.drop()
            session.leave([session.begin(session.make)])
            with pytest.raises(SutInUseError, match=OURS):
                SutLock.acquire(other)
        finally:
            session.close()
        SutLock.acquire(other).release()


@pytest.mark.datapath
def test_a_station_is_held_as_the_sut_is_unless_it_is_the_same_machine(
    rack: Rack, tmp_path: Path, server: SshServer
) -> None:
    taken: list[str] = []

    def acquire(host: SshHost) -> SutLock:
        taken.append(host.name)
        return really(host, str(tmp_path / f"{host.boot_id}.lock"))

    really = SutLock.acquire
    with SshServer(tmp_path / "elsewhere", own_boot=True) as elsewhere, pytest.MonkeyPatch.context() as patch:
        patch.setattr(SutLock, "acquire", acquire)
        for station, names in ((elsewhere, ["ssh:sut", "ssh:station"]), (server, ["ssh:sut"])):
            config = load_testbed(rack.testbed(tmp_path / "x.yaml", server, station=station))
            taken.clear()
            with config.claimed() as claim:
                assert taken == names
                assert claim.sut is not None
                assert (claim.station is None) is (station is server)
