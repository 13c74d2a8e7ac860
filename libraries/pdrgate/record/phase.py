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
    """A point of a repeat's curve (PASTRAMI), or a TCP transfer of it."""
    SATURATION = "saturation"
    """The trial is at the highest load of the curve."""
    PDR = "pdr"
    """The trial is where a replicate's loss crosses the ratio."""
    PAST = "past"
    """The trial is between the PDR and twice it, for the least that an end host delivers there."""
    OVERLOAD = "overload"
    """Far beyond saturation, for livelock."""
    COST = "cost"
    """The trial is below the PDR, for what a packet costs where no batches form."""
    IDLE = "idle"
    """Nothing is sent: what the SUT does by itself, beside a program that has its CPU."""
    LATENCY_50 = "latency50"
    """The trial has latency probes and is at 50 % of the PDR; the next two are likewise at their shares."""
    LATENCY_90 = "latency90"
    LATENCY_99 = "latency99"
    REPLACEMENT = "replacement"
    """Something is replaced on the SUT while packets pass."""
    PATH = "path"
    """Calls are followed, which slows the SUT. Nothing else is measured."""
    MEMORY = "memory"
    """Each access to memory is recorded, which slows the SUT by far. Nothing but memory is measured."""
    ALL_CPUS = "all-cpus"
    """All CPUs of a guest get packets and execute in turn. Measured is only what they handle, and in what time."""
    ONE_CPU = "one-cpu"
    """The first CPU of a guest alone gets packets, while its CPUs execute in turn. Compare `ALL_CPUS`."""
    DROPS = "drops"
    """Each dropped packet is looked at, and nothing else is measured."""
    SOAK = "soak"
    """A slice of a long load; of no replicate."""
    MRR = "mrr"
    """Offered all there is; of no replicate."""
    LOAD = "load"
    """The trial is at a load that a test asked for, and belongs to no replicate."""
    REST = "rest"
    """A TCP transfer of hardly anything, so that round trips are not loaded."""
    CURVE = "curve"
    """A point of the curve of TCP throughput over windows."""


OF_CURVE = frozenset({Phase.REPEAT, Phase.PAST})
"""The phases of trials that a load-loss curve is of."""
IN_LOCKSTEP = frozenset({Phase.ALL_CPUS, Phase.ONE_CPU})
"""The phases of trials in which a guest's CPUs execute in turn."""
SPECIAL = frozenset({Phase.PATH, Phase.MEMORY, *IN_LOCKSTEP})
"""Phases of trials that measure one thing, which makes the SUT slower. They show nothing of what it can do."""
