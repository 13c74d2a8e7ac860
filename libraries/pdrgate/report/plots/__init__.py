"""What was measured, as pictures: load-loss curve, rates, search, repeats and pairs of boots, each as PNG bytes."""

from pdrgate.report.plots.load_loss import load_loss
from pdrgate.report.plots.pairs import pairs
from pdrgate.report.plots.rates import rates
from pdrgate.report.plots.repeats import repeats
from pdrgate.report.plots.scales import PLR_FLOOR
from pdrgate.report.plots.search_path import GoalLine, search_path

__all__ = ["PLR_FLOOR", "GoalLine", "load_loss", "pairs", "rates", "repeats", "search_path"]
