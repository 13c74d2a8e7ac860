"""The two builds of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.slowdowns import Planted
from pdrgate.results.model import Side
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed

SIDES: tuple[Side, Side] = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class Build:
    """A build that is compared: what a person calls it, and how a testbed on a fresh boot of it is had."""

    side: Side
    label: str
    start: Callable[[Journal], Testbed]
    program: BpfBuild | Path | None = None
    """The eBPF object that is the build, on one kernel for both sides."""
    planted: Planted | None = None
    """What slows its boots down, see `pdrgate.gate.comparisons.spike_in`."""
    counted: Callable[[Journal], Testbed] | None = None
    """Starts a testbed for scenarios that are counted and not timed; None: `start` does that, too."""
    identity: str = ""
    """Digest of the build's content; empty where it is unknown: then no try of it is known again."""
