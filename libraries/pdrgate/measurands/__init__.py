"""What is measured (floor 3): each measurand says which trials it needs, and what they come to."""

from pdrgate.measurands.cost import Cost, PacketCost
from pdrgate.measurands.measurand import PDR_PHASE, REPEAT, SATURATION, Ask, Measurand, Step, replicate_of
from pdrgate.measurands.overload import LivelockThreshold, OverloadThroughput
from pdrgate.measurands.pdr import PartialDropRate
from pdrgate.measurands.saturation import SaturationThroughput
from pdrgate.measurands.sweep import Sweep

__all__ = [
    "PDR_PHASE", "REPEAT", "SATURATION", "Ask", "Cost", "LivelockThreshold", "Measurand", "OverloadThroughput",
    "PacketCost", "PartialDropRate", "SaturationThroughput", "Step", "Sweep", "replicate_of",
]  # fmt: skip
