"""The doctor on a rack: a SUT over a real sshd that passes for another machine, and host keys that are not known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rack import Rack
from ssh_server import SshServer

from pdrgate.doctor import Examination, Finding, Status
from pdrgate.testbeds import load_testbed

pytestmark = pytest.mark.datapath


def examined(file: Path, state: Path) -> dict[str, Finding]:
    config = load_testbed(file)
    return {f"{one.part}: {one.check}": one for one in Examination(config, state, state=state, window=0.3).findings()}


def test_a_sut_of_another_machine(rack: Rack, at_rest: dict[str, str], tmp_path: Path) -> None:
    with SshServer(tmp_path / "sshd", own_boot=True) as server:
        found = examined(rack.testbed(tmp_path / "x.yaml", server), tmp_path)
        after = rack.state()
    assert after == at_rest
    assert found["testbed: set-up"].status is Status.OK, found
    reached = found["SUT: reached"]
    assert reached.message.startswith(f"ssh:sut/{rack.sut} answers in ")
    assert "its host key is the known one (ssh-ed25519 SHA256:" in reached.message
    assert found["SUT: rights"].message == "root, with the capabilities that it takes"
    assert found["SUT: tools"].message.startswith("ip ")
    assert found["SUT: time"].status is Status.OK
    assert found["SUT: links"].message == "in0, out0: up, without errors"
    assert "SUT: quiet CPUs" in found
    for direction in ("forward", "both directions"):
        # Where others have the generator's CPU, some are sent too late.
        assert re.search(r" of 10000 (packets|were not sent in time)", found[f"traffic: {direction}"].message)


def test_a_host_key_that_is_not_the_known_one(rack: Rack, tmp_path: Path) -> None:
    with SshServer(tmp_path / "sshd") as server:
        server.known_hosts.write_text("")
        found = examined(rack.testbed(tmp_path / "x.yaml", server), tmp_path)
    assert found["testbed: set-up"].status is Status.FAIL
    assert "host key" in found["testbed: set-up"].message
    assert found["testbed: reached"].message == "not looked at: the testbed cannot be set up"


def test_a_sut_that_does_not_answer(rack: Rack, tmp_path: Path) -> None:
    with SshServer(tmp_path / "sshd") as server:
        file = rack.testbed(tmp_path / "x.yaml", server)
    found = examined(file, tmp_path)["testbed: set-up"]
    assert (found.status, "127.0.0.1" in found.message) == (Status.FAIL, True)


def test_a_sut_on_this_machine(rack: Rack, tmp_path: Path) -> None:
    found = examined(rack.testbed(tmp_path / "x.yaml"), tmp_path)
    assert found["testbed: set-up"].status is Status.OK, found
    # Both their CPUs are this machine's: the generator's is looked at first, the SUT's when it is known.
    assert "this machine: quiet CPUs" in found
    assert "SUT: quiet CPUs" in found
    assert "SUT: time" not in found
