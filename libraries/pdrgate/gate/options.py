"""What a run is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pdrgate.gate.profile import Profile
from pdrgate.stability import Reading

COST_TOLERANCE = 0.01
"""Unless a run is asked for another: instructions are counted, and equal builds differ by 0.3 % at most."""


@dataclass(frozen=True, slots=True)
class Options:
    """What one session of a run is asked for."""

    profile: Profile
    folder: Path
    """Where results go."""
    baseline: Path | None = None
    """A result.json, the folder of a run, or a folder of runs."""
    require_baseline: bool = False
    """Whether a scenario without a baseline is an error."""
    reading: Reading = Reading.STRICT
    wait: float = 0.0
    """Seconds to wait for another run on this machine to end."""
    resume: bool = False
    """Whether the folder's trials are those of this very run, and stand for what it would measure again."""
    cost_tolerance: float = COST_TOLERANCE
    """Relative growth of the cost of a packet that is accepted."""
