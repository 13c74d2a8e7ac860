"""What do more CPUs give a portfolio? Measured seconds of its paths, dealt to workers on guests of their own.

    .venv/bin/python tests/bench/more_cpus.py RUN… [--boot 15] [--times 1]

RUN is the folder of a run that has ended: output.xml there has the seconds of each path. A worker takes two CPUs, for
it has two guests of each build, and boots them once. Paths are dealt out as shards, in the order of their names; by
known seconds, the longest first to whom has least; or each to the worker that is free first. The last column has one
worker die in the middle of its work: what it has measured is kept, and the others take its other paths.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from robot.api import ExecutionResult

CPUS = (2, 4, 16, 64)
OF_A_WORKER = 2


def seconds_of(folder: Path, times: int) -> list[float]:
    """The seconds of each path of a run, in the order of their names, each so many times."""
    tests = ExecutionResult(str(folder / "output.xml")).suite.all_tests
    paths = sorted(
        (str(one.full_name), one.elapsed_time.total_seconds()) for one in tests if ".Portfolio." in one.full_name
    )
    return [each for _, each in paths for _ in range(times)]


def shards(paths: Sequence[float], workers: int) -> float:
    """Seconds until the last part is measured, where parts are dealt out by name."""
    return max(sum(paths[first::workers]) for first in range(workers))


def free_first(paths: Sequence[float], workers: int, dies: float | None = None) -> float:
    """Seconds until all is measured, where each path goes to the worker that is free first.

    Args:
        dies: when the first worker does, which has to be done anew by others.
    """
    free = [(0.0, number) for number in range(workers)]
    left = list(reversed(paths))
    end = 0.0
    while left:
        begin, number = heapq.heappop(free)
        path = left.pop()
        if number == 0 and dies is not None and begin + path > dies:
            left.append(path)
            if not free:
                raise ValueError("the only worker has died")
            continue
        end = max(end, begin + path)
        heapq.heappush(free, (begin + path, number))
    return end


def main() -> None:
    """Print a row for each number of CPUs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--boot", type=float, default=15.0, help="seconds until a worker's guests are up")
    parser.add_argument("--times", type=int, default=1, help="how often each path of the run counts")
    options = parser.parse_args()
    for folder in options.runs:
        paths = seconds_of(folder, options.times)
        longest = sorted(paths, reverse=True)
        print(f"{folder}: {len(paths)} paths, {sum(paths):.0f} s, the longest {max(paths):.0f} s")
        ends = []
        for cpus in CPUS:
            workers = min(cpus // OF_A_WORKER, len(paths))
            known = free_first(longest, workers)
            rows = shards(paths, workers), known, free_first(paths, workers)
            told = ", ".join(f"{way} {options.boot + each:.0f} s" for way, each in zip(
                ("shards", "longest first", "whoever is free"), rows, strict=True
            ))  # fmt: skip
            died = f"{options.boot + free_first(longest, workers, known / 2):.0f} s" if workers > 1 else "no answer"
            print(f"  {cpus:3d} CPUs, {workers:2d} workers: {told}; one dies: {died}")
            ends.append(options.boot + known)
        print("  longest first, faster by: " + ", ".join(f"{one / next_:.1f}" for one, next_ in pairwise(ends)))


if __name__ == "__main__":
    main()
