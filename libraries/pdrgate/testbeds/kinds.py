"""The kinds of testbeds that a file can describe, and how each is opened."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import named_build
from pdrgate.cache import cache_folder
from pdrgate.errors import TestbedError
from pdrgate.hosts.cpus import CpuPlan, plan_cpus
from pdrgate.hosts.host import Host, local_host, netns_host
from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.config import Claim, TestbedConfig
from pdrgate.testbeds.protocol import Testbed

# What a kind is made of is imported when one is opened: SSH and guests take a while to load, most runs need neither.
if TYPE_CHECKING:
    from pdrgate.guests.metering import CpuSpeed
    from pdrgate.safety.sut_lock import SutLock
    from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
    from pdrgate.testbeds.rack.rack_station import RackStation
    from pdrgate.testbeds.rack.rack_testbed import RackTestbed
    from pdrgate.testbeds.rack.traffic_source import TrafficSource
    from pdrgate.testbeds.vm.vm_testbed import VmTestbed

_TOOLS = {"ip": "iproute2", "ethtool": "ethtool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNetns(TestbedConfig):
    """Routers in a row, each a network namespace of this machine."""

    kind: ClassVar[str] = "local-netns"

    hops: int = 1

    def open(self, journal: Journal, claim: Claim | None = None) -> NetnsTestbed:
        """Make the namespaces; see `TestbedConfig.open`."""
        from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed

        _check_this_machine(self, "makes network namespaces")
        return NetnsTestbed(
            self.hops,
            self.cpu_plan(),
            journal,
            engine=self.generator.engine,
            isolate=self.isolate,
            section=self.knobs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalVm(TestbedConfig):
    """A guest of this machine that boots kernel builds."""

    kind: ClassVar[str] = "local-vm"

    kernel: str | None = None
    """What is booted when no build is handed over; see `pdrgate.builds.named_build`."""
    vcpus: int = 1
    memory: int = 512
    """MiB."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    cpu_speed: CpuSpeed = "auto"
    """At which the CPU of an emulated guest is held while a trial lasts."""
    ring: int = 256
    """Packets that each port's receive ring holds."""
    cmdline: str = ""
    """Further words for the kernel's command line."""

    @property
    def boots_builds(self) -> bool:
        """Always."""
        return True

    @property
    def waits_for_build(self) -> bool:
        """Where the file names no kernel."""
        return self.kernel is None

    def open(self, journal: Journal, claim: Claim | None = None) -> VmTestbed:
        """Boot the file's kernel and wait for it; see `TestbedConfig.open`."""
        if self.kernel is None:
            raise TestbedError(
                f"testbed {self.name} boots kernel builds, and none was named; write one as sut.kernel in "
                f"{self.source}, such as linux-image-amd64, or compare two builds"
            )
        build = named_build(self.kernel)
        return self.boot(build, journal, cache_folder() / "consoles", lambda step: None).ready()

    def boot(
        self,
        build: KernelBuild,
        journal: Journal,
        folder: Path,
        told: Callable[[str], None],
        claim: Claim | None = None,
    ) -> VmTestbed:
        """Begin to boot ``build`` in a guest of its own, with its console's log in ``folder``; `ready` waits for it."""
        from pdrgate.guests.guest import GuestConfig
        from pdrgate.testbeds.vm.vm_testbed import VmTestbed

        _check_this_machine(self, "makes network namespaces")
        cpus = self.cpu_plan()
        return VmTestbed(
            build,
            cpus,
            journal,
            folder,
            machine=GuestConfig(
                cpus=cpus.sut,
                vcpus=self.vcpus,
                memory=self.memory,
                accelerator=self.accelerator,
                isolate=self.isolate,
                cmdline=self.cmdline,
                # The generator has nothing to do while a guest boots.
                boot_cpus=(cpus.generator, *cpus.sut),
            ),
            engine=self.generator.engine,
            speed=self.cpu_speed,
            ring=self.ring,
            section=self.knobs,
        )

    def with_kernel(self, build: str) -> LocalVm:
        """The same with ``build`` to be booted by `open`."""
        return replace(self, kernel=build)


