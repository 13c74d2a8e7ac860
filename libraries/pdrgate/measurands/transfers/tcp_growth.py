"""What TCP makes of buffers that the kernel or a program chose: how large a window is offered and used, and how soon.

Over a path with delay a sender waits for its window and not for a CPU, so that none of these numbers depends on how
fast the SUT is. What else a machine does only makes windows smaller and later. So the best one of some transfers
counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import Self

from pdrgate.measurands.description import Description, Rule, Tolerance
from pdrgate.measurands.measurand import Measurand
from pdrgate.measurands.transfers.tcp import TransferSetting, loaded_transfers
from pdrgate.measurands.unit_spelling import SECONDS, Unit
from pdrgate.record.transfer import Look
from pdrgate.record.trial import Trial

_KIB = Unit("KiB", prefixed=False)
_FULL = 0.9
"""A share of the largest window: one that is larger is called full."""
_GROWN = 0.25
"""Share of the largest window from which on a window is called grown.

Until then it doubles with each round trip, and nothing else holds it.
"""
_SIZE = Tolerance(0.1, option="")


class _Growth(Measurand):
    """A measurand of windows that are not fixed."""

    @classmethod
    def of(cls, setting: TransferSetting) -> Self | None:
        return None if setting.buffers == "fixed" else cls()


class AdvertisedWindow(_Growth):
    """The largest window that a receiver advertised, KiB."""

    about = Description(
        "advertised window", _KIB, "higher", "the largest window that a receiver advertised",
        beside=True, tolerance=_SIZE,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        return max((one.transfer.senders.advertised / 1024 for one in _advertised(trials)), default=None)


class UsedWindow(_Growth):
    """What senders have under way, KiB: what they send in a round trip, the median of a transfer's looks."""

    about = Description(
        "used window", _KIB, "higher", "what senders have under way: what they send in a round trip",
        beside=True, tolerance=_SIZE,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        each = [
            [_under_way(look) for look in one.transfer.senders.looks if look.seconds] for one in _advertised(trials)
        ]
        return max((median(looks) for looks in each if looks), default=None)


class _OfKernelBuffers(_Growth):
    """A measurand of windows that only the kernel makes larger."""

    @classmethod
    def of(cls, setting: TransferSetting) -> Self | None:
        return cls() if setting.buffers == "kernel" else None


class FullWindowTime(_OfKernelBuffers):
    """Seconds until a receiver advertised nine tenths of its largest window. Looks are a tenth of a second apart.

    Report-only: a sender that others take the CPU from has a full window later.
    """

    about = Description(
        "time to a full window", SECONDS, "lower", "until a receiver advertised nine tenths of its largest window",
        rule=Rule.REPORT_ONLY,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        advertised = _advertised(trials)
        largest = max((one.transfer.senders.advertised for one in advertised), default=0)
        full = (
            look.end for one in advertised for look in one.transfer.senders.looks if look.advertised >= _FULL * largest
        )
        return min(full, default=None)


class GrowthBytes(_OfKernelBuffers):
    """KiB that a sender wrote until its receiver advertised a quarter of its largest window, the median of transfers.

    The receiver makes its window larger by what has come, so that this does not depend on how fast it came. Between two
    looks the window grows as a power of what was sent.
    """

    about = Description(
        "bytes to a grown window", _KIB, "lower", "what is sent until a quarter of the largest window was advertised",
        beside=True, tolerance=Tolerance(0.35, option=""),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        advertised = _advertised(trials)
        grown = _GROWN * max((one.transfer.senders.advertised for one in advertised), default=0)
        each = (_sent_until(grown, one.transfer.senders.looks) for one in advertised)
        sent = [one / 1024 for one in each if one is not None]
        return median(sent) if sent else None


def _sent_until(window: float, looks: Sequence[Look]) -> float | None:
    """Bytes sent until the window was as large; None where no look shows it."""
    so_far = accumulate(look.sent for look in looks)
    steps = [(look.advertised, sent) for look, sent in zip(looks, so_far, strict=True) if look.advertised and sent]
    if steps and steps[0][0] >= window:
        return steps[0][1]
    for (before, sent), (after, sent_then) in pairwise(steps):
        if before < window <= after:
            return float(sent * (sent_then / sent) ** (math.log(window / before) / math.log(after / before)))
    return None


def _advertised(trials: Sequence[Trial]) -> list[Trial]:
    return [one for one in loaded_transfers(trials) if one.transfer.senders.advertised]


def _under_way(look: Look) -> float:
    return look.sent / look.seconds * look.rtt / 1024
