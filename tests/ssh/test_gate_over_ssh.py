"""The whole gate over a real sshd, as users start it: the suites are the shipped ones, only the testbed file is new."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_noise import MEASURED
from rack import PORTS, Rack
from retis_server import server_with_retis
from ssh_server import SshServer
from trex_rig import SATURATION, ideal
from trex_server import TRexServer

from pdrgate.observers.retis.events import bindings_missing
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.safety.recovery import recover_stale
from pdrgate.safety.state_folder import LASTING_DIR
from tests.acceptance.conftest import ROOT, Ended, Started, forked, started

pytestmark = pytest.mark.datapath

SMOKE = ("--profile", "smoke", "--wait", "15 min")


@pytest.fixture(scope="module")
def before(sshd_is_there: None) -> dict[str, str]:
    """The state of a rack before a run, which is that of any equal one."""
    # Somebody else may be measuring: what is the machine's must be at rest when it is looked at.
    with Lease.acquire(whole_machine(), wait=900), Rack() as rack:
        return rack.state()


@pytest.fixture
def rack(before: dict[str, str]) -> Iterator[Rack]:
    """A rack that a run leaves as it was."""
    with Rack() as rack:
        yield rack
        with Lease.acquire(whole_machine(), wait=900):
            after = rack.state()
        assert {name: (before.get(name), after.get(name)) for name in before.keys() | after.keys()} == {
            name: (value, value) for name, value in before.items()
        }
        assert not list(LASTING_DIR.glob("remote-*"))


def gate(rack: Rack, folder: Path, *options: str) -> Ended:
    output = folder / "out"
    return forked(["gate", "--testbed", str(folder / "rack.yaml"), "--output", str(output), *SMOKE, *options], output)


def going(folder: Path, patience: float | None = None) -> Started:
    """A run by the folder's testbed file; ``patience`` as of `started`."""
    testbed, output = str(folder / "rack.yaml"), str(folder / "out")
    return started(["gate", "--testbed", testbed, "--output", output, *SMOKE], folder, patience=patience)


@pytest.mark.parametrize("way", ["ssh", "netns"])
def test_the_default_scenario(rack: Rack, tmp_path: Path, server: SshServer, way: str) -> None:
    rack.testbed(tmp_path / "rack.yaml", server if way == "ssh" else None)
    ended = gate(rack, tmp_path)
    verdict = ended.result["verdict"]
    assert verdict in MEASURED, ended.stdout
    assert f"\n{ended.headline}\n" in ended.stdout
    (scenario,) = ended.result["scenarios"]
    name = f"ssh:sut/{rack.sut}" if way == "ssh" else f"netns:{rack.sut}"
    assert scenario["fingerprint"]["testbed_sut"] == name
    assert ended.result["testbed"]["kind"] == "rack"
    assert ended.result["testbed"]["sentence"].startswith(f"SUT {name}, ports in0 and out0")
    assert scenario["trials"] == len((ended.folder / "trials.jsonl").read_text().splitlines()) > 0
    assert scenario["calibration"]["forwarding_rate"] > 0