@dataclass(frozen=True, slots=True)
class HostConfig:
    """How a host is reached: by SSH, as this machine, or as a network namespace."""

    kind: Literal["ssh", "local", "netns"]
    ssh: SshTarget | None = None
    namespace: str | None = None
    """The network namespace, of this machine or of the one reached by SSH, that the SUT's ports are in."""


@dataclass(frozen=True, slots=True)
class PortConfig:
    """A port of the SUT by interface, MAC address or PCI address: one of the three."""

    interface: str | None = None
    mac: str | None = None
    pci: str | None = None
    faces: str | None = None
    """The MAC address of the generator's port at the other end; None where that can be read."""


@dataclass(frozen=True, slots=True)
class StationConfig:
    """Who talks TCP with the SUT's first port, where that is not the generator's."""

    host: HostConfig
    interface: str
    cpu: int | None = None
    """Of its programs and its packet work; None: as its scheduler likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack(TestbedConfig):
    """A host and ports that are there already, of this machine, of a namespace, or of a machine reached by SSH."""

    kind: ClassVar[str] = "rack"
    side_by_side: ClassVar[bool] = False
    """There is one SUT."""
    sut_is_here: ClassVar[bool] = False
    """Or which of its CPUs are the SUT's is known only when its ports are."""

    host: HostConfig
    ports: tuple[PortConfig, PortConfig]
    buffer: Literal["auto", "ring", "backlog"] = "auto"
    """What a scenario's receive buffer is; auto: the receive ring where the driver has one that can be set."""
    steering: Literal["auto", "irq", "rps"] = "auto"
    """How packet work gets to a scenario's CPUs; auto: by interrupt affinity where the ports have interrupts."""
    station: StationConfig | None = None

    @property
    def boots_builds(self) -> bool:
        """Where the SUT is a whole machine, reached from another one, that can be restarted."""
        return self.over_ssh and self.host.namespace is None

    @property
    def over_ssh(self) -> bool:
        """Whether its SUT is reached by SSH."""
        return self.host.ssh is not None

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Claim]:
        """Hold the locks of SUT and station, where they are reached by SSH; see `TestbedConfig.claimed`."""
        with contextlib.ExitStack() as stack:
            sut = stack.enter_context(_claimed(self.host)) if self.over_ssh else None
            station = None
            if self.station is not None and self.station.host.ssh is not None:
                station = stack.enter_context(_claimed(self.station.host, sut))
            yield Claim(sut, station)

    def open(self, journal: Journal, claim: Claim | None = None) -> RackTestbed:
        """Reach the SUT and set its ports up; see `TestbedConfig.open`."""
        from pdrgate.testbeds.rack.rack_testbed import RackTestbed

        with contextlib.ExitStack() as own:
            claim = own.enter_context(self.claimed()) if claim is None else claim
            with contextlib.ExitStack() as stack:
                source = self._source(journal)
                stack.callback(source.close)
                machine, router = _hosts(self.host, claim.sut)
                stack.callback(machine.close)
                station = self._opened_station(journal, claim)
                stack.pop_all()  # from here on they are closed with the testbed, also with one that cannot be set up
            testbed = RackTestbed(
                machine, router, self.ports, source, journal, station=station,
                cpus=self.cpus, isolate=self.isolate, knobs=self.knobs, buffer=self.buffer, steering=self.steering,
                lock=claim.sut,
            )  # fmt: skip
            testbed.after_close(own.pop_all().close)
        return testbed

    def boot(
        self,
        build: KernelBuild,
        journal: Journal,
        folder: Path,
        told: Callable[[str], None],
        claim: Claim | None = None,
    ) -> RackTestbed:
        """Install ``build`` on the SUT's host, start it once, and set the testbed up there.

        Its `close` brings the default kernel back, and removes the build.

        Raises:
            TestbedError: the SUT is no machine of its own, or what `pdrgate.bare_metal.BareMetal` and `open` raise; the
                host then runs its default kernel, or did not come back, as the message says.
        """
        if self.host.ssh is None or self.host.namespace is not None:
            raise TestbedError(
                f"testbed {self.name} ({self.source}) boots no kernels: its SUT is no machine that is reached by SSH; "
                "use one of kind local-vm, or name the SUT's machine as sut.host without a namespace"
            )
        from pdrgate.bare_metal import BareMetal
        from pdrgate.hosts.ssh import SshHost

        with contextlib.ExitStack() as stack:
            # From before the installation until the default kernel is back; each restart of the host takes it anew.
            claim = stack.enter_context(self.claimed()) if claim is None else claim
            assert claim.sut is not None
            host = stack.enter_context(SshHost(claim.sut.host.connection))
            stack.enter_context(BareMetal(host, host, told=told).running(build))
            testbed = self.open(journal, claim)
            testbed.after_close(stack.pop_all().close)
        return testbed

    def cpu_plan(self) -> CpuPlan:
        """The generator's CPU of this machine, and the SUT's where it has some of this machine."""
        return plan_cpus(self.generator.cpu, None if self.over_ssh else self.cpus)

    def with_password(self, password: str) -> TestbedConfig:
        """The same with a password for the SUT's host. Raises TestbedError when that is not reached by SSH."""
        if self.host.ssh is None:
            return TestbedConfig.with_password(self, password)
        return replace(self, host=replace(self.host, ssh=replace(self.host.ssh, password=password)))

    def _opened_station(self, journal: Journal, claim: Claim) -> RackStation | None:
        if self.station is None:
            return None
        from pdrgate.testbeds.rack.rack_station import RackStation

        machine, router = _hosts(self.station.host, claim.station)
        return RackStation(machine, router, self.station.interface, journal, cpu=self.station.cpu, lock=claim.station)

    def _source(self, journal: Journal) -> TrafficSource:
        from pdrgate.testbeds.rack.traffic_source import EmbeddedSource, TRexSource

        if self.generator.trex is not None:
            return TRexSource(self.generator.trex)
        _check_this_machine(self, "sends from interfaces of this machine")
        first, second = self.generator.ports
        cpu = self.generator.cpu
        return EmbeddedSource(
            (first, second),
            # Where the SUT has CPUs of this machine, the generator gets another.
            self.cpu_plan().generator if cpu is None else cpu,
            journal,
            namespace=self.generator.namespace,
            engine=self.generator.engine,
        )


