"""Results in the formats of others, so that people keep the dashboards that they have."""

from collections.abc import Callable

from pdrgate.reports.ci.exports.bencher import bencher_metrics
from pdrgate.reports.ci.exports.go_benchmarks import go_benchmarks
from pdrgate.reports.ci.exports.open_metrics import open_metrics
from pdrgate.results.model import RunResult

EXPORTS: dict[str, Callable[[RunResult], str]] = {
    "bmf": bencher_metrics,
    "benchstat": go_benchmarks,
    "openmetrics": open_metrics,
}
"""The exports by the names that the command line has for them."""

__all__ = ["EXPORTS", "bencher_metrics", "go_benchmarks", "open_metrics"]
