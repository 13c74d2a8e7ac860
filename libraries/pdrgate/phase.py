"""The phases of a measurement: why a trial, or a transfer, was made."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Why a trial, or a transfer, was made, as files have it: it is never taken for one of another phase."""

    NONE = ""
    """Nobody said; so are trials that other programs made."""
    CALIBRATION = "calibration"
    """How much the generator can offer, and the SUT forward."""
    SEARCH = "search"
    """MLRsearch (RFC 9971)."""
    REPEAT = "repeat"
    """One point of a repeat's curve (PASTRAMI), or one TCP transfer of it."""
    SATURATION = "saturation"
    """At the highest load of the curve."""
    PDR = "pdr"
    """Where a replicate's loss crosses the ratio."""
    PAST = "past"
    """Between the PDR and twice it, for the least that an end host delivers there."""
    OVERLOAD = "overload"
    """Far beyond saturation, for livelock."""
    COST = "cost"
    """Below the PDR, for what a packet costs where no batches form."""
    IDLE = "idle"
    """Nothing is sent: what the SUT does by itself, beside a program that has its CPU."""
    LATENCY_50 = "latency50"
    """With latency probes, at 50 % of the PDR; likewise the next two."""
    LATENCY_90 = "latency90"
    LATENCY_99 = "latency99"
    PATH = "path"
    """Calls are followed, and nothing else is told: the SUT is slower for it."""
    DROPS = "drops"
    """Each dropped packet is looked at, and nothing else is told."""
    SOAK = "soak"
    """A slice of a long load; of no replicate."""
    MRR = "mrr"
    """Offered all there is; of no replicate."""
    LOAD = "load"
    """One load that a test asked for; of no replicate."""
    REST = "rest"
    """A TCP transfer of hardly anything, so that round trips are not loaded."""
    CURVE = "curve"
    """A point of the curve of TCP throughput over windows."""


OF_CURVE = frozenset({Phase.REPEAT, Phase.PAST})
"""The phases of trials that a load-loss curve is of."""
