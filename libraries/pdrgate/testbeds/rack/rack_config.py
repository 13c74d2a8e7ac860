"""Contents of a testbed file on a rack."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.hosts.cpus import CpuPlan, plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import MACHINE, Resource
from pdrgate.testbeds.config import Claim, TestbedConfig, shared_cpu, wrong_knobs
from pdrgate.testbeds.rack.rack_host import HostConfig
from pdrgate.testbeds.rack.rack_keys import PortConfig, StationConfig, wrong_passwords, wrong_ports
from pdrgate.testbeds.sharing import BACKLOG, cores, settings
from pdrgate.testbeds.this_machine import check_this_machine
from pdrgate.testbeds.yaml_lines import Key
from pdrgate.values.errors import TestbedError

# What opens a testbed is imported when one is opened: SSH takes a while to load, and reading a file needs none of it.
if TYPE_CHECKING:
    from pdrgate.testbeds.rack.rack_testbed import RackTestbed
    from pdrgate.testbeds.rack.traffic_source import TrafficSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack(TestbedConfig):
    """A host and ports that are there already, of this machine, of a namespace, or of a machine reached by SSH."""

    kind: ClassVar[str] = "rack"
    side_by_side: ClassVar[bool] = False
    """There is one SUT."""
    sut_is_here: ClassVar[bool] = False
    """The SUT may be another machine; of this one, its CPUs are known only when its ports are."""

    host: HostConfig
    ports: tuple[PortConfig, PortConfig]
    buffer: Literal["auto", "ring", "backlog"] = "auto"
    """Receive buffer of a scenario. With auto it is the receive ring if the driver has one that can be set."""
    steering: Literal["auto", "irq", "rps"] = "auto"
    """Steering of packet work to a scenario's CPUs. With auto it is interrupt affinity if the ports have interrupts."""
    station: StationConfig | None = None

    @property
    def boots_builds(self) -> bool:
        """Whether the SUT is a whole machine, reached from another one, that can be restarted."""
        return self.over_ssh and self.host.namespace is None

    @property
    def over_ssh(self) -> bool:
        """Whether its SUT is reached by SSH."""
        return self.host.ssh is not None

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Claim]:
        """Hold the locks of SUT and station, where they are reached by SSH; see `TestbedConfig.claimed`."""
        with contextlib.ExitStack() as stack:
            sut = stack.enter_context(self.host.locked()) if self.over_ssh else None
            station = None
            if self.station is not None and self.station.host.ssh is not None:
                station = stack.enter_context(self.station.host.locked(sut))
            yield Claim(sut, station)

    def open(self, journal: Journal, claim: Claim | None = None) -> RackTestbed:
        """Reach the SUT and set its ports up; see `TestbedConfig.open`."""
        from pdrgate.testbeds.rack.rack_testbed import RackTestbed

        with contextlib.ExitStack() as own:
            claim = own.enter_context(self.claimed()) if claim is None else claim
            with contextlib.ExitStack() as stack:
                source = self._source(journal)
                stack.callback(source.close)
                machine, router = self.host.reach(claim.sut)
                stack.callback(machine.close)
                station = None if self.station is None else self.station.open(journal, claim.station)
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
        report: Callable[[str], None],
        claim: Claim | None = None,
        *,
        counted: bool = False,
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
            stack.enter_context(BareMetal(host, host, report=report).running(build))
            testbed = self.open(journal, claim)
            testbed.after_close(stack.pop_all().close)
        return testbed

    def cpu_plan(self) -> CpuPlan:
        """The generator's CPU of this machine, and the SUT's where it has some of this machine."""
        return plan_cpus(self.generator.cpu, None if self.over_ssh else self.cpus)

    def with_password(self, password: str) -> TestbedConfig:
        """Variant of the testbed with a password for the SUT's host. Raises TestbedError if the host is not reached by
        SSH."""
        if self.host.ssh is None:
            return TestbedConfig.with_password(self, password)
        return replace(self, host=replace(self.host, ssh=replace(self.host.ssh, password=password)))

    def resources(self) -> frozenset[Resource]:
        """Resources that generator, station and SUT have of this machine, and the machines that they are on."""
        return frozenset((*self._of_generator(), *self._of_sut(), *(self.station.resources() if self.station else ())))

    def _of_generator(self) -> Iterator[Resource]:
        generator = self.generator
        if generator.trex is not None:
            yield from (Resource("trex", f"{port} at {generator.trex.address}") for port in generator.trex.ports)
            yield from cores(self.cpus or () if not self.over_ssh else ())
        else:
            inside = f" of namespace {generator.namespace}" if generator.namespace else ""
            yield from (Resource("interface", f"{port}{inside}") for port in generator.ports)
            plan = self.cpu_plan()
            yield from cores((plan.generator, *(() if self.over_ssh else plan.sut)))

    def _of_sut(self) -> Iterator[Resource]:
        yield self.host.resource()
        if self.over_ssh:
            return
        yield MACHINE
        yield from settings(self.knobs)
        if self.buffer != "ring":
            yield Resource("setting", BACKLOG)

    @classmethod
    def contradictions(cls, content: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
        """A SUT reached by SSH has CPUs of its own, and one that is a whole machine has all of its settings."""
        host = content["sut"]["host"]
        if host["kind"] != "ssh":
            yield from shared_cpu(content)
        yield from wrong_knobs(content, whole_machine="namespace" not in host)
        yield from wrong_ports(content)
        for part in ("sut", "station"):
            yield from wrong_passwords((part, "host"), content.get(part, {}).get("host", {}))

    @classmethod
    def own_keys(cls, source: Path, content: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a rack, whose hosts, ports and station are values of their own."""
        keys = super(Rack, cls).own_keys(source, content)
        keys["host"] = HostConfig.read(source, content["sut"]["host"], "sut")
        keys["ports"] = tuple(map(PortConfig.read, content["sut"]["ports"]))
        if "station" in content:
            keys["station"] = StationConfig.read(source, content["station"])
        return keys

    def _source(self, journal: Journal) -> TrafficSource:
        from pdrgate.testbeds.rack.traffic_source import EmbeddedSource, TRexSource

        if self.generator.trex is not None:
            return TRexSource(self.generator.trex)
        check_this_machine(self.name, "sends from interfaces of this machine")
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
