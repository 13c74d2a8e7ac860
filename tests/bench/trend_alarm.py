"""Change points of made histories: what each library finds, how late, and how often it cries wolf.

    .venv/bin/python tests/bench/trend_alarm.py [--series 100]

Apache Otava is compared where it is installed: pip install --no-deps apache-otava (it pins another numpy).

A history is of 20, 50 or 200 builds, deviating by 0.5, 1 or 3 %. In some nothing happens, in some 5 % of the builds
dip by 10 %, some step down by 2, 3 or 5 % after three quarters of the builds, and some creep down by 0.3 % a build over
their second half, 30 builds at most. Each is looked at as a CI does: again and again while builds come in. A false
alarm is a history with any change told, in any of five looks, that is not there. A change is found when one for the
worse is told at the end whose range comes within 5 builds of it; the delay is that of the first look that told of it,
in builds. Slow libraries look at fewer histories, as the last table says.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import jumpavg
import numpy as np
import ruptures

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.stats import change_points as house

try:
    from otava.analysis import compute_change_points
except ImportError:
    compute_change_points = None

LENGTHS = (20, 50, 200)
DEVIATIONS = (0.005, 0.01, 0.03)
STEPS = (0.02, 0.03, 0.05)
CREEP, LONGEST_CREEP = 0.003, 30
DIP, DIPS = 0.10, 0.05
NEAR = 5
LOOKS = 5
"""Before a change, and at the end."""
AFTER = (2, 3, 4, 6, 8, 12, 20, 40)
"""Builds after a change when it is looked for."""
LEAST = 0.01
"""The change that all of them are asked for."""

Found = list[tuple[int, int, float]]
"""Of each change the last value before, the first one after, and its size."""


def jumps(values: np.ndarray) -> Found:
    groups = list(jumpavg.classify(values.tolist()))
    found: Found = []
    at = 0
    for before, after in pairwise(groups):
        at += before.stats.size
        found.append((at - 1, at, after.stats.avg / before.stats.avg - 1))
    return found


def levels(values: np.ndarray) -> Found:
    """ruptures as it comes: PELT, quadratic cost, BIC's penalty, the deviation by differences."""
    logs = np.log(values)
    deviation = np.median(np.abs(np.diff(logs))) / 0.6745 / np.sqrt(2)
    search = ruptures.KernelCPD(kernel="linear", min_size=2).fit((logs / deviation).reshape(-1, 1))
    ends = [0, *search.predict(pen=2 * np.log(len(logs)))]
    means = [logs[first:end].mean() for first, end in pairwise(ends)]
    return [(end - 1, end, float(np.expm1(b - a))) for end, a, b in zip(ends[1:-1], means, means[1:], strict=False)]


def otava(values: np.ndarray) -> Found:
    found, _ = compute_change_points(values.tolist(), window_len=50, max_pvalue=0.001)
    return [(int(one.index) - 1, int(one.index), one.stats.mean_2 / one.stats.mean_1 - 1) for one in found]


def ours(values: np.ndarray) -> Found:
    return [(one.before, one.after, one.change) for one in house.change_points(values.tolist(), LEAST)]


def without_lone(method: Callable[[np.ndarray], Found]) -> Callable[[np.ndarray], Found]:
    """The same without the values that stand alone."""

    def found(values: np.ndarray) -> Found:
        kept = house._not_alone(np.log(values))
        return [(int(kept[before]), int(kept[after]), size) for before, after, size in method(values[kept])]

    return found


METHODS: dict[str, Callable[[np.ndarray], Found]] = {
    "jumpavg": jumps,
    "jumpavg, no lone": without_lone(jumps),
    **({"otava": otava, "otava, no lone": without_lone(otava)} if compute_change_points else {}),
    "ruptures": levels,
    "ruptures, no lone": without_lone(levels),
    "pdrgate": ours,
}
SHARES = {"jumpavg": {50: 4, 200: 50}, "otava": {200: 4}}
"""One of how many histories a slow library looks at."""


@dataclass(frozen=True)
class History:
    values: np.ndarray
    kind: str
    begin: int
    """Index of the first changed value; the length where none is."""
    end: int


@dataclass(frozen=True)
class Summary:
    series: int
    false: float
    found: float
    delay: float
    spans: float
    milliseconds: float


