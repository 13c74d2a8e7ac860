"""A guest whose kernel measured its clock wrongly is booted anew, and nothing of the first boot stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import data_path
from pdrgate.guests.guest_clock import GuestClock, WrongClockError
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


def test_a_wrong_clock_costs_a_boot(cloud: KernelBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boots = list[str]()

    def wrong_at_first(clock: GuestClock) -> None:
        boots.append(testbed.boot_id)
        if len(boots) == 1:
            raise WrongClockError("its clock goes 55 times as fast as it should")

    monkeypatch.setattr(GuestClock, "check", wrong_at_first)
    with Journal.begin(tmp_path / "state") as journal:
        testbed = VmTestbed(cloud, plan_cpus(None, None), journal, tmp_path / "consoles")
        try:
            testbed.ready()
            assert len(set(boots)) == 2
            assert testbed.guest.running
            path = data_path("ipv4-routing")
            path.apply(testbed.hops)
            assert path.restore() == []
        finally:
            testbed.close()
