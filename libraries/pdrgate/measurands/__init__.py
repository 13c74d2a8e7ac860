"""What is measured (floor 3): each measurand says which trials it needs, and what they come to."""

from pdrgate.measurands.cost import Cost, PacketCost
from pdrgate.measurands.latency import LatencyTrials, MedianLatency, TailLatency
from pdrgate.measurands.measurand import LATENCY, PDR_PHASE, REPEAT, SATURATION, Ask, Measurand, Step, replicate_of
from pdrgate.measurands.overload import LivelockThreshold, OverloadThroughput
from pdrgate.measurands.pdr import PartialDropRate
from pdrgate.measurands.saturation import SaturationThroughput
from pdrgate.measurands.sweep import Sweep

__all__ = [
    "LATENCY", "PDR_PHASE", "REPEAT", "SATURATION", "Ask", "Cost", "LatencyTrials", "LivelockThreshold",
    "Measurand", "MedianLatency", "OverloadThroughput", "PacketCost", "PartialDropRate", "SaturationThroughput", "Step",
    "Sweep", "TailLatency", "replicate_of",
]  # fmt: skip
