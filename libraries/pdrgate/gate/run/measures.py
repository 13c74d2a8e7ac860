"""What a run can measure on a path. A path's file says what is set up and sent; the run says by ``--measure`` what is
measured on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pdrgate.gate.run.scenario import Scenario

MeasureName = Literal["cost", "pdr", "transfer", "overload", "windows", "mrr", "soak", "packets"]
"""The names that ``--measure`` takes."""
OVERLOAD = 8.0
"""Times what the SUT can take that `overload` offers, at most."""


@dataclass(frozen=True, slots=True)
class PathMeasure:
    """Something that is measured on a path."""

    name: MeasureName
    about: str
    """What it measures, as a clause."""
    loops: Literal["open", "closed", "both"]
    """The paths that have it: those that are offered a load, those that move bytes by TCP, or both."""
    builds: tuple[int, ...]
    """How many builds a run of it may name."""

    def misfit(self, scenario: Scenario) -> str:
        """Why a path cannot be measured so and what to do, in a sentence; empty where it can."""
        if scenario.replaces and self.name != "cost":
            return "what a replacement takes is counted on two kernels: --measure cost"
        if scenario.latency and self.name not in ("pdr", "overload", "soak"):
            return f"latency is taken at shares of the PDR, and no part of {self.name}: --measure pdr"
        if self.loops == "open" and scenario.streams is not None:
            return f"a closed loop has no {self.name}: --measure transfer"
        if self.loops == "closed" and scenario.streams is None:
            return f"a path that is offered a load has no {self.name}: --measure pdr"
        return ""


MEASURES: Mapping[str, PathMeasure] = {
    one.name: one
    for one in (
        PathMeasure(
            "cost", "what a packet, a byte or a request costs, in instructions, on guests that stay up", "both", (2,)
        ),
        PathMeasure("pdr", "the PDR, by a search; of two builds by pairs of boots", "open", (1, 2)),
        PathMeasure("transfer", "the throughput and the round trips of TCP at a fixed window", "closed", (1, 2)),
        PathMeasure("overload", f"the PDR, and what is handled of up to {OVERLOAD:g} times that", "open", (1, 2)),
        PathMeasure("windows", "the knee of TCP's window curve, and transfers", "closed", (1,)),
        PathMeasure("mrr", "the rate that is handled of all that the generator has", "open", (1,)),
        PathMeasure("soak", "what is lost at 90 % of the PDR for the time of the key soak", "open", (1,)),
        PathMeasure(
            "packets", "what eBPF programs do with each packet of the capture of the key packets", "both", (2,)
        ),
    )
}


def measure_of(name: str | None, scenario: Scenario) -> PathMeasure:
    """What a run measures on a path; where nobody says, the PDR, and of a closed loop its transfers."""
    return MEASURES[name or ("pdr" if scenario.streams is None else "transfer")]
