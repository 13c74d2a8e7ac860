"""What a run is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pdrgate.gate.profile import Profile
from pdrgate.stability import Reading


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
