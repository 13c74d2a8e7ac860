"""What was measured, as pictures: load-loss curve, rates, search, repeats, pairs of boots, functions,
latency, places of loss, transfers."""

from pdrgate.reports.plots import imported_elsewhere  # noqa: F401

# isort: split
from pdrgate.reports.plots.functions import functions
from pdrgate.reports.plots.latency_shares import latency_plot
from pdrgate.reports.plots.load_loss import load_loss
from pdrgate.reports.plots.lost_packets import lost_packets_plot
from pdrgate.reports.plots.page import Stamp, png
from pdrgate.reports.plots.pairs import pairs
from pdrgate.reports.plots.rates import rates
from pdrgate.reports.plots.repeats import repeats
from pdrgate.reports.plots.scales import PLR_FLOOR
from pdrgate.reports.plots.search_path import search_path
from pdrgate.reports.plots.transfer_rates import transfers

__all__ = [
    "PLR_FLOOR",
    "Stamp",
    "functions",
    "latency_plot",
    "load_loss",
    "lost_packets_plot",
    "pairs",
    "png",
    "rates",
    "repeats",
    "search_path",
    "transfers",
]
