"""A build on a rack is started before the testbed is set up there, and leaves after it; all on made hosts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.config import Claim
from pdrgate.testbeds.rack.rack_config import Rack
from pdrgate.testbeds.rack.rack_host import HostConfig
from pdrgate.testbeds.rack.rack_testbed import RackTestbed
from pdrgate.values.errors import TestbedError

ROOT = Path(__file__).parents[2]
RACK = load_testbed(ROOT / "resources/testbeds/rack-trex.yaml")
BUILD: Any = SimpleNamespace(name="linux", release="6.1")
JOURNAL: Any = None


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done, in order; the testbed is made without its SUT."""
    done: list[str] = []

    class Metal:
        def __init__(self, host: object, files: object, report: object) -> None:
            pass

        @contextlib.contextmanager
        def running(self, build: Any) -> Iterator[str]:
            done.append(f"starts {build.release}")
            try:
                yield "boot"
            finally:
                done.append("goes back")

    class Way(contextlib.ExitStack):
        def __init__(self, connection: object, owns: bool = False) -> None:
            super().__init__()
            if owns:
                self.callback(done.append, "closes the way there")

    def closing(what: str) -> SimpleNamespace:
        return SimpleNamespace(close=lambda: done.append(what), restore=lambda: done.append(what))

    def opened(config: object, journal: object, claim: Claim) -> RackTestbed:
        assert claim.sut is held
        done.append("opens the testbed")
        testbed = object.__new__(RackTestbed)
        testbed._afterwards = []
        parts: dict[str, Any] = {
            "_drops": closing("counts no more"), "_counting": closing("nor instructions"),
            "_knobs": closing("puts knobs back"),
            "_source": closing("ends the generator"), "_router": closing("leaves"), "_machine": closing("leaves"),
            "_station": None,
        }  # fmt: skip
        for name, part in parts.items():
            setattr(testbed, name, part)
        return testbed

    class Held(contextlib.ExitStack):
        host = SimpleNamespace(connection=None)

    held = Held()
    held.callback(done.append, "lets others have the SUT")
    monkeypatch.setattr("pdrgate.safety.sut_lock.SutLock.acquire", lambda host: held)
    monkeypatch.setattr("pdrgate.bare_metal.BareMetal", Metal)
    monkeypatch.setattr("pdrgate.hosts.ssh.SshConnection", lambda target: target)
    monkeypatch.setattr("pdrgate.hosts.ssh.SshHost", Way)
    monkeypatch.setattr(Rack, "open", opened)
    return done


def test_the_default_kernel_comes_back_after_everything_was_put_back(steps: list[str]) -> None:
    testbed = RACK.boot(BUILD, JOURNAL, ROOT, print)
    assert steps == ["starts 6.1", "opens the testbed"]
    testbed.close()
    assert steps[2:] == [
        "counts no more",
        "nor instructions",
        "puts knobs back",
        "ends the generator",
        "leaves",
        "leaves",
        "goes back",
        "lets others have the SUT",
        "closes the way there",
    ]
    testbed.close()
    assert steps.count("goes back") == 1


def test_a_testbed_that_cannot_be_set_up_leaves_no_build_running(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(config: object, journal: object, claim: object) -> RackTestbed:
        raise TestbedError("no link")

    monkeypatch.setattr(Rack, "open", refused)
    with pytest.raises(TestbedError, match="no link"):
        RACK.boot(BUILD, JOURNAL, ROOT, print)
    assert steps == ["starts 6.1", "goes back", "lets others have the SUT", "closes the way there"]


def test_only_a_machine_of_its_own_boots_builds(steps: list[str]) -> None:
    assert RACK.boots_builds
    assert isinstance(RACK, Rack)
    for host in (HostConfig("local"), HostConfig("netns", namespace="a"), replace(RACK.host, namespace="a")):
        part = replace(RACK, host=host)
        assert not part.boots_builds
        with pytest.raises(TestbedError, match="boots no kernels: its SUT is no machine that is reached by SSH"):
            part.boot(BUILD, JOURNAL, ROOT, print)
    assert steps == []
