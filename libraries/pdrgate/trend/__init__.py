"""Trend alarm (floor 3): measurands that moved over a series of builds, and the builds between which they moved."""

from pdrgate.trend.moves import MOVE_CONFIDENCE, Acknowledged, Move, moves
from pdrgate.trend.run_series import cost_at, series_of
from pdrgate.trend.series import LEFT_OUT, Point, Series

__all__ = ["LEFT_OUT", "MOVE_CONFIDENCE", "Acknowledged", "Move", "Point", "Series", "cost_at", "moves", "series_of"]
