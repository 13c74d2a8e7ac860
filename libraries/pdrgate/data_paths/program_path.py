"""What data paths by eBPF programs have in common: the kernel's own routing lies below them.

So a program may ask the FIB, and what it lets pass is forwarded all the same. Whether the programs carry the traffic is
therefore told by counters only: their own, and the kernel's, which must not count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pdrgate.bpf.programs import BpfMap, counts
from pdrgate.builds.bpf_build import BpfBuild, own_build
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.steps import Step, SteppedPath
from pdrgate.hosts.host import Host

COUNTERS = "pdrgate_counts"
"""The map whose first element, summed over CPUs, is what a program has sent on; programs under test may lack it."""
_IS_COUNTERS = ("percpu_array", 4, 8)


class Sent:
    """What programs have sent on, as they count."""

    def __init__(self) -> None:
        self._counters: list[tuple[Host, int]] = []
        self._uncounted = False

    def add(self, host: Host, maps: Mapping[str, BpfMap]) -> None:
        """Count what the program with these maps sends on, where it tells."""
        if is_ours(maps, COUNTERS, _IS_COUNTERS):
            self._counters.append((host, maps[COUNTERS].number))
        else:
            self._uncounted = True

    def total(self) -> int | None:
        """Packets that all programs counted; None where one does not count, or there is none."""
        if self._uncounted or not self._counters:
            return None
        return sum(counts(host, number)[0] for host, number in self._counters)

    def clear(self) -> None:
        """There are no programs any more."""
        self._counters.clear()
        self._uncounted = False


def is_ours(maps: Mapping[str, BpfMap], name: str, layout: tuple[str, int, int]) -> bool:
    """Whether a map is pdrgate's, by its name, its kind and its sizes of key and value; else it is the program's."""
    found = maps.get(name)
    return found is not None and (found.kind, found.key_size, found.value_size) == layout


class ProgramPath(SteppedPath):
    """Programs forward, at the ports of every hop; the kernel routes what they let pass.

    Args:
        program: the build under test.
        own: pdrgate's own program, which runs where there is none.
    """

    def __init__(self, name: str, family: Literal[4, 6], program: BpfBuild | None, own: str) -> None:
        super().__init__(name, family)
        self._program = program
        self._own = own
        self._sent = Sent()

    @abstractmethod
    def programs(self, hops: Sequence[Hop], build: BpfBuild) -> Iterator[Step]:
        """The steps that put the programs in the packets' way."""

    @property
    def by_kernel(self) -> bool:
        return False

    @property
    def of_user(self) -> bool:
        return self._program is not None

    def describe(self) -> Mapping[str, str]:
        return {"data_path_mode": self.mode}

    def redirected(self) -> int | None:
        return self._sent.total()

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        build = self._program or own_build(self._own)
        yield from KernelNetwork(self.family).routed(hops)
        yield from self.programs(hops, build)

    def restore(self) -> list[str]:
        self._sent.clear()
        return super().restore()

    def _with(self, sentence: str) -> str:
        return f"{sentence}, program {self._program.label}" if self._program else sentence
