"""How large are the pages of many paths and many runs, and how long does Chromium take to show them?

    PYTHONPATH=libraries .venv/bin/python tests/bench/page_load.py RUN [--paths 72] [--runs 200]

RUN is the folder of a run of a portfolio. Its paths are repeated, with numbers behind their names, until there are as
many as asked for. Made are summary.html of the run as it is, of a run whose paths all pass, the trend page of as many
runs, each path of which wanders by 0.1 % with a step now and then, and the page of the two newest runs. Told are bytes,
rows of tables, and the seconds until the page has been laid out and drawn to a PNG at 1280 pixels, the start of
Chromium included; a page without anything is drawn first, to say how long that is.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pdrgate.history.results import read_result
from pdrgate.reports.pages.runs_page import runs_page
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.pages.trend_page import trend_page
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.trend import Point, Series

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--window-size=1280,2000",
)  # fmt: skip
DAY = 86400.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--paths", type=int, default=72)
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="page-load-") as folder:
        for name, page in pages(read_result(asked.run), asked.paths, asked.runs):
            file = Path(folder) / f"{name}.html"
            file.write_text(page, encoding="utf-8")
            print(f"{name}: {file.stat().st_size} bytes, {page.count('<tr')} rows, {seconds(file):.1f} s", flush=True)


def pages(result: RunResult, paths: int, runs: int) -> Iterator[tuple[str, str]]:
    yield "empty", "<!DOCTYPE html><title>empty</title>"
    yield "summary", summary_page(replace(result, scenarios=repeated(result.scenarios, paths)), {})
    if green := [one for one in result.scenarios if one.verdict is Verdict.PASS]:
        told = replace(result, verdict=Verdict.PASS, reason=green[0].reason, scenarios=repeated(green, paths))
        yield "summary-green", summary_page(told, {})
    all_series = [*wandering(repeated(result.scenarios, paths), runs)]
    yield "trend", trend_page(all_series, (), runs, functions=lambda *_: "virtqueue_add_outbuf +216, __alloc_skb +91")
    yield "runs", runs_page(all_series, {}, lambda *_: "virtqueue_add_outbuf +216, __alloc_skb +91")


def repeated(scenarios: Sequence[ScenarioResult], count: int) -> tuple[ScenarioResult, ...]:
    """As many scenarios, each with a name of its own."""
    found = []
    for number in range(count):
        turn, place = divmod(number, len(scenarios))
        one = scenarios[place]
        more = f" {turn + 1}" if turn else ""
        origin = replace(one.origin, test=f"{one.origin.test}{more}")
        found.append(replace(one, name=f"{one.name}{more}", origin=origin))
    return tuple(found)


def wandering(scenarios: Sequence[ScenarioResult], runs: int) -> Iterator[Series]:
    """Each measurand of each scenario over as many runs."""
    chance = random.Random(1)
    for scenario in scenarios:
        for measurand in scenario.findings.measurands:
            level, points = measurand.value or 1.0, []
            for day in range(runs):
                level *= 1.0 + (chance.choice((-0.01, 0.004, 0.02)) if chance.random() < 0.02 else 0.0)
                value = level * (1.0 + chance.gauss(0, 0.001))
                verdict = Verdict.REGRESSION if chance.random() < 0.01 else Verdict.PASS
                points.append(Point(
                    build=f"linux-next-{day:08d}", time=1.7e9 + day * DAY, value=value, lower=0.998 * value,
                    upper=1.002 * value, verdict=verdict, run=f"run-{day}",
                ))  # fmt: skip
            yield Series(
                scenario=scenario.name, title=scenario.label, testbed="vm", fingerprint="f", measurand=measurand.name,
                unit=measurand.unit, better=measurand.better, points=tuple(points),
            )  # fmt: skip


def seconds(page: Path) -> float:
    """Seconds until Chromium has drawn the page. Raises CalledProcessError where it does not."""
    with tempfile.TemporaryDirectory(prefix="page-load-") as profile:
        begun = time.monotonic()
        asked = ("chromium", *FLAGS, f"--user-data-dir={profile}", f"--screenshot={profile}/page.png", page.as_uri())
        subprocess.run(asked, check=True, capture_output=True)
        return time.monotonic() - begun


if __name__ == "__main__":
    main()
