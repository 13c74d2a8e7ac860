"""A unit, and how each reader of a number spells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pdrgate.values.units import Duration, Rate


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a measurand, with its spellings; what is left out follows from the name."""

    name: str
    """The unit in result.json and benchstat; may be empty."""
    metric: str = ""
    """The end of a metric's name in OpenMetrics; empty: letters and digits of the name."""
    short: str = ""
    """The unit in a narrow column, such as Allure's; empty: the name."""
    axis: str = ""
    """The unit at an axis of a plot; empty: the name."""
    prefixed: bool = True
    """Whether a large number takes a prefix on an axis: there are no kiloinstructions, and a KiB has one."""
    quantity: Callable[[float], object] | None = None
    """What writes a number and its unit as one, ``1.2 Mpps``; None: four digits and the name."""

    def said(self, value: float) -> str:
        """A value with its unit, as people read it."""
        return f"{_digits(value)} {self.name}".rstrip() if self.quantity is None else str(self.quantity(value))

    def number(self, value: float) -> str:
        """A value beside another one that has the unit: a prefix is said with each number, a name once."""
        return _digits(value) if self.quantity is None else self.said(value)

    @property
    def in_column(self) -> str:
        """The spelling of a narrow column."""
        return self.short or self.name

    @property
    def on_axis(self) -> str:
        """The spelling of a plot's axis."""
        return self.axis or self.name


_WHOLE = (1e4, 1e15)
"""Numbers that are written in whole, and not as 1.056e+04."""


def _digits(value: float) -> str:
    least, most = _WHOLE
    return f"{value:.0f}" if least <= abs(value) < most else f"{value:z.4g}"


PACKETS = Unit("packets/s", metric="packets_per_second", short="pps", axis="pps", quantity=Rate)
SECONDS = Unit("s", metric="seconds", quantity=Duration)
