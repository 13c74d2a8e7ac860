"""Contents of a testbed file on a guest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import named_build
from pdrgate.guests.metering.memory.cache_levels import SERVER, CacheLevel, CacheLevels
from pdrgate.guests.metering.sharing.sharing_meter import FEWEST_CPUS
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import MACHINE, Resource
from pdrgate.testbeds.config import Claim, TestbedConfig
from pdrgate.testbeds.sharing import cores_of
from pdrgate.testbeds.this_machine import check_this_machine
from pdrgate.testbeds.yaml_lines import Key
from pdrgate.this_process.cache import cache_folder
from pdrgate.values.errors import TestbedError

# What opens a testbed is imported when one is opened: it takes a while to load, and reading a file needs none of it.
if TYPE_CHECKING:
    from pdrgate.guests.emulator.server_cpus import ServerCpu
    from pdrgate.guests.metering import CpuSpeed
    from pdrgate.testbeds.vm.vm_testbed import VmTestbed


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalVm(TestbedConfig):
    """A guest of this machine that boots kernel builds."""

    kind: ClassVar[str] = "local-vm"

    kernel: str | None = None
    """Build that is booted when none is handed over; see `pdrgate.builds.named_build`."""
    vcpus: int = 1
    memory: int = 512
    """Memory of the guest, MiB."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    cpu: ServerCpu = "server"
    """Model of the CPU of an emulated guest."""
    cpu_speed: CpuSpeed = "auto"
    """The speed at which the CPU of an emulated guest is held while a trial lasts."""
    ring: int = 256
    """Packets that each port's receive ring holds."""
    caches: CacheLevels = SERVER
    """Caches that memory trials model."""
    model: str = ""
    """The CPU whose prices of events give estimated cycles, a file of `pdrgate.measurands.weights`; empty: the one that
    is used where a file names none."""
    cmdline: str = ""
    """Further words for the kernel's command line."""
    sharing_vcpus: int = FEWEST_CPUS
    """CPUs of the further guest that records what they share, up to `MOST_CPUS`."""
    shares: bool = False
    """Whether it records which lines its CPUs share, see `on_several_cpus`; no file says so."""

    @property
    def boots_builds(self) -> bool:
        """A guest boots kernel builds."""
        return True

    @property
    def counts_packets(self) -> bool:
        return self.accelerator == "tcg"

    @property
    def waits_for_build(self) -> bool:
        """Whether the file names no kernel."""
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
        report: Callable[[str], None],
        claim: Claim | None = None,
        *,
        counted: bool = False,
    ) -> VmTestbed:
        """Begin to boot ``build`` in a guest of its own, with its console's log in ``folder``; `ready` waits for it."""
        from pdrgate.guests.guest_config import GuestConfig
        from pdrgate.testbeds.vm.vm_testbed import VmTestbed

        check_this_machine(self.name, "makes network namespaces", guests=build.architecture)
        cpus = self.cpu_plan()
        return VmTestbed(
            build,
            cpus,
            journal,
            folder,
            machine=GuestConfig(
                cpus=cpus.sut,
                vcpus=self.vcpus,
                shares=self.shares,
                memory=self.memory,
                accelerator=self.accelerator,
                cpu=self.cpu,
                isolate=self.isolate,
                cmdline=self.cmdline,
                caches=self.caches,
                model=self.model,
                # The generator has nothing to do while a guest boots.
                boot_cpus=(cpus.generator, *cpus.sut),
            ),
            engine=self.generator.engine,
            speed="full" if self.shares else self.cpu_speed,
            ring=self.ring,
            section=self.knobs,
            counted=counted,
        )

    def with_kernel(self, build: str) -> LocalVm:
        """Variant of the testbed with ``build`` to be booted by `open`."""
        return replace(self, kernel=build)

    def on_several_cpus(self) -> LocalVm | None:
        """Variant of the testbed with an emulated guest of several CPUs, which records what they share.

        None unless the guest has one CPU.
        """
        several = replace(self, shares=True, vcpus=self.sharing_vcpus, accelerator="tcg")
        return several if self.vcpus == 1 else None

    @property
    def sut_cpus(self) -> int:
        """The guest's virtual CPUs."""
        return self.vcpus

    def resources(self) -> frozenset[Resource]:
        """A guest's knobs and buffers are its own, so it takes CPUs, and this machine."""
        return cores_of(self.cpu_plan()) | {MACHINE}

    @classmethod
    def contradictions(cls, content: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
        """Rings are no knob of a guest, beside what is asked of every kind."""
        yield from super(LocalVm, cls).contradictions(content)
        if "rings" in content.get("sut", {}).get("knobs", {}).get("ports", {}):
            yield ("sut", "knobs", "ports", "rings"), "a guest's rings are made when it boots; write sut.ring"

    @classmethod
    def own_keys(cls, source: Path, content: Mapping[str, Any]) -> dict[str, Any]:
        """A speed in MIPS becomes instructions/s, and caches are a server's but for those that are named."""
        keys = super(LocalVm, cls).own_keys(source, content)
        if "cpu_speed" in keys:
            keys["cpu_speed"] = _speed(keys["cpu_speed"])
        if "caches" in keys:
            keys["caches"] = _caches(keys["caches"])
        return keys


def _caches(named: Mapping[str, Mapping[str, int]]) -> CacheLevels:
    return replace(SERVER, **{name: CacheLevel(1024 * one["KiB"], one["ways"]) for name, one in named.items()})


def _speed(value: int | str) -> CpuSpeed:
    """Instructions/s; the schema has let through nothing else."""
    match value:
        case "auto" | "full" | int():
            return value
        case _:
            return int(value.removesuffix("MIPS")) * 1_000_000
