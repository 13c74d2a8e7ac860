"""A testbed that does not come up, and whose namespaces do not go either: real ones, and an `ip` that is busy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_testbed import CONFIG, QUICK, Watcher

from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.session import Session
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.safety.recovery import recover_stale
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.testbeds.testbed_base import Testbed as AnyTestbed
from pdrgate.testbeds.vm.guest_start import GuestStart
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

IP = """#!/bin/sh
if [ -e {busy} ]; then
    case "$1 $2" in
        "link add") echo "RTNETLINK answers: Operation not supported" >&2; exit 2;;
        "netns delete") echo "Cannot remove namespace file: Device or resource busy" >&2; exit 1;;
    esac
fi
PATH=${{PATH#{folder}:}} exec ip "$@"
"""
Opener = Callable[[object, Journal], AnyTestbed]


@pytest.fixture
def busy(machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """While this file is there no link is made, and no namespace removed."""
    folder, busy = tmp_path / "bin", tmp_path / "busy"
    folder.mkdir()
    (folder / "ip").write_text(IP.format(busy=busy, folder=folder))
    (folder / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin")
    busy.touch()
    return busy


@pytest.fixture(params=["namespaces", "guest"])
def opener(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Begins to set a testbed up, which fails half-way."""

    def no_qemu(self: GuestStart) -> Any:
        raise TestbedError("no QEMU")

    monkeypatch.setattr(GuestStart, "begin", no_qemu)
    cpus, build = plan_cpus(None, None), Any

    def opened(config: object, journal: Journal) -> AnyTestbed:
        if request.param == "namespaces":
            return NetnsTestbed(1, cpus, journal)
        machine = GuestConfig(cpus=cpus.sut, accelerator="tcg")
        return VmTestbed(build, cpus, journal, tmp_path, machine=machine)  # type: ignore[arg-type]

    return opened


def test_its_journal_stays_until_a_recovery_has_removed_them(
    busy: Path, opener: Opener, tmp_path: Path, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before, state = state_of_machine(), tmp_path / "state"
    with (
        pytest.raises(TestbedError, match=r"Operation not supported|no QEMU") as error,
        Journal.begin(state) as journal,
    ):
        opener(CONFIG, journal)
    ours, stays = error.value.__notes__
    assert "Device or resource busy" in ours
    assert stays.startswith("not all that was changed is back as it was: namespace pdrgate-")
    for sentence in recover_stale(state):
        assert sentence.startswith("could not undo {") and "Device or resource busy" in sentence
    busy.unlink()
    assert all(sentence.startswith("deleted namespace pdrgate-") for sentence in recover_stale(state))
    assert not list(state.glob("run-*"))
    assert state_of_machine() == before


def test_its_session_removes_them_when_it_ends(
    busy: Path, opener: Opener, tmp_path: Path, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before, state, watcher = state_of_machine(), tmp_path / "state", Watcher()

    def busy_meanwhile(config: object, journal: Journal) -> AnyTestbed:
        try:
            return opener(config, journal)
        finally:
            busy.unlink()

    record = RunRecord(tmp_path / "run", "quick")
    session = Session(CONFIG, QUICK, record, watcher, opener=busy_meanwhile, state=state)
    with pytest.raises(TestbedError, match=r"Operation not supported|no QEMU"):
        session.open()
    assert watcher.sentences
    assert all(sentence.startswith("deleted namespace pdrgate-") for sentence in watcher.sentences)
    assert not list(state.glob("run-*"))
    assert state_of_machine() == before
