"""Floor 3: PASTRAMI's analysis. Can the PDR of these trials be trusted, and if not, which number says so?"""

from pdrgate.stability.assessment import Assessment, StabilityVerdict, assess
from pdrgate.stability.throughput_increase import TirReading
from pdrgate.stability.trial_files import expand, read_experiments, read_trials

__all__ = ["Assessment", "StabilityVerdict", "TirReading", "assess", "expand", "read_experiments", "read_trials"]
