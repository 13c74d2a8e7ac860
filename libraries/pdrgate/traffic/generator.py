"""Protocols of what makes traffic: a generator, and programs that transfer by TCP where it ends at the SUT."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from pdrgate.record.trial import Trial
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import UsageError

_IDENTITY = ("name", "engine")
_INCIDENTAL = ("chosen", "client", "ports", "frames")


class Generator(Protocol):
    """Drives traffic through the SUT and counts what comes back. Open loop: what is lost is never sent again."""

    def describe(self) -> dict[str, str]:
        """Identity of the generator: ``name``, ``engine`` and further keys, in the order in which they are shown.

        ``chosen`` says why this engine.
        """

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        """Offer ``load`` packets/s (over all directions) for ``duration`` seconds, drain, and return the counts.

        Raises:
            UsageError: the load or the duration is not positive.
            GeneratorError: the generator failed; no trial came of it.
        """

    def close(self) -> None:
        """Stop the generator and free what it holds. Calling it twice is harmless."""


@runtime_checkable
class ShowsFrames(Protocol):
    """Generator that can show the frames that it sends."""

    def sample(self, frames: Frames) -> bytes:
        """A frame of forward traffic as a trial of these ``frames`` would send it, without its checksum (FCS)."""


def packets_of_trial(load: float, duration: float) -> int:
    """Number of packets in a trial of ``load`` packets/s for ``duration`` seconds.

    Raises:
        UsageError: such a trial has no meaning, or too many packets.
    """
    if not (math.isfinite(load) and load > 0):
        raise UsageError(f"a trial at a load of {load} packets/s has no meaning; give a load above 0")
    if not (math.isfinite(duration) and duration > 0):
        raise UsageError(f"a trial of {duration} s has no meaning; give a duration above 0")
    count = max(1, round(load * duration))
    if count >= 1 << 31:
        raise UsageError(f"{count} packets are too many for one trial; shorten the duration below 2^31 packets")
    return count


def generator_in_words(about: Mapping[str, str]) -> str:
    """A generator's description on one line: ``trex, engine stl (server v3.08; driver net_i40e)``."""
    details = [value if key == "chosen" else f"{key} {value}" for key, value in about.items() if key not in _IDENTITY]
    return f"{about['name']}, engine {about['engine']}" + (f" ({'; '.join(details)})" if details else "")


def generator_identity(about: Mapping[str, str]) -> str:
    """A generator's part of a result's fingerprint: all that may change what is sent and counted.

    The slot of its cards and the library that talks to it are left out.
    """
    details = [f"{key} {value}" for key, value in about.items() if key not in (*_IDENTITY, *_INCIDENTAL)]
    return "; ".join((f"{about['name']}/{about['engine']}", *details))


class ClosedLoop(Protocol):
    """Mover of bytes between a program at the SUT and one at the station that it faces.

    Lost bytes are sent again, and no more are sent than were acknowledged: a load cannot be asked for.
    """

    def describe(self) -> dict[str, str]:
        """Identity of the generator: ``name``, ``engine`` and further keys, as `Generator.describe`."""

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        """One trial of about ``duration`` seconds, whose receivers advertise at most ``window`` bytes a stream.

        Args:
            rate: bits/s that the sender holds itself back to; 0: as fast as it goes.

        Raises:
            TestbedError: no transfer came of it.
        """

    def close(self) -> None:
        """Stop the programs; may be called twice."""
