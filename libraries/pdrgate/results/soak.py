"""A long load below the PDR: what was lost of it, when and where, and the words for that."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.results.losses import LossResult, thousands
from pdrgate.values.units import Duration, Rate, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    """All slices of a soak; times are seconds of traffic, without what lies between slices."""

    load: float
    """Packets/s."""
    share: float
    """The load as a share of ``share_of``."""
    asked: float
    """Seconds."""
    seconds: float
    slice: float
    """Seconds of each."""
    slices: int
    offered: int
    lost: int
    bursts: int
    """Runs of slices that lost packets."""
    first_loss: float | None
    """Seconds after which the slice began that lost the first packet; None where none was lost."""
    disturbed: int
    """Slices that the machine disturbed."""
    disturbed_lost: int
    """Packets lost in these."""
    limited: int
    """Slices that the generator could not offer in full."""
    evidence: str
    """What disturbed the first of the disturbed slices that lost packets, else the first."""
    latency: float | None
    """Median over the slices of their median latencies; None where no probe came back."""
    tail: float | None
    """Median over the slices of their 99th percentiles of latency; None where no probe came back."""
    drift: float | None
    """Relative change of the median latency from the first quarter of the slices to the last, where it is beyond
    chance."""
    losses: LossResult | None
    """Places where packets were lost, of all slices."""
    share_of: str = "the PDR"
    """What ``share`` is of: the PDR, or the lower bound of a search, where no repeats gave a PDR.

    Older versions wrote "the PDR" for both.
    """

    @property
    def sound_lost(self) -> int:
        """Packets lost while nothing but the SUT can be the reason."""
        return self.lost - self.disturbed_lost

    @property
    def loss_ratio(self) -> float:
        """The loss ratio of what the machine did not disturb, in the whole of what was offered."""
        return self.sound_lost / self.offered if self.offered else 0.0

    def sentence(self) -> str:
        """``soak: 1:00:00 at 612 kpps (90 % of the lower bound), 2 203 200 000 packets, none lost: an NDR of
        612 kpps is confirmed``."""
        head = (
            f"soak: {_clock(self.seconds)} at {Rate(self.load)} ({100 * self.share:g} % of {self.share_of}), "
            f"{thousands(self.offered)} packets"
        )
        if self.first_loss is None:
            return f"{head}, none lost: an NDR of {Rate(self.load)} is confirmed"
        bursts = f"{self.bursts} burst{'s' * (self.bursts != 1)}"
        sentence = f"{head}, first loss after {_clock(self.first_loss)}, {thousands(self.lost)} lost in {bursts}"
        where = self.losses.sentence().partition(": ")[2] if self.losses is not None else ""
        sentence += (
            f" ({Ratio(self.lost / self.offered)}): {where}" if where else f" ({Ratio(self.lost / self.offered)})"
        )
        if not self.sound_lost:
            return f"{sentence}; all of it while the machine was disturbed ({self.evidence}): an NDR is not confirmed"
        if self.disturbed_lost:
            sentence += f"; {thousands(self.disturbed_lost)} of them while the machine was disturbed ({self.evidence})"
        return f"{sentence}; an NDR of {Rate(self.load)} is not confirmed"

    def remarks(self) -> list[str]:
        """What else a reader should know."""
        sentences = []
        if self.seconds < self.asked:
            sentences.append(f"it ended early, {_clock(self.asked)} were asked for")
        if self.latency is not None and self.tail is not None:
            drift = f", {self.drift:+z.0%} from begin to end" if self.drift is not None else ""
            sentences.append(f"latency {Duration(self.latency)} in the median{drift}, 99 % {Duration(self.tail)}")
        if self.disturbed and not self.disturbed_lost:
            sentences.append(
                f"the machine disturbed {self.disturbed} of {self.slices} slices ({self.evidence}), without loss"
            )
        if self.limited:
            sentences.append(f"in {self.limited} of {self.slices} slices the generator fell short")
        return sentences


def _clock(seconds: float) -> str:
    """``12:03``, ``1:00:00``; below a minute ``9.5 s``."""
    if seconds < 60:
        return str(Duration(seconds))
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
