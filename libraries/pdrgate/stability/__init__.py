"""Floor 3: PASTRAMI's analysis. Can the PDR of these trials be trusted, and if not, which number says so?"""

from pdrgate.stability.assessment import Assessment, StabilityVerdict, assess
from pdrgate.stability.checks import Bounds, StabilityCheck
from pdrgate.stability.curve import LoadLossCurve, LoadPoint, PdrEstimate
from pdrgate.stability.drift import Repeats
from pdrgate.stability.throughput_increase import (
    Label,
    Saturation,
    TirReading,
    detect_saturation,
    throughput_increase_ratios,
)
from pdrgate.stability.trial_files import Experiment, expand, read_experiments, read_trials

__all__ = [
    "Assessment",
    "Bounds",
    "Experiment",
    "Label",
    "LoadLossCurve",
    "LoadPoint",
    "PdrEstimate",
    "Repeats",
    "Saturation",
    "StabilityCheck",
    "StabilityVerdict",
    "TirReading",
    "assess",
    "detect_saturation",
    "expand",
    "read_experiments",
    "read_trials",
    "throughput_increase_ratios",
]
