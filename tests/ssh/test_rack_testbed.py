"""The testbed rack on namespaces, over a real sshd: everything it changes at the SUT is put back, whatever happens."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flat_values import changed
from rack import PORTS, Rack
from ssh_server import SshServer

from pdrgate.data_paths.catalogue import TcpStreams, data_path
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.hosts.host import netns_host
from pdrgate.hosts.ssh_login import HostKeyError
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import Counter, Place, gained, nested
from pdrgate.observers.watching import watching
from pdrgate.safety.journal import Journal
from pdrgate.safety.recovery import recover_stale
from pdrgate.stability import read_trials
from pdrgate.testbeds import load_testbed
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

if TYPE_CHECKING:
    from pdrgate.testbeds import Testbed

pytestmark = pytest.mark.datapath

ROOT = Path(__file__).parents[2]
FORWARDED = Counter(Place("ip6"), "OutForwDatagrams")


@pytest.fixture
def elsewhere(machine: None, tmp_path: Path) -> Iterator[SshServer]:
    """A server that passes for another machine."""
    with SshServer(tmp_path / "elsewhere", own_boot=True) as server:
        yield server


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def use(testbed: Testbed, load: float = 20e3) -> None:
    """A scenario, as a run has it."""
    path = data_path("ipv6-routing")
    path.apply(testbed.hops)
    try:
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")
        generator = testbed.generator(6)
        try:
            before = testbed.counters()
            trial = generator.trial(load, 0.2, Frames())
            after = testbed.counters()
            assert testbed.check() == ()
            discarding = ("rule", "add", "pref", "500", "iif", testbed.hops[0].ingress.interface, "blackhole")
            host = testbed.hops[0].host
            host.run("ip", "-6", *discarding)
            with watching(testbed.observers()) as watch:
                discarded = generator.trial(load, 0.1, Frames())
            host.run("ip", "-6", "rule", "delete", *discarding[2:])
        finally:
            generator.close()
        seen = watch.observation
        account = losses(changed(discarded, counters_before=nested(seen.before), counters_after=nested(seen.after)))
        assert account.most is not None
        assert account.most.where == "by a blackhole route", account.sentence()
        assert trial.offered + trial.unsent == load * 0.2  # not all are sent in time where others have the CPU
        assert 0 < trial.forwarded == trial.offered
        forwarded = after[FORWARDED] - before[FORWARDED]
        assert forwarded == trial.forwarded
    finally:
        path.restore()


@pytest.mark.parametrize("way", ["ssh", "netns"])
def test_the_same_testbed_by_ssh_and_without(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, server: SshServer, way: str
) -> None:
    file = rack.testbed(tmp_path / "x.yaml", server if way == "ssh" else None)
    plan = plan_cpus(None, None)
    with Journal.begin(tmp_path / "state") as journal:
        testbed = load_testbed(file).open(journal)
        try:
            name = f"ssh:sut/{rack.sut}" if way == "ssh" else f"netns:{rack.sut}"
            assert testbed.sentence() == (
                f"SUT {name}, ports in0 and out0, on CPU {plan.sut[0]} (packets steered there, the buffer is the "
                f"backlog); generator on CPU {plan.generator}, ports t0 and t1 of namespace {rack.tg}"
            )
            assert testbed.describe() == {
                "sut": name, "steering": "rps", "buffer": "backlog", "sut_cpus": "1",
                "knobs": "offloads of in0: gro=on tso=off; offloads of out0: gro=on tso=off",
            }  # fmt: skip
            assert testbed.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
            assert testbed.sut_cpus == plan.sut
            assert testbed.environment().kernel_release == os.uname().release
            use(testbed)
            changed = differences(at_rest, rack.state())
            assert changed["machine /proc/sys/net/core/netdev_max_backlog"] == ("1000", "4096")
            assert changed["sut /proc/sys/net/ipv6/conf/all/forwarding"] == ("0", "1")
        finally:
            testbed.close()
        testbed.close()  # a second time
    assert differences(at_rest, rack.state()) == {}
    assert list((tmp_path / "state").iterdir()) == []


def test_pinning_and_buffers_read_back(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    plan = plan_cpus(None, None)
    file = rack.testbed(tmp_path / "x.yaml", server)
    with Journal.begin(tmp_path / "state") as journal, netns_host(rack.sut) as sut:
        testbed = load_testbed(file).open(journal)
        try:
            for packets in (512, 777):
                testbed.set_buffer(packets)
                assert int(Path("/proc/sys/net/core/netdev_max_backlog").read_text()) == packets
            with pytest.raises(TestbedError, match="a receive buffer of 0 packets makes no sense"):
                testbed.set_buffer(0)
            testbed.pin("1 cpu")
            for port in PORTS:
                told = int(sut.read(f"/sys/class/net/{port}/queues/rx-0/rps_cpus").replace(",", ""), 16)
                assert told == 1 << plan.sut[0]
            with pytest.raises(TestbedError, match="pinning to 2 cpus needs 2 CPUs for the SUT, and it has CPU"):
                testbed.pin("2 cpus")
        finally:
            testbed.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ports": [{"interface": "in0"}, {"interface": "out9"}]},
         r"^sut.ports.1: ssh:sut/\S+ has no interface out9, but in0, lo, out0; name one of these$"),
        ({"ports": [{"interface": "in0"}, {"mac": "02:00:00:00:00:99"}]},
         r"^sut.ports.1: ssh:sut/\S+ has no interface with the address 02:00:00:00:00:99; name the port by interface"),
        ({"ports": [{"interface": "in0"}, {"interface": "in0"}]}, r"^sut.ports: both are in0; a router needs two$"),
        ({"cpus": [4000]}, r"^sut.cpus: CPU 4000 is not available"),
        ({"steering": "irq"}, r"^sut.steering: in0 on ssh:sut/\S+ has no interrupts of its own; write rps or auto$"),
        ({"buffer": "ring"}, r"^sut.buffer: in0 on ssh:sut/\S+ .*; write backlog or auto$"),
        ({"knobs": {"ports": {"rings": {"rx": 512}}}}, r"^cannot set rings of in0: rx=512: in0 on ssh:sut/"),
        ({"knobs": {"net.ipv4.ip_forward": "abc"}}, r"^writing abc to /proc/sys/net/ipv4/ip_forward on ssh:sut/"),
    ],
)  # fmt: skip
def test_what_a_sut_has_not_is_told_and_nothing_is_left(
    rack: Rack,
    at_rest: dict[str, str],
    tmp_path: Path,
    shared_server: SshServer,
    change: dict[str, object],
    message: str,
) -> None:
    file = rack.testbed(tmp_path / "x.yaml", shared_server, **change)
    with Journal.begin(tmp_path / "state") as journal, pytest.raises(TestbedError, match=message):
        load_testbed(file).open(journal)
    assert differences(at_rest, rack.state()) == {}


@pytest.mark.parametrize("missing", ["skip", "error"])
def test_a_login_that_lands_in_a_namespace_has_no_backlog_to_set(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, sshd_is_there: None, missing: str
) -> None:
    knobs = {"missing": missing, "ports": {"offloads": {"gro": True, "tso": False}}}
    with SshServer(tmp_path / "inside", namespace=rack.sut) as inside:
        target = inside.target
        host = {
            "kind": "ssh", "address": target.address, "port": target.port, "user": target.user,
            "key": str(target.key), "known_hosts": str(target.known_hosts),
        }  # fmt: skip
        file = rack.testbed(tmp_path / "x.yaml", inside, host=host, knobs=knobs)
        with Journal.begin(tmp_path / "state") as journal:
            testbed = load_testbed(file).open(journal)
            try:
                if missing == "skip":
                    use(testbed)
                    assert (
                        "; the backlog keeps its size, whatever a scenario asks for: ssh:sut has no /proc/sys/net"
                        in (testbed.sentence())
                    )
                    assert testbed.describe()["buffer"] == "backlog, not set"
                else:
                    with pytest.raises(
                        TestbedError, match=r"^a backlog of 4096 packets cannot be had: ssh:sut has no "
                    ):
                        testbed.set_buffer(4096)
                    assert testbed.describe()["buffer"] == "backlog"
            finally:
                testbed.close()
    assert differences(at_rest, rack.state()) == {}


@pytest.mark.parametrize("way", ["ssh", "netns"])
def test_what_the_generators_own_namespace_drops_is_not_the_suts(
    rack: Rack, tmp_path: Path, shared_server: SshServer, way: str
) -> None:
    """They share a kernel, also where the SUT is reached by SSH."""
    sends = "import socket; [socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9)) for _ in range(50)]"
    with Journal.begin(tmp_path / "state") as journal, netns_host(rack.tg) as tg:
        testbed = load_testbed(rack.testbed(tmp_path / "x.yaml", shared_server if way == "ssh" else None)).open(journal)
        try:
            tg.run("ip", "link", "set", "lo", "up")
            with watching(testbed.observers()) as watch:
                tg.run(sys.executable, "-c", sends)
            seen = gained(watch.observation.before, watch.observation.after)
        finally:
            tg.run("ip", "link", "set", "lo", "down")
            testbed.close()
    assert [counter for counter in seen if counter.place.kind == "drops" and "NO_SOCKET" in counter.name] == []


@pytest.mark.parametrize("named", [False, True], ids=["the-generators-port", "a-host-of-the-file"])
def test_tcp_between_the_sut_and_who_it_faces(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, shared_server: SshServer, named: bool
) -> None:
    file = rack.testbed(tmp_path / "x.yaml", shared_server, station=shared_server if named else None)
    with Journal.begin(tmp_path / "state") as journal:
        testbed = load_testbed(file).open(journal)
        try:
            told = f"ssh:station/{rack.tg}" if named else None
            assert testbed.describe().get("station") == told
            streams = TcpStreams(direction="sends") if named else TcpStreams()
            path = TcpTransfer(6 if named else 4, streams, journal)
            path.apply(testbed.hops)
            try:
                made = path.loop.transfer(64 << 10, 1.0).transfer
                assert made.delivered > 1 << 20
                assert made.senders.advertised <= 64 << 10
                assert made.senders.looks
                assert made.cpu.sut_busy
                assert (made.cpu.station_busy is None) is named
                # What a killed run would leave is known: settings, addresses and routes of both ends.
                noted = journal.path.read_text() + "".join(one.read_text() for one in remote(tmp_path / "state"))
                for word in ("tcp_rmem", "tcp_wmem", "port-network"):
                    assert noted.count(word) >= 1
            finally:
                path.restore()
        finally:
            testbed.close()
    assert differences(at_rest, rack.state()) == {}


def test_a_port_that_is_down_is_told(rack: Rack, tmp_path: Path, shared_server: SshServer) -> None:
    file = rack.testbed(tmp_path / "x.yaml", shared_server)
    subprocess.run(("ip", "-n", rack.sut, "link", "set", "out0", "down"), check=True)
    with Journal.begin(tmp_path / "state") as journal:
        with pytest.raises(
            TestbedError, match=r"^generator.ports: t1 on netns:\S+ has no link; check cable and far end"
        ):
            load_testbed(file).open(journal)
        subprocess.run(("ip", "-n", rack.tg, "link", "set", "t1", "down"), check=True)
        with pytest.raises(TestbedError, match=r"^generator.ports: t1 on \S+ is down; bring it up: ip link set t1 up$"):
            load_testbed(file).open(journal)


def test_a_wrong_host_key_is_told(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    file = rack.testbed(tmp_path / "x.yaml", server)
    server.known_hosts.write_text("")
    with (
        Journal.begin(tmp_path / "state") as journal,
        pytest.raises(HostKeyError, match=r"^the host key of sut .* unk"),
    ):
        load_testbed(file).open(journal)


def test_ports_by_their_mac(rack: Rack, tmp_path: Path, shared_server: SshServer) -> None:
    with netns_host(rack.sut) as sut:
        macs = [sut.read(f"/sys/class/net/{port}/address").strip().upper() for port in PORTS]
    file = rack.testbed(tmp_path / "x.yaml", shared_server, ports=[{"mac": mac} for mac in macs])
    with Journal.begin(tmp_path / "state") as journal:
        testbed = load_testbed(file).open(journal)
        try:
            assert tuple(port.interface for port in testbed.hops[0].ports) == PORTS
            use(testbed)
        finally:
            testbed.close()


# --- Losses ---


def test_sshd_killed_in_a_trial_does_no_harm(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, server: SshServer
) -> None:
    file = rack.testbed(tmp_path / "x.yaml", server)
    with Journal.begin(tmp_path / "state") as journal:
        testbed = load_testbed(file).open(journal)
        try:
            path = data_path("ipv6-routing")
            path.apply(testbed.hops)
            generator = testbed.generator(6)
            counted = testbed.counters()[FORWARDED]
            killed: list[int] = []
            threading.Timer(0.3, lambda: killed.append(server.drop())).start()
            trial = generator.trial(20e3, 0.8, Frames())
            assert killed == [1]
            assert testbed.counters()[FORWARDED] - counted == trial.forwarded == trial.offered == 16_000 - trial.unsent
            assert testbed.check() == ()
            generator.close()
            server.drop()
            path.restore()
        finally:
            testbed.close()
    assert differences(at_rest, rack.state()) == {}


def test_a_sut_restarted_in_a_trial_is_told(rack: Rack, tmp_path: Path, elsewhere: SshServer) -> None:
    file = rack.testbed(tmp_path / "x.yaml", elsewhere)
    with Journal.begin(tmp_path / "state") as journal:
        testbed = load_testbed(file).open(journal)
        try:
            assert testbed.check() == ()
            boot = testbed.boot_id
            elsewhere.restart()
            with pytest.raises(TestbedError) as error:
                testbed.check()
            now = (elsewhere.folder / "boot_id").read_text()[:8]
            assert str(error.value) == (
                f"ssh:sut was restarted during the run (boot {boot}, now {now}), so that its settings are gone; look "
                "why, and start again"
            )
        finally:
            testbed.close()


# --- Killed runs ---

SCRIPT = """
import sys
from pathlib import Path
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.run.session import Session
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.testbeds import load_testbed

