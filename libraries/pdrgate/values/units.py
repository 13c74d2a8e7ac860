"""Rate, Ratio and Duration: the quantities that people write and pdrgate computes with.

Each is a ``float`` in its SI unit (packets/s, 1, s), so arithmetic and JSON stay plain, with a ``parse`` for text
and a ``__str__`` for people.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import ClassVar, Self

from pdrgate.values.errors import UnitError

_QUANTITY = re.compile(r"\s*(?P<number>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>\S*.*?)\s*")


def _split(text: str, what: str, example: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"{text!r} is not a {what}; write a number and a unit, such as {example}")
    value = float(match["number"].replace("_", ""))
    if not math.isfinite(value):
        raise UnitError(f"{text!r} is not a finite {what}; write something like {example}")
    return value, match["unit"]


class Rate(float):
    """A packet rate in packets per second. Written `1.2 Mpps`, `500 kpps`, `64000 pps` or a plain number (pps)."""

    __slots__ = ()
    _UNITS: ClassVar = {"": 1.0, "pps": 1.0, "kpps": 1e3, "mpps": 1e6, "gpps": 1e9}

    @classmethod
    def parse(cls, value: str | float) -> Self:
        """Return the rate that ``value`` (text, or a number of packets/s) means.

        Raises:
            UnitError: the text is no number with one of the units pps, kpps, Mpps, Gpps, or is negative.
        """
        if not isinstance(value, str):
            return cls._checked(float(value), repr(value))
        number, unit = _split(value, "rate", "1.2 Mpps or 500 kpps")
        factor = cls._UNITS.get(unit.lower())
        if factor is None:
            raise UnitError(f"{value!r}: unknown rate unit {unit!r}; use pps, kpps, Mpps or Gpps")
        return cls._checked(number * factor, repr(value))

    @classmethod
    def _checked(cls, pps: float, shown: str) -> Self:
        if not (math.isfinite(pps) and pps >= 0):
            raise UnitError(f"{shown} is not a rate: it must be finite and not negative")
        return cls(pps)

    def __str__(self) -> str:
        value = float(self)
        for factor, unit in ((1e9, "Gpps"), (1e6, "Mpps"), (1e3, "kpps")):
            if abs(value) >= factor:
                return f"{value / factor:.4g} {unit}"
        return f"{value:.4g} pps"

    def __repr__(self) -> str:
        return f"Rate({float(self)!r})"


class Ratio(float):
    """A ratio without unit. Written `0.5%`, `0.5 %` or `0.005`."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: str | float) -> Self:
        """Return the ratio that ``value`` (text, or a number) means; 1 is 100 %.

        Raises:
            UnitError: the text is no number, or has a unit other than %.
        """
        if not isinstance(value, str):
            number = float(value)
            if not math.isfinite(number):
                raise UnitError(f"{value!r} is not a finite ratio; write something like 0.5% or 0.005")
            return cls(number)
        number, unit = _split(value, "ratio", "0.5% or 0.005")
        if unit not in ("", "%"):
            raise UnitError(f"{value!r}: unknown ratio unit {unit!r}; use % or a plain fraction")
        return cls(number / 100 if unit else number)

    @property
    def text(self) -> str:
        """The ratio as a person writes it, and exactly: `parse` makes the same ratio of it."""
        percent = f"{float(self) * 100:.15g}%"
        return percent if Ratio.parse(percent) == self else repr(float(self))

    def __str__(self) -> str:
        return f"{float(self) * 100:.3g} %"

    def __repr__(self) -> str:
        return f"Ratio({float(self)!r})"


class Duration(float):
    """A time span in seconds. Written `500 ms`, `1 s`, `2 min`, `1 h`, `90 d` or a plain number (seconds)."""

    __slots__ = ()
    _UNITS: ClassVar = {
        "": 1.0, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
        "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
        "d": 86400.0, "day": 86400.0, "days": 86400.0,
    }  # fmt: skip

    @classmethod
    def parse(cls, value: str | float | timedelta) -> Self:
        """Return the span that ``value`` (text, a number of seconds, or a timedelta) means.

        Raises:
            UnitError: the text is no number with a time unit, or is negative.
        """
        if isinstance(value, timedelta):
            seconds = value.total_seconds()
        elif isinstance(value, str):
            number, unit = _split(value, "duration", "500 ms or 10 s")
            factor = cls._UNITS.get(unit)
            if factor is None:
                raise UnitError(f"{value!r}: unknown time unit {unit!r}; use us, ms, s, min, h or d")
            seconds = number * factor
        else:
            seconds = float(value)
        if not (math.isfinite(seconds) and seconds >= 0):
            raise UnitError(f"{value!r} is not a duration: it must be finite and not negative")
        return cls(seconds)

    @property
    def text(self) -> str:
        """The span as a person writes it, in seconds, and exactly: `parse` makes the same span of it."""
        return f"{float(self)!r}".removesuffix(".0") + " s"

    def __str__(self) -> str:
        value = float(self)
        if value >= 60:
            minutes, seconds = divmod(round(value), 60)
            return f"{minutes} min {seconds:02d} s"
        for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= factor:
                return f"{value / factor:.3g} {unit}"
        return f"{value * 1e9:.3g} ns" if value else "0 s"

    def __repr__(self) -> str:
        return f"Duration({float(self)!r})"


def change_in_words(change: float, lower: float, upper: float) -> str:
    """``+9.7% (+4.2% to +15.5%)``: a relative change with its interval, or alone if both ends read the same.

    The ``z`` of the format avoids ``-0.0%``, which reads like a typing error.
    """
    change_text, *ends = (f"{one:+z.1%}" for one in (change, lower, upper))
    return change_text if ends == [change_text, change_text] else f"{change_text} ({ends[0]} to {ends[1]})"


TOLERANCE = Ratio(0.02)
"""The tolerance of the PDR, and of what has none of its own."""
COST_TOLERANCE = Ratio(0.01)
"""The tolerance of the instructions per packet: they are counted, and equal builds differ by 0.3 % at most."""
LATENCY_TOLERANCE = Ratio(0.3)
"""The tolerance of latency: docs/method-trial.md has what that of equal builds deviates by."""
