"""What a data path says of itself before it is made: all that others ask of it stands here, and nowhere by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pdrgate.builds.bpf_build import BpfBuild, ProgramKind
from pdrgate.data_paths.contract import DataPath
from pdrgate.data_paths.receivers import Receivers
from pdrgate.data_paths.slowdowns import Slowdown
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.knobs import ChangeLog
from pdrgate.record.fate import Fate
from pdrgate.traffic.frames import Frames


@dataclass(frozen=True, slots=True)
class PathAsked:
    """What a scenario and its run ask of a data path; each path takes what is its own."""

    program: BpfBuild | None = None
    """The eBPF build under test; None: pdrgate's own, where the path runs one."""
    receivers: Receivers = field(default_factory=Receivers)
    streams: TcpStreams = field(default_factory=TcpStreams)
    fate: Fate = "forwarded"
    changes: ChangeLog | None = None
    """Log in which a setting that no testbed knows of is noted before it is changed; None: the setting ends with the
    hosts."""


@dataclass(frozen=True, slots=True)
class PathDescription:
    """A data path by its name."""

    name: str
    """What suites, results and options call it."""
    title: str
    """What a person calls it."""
    help: str
    """A sentence on what the SUT does with packets."""
    make: Callable[[PathAsked], DataPath]
    frames: Frames
    """The frames that it takes. A scenario chooses their size, flows and directions."""
    fate: Fate = "forwarded"
    loop: Literal["open", "closed"] = "open"
    """Whether a generator offers a load, or the two ends of TCP decide what they send."""
    program: ProgramKind | None = None
    """What its eBPF program is for; None: it runs none."""
    slowdowns: tuple[Slowdown, ...] = ()
    """What can be put in its packets' way, the one that can be large first."""

    alone: bool = True
    """Whether it carries packets without steps of the scenario's own."""
    under_steps: bool = False
    """Whether a scenario's own steps stand on it, where they name no other."""

    @property
    def family(self) -> Literal[4, 6]:
        """The IP version of its traffic."""
        return self.frames.family

    @property
    def delivers(self) -> bool:
        """Whether a generator's packets end at `Receivers` of the SUT."""
        return self.fate == "delivered" and self.loop == "open"

    @property
    def transfers(self) -> bool:
        """Whether its traffic is a closed loop, of `TcpStreams`."""
        return self.loop == "closed"