class Teller(RunObserver):
    def said(self, sentence):
        print("said", sentence, flush=True)

    def measured(self, progress):
        print("measured", progress.number, flush=True)

file, folder, state = sys.argv[1:]
options = Options(profile="quick")
record = RunRecord(Path(folder), "quick")
with Session(load_testbed(file), options, record, Teller(), state=Path(state)) as session:
    subject = ScenarioRun(session, Scenario(buffer=777))
    subject.prepare()
    for _ in range(3):
        subject.sut.measure(Ask(20e3, 0.1, Phase.LOAD))
    print("ready", flush=True)
    subject.sut.measure(Ask(20e3, 60.0, Phase.LOAD))
"""


@pytest.fixture
def killed(rack: Rack, at_rest: dict[str, str], tmp_path: Path, elsewhere: SshServer) -> int:
    """The process id of a run of the rack by SSH that was killed in a trial."""
    file = rack.testbed(tmp_path / "x.yaml", elsewhere)
    child = subprocess.Popen(
        (sys.executable, "-c", SCRIPT, str(file), str(tmp_path / "run"), str(tmp_path / "state")),
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "libraries")},
    )  # fmt: skip
    assert child.stdout is not None
    said = []
    for line in child.stdout:
        said.append(line)
        if line.startswith("ready"):
            break
    else:
        pytest.fail("".join(said))
    assert not select.select([child.stdout], [], [], 0.2)[0]
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert differences(at_rest, rack.state()) != {}
    assert len(read_trials(tmp_path / "run" / "trials.jsonl")) == 3
    return child.pid


def remote(state: Path) -> list[Path]:
    return sorted(state.glob("remote-*"))


def test_a_killed_run_is_undone_by_ssh(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, elsewhere: SshServer, killed: int
) -> None:
    told = recover_stale(tmp_path / "state")
    by = f"(left by the killed run of pid {killed})"
    assert f"put back net.core.netdev_max_backlog = 1000 on ssh:sut {by}" in told
    assert f"put back net.ipv4.ip_forward = 0 on ssh:sut/{rack.sut} {by}" in told
    assert not [sentence for sentence in told if not sentence.startswith("put back")]
    assert differences(at_rest, rack.state()) == {}
    assert list((tmp_path / "state").glob("*.jsonl")) == []


def test_a_restart_of_this_machine_forgets_nothing_of_others(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, elsewhere: SshServer, killed: int
) -> None:
    for path in (tmp_path / "state").glob("*.jsonl"):
        head, *lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join((json.dumps({**json.loads(head), "boot": "another"}) + "\n", *lines)))
    told = recover_stale(tmp_path / "state")
    assert any(sentence.startswith("dropped the journal of the killed run of pid") for sentence in told)
    assert any(sentence.startswith("put back net.core.netdev_max_backlog = 1000 on ssh:sut") for sentence in told)
    left = differences(at_rest, rack.state())
    assert not [name for name in left if not name.startswith("tg ")]  # that was this machine's


def test_what_a_restart_of_the_sut_has_undone_is_dropped(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, elsewhere: SshServer, killed: int
) -> None:
    try:
        elsewhere.restart()
        told = recover_stale(tmp_path / "state")
        assert (
            f"dropped what the killed run of pid {killed} had changed on ssh:sut: it has been restarted since, which "
            "undid that"
        ) in told
        assert not [sentence for sentence in told if "on ssh:sut " in sentence and sentence.startswith("put back")]
        assert remote(tmp_path / "state") == []
    finally:
        # It was no restart: what the machine has for itself is to be put back by hand.
        Path("/proc/sys/net/core/netdev_max_backlog").write_text(
            next(value for name, value in at_rest.items() if name.startswith("machine") and "max_backlog" in name)
        )
        for name, value in at_rest.items():
            if name.startswith("machine kernel-thread-nice "):
                thread = name.rpartition(" ")[2]
                pids = [path.parent.name for path in Path("/proc").glob("[0-9]*/comm") if read(path) == thread]
                subprocess.run(("renice", "-n", value, "-p", *pids), check=True, capture_output=True)
        assert not [name for name in differences(at_rest, rack.state()) if name.startswith("machine ")]


def read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def test_a_sut_that_is_away_is_asked_once_and_undone_when_it_is_back(
    rack: Rack, at_rest: dict[str, str], tmp_path: Path, elsewhere: SshServer, killed: int
) -> None:
    elsewhere.stop()
    away = [sentence for sentence in recover_stale(tmp_path / "state") if sentence.startswith("could not undo")]
    (sentence,) = away
    assert f"changes of the killed run of pid {killed} on ssh:sut: cannot reach sut (root@127.0.0.1:" in sentence
    assert sentence.endswith("; the next start tries again, and so does: sudo pdrgate restore")
    assert len(remote(tmp_path / "state")) == 1
    elsewhere.start()
    told = recover_stale(tmp_path / "state")
    assert any("net.core.netdev_max_backlog = 1000 on ssh:sut" in sentence for sentence in told)
    assert differences(at_rest, rack.state()) == {}
    assert remote(tmp_path / "state") == []
