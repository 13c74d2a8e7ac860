"""Contents of a testbed file, whatever kind of testbed it describes, and the contradictions that no schema finds in it.

`pdrgate.testbeds.kinds` lists the kinds.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.hosts.cpus import CpuPlan, plan_cpus
from pdrgate.knobs import plan_contradictions, sysctls
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Resource
from pdrgate.testbeds.testbed_base import Testbed
from pdrgate.testbeds.yaml_lines import Key
from pdrgate.this_process.checkout import own_testbed_file
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import TestbedError, UsageError

if TYPE_CHECKING:
    from pdrgate.safety.sut_lock import SutLock
    from pdrgate.traffic.embedded import Engine


TREX = "trex"
"""The kind of generator that is a TRex server."""


@dataclass(frozen=True, slots=True)
class GeneratorConfig:
    """The generator's part of a testbed file. ``cpu`` is None if the file says auto."""

    kind: str
    engine: Engine = "auto"
    cpu: int | None = None
    ports: tuple[str, ...] = ()
    """The ports that a rack's generator sends from: interfaces of this machine, or port numbers of a TRex server."""
    namespace: str | None = None
    """The network namespace of this machine that the ports are in."""
    trex: TRexConfig | None = None
    """The TRex server, where that is the generator."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The locks of other machines that a run holds, from its first boot to its last; see `TestbedConfig.claimed`."""

    sut: SutLock | None = None
    """The lock of the SUT's machine; None if that is this one, whose lock is among `TestbedConfig.resources`."""
    station: SutLock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedConfig(ABC):
    """A testbed file that was found valid; it opens the testbed that it describes.

    Each kind of testbed is a class of its own. What is asked of one here has the answer that most kinds give.
    """

    __test__: ClassVar[bool] = False  # the name begins like a test class; pytest must not collect it

    kind: ClassVar[str]
    """The file's name of this kind."""
    side_by_side: ClassVar[bool] = True
    """Whether two of it can be open at once, so that the two sides of a pair can be measured in turn."""
    sut_is_here: ClassVar[bool] = True
    """Whether the SUT's CPUs are some of this machine, handed out together with the generator's; see `cpu_plan`."""

    name: str
    source: Path
    generator: GeneratorConfig
    cpus: tuple[int, ...] | None = None
    """The SUT's CPUs; None if the file says auto."""
    isolate: bool = True
    """Whether packet work goes before other processes on the SUT's CPUs."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """The file's own section of settings, for `pdrgate.knobs.plan_knobs`."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """The file's own section of what runs on it are asked for, for `pdrgate.gate.run.run_settings`."""

    @abstractmethod
    def open(self, journal: Journal, claim: Claim | None = None) -> Testbed:
        """Set the testbed up, noting every change in ``journal`` first.

        Args:
            claim: by `claimed`, of a run that opens several one after the other; None: it is this testbed's, until it
                is closed.

        Raises:
            TestbedError: not root, one CPU only, missing tools or kernel features, no way to the SUT; what was made is
                removed again.
        """

    def resources(self) -> frozenset[Resource]:
        """Resources that a run with this testbed has to hold, from the file alone: no other run can use them at the
        same time.

        If the SUT is on this machine, they include this machine, so that nobody who has it for a SUT changes what is
        measured.

        Raises:
            TestbedError: the CPUs that the file asks for cannot be had.
        """
        return frozenset((Resource("host", self.name),))

    @classmethod
    def contradictions(cls, content: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
        """Contradictions that no schema finds in a file of this kind that follows it: key and problem."""
        yield from shared_cpu(content)
        yield from wrong_knobs(content)

    @classmethod
    def own_keys(cls, source: Path, content: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that only this kind has, of a file without faults: the schema has the types and ranges."""
        own = cls.__dataclass_fields__.keys() - TestbedConfig.__dataclass_fields__.keys()
        return {key: value for key, value in content.get("sut", {}).items() if key in own}

    def claimed(self) -> contextlib.AbstractContextManager[Claim]:
        """Keep other controllers from the machines that are reached by SSH. Raises TestbedError when one has them."""
        return contextlib.nullcontext(Claim())

    @property
    def boots_builds(self) -> bool:
        """Whether its SUT can `boot` kernel builds."""
        return False

    @property
    def counts_packets(self) -> bool:
        """Whether the file says that SUTs which boot kernel builds count the instructions of each packet."""
        return False

    @property
    def waits_for_build(self) -> bool:
        """Whether there is nothing to `open` before a build is named."""
        return False

    @property
    def over_ssh(self) -> bool:
        """Whether its SUT is reached by SSH."""
        return False

    def boot(
        self,
        build: KernelBuild,
        journal: Journal,
        folder: Path,
        report: Callable[[str], None],
        claim: Claim | None = None,
        *,
        counted: bool = False,
    ) -> Testbed:
        """The testbed on a fresh boot of ``build``; it may still be coming up, see `Booting`.

        Args:
            folder: where logs of the boot go.
            report: gets a sentence on each step that takes a while.
            claim: as `open` has it.
            counted: whether it is for scenarios that are counted and not timed, see `Stands`.

        Raises:
            TestbedError: as `open`, it boots no builds, or this one did not come up.
            BuildError: the build can never come up there.
        """
        raise TestbedError(
            f"testbed {self.name} ({self.source}) boots no kernels; use one of kind local-vm, such as "
            f"{own_testbed_file('local-vm')}"
        )

    def cpu_plan(self) -> CpuPlan:
        """The CPUs of this machine that the generator and the SUT get. Raises TestbedError when there are too few."""
        return plan_cpus(self.generator.cpu, self.cpus)

    def on_several_cpus(self) -> TestbedConfig | None:
        """Variant of the testbed with a SUT of several CPUs that records which lines they share; None if it has
        none."""
        return None

    @property
    def sut_cpus(self) -> int:
        """CPUs of a SUT that records which lines they share; 0 if the file does not say how many a SUT has."""
        return 0

    def with_kernel(self, build: str) -> TestbedConfig:
        """Variant of the testbed with ``build`` to be booted by `open`. Raises UsageError when it has no such
        choice."""
        raise UsageError(f"testbed {self.name} ({self.source}) boots no kernels; leave out --kernel")

    def with_password(self, password: str) -> TestbedConfig:
        """Variant of the testbed with a password for the SUT's host. Raises TestbedError if the host is not reached by
        SSH."""
        raise TestbedError(f"testbed {self.name} needs no password: its SUT is not reached by SSH; leave it out")


