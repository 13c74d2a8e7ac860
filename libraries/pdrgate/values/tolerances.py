"""The change for the worse that is accepted where a run asks for no other: defaults of options and measurands."""

from __future__ import annotations

from pdrgate.values.units import Ratio

TOLERANCE = Ratio(0.02)
"""The tolerance of the PDR, and of what has none of its own."""
COST_TOLERANCE = Ratio(0.01)
"""The tolerance of the instructions per packet: they are counted, and equal builds differ by 0.3 % at most."""
LATENCY_TOLERANCE = Ratio(0.3)
"""The tolerance of latency: docs/method-trial.md has what that of equal builds deviates by."""
