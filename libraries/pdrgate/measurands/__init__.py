"""What is measured (floor 3): each measurand says which trials it needs, and what they come to."""

from pdrgate.measurands.cost import Cost, PacketCost
from pdrgate.measurands.latency import LatencyTrials, MedianLatency, TailLatency
from pdrgate.measurands.measurand import LATENCY, Ask, Compared, Measurand, Step, replicate_of
from pdrgate.measurands.overload import LivelockThreshold, OverloadThroughput
from pdrgate.measurands.pdr import PartialDropRate
from pdrgate.measurands.saturation import SaturationThroughput
from pdrgate.measurands.starvation import LeastDelivered
from pdrgate.measurands.sweep import Sweep
from pdrgate.measurands.tcp import (
    AtRest,
    ByteCost,
    LoadedRoundTrip,
    TcpThroughput,
    TransferAsk,
    TransferMeasurand,
    TransferStep,
    Transmissions,
)
from pdrgate.measurands.window_curve import WindowCurve

__all__ = [
    "LATENCY",
    "Ask",
    "AtRest",
    "ByteCost",
    "Compared",
    "Cost",
    "LatencyTrials",
    "LeastDelivered",
    "LivelockThreshold",
    "LoadedRoundTrip",
    "Measurand",
    "MedianLatency",
    "OverloadThroughput",
    "PacketCost",
    "PartialDropRate",
    "SaturationThroughput",
    "Step",
    "Sweep",
    "TailLatency",
    "TcpThroughput",
    "TransferAsk",
    "TransferMeasurand",
    "TransferStep",
    "Transmissions",
    "WindowCurve",
    "replicate_of",
]  # fmt: skip
