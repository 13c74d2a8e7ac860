"""On which of some kernels an eBPF program loads: at what cost, or why not in the kernel's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pdrgate.bpf.programs import load_in_words, loaded
from pdrgate.builds.bpf_build import BpfBuild, BpfRefusedError
from pdrgate.data_paths.attached_programs import sut_names
from pdrgate.gate.run.session import Session
from pdrgate.hosts.answers import understood
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import EXIT_FAIL, EXIT_FAULT, EXIT_PASS, TestbedError


@dataclass(frozen=True, slots=True)
class NamedKernel:
    """A kernel that is asked: what a person calls it, and how a testbed on it is had."""

    label: str
    start: Callable[[Journal], Testbed]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOnKernel:
    """What a kernel made of the program."""

    kernel: str
    """What a person calls the kernel."""
    release: str = ""
    """Its own name, where it came up."""
    loads: bool | None = None
    """Whether it takes the program; None where it could not be asked."""
    reason: str = ""
    """Why it does not, or could not be asked."""
    cost: Mapping[str, int] = field(default_factory=dict)
    """Cost of the load by counter, under the names that trials have.

    A counter that this kernel does not report is left out.
    """

    @property
    def sentence(self) -> str:
        """A line for a person: the kernel, whether it takes the program, and the cost or the reason."""
        words = {True: "loads", False: "is refused", None: "could not be asked"}[self.loads]
        named = self.kernel if self.release in ("", self.kernel) else f"{self.kernel} ({self.release})"
        return f"{named}: {words}: {self.reason or load_in_words(self.cost)}"


def loads_on(session: Session, program: BpfBuild, kernels: Sequence[NamedKernel]) -> Iterator[LoadOnKernel]:
    """What each kernel makes of a program, one after the other.

    Args:
        session: one that is taken, and not open.
    """
    for kernel in kernels:
        yield _load_on(session, program, kernel)


def exit_code(found: Sequence[LoadOnKernel]) -> int:
    """1 where a kernel refuses it, 2 where one could not be asked."""
    if any(one.loads is False for one in found):
        return EXIT_FAIL
    return EXIT_PASS if all(one.loads for one in found) else EXIT_FAULT


def _load_on(session: Session, program: BpfBuild, kernel: NamedKernel) -> LoadOnKernel:
    release = ""
    try:
        with session.booted(kernel.start) as testbed:
            hop = testbed.hops[0]
            with understood(hop.host.name):
                release = testbed.environment().kernel_release or ""
                with loaded(hop.host, program, program.load_as, sut_names(hop)) as found:
                    found.leave()
                    cost = {name: number for name, number in found.cost.by_name().items() if number}
        return LoadOnKernel(kernel=kernel.label, release=release, loads=True, cost=cost)
    except BpfRefusedError as error:
        return LoadOnKernel(kernel=kernel.label, release=release, loads=False, reason=str(error))
    except TestbedError as error:
        return LoadOnKernel(kernel=kernel.label, release=release, reason=str(error))
