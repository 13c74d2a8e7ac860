"""The picture of docs/releases.md: instructions of a packet, release by release, on twelve paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from step import Step, release

from pdrgate.measurands import Cost
from pdrgate.results.model import RunResult

matplotlib.use("agg")
from matplotlib import pyplot

PATHS = (
    "IPv4 Routing", "IPv6 Routing", "A Bridge", "Connection Tracking", "A Firewall Of A Hundred Rules", "NAT",
    "A VXLAN Tunnel", "WireGuard", "UDP Delivery", "IPv4 Routing By XDP", "Redirection By tc", "Queueing By fq_codel",
)  # fmt: skip


def draw(steps: Sequence[tuple[Step, RunResult]], file: Path) -> None:
    """Draw one small chart for each path: its instructions a packet, as a change from the first release in percent."""
    figure, axes = pyplot.subplots(3, 4, figsize=(12, 7.5), sharex=True, sharey=True, layout="constrained")
    for axis, path in zip(axes.flat, PATHS, strict=True):
        releases, changes = _series(steps, path)
        axis.plot(releases, changes, marker="o", markersize=3)
        axis.axhline(0.0, color="grey", linewidth=0.6)
        axis.set_title(path, fontsize=9)
        axis.tick_params("x", rotation=90, labelsize=7)
        axis.tick_params("y", labelsize=8)
    figure.supylabel("instructions a packet: change since the first release, %", fontsize=9)
    figure.savefig(file, dpi=110, metadata={"Software": None})


def _series(steps: Sequence[tuple[Step, RunResult]], path: str) -> tuple[list[str], list[float]]:
    """Releases, and what a packet costs there: changes of the steps on top of each other, in percent."""
    releases = [_short(steps[0][0].baseline)] if steps else []
    level, levels = 1.0, [0.0]
    for step, result in steps:
        level *= 1.0 + _change(result, path)
        releases.append(_short(step.candidate))
        levels.append(100.0 * (level - 1.0))
    return releases, levels


def _change(result: RunResult, path: str) -> float:
    """The relative change of the cost on a path; 0 where it was not compared."""
    scenarios = (one for one in result.scenarios if one.origin.test == path and one.comparison is not None)
    changes = (change for one in scenarios if one.comparison for change in one.comparison.changes)
    return next((one.change for one in changes if one.measurand == Cost.name), 0.0)


def _short(build: str) -> str:
    return ".".join(release(build).split(".")[:2])
