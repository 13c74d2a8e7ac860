"""Bencher Metric Format: what ``bencher run --adapter json --file`` takes (https://bencher.dev/bmf.json)."""

from __future__ import annotations

import json

from pdrgate.reports.ci.export_figures import builds, slug
from pdrgate.results.model import RunResult
from pdrgate.values.printable import printable

_LONGEST = 1024
"""Characters of a benchmark's name."""


def bencher_metrics(result: RunResult) -> str:
    """A benchmark per scenario, a measure per measurand, with its 95 % interval as lower and upper value.

    Of a comparison the candidate: Bencher compares with what it was given of other branches. The units, packets/s and
    instructions/packet, are Bencher's own to keep, by measure.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for build in builds(result):
        if build.side == "candidate" and build.measurands:
            found[printable(build.scenario)[:_LONGEST] or "unnamed"] = {
                slug(one.name): {
                    key: value
                    for key, value in (("value", one.value), ("lower_value", one.lower), ("upper_value", one.upper))
                    if value is not None
                }
                for one in build.measurands
            }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


EXPORT = bencher_metrics
