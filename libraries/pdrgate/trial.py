"""The Trial: what one stretch of traffic at one load showed. Every number pdrgate reports rests on these."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

GENERATOR_TOLERANCE = 1e-3
"""Largest unsent part, and largest stretch of the sending time, of a trial that the generator did not limit."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One-way latency of the probe stream, all in seconds, over ``count`` probes that came back."""

    p50: float
    p90: float
    p99: float
    max: float
    count: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial (RFC 2544 section 26, RFC 9971 section 4.2): a constant load for a duration, and what became of it.

    Loads are packets/s and counts are packets, both summed over all directions; times are seconds.

    Raises:
        ValueError: a count is negative or the counts contradict each other.
    """

    intended_load: float
    intended_duration: float
    offered: int
    """Packets the generator really put in front of the SUT, refused ones included."""
    forwarded: int
    """This trial's own packets that came back."""
    unsent: int = 0
    """Intended minus offered: the generator's shortfall, never the SUT's loss."""
    refused: int = 0
    """Part of the offered packets that was dropped at the SUT's ingress while the generator watched."""
    stray: int = 0
    """Packets seen at the receiver that are not this trial's: kept apart, never counted as forwarded."""
    sending_time: float = 0.0
    """Measured time from the first packet's due time to the end of sending."""
    latency: Latency | None = None
    counters_before: Mapping[str, int] = field(default_factory=dict)
    counters_after: Mapping[str, int] = field(default_factory=dict)
    scenario: str = ""
    boot: str = ""
    phase: str = ""
    """Why it was measured: calibration, search, repeat (PASTRAMI) or compare."""
    started: float = 0.0
    """Start, seconds since the epoch."""

    def __post_init__(self) -> None:
        for name in ("intended_load", "intended_duration", "sending_time", "started"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}: it must be finite and not negative")
        for name in ("offered", "forwarded", "unsent", "refused", "stray"):
            value = getattr(self, name)
            if value < 0:
                raise ValueError(f"{name} is {value!r}: a count cannot be negative")
        if self.refused > self.offered:
            raise ValueError(f"refused ({self.refused}) exceeds offered ({self.offered})")

    @property
    def intended(self) -> int:
        """Packets that were to be sent."""
        return self.offered + self.unsent

    @property
    def lost(self) -> int:
        """Offered packets that did not come back; never negative."""
        return max(0, self.offered - self.forwarded)

    @property
    def surplus(self) -> int:
        """Packets forwarded beyond the offered count: shown beside the loss, never netted against it."""
        return max(0, self.forwarded - self.offered)

    @property
    def loss_ratio(self) -> float:
        """PLR of this trial, lost / offered (PASTRAMI section IV-A); 0 when nothing was offered."""
        return self.lost / self.offered if self.offered else 0.0

    @property
    def offered_load(self) -> float:
        """Packets/s really offered, over the longer of the intended and the measured sending time."""
        elapsed = max(self.intended_duration, self.sending_time)
        return self.offered / elapsed if elapsed else 0.0

    @property
    def forwarding_rate(self) -> float:
        """Forwarded packets/s over the same time as the offered load."""
        return self.offered_load * (1.0 - self.loss_ratio)

    @property
    def generator_limited(self) -> bool:
        """True when more than 0.1 % was unsent or sending took over 0.1 % longer than intended."""
        unsent = self.intended > 0 and self.unsent / self.intended > GENERATOR_TOLERANCE
        return unsent or self.sending_time > self.intended_duration * (1.0 + GENERATOR_TOLERANCE)

    @property
    def counter_changes(self) -> dict[str, int]:
        """What the counters gained during the trial, by name, where both readings have the name and it changed."""
        after = self.counters_after
        return {
            name: after[name] - before
            for name, before in self.counters_before.items()
            if name in after and after[name] != before
        }

    def to_json(self) -> str:
        """One line of JSON, the record that trials.jsonl holds."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_mapping(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json`` on the decoded record; unknown keys are ignored so that newer files still load.

        Raises:
            ValueError: a key is missing, or a value has the wrong type or range.
        """
        values: dict[str, Any] = {}
        for spec in dataclasses.fields(cls):
            if spec.name in record:
                values[spec.name] = _typed(spec.name, str(spec.type), record[spec.name])
            elif spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING:
                raise ValueError(f"{spec.name} is missing")
        return cls(**values)


def _typed(name: str, annotation: str, value: Any) -> Any:
    if annotation == "int":
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} is {value!r}: a whole number belongs there")
    elif annotation == "float":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} is {value!r}: a number belongs there")
        return float(value)
    elif annotation == "str":
        if not isinstance(value, str):
            raise ValueError(f"{name} is {value!r}: text belongs there")
    elif annotation.startswith("Mapping"):
        if not isinstance(value, dict):
            raise ValueError(f"{name} is {value!r}: an object of counters belongs there")
        return {str(key): _typed(f"{name}.{key}", "int", count) for key, count in value.items()}
    elif annotation.startswith("Latency"):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{name} is {value!r}: an object of percentiles belongs there")
        types = {"p50": "float", "p90": "float", "p99": "float", "max": "float", "count": "int"}
        if missing := types.keys() - value.keys():
            raise ValueError(f"{name} lacks {', '.join(sorted(missing))}")
        return Latency(**{key: _typed(f"{name}.{key}", kind, value[key]) for key, kind in types.items()})
    return value