def history(kind: str, deviation: float, length: int, number: int) -> History:
    random = np.random.default_rng([zlib.crc32(kind.encode()), int(deviation * 1e4), length, number])
    logs = deviation * random.standard_normal(length)
    begin = end = length
    if kind == "dips":
        logs += np.log1p(-DIP) * (random.random(length) < DIPS)
    elif kind == "creep":
        begin = length // 2
        end = min(length, begin + LONGEST_CREEP) - 1
        logs -= CREEP * np.clip(np.arange(length) - begin + 1, 0, end - begin + 1)
    elif kind.startswith("step"):
        begin = end = 3 * length // 4
        logs[begin:] += np.log1p(-float(kind.removeprefix("step ")))
    return History(1e6 * np.exp(logs), kind, begin, end)


def is_true(change: tuple[int, int, float], made: History) -> bool:
    before, after, size = change
    return size < 0 and after >= made.begin - NEAR and before <= made.end + NEAR and made.begin < len(made.values)


def share(name: str, length: int) -> int:
    return SHARES.get(name.partition(",")[0], {}).get(length, 1)


def run(cell: tuple[str, str, float, int, int]) -> Summary:
    name, kind, deviation, length, count = cell
    method = METHODS[name]
    false, found, delays, spans, seconds = 0, 0, [], [], []
    number_of = max(1, count // share(name, length))
    for number in range(number_of):
        made = history(kind, deviation, length, number)

        def told(upto: int, made: History = made) -> Found:
            began = time.perf_counter()
            changes = [one for one in method(made.values[:upto]) if abs(one[2]) >= LEAST]
            if upto == len(made.values):
                seconds.append(time.perf_counter() - began)
            return changes

        at_end = told(length)
        true = [one for one in at_end if is_true(one, made)]
        cried = len(true) < len(at_end)
        looks = [length * (look + 1) // LOOKS for look in range(LOOKS - 1)]
        for upto in (one for one in looks if one >= 8 and one < made.begin and not cried):
            cried = bool(told(upto))
        false += cried
        if true:
            found += 1
            spans.append(max(one[1] for one in true) - min(one[0] for one in true))
            later = [builds for builds in AFTER if made.begin + builds < length]
            seen = (n for n in later if any(is_true(one, made) for one in told(made.begin + n)))
            delays.append(next(seen, length - made.begin))
    return Summary(
        number_of, 100 * false / number_of, 100 * found / number_of, statistics.median(delays) if delays else 0,
        statistics.median(spans) if spans else 0, 1e3 * statistics.median(seconds),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100, help="histories a cell")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    began = time.monotonic()
    kinds = ("nothing", "dips", *(f"step {size}" for size in STEPS), "creep")
    cells = [
        (name, kind, deviation, length, options.series)
        for kind in kinds for deviation in DEVIATIONS for length in LENGTHS for name in METHODS
    ]  # fmt: skip
    costly_first = sorted(cells, key=lambda cell: -cell[3] * share(cell[0], cell[3]))
    with ProcessPoolExecutor(2) as pool:
        summaries = dict(zip(costly_first, pool.map(run, costly_first), strict=True))
    for kind in kinds:
        is_quiet = kind in ("nothing", "dips")
        columns = "" if is_quiet else "found of 100 histories / median delay / builds in its range / "
        print(f"\n{kind}: {columns}false alarms of 100 histories")
        heads = [f"{deviation:.1%} {length}" for deviation in DEVIATIONS for length in LENGTHS]
        print(f"{'deviation, builds':<20}" + "".join(f"{head:>{9 if is_quiet else 17}}" for head in heads))
        for name in METHODS:
            row = [summaries[name, kind, d, n, options.series] for d in DEVIATIONS for n in LENGTHS]
            print(f"{name:<20}" + "".join(
                f"{one.false:>9.0f}" if is_quiet else
                f"{f'{one.found:.0f} / {one.delay:.0f} / {one.spans:.0f} / {one.false:.0f}':>17}" for one in row
            ), flush=True)  # fmt: skip
    print("\nmilliseconds a look" + "".join(f"{length:>9}" for length in LENGTHS))
    for name in METHODS:
        times = [
            statistics.median(summaries[name, "nothing", d, n, options.series].milliseconds for d in DEVIATIONS)
            for n in LENGTHS
        ]
        counts = "/".join(str(options.series // share(name, n)) for n in LENGTHS)
        print(f"{name:<19}" + "".join(f"{one:>9.1f}" for one in times) + f"   {counts} histories a cell")
    print(f"\n{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