def named_file(source: Path, name: str) -> Path:
    """A file that a testbed file names: relative ones lie next to it."""
    return source.absolute().parent / Path(name).expanduser()


def shared_cpu(content: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    """Generator and SUT have CPUs of one machine, and none of them is both's."""
    cpu, cpus = content["generator"].get("cpu", "auto"), content.get("sut", {}).get("cpus", "auto")
    if cpus != "auto" and cpu in cpus:
        problem = f"CPU {cpu} is the generator's too (generator.cpu); the two must not share one"
        yield ("sut", "cpus"), problem


def wrong_knobs(content: Mapping[str, Any], *, whole_machine: bool = False) -> Iterator[tuple[Key, str]]:
    """The section of knobs makes sense, and is of the SUT's namespace alone unless that is a ``whole_machine``."""
    section = content.get("sut", {}).get("knobs", {})
    wrong = set()
    for key, problem in plan_contradictions(section):
        wrong.add(key[-1])
        yield ("sut", "knobs", *key), problem
    for name in () if whole_machine else sysctls(section):
        if name not in wrong and not name.startswith(("net.", "net/")):
            key = (name,) if name in section else ("sysctls", name)
            problem = f"{name} is a setting of the whole machine; only those of net. belong to the SUT's namespace"
            yield ("sut", "knobs", *key), problem
