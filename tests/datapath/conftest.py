"""What all tests on the real data path share: the machine to themselves, and a look at what they left behind."""

from __future__ import annotations

import os
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.embedded import Engine

OURS = re.compile(r"pdrgate-[0-9a-f]{6}-(tg|sut\d)")
PROGRAMS = ("pdrgate-traffic", "pdrgate-heartbe")
"""As the kernel has their names: 15 letters."""
_PATIENCE = 100
"""Tenths of a second."""
LOCK_WAIT = 600.0
"""Seconds to wait for somebody else's measurement."""


def impossible() -> str | None:
    """Why there can be no namespaces here; None when there can."""
    if os.geteuid() != 0:
        return "network namespaces take root: run with sudo"
    name = f"pdrgate-t-{uuid.uuid4().hex[:8]}"
    made = subprocess.run(("ip", "netns", "add", name), capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no namespace can be made here: {made.stderr.strip()}"
    subprocess.run(("ip", "netns", "delete", name), check=True)
    return None


def comms() -> dict[int, str]:
    """The names of all processes, by process id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            found[int(path.parent.name)] = path.read_text().strip()
        except OSError:
            continue
    return found


def is_ours(process: int) -> bool:
    """Whether it was started below this process of pytest: others boot guests, which have such programs too, and have
    another namespace of mounts, see tests/conftest.py."""
    try:
        return Path(f"/proc/{process}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()
    except OSError:
        return False  # it has ended


def machine_state() -> dict[str, object]:
    """All that a testbed changes outside its own namespaces, and what of it is there."""
    threads = {name: pid for pid, name in comms().items() if name.startswith("ksoftirqd/")}
    return {
        "backlog": Path("/proc/sys/net/core/netdev_max_backlog").read_text().strip(),
        "nice": {name: os.getpriority(os.PRIO_PROCESS, pid) for name, pid in sorted(threads.items())},
        "namespaces": sorted(path.name for path in Path("/run/netns").glob("*") if OURS.fullmatch(path.name)),
        "workers": sorted(pid for pid, name in comms().items() if name in PROGRAMS and is_ours(pid)),
    }


@pytest.fixture(scope="module")
def machine() -> Iterator[None]:
    """The machine for ourselves, as every run has it; at the end it must be as it was."""
    if reason := impossible():
        pytest.skip(reason)
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        before = machine_state()
        yield
        after = machine_state()
        # A worker that was killed in the middle of a trial may still be ending in the kernel, ours or one before us.
        for _ in range(_PATIENCE):
            if set(after["workers"]) <= set(before["workers"]):  # type: ignore[call-overload]
                break
            time.sleep(0.1)
            after = machine_state()
        assert set(after.pop("workers")) <= set(before.pop("workers"))  # type: ignore[call-overload]
        assert after == before


@pytest.fixture(scope="module")
def make_testbed(machine: None, tmp_path_factory: pytest.TempPathFactory):
    """Makes testbeds of this machine, which end with the module; with ``cpus`` chosen as for a run."""
    made: list[tuple[NetnsTestbed, Journal]] = []

    def make(engine: Engine = "auto", hops: int = 3, section: Mapping[str, Any] | None = None) -> NetnsTestbed:
        journal = Journal.begin(tmp_path_factory.mktemp("state"))
        testbed = NetnsTestbed(hops, plan_cpus(None, None), journal, engine=engine, section=section)
        made.append((testbed, journal))
        return testbed

    yield make
    for testbed, journal in made:
        testbed.close()
        journal.close()


@pytest.fixture
def state_of_machine() -> Callable[[], dict[str, object]]:
    """What `machine_state` says of all but the workers of others."""
    return lambda: {name: value for name, value in machine_state().items() if name != "workers"}
