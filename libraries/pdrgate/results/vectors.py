"""What two builds of an eBPF program did with the packets of a capture, each run by itself: what results hold of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFunction:
    """A function that a run on a packet has other instructions in than with the baseline."""

    function: str
    before: float
    """Instructions per run."""
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorResult:
    """A packet of the capture, and what both builds did with it."""

    number: int
    """The packet's number in the capture, from 1: of equal ones the first."""
    packet: str
    """The packet's headers in words."""
    length: int
    copies: int = 1
    """How many packets of the capture are equal to it, itself among them."""
    baseline: str
    """What the baseline returned, by the kernel's name, or why it was not run."""
    candidate: str
    difference: str = ""
    """How the candidate's answer is another one, in words; empty where it is none."""
    outputs: tuple[str, str] | None = None
    """The packets that both builds left, the baseline's first, in hex; None where they are equal."""
    cost: tuple[float, float] | None = None
    """Instructions per run, the baseline's first: medians over the times that each was loaded; None where they were not
    counted."""
    worse: bool = False
    """Whether the candidate surely costs more than the tolerance accepts."""
    nanoseconds: tuple[float, float] | None = None
    """What a run took by the kernel's clock, the baseline's first: medians. No verdict goes by it."""
    functions: tuple[VectorFunction, ...] = ()
    """What changed in a run, the largest change first."""

    @property
    def change(self) -> float | None:
        """How its cost changed, relative; None where it was not counted."""
        return self.cost[1] / self.cost[0] - 1 if self.cost is not None and self.cost[0] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsResult:
    """All packets of a capture."""

    capture: str
    """The name of the file."""
    sha256: str
    packets: int
    kind: str
    """The programs' kind: xdp, tc, socket."""
    loads: int
    """How often each build was loaded."""
    runs: int
    """How often each packet was run each time."""
    vectors: tuple[VectorResult, ...]
    """Packets that differ from each other, the worst first."""
    remarks: tuple[str, ...] = ()
    """What could not be run, compared or put back, in sentences."""
