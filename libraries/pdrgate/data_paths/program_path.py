"""What data paths by eBPF programs have in common, and programs in the way of any other path.

Where a program forwards, the kernel's own routing lies below it. So a program may ask the FIB, and what it lets pass is
forwarded all the same. Therefore only counters show whether the programs carry the traffic: their own counters, and the
kernel's, which must not count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from pdrgate.bpf.prog_run import PacketOutcome
from pdrgate.builds.bpf_build import BpfBuild, own_build
from pdrgate.data_paths.attached_links import attached_to_hook, hook_words, system_hook
from pdrgate.data_paths.attached_ops import AttachedOps
from pdrgate.data_paths.attached_programs import AttachedXdp, Sent, program_ports, verdict_on
from pdrgate.data_paths.attached_routes import AttachedNetkit, AttachedRoutes
from pdrgate.data_paths.attached_tc import attached_tc, tc_hook
from pdrgate.data_paths.contract import DataPath, Hop
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.steps import PathAbove, Step, SteppedPath, undo_all
from pdrgate.record.fate import Fate
from pdrgate.values.errors import TestbedError


class ProgramPath(SteppedPath):
    """Programs forward, at the ports of every hop; the kernel routes what they let pass.

    Args:
        program: the build under test.
        own: pdrgate's own program, which runs where there is none.
    """

    def __init__(
        self, name: str, family: Literal[4, 6], program: BpfBuild | None, own: str,
        carried: Callable[[bytes, Sequence[Hop], int], bytes],
    ) -> None:  # fmt: skip
        super().__init__(name, family, carried)
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
        return {"data_path_mode": self.mode} | set_up_with(self._program)

    def redirected(self) -> int | None:
        return self._sent.total()

    def load_cost(self) -> Mapping[str, int]:
        return self._sent.load_cost

    def explain(self, packet: bytes) -> PacketOutcome | None:
        return verdict_on(self._hops[0], self._program, packet) if self._program and self._hops else None

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        build = self._program or own_build(self._own)
        yield from KernelNetwork(self.family).routed(hops)
        yield from self.programs(hops, build)

    def restore(self) -> list[str]:
        self._sent.clear()
        return super().restore()

    def _with(self, sentence: str) -> str:
        return f"{sentence}, program {self._program.label}" if self._program else sentence


class ProgramBefore(PathAbove):
    """A program of the user's own at every hop, and another path beneath it: what it lets pass is right.

    Args:
        disposable: whether the hops end with the path, so that a program may see all their processes.
    """

    def __init__(self, path: DataPath, build: BpfBuild, fate: Fate = "forwarded", *, disposable: bool = False) -> None:
        super().__init__(path)
        self._disposable = disposable
        self._fate = fate
        self._build = build
        self._sent = Sent()
        self._steps: list[Step] = []
        self._hops: tuple[Hop, ...] = ()

    @property
    def mode(self) -> str:
        return f"{self._hook()} before {self._beneath.mode}"

    @property
    def by_kernel(self) -> bool:
        return True

    def sentence(self) -> str:
        return f"{self._hook(why=True)} before {self._beneath.sentence()}, program {self._build.label}"

    def describe(self) -> Mapping[str, str]:
        return {**self._beneath.describe(), "data_path_mode": self.mode} | set_up_with(self._build)

    def redirected(self) -> int | None:
        return None

    def load_cost(self) -> Mapping[str, int]:
        return self._sent.load_cost

    def explain(self, packet: bytes) -> PacketOutcome | None:
        at_ports = self._build.kind in ("xdp", "tc")
        return verdict_on(self._hops[0], self._build, packet) if self._hops and at_ports else None

    def apply(self, hops: Sequence[Hop]) -> None:
        self._hops = tuple(hops)
        self._beneath.apply(hops)
        for step in self._programs(hops):
            self._steps.append(step)
            step.apply()

    def restore(self) -> list[str]:
        return undo_all(self._steps) + self._beneath.restore()

    def _programs(self, hops: Sequence[Hop]) -> Sequence[Step]:
        if self._build.kind == "xdp":
            return [AttachedXdp(hops, self._build, "auto", self._sent, self._fate)]
        if self._build.kind == "tc":
            return [attached_tc(hop, ports, self._build, self._sent) for hop, ports in program_ports(hops, self._fate)]
        if not self._disposable:
            raise TestbedError(
                f"a program in {self._build.section} is attached to the whole of {hops[0].host.name}, which is not "
                "only pdrgate's; measure it in a guest: --testbed resources/testbeds/steady-guest.yaml"
            )
        return [self._at_hook(hop, number) for number, hop in enumerate(hops, start=1)]

    def _at_hook(self, hop: Hop, number: int) -> Step:
        """The step that has the program on the whole of a hop, which is this one from 1 on."""
        match system_hook(self._build).place:
            case "route":
                return AttachedRoutes(hop, number, self._build, self.family, self._sent)
            case "netkit":
                return AttachedNetkit(hop, number, self._build, self.family, self._sent)
            case "kernel":
                return AttachedOps(hop, self._build, self._sent)
            case _:
                return attached_to_hook(hop, self._build, self._sent)

    def _hook(self, *, why: bool = False) -> str:
        first = self._steps[0] if self._steps else None
        if isinstance(first, AttachedXdp):
            return first.sentence if why else first.words
        if self._build.kind == "xdp":
            return "XDP"
        return tc_hook(self._build) if self._build.kind == "tc" else hook_words(self._build)


def set_up_with(build: BpfBuild | None) -> dict[str, str]:
    """Entry that distinguishes results by what a program was set up with; empty where that is nothing."""
    return {"program_setup": build.setup_digest[:16]} if build is not None and build.setup_digest else {}
