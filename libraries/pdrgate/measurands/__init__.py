"""What is measured (floor 3): each measurand says which trials it needs, and what they come to."""

from pdrgate.measurands.counted.cost import Cost
from pdrgate.measurands.description import Description, Rule, TolerancesAsked
from pdrgate.measurands.measurand import (
    LATENCY,
    PAST_TRIALS,
    Ask,
    BuildSeen,
    Measurand,
    ReplicateStep,
    Setting,
    replicate_of,
)
from pdrgate.measurands.rates.latency import LatencyTrials
from pdrgate.measurands.rates.overload import OverloadThroughput
from pdrgate.measurands.rates.pdr import AT_THE_KNEE, PartialDropRate, Sweep, agree_at_the_knee, told_once
from pdrgate.measurands.rates.saturation import RECEIVE_RATE, SaturationThroughput
from pdrgate.measurands.registry import (
    DESCRIPTIONS,
    OF_TRANSFERS,
    OF_TRIALS,
    changes_by_rule,
    compared_of,
    described,
    lower_is_better,
    of_setting,
    of_transfers,
    told_of,
    unit_of,
)
from pdrgate.measurands.transfers.tcp import (
    AtRest,
    TcpThroughput,
    TransferSetting,
)
from pdrgate.measurands.transfers.window_curve import WindowCurve

__all__ = [
    "AT_THE_KNEE", "DESCRIPTIONS", "LATENCY", "OF_TRANSFERS", "OF_TRIALS", "PAST_TRIALS", "RECEIVE_RATE", "Ask",
    "AtRest", "BuildSeen", "Cost", "Description", "LatencyTrials", "Measurand", "OverloadThroughput",
    "PartialDropRate", "ReplicateStep", "Rule", "SaturationThroughput", "Setting", "Sweep", "TcpThroughput",
    "TolerancesAsked", "TransferSetting", "WindowCurve", "agree_at_the_knee", "changes_by_rule",
    "compared_of", "described", "lower_is_better", "of_setting", "of_transfers", "replicate_of", "told_of",
    "told_once", "unit_of",
]  # fmt: skip