KINDS: Mapping[str, type[TestbedConfig]] = {kind.kind: kind for kind in (LocalNetns, LocalVm, Rack)}
"""Each kind by what a file calls it."""


def open_testbed(config: TestbedConfig, journal: Journal) -> Testbed:
    """What `TestbedConfig.open` does, for who can be handed another way to open a testbed."""
    return config.open(journal)


@contextlib.contextmanager
def _claimed(config: HostConfig, other: SutLock | None = None) -> Iterator[SutLock | None]:
    """The lock of a machine that is reached by SSH; none where it is that of ``other``, for a machine has one."""
    from pdrgate.hosts.ssh import SshConnection, SshHost
    from pdrgate.safety.sut_lock import SutLock

    assert config.ssh is not None
    with SshHost(SshConnection(config.ssh), owns=True) as host:
        if other is None or other.host.boot_id != host.boot_id:
            with SutLock.acquire(host) as lock:
                yield lock
            return
    yield None


def _hosts(config: HostConfig, lock: SutLock | None) -> tuple[Host, Host]:
    """The machine, and it again or the network namespace of it; nothing is asked of them yet.

    Args:
        lock: that of the machine, by whose connection it is reached then: nothing passes there that it does not allow.
    """
    machine: Host
    if config.ssh is not None:
        from pdrgate.hosts.ssh import SshConnection, SshHost

        connection = SshConnection(config.ssh) if lock is None else lock.host.connection
        machine = SshHost(connection, owns=lock is None)
        return machine, SshHost(machine.connection, config.namespace) if config.namespace else machine
    machine = local_host()
    return machine, netns_host(config.namespace) if config.namespace else machine


def _check_this_machine(config: TestbedConfig, why: str) -> None:
    if os.geteuid() != 0:
        raise TestbedError(f"testbed {config.name} {why}, which takes root; run with sudo")
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise TestbedError(f"{tool} is not installed; run ./ci/bootstrap, or: apt-get install {package}")
