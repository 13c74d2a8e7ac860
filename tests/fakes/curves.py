"""Load-loss curves beyond the paper's, of SUTs that a gate must not misjudge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EarlyLoss:
    """An unchanged capacity, of which a share is lost from some load on: a queue overflows long before the CPU is full.

    The throughput at saturation is that of an ideal curve of the same capacity.
    """

    capacity: float
    begins: float
    """As a part of the capacity."""
    share: float = 0.02

    def loss_ratio(self, load: float) -> float:
        """PLR at ``load``, packets/s."""
        if load <= self.begins * self.capacity:
            return 0.0
        return max(self.share, 1.0 - self.capacity / load)


@dataclass(frozen=True, slots=True)
class Livelock:
    """Takes interrupts and forwards next to nothing from some overload on."""

    capacity: float
    collapse: float = 1.3
    """As a part of the capacity."""
    left: float = 0.05
    """Of the capacity, what is forwarded beyond."""

    def loss_ratio(self, load: float) -> float:
        """PLR at ``load``, packets/s."""
        forwarded = self.capacity if load < self.collapse * self.capacity else self.left * self.capacity
        return max(0.0, 1.0 - forwarded / load)


@dataclass(frozen=True, slots=True)
class Starving:
    """An end host: past its capacity packet work takes its receivers' time, up to where a thread takes over."""

    capacity: float
    falls: float = 2.0
    """What is delivered falls by so many packets for each that is offered beyond the capacity."""
    until: float = 1.4
    """As a part of the capacity."""

    def loss_ratio(self, load: float) -> float:
        """PLR at ``load``, packets/s."""
        over = max(0.0, load - self.capacity) if load < self.until * self.capacity else 0.0
        return max(0.0, 1.0 - max(0.0, min(load, self.capacity) - self.falls * over) / load)