def test_trex_generates_and_the_sut_is_set_up_over_ssh(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    """The server is a simulated one that routes by itself: of the SUT it is the set-up that counts here."""
    show = ["ip", "netns", "exec", rack.sut, "cat", *(f"/sys/class/net/{port}/address" for port in PORTS)]
    macs = subprocess.run(show, check=True, capture_output=True, text=True).stdout.split()
    with TRexServer(ideal()) as trex:
        trex.makes = lambda frame, port: (
            bytes.fromhex(f"02000000000{port ^ 1}{macs[port ^ 1].replace(':', '')}")
            + frame[12:21] + bytes([frame[21] - 1]) + frame[22:],
            port ^ 1,
        )  # fmt: skip
        rack.testbed(
            tmp_path / "rack.yaml",
            server,
            {"kind": "trex", "server": "127.0.0.1", "sync_port": trex.sync_port, "async_port": trex.async_port},
            ports=[{"interface": port, "faces": f"02:00:00:00:00:0{number}"} for number, port in enumerate(PORTS)],
        )
        ended = gate(rack, tmp_path)
    assert ended.result["verdict"] == "NO_BASELINE", ended.stdout
    (scenario,) = ended.result["scenarios"]
    assert scenario["pdr"]["load"] == pytest.approx(SATURATION, rel=0.02)
    assert scenario["fingerprint"]["generator"].startswith("trex/")
    assert scenario["fingerprint"]["testbed_buffer"] == "backlog"
    assert server.logins == 1


@pytest.mark.skipif(bool(bindings_missing()), reason="PyPI has wheels of retis for x86_64 only")
def test_what_retis_sees_on_a_host_is_told_wherever_a_run_is_told(
    rack: Rack, tmp_path: Path, sshd_is_there: None
) -> None:
    """Its collector is a stand-in that writes events of the real one, as if they were of the SUT's namespace."""
    inode = Path(f"/run/netns/{rack.sut}").stat().st_ino
    with server_with_retis(tmp_path / "ssh", netns=inode) as server:
        rack.testbed(tmp_path / "rack.yaml", server)
        ended = gate(rack, tmp_path, "--set", "retis=true")
    assert ended.folder is not None, ended.stdout + ended.stderr
    (entry,) = ended.result["scenarios"]
    drops = entry["drops"]
    assert (drops["failure"], drops["seen"]) == ("", 200), ended.stdout
    assert (ended.folder / drops["file"]).read_text().count(f'"inum":{inode}}}') == 200
    assert "200 by dst_discard_out (NOT_SPECIFIED)" in ended.stdout
    table = "| `dst_discard_out` | `NOT_SPECIFIED` | 200 | 128 | `… → ipv6_list_rcv → "
    assert table in (ended.folder / "summary.md").read_text()
    for page in ("summary.html", "output.xml"):  # log.html is made of this one
        assert "ip6_sublist_rcv_finish → dst_discard_out" in (ended.folder / page).read_text(), page


def test_all_other_suites_of_routing(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    rack.testbed(tmp_path / "rack.yaml", server)
    ended = gate(rack, tmp_path, "--scenario", "ipv4ANDlarge-buffers", "--scenario", "unpinned")
    assert len(ended.result["scenarios"]) >= 2, ended.stdout
    assert {entry["verdict"] for entry in ended.result["scenarios"]} <= MEASURED, ended.stdout


def test_sshd_killed_again_and_again_costs_nothing(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    rack.testbed(tmp_path / "rack.yaml", server)
    runs = going(tmp_path)
    killed = 0
    for number in (2, 6, 9):
        runs.until_told(rf"^\s+{number} ")
        killed += server.drop()
    code, said = runs.code(), runs.told
    assert killed == 3
    (folder,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir() and not path.is_symlink())
    first = re.search(rf"^({'|'.join(MEASURED)}): ", said, re.MULTILINE)
    # A command may have been on its way when its connection was killed: then it is an error that says so.
    lost = "was lost" in said and "\nERROR: " in said and code == 2
    assert (first and code in (0, 1, 2)) or lost, said
    assert (folder / "trials.jsonl").read_text().count("\n") >= 9


def test_a_sut_that_restarts_in_the_run_is_an_error_that_says_so(
    rack: Rack, tmp_path: Path, sshd_is_there: None
) -> None:
    with SshServer(tmp_path / "ssh", own_boot=True) as elsewhere:
        rack.testbed(tmp_path / "rack.yaml", elsewhere)
        runs = going(tmp_path)
        runs.until_told(r"^\s+5 ")
        elsewhere.restart()
        code, said = runs.code(), runs.told
    assert code == 2, said
    assert re.search(r"^ERROR: ssh:sut was restarted during the run \(boot \w+, now \w+\)", said, re.MULTILINE), said


def test_a_sut_that_goes_away_for_good_is_an_error_and_is_put_back_later(
    rack: Rack, tmp_path: Path, server: SshServer
) -> None:
    rack.testbed(tmp_path / "rack.yaml", server)
    runs = going(tmp_path, patience=3.0)
    runs.until_told(r"^\s+5 ")
    server.stop()
    code, said = runs.code(), runs.told
    assert code == 2, said
    assert re.search(r"^ERROR: .*(cannot reach sut|was lost)", said, re.MULTILINE), said
    (journal,) = LASTING_DIR.glob("remote-*")
    server.start()
    # As the next run does, whoever's that is.
    with Lease.acquire(whole_machine(), wait=900) as lease:
        recover_stale(lease=lease)
    assert not journal.exists()


def test_a_changed_host_key_is_an_error_that_says_so(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    rack.testbed(tmp_path / "rack.yaml", server)
    other = (server.folder / "user_key.pub").read_text()
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other}")
    ended = gate(rack, tmp_path)
    assert ended.code == 2
    assert "ERROR: the host key of sut is not the expected one" in ended.stdout, ended.stdout
    assert "the host key of sut (root@127.0.0.1:" in ended.stdout
    assert "is not the expected one: it shows ssh-ed25519 SHA256:" in ended.stdout
    assert ended.result["verdict"] == "ERROR"


def test_a_suites_own_keywords_use_the_same_connection(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    rack.testbed(tmp_path / "rack.yaml", server)
    done = subprocess.run(
        [sys.executable, "-m", "robot", "--pythonpath", "libraries", "--variable", f"TESTBED:{tmp_path}/rack.yaml",
         "--variable", f"PORT:{server.port}", "--outputdir", tmp_path, "tests/ssh/shared_connection.robot"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # One login, and another one after the connection was killed: SSHLibrary made none of its own.
    assert server.logins == 2


def test_an_interruption_puts_the_sut_back(rack: Rack, tmp_path: Path, server: SshServer) -> None:
    rack.testbed(tmp_path / "rack.yaml", server)
    runs = going(tmp_path)
    runs.until_told(r"^\s+5 ")
    threading.Timer(0.05, lambda: runs.send_signal(signal.SIGINT)).start()
    code, said = runs.code(), runs.told
    assert code == 130, said
