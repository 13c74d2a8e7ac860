"""The machine of a rack's SUT: which start of it is measured, and which of its CPUs route."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pdrgate.data_paths.catalogue import Hop
from pdrgate.hosts.cpus import format_cpu_list, parse_cpu_list, plan_cpus
from pdrgate.hosts.host import Host
from pdrgate.hosts.ssh import SshHost
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import TestbedError

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class RackMachine:
    """A machine as it is now; one that is reached by SSH is noted in the journal.

    Raises:
        TestbedError: it cannot be reached.
    """

    def __init__(self, host: Host, journal: Journal) -> None:
        self._host = host
        self.boot_id = self._boot()
        """The boot id of its kernel."""
        if isinstance(host, SshHost):
            journal.machine(host.name, host.to_record(), self.boot_id)
        self.online = parse_cpu_list(host.read("/sys/devices/system/cpu/online"))
        """CPUs of the machine that are online."""

    @property
    def is_this_one(self) -> bool:
        """Whether it is the machine that this process runs on, by whatever way it is reached."""
        return self.boot_id == Path(_BOOT_ID).read_text().strip()

    def check(self) -> None:
        """Raise TestbedError when it was restarted, so that its settings are gone."""
        if (now := self._boot()) != self.boot_id:
            raise TestbedError(
                f"{self._host.name} was restarted during the run (boot {self.boot_id[:8]}, now {now[:8]}), so that "
                "its settings are gone; look why, and start again"
            )

    def plan(self, wanted: Sequence[int] | None, generator: int | None, router: Hop) -> tuple[int, ...]:
        """The CPUs that route.

        Args:
            wanted: those that the testbed file names; None: they are to be chosen.
            generator: the CPU of this machine that the generator has; None where it has none.

        Raises:
            TestbedError: a CPU is not there, or is the generator's.
        """
        if self.is_this_one and generator is not None:
            return plan_cpus(generator, wanted, set(self.online) & os.sched_getaffinity(0)).sut
        if wanted is None:
            return (self._near(router),)
        if absent := sorted(set(wanted) - set(self.online)):
            raise TestbedError(
                f"sut.cpus: {self._host.name} has no CPU {format_cpu_list(absent)}, but CPUs "
                f"{format_cpu_list(self.online)}; choose of these or write auto"
            )
        return tuple(sorted(wanted))

    def _near(self, router: Hop) -> int:
        """A CPU of the first port's NUMA node, and not CPU 0, which all else runs on."""
        listed = f"/sys/class/net/{router.ingress.interface}/device/local_cpulist"
        near = parse_cpu_list(router.host.read(listed)) if router.host.exists(listed) else ()
        usable = [cpu for cpu in near if cpu in self.online] or list(self.online)
        return next((cpu for cpu in usable if cpu != 0), usable[0])

    def _boot(self) -> str:
        # By SSH it is known from the connection, and no command is needed.
        return self._host.boot_id if isinstance(self._host, SshHost) else self._host.read(_BOOT_ID).strip()
