"""Does what a path is counted at depend on how busy the machine is?

    sudo .venv/bin/python tests/bench/busy_machine.py --kernel BUILD --into DIR [--beside 4] [--together 6] [PATH...]

PATH is the tag of a path of the portfolio, such as path-packet-ring; without one, all of them. One build is compared
with itself, on each path twice: on the machine as it is, and beside so many endless loops on each CPU. The table has
the median of all boots' values, how far apart equal boots are, and how far those of the busy machine are from the
others. More than half a percent is a fault, and ends it with exit code 1.

It may be stopped and begun again: DIR keeps what was measured, and only what is missing there is measured. `--table`
measures nothing and prints what DIR has.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "libraries"))

from pdrgate.history.results import read_result  # noqa: E402
from pdrgate.launch.path_files import path_files  # noqa: E402

PDRGATE = ROOT / ".venv/bin/pdrgate"
FAULT = 0.005
"""Relative: what a busy machine may change."""
STATES = ("as it is", "busy")

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""What boots came to, by path and measurand."""


def portfolio() -> dict[str, str]:
    """The tags of all paths, by the name of their test."""
    return {one.title: one.tag for one in path_files()}


@contextlib.contextmanager
def beside(loops: int) -> Iterator[None]:
    """So many endless loops on this machine."""
    running = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(loops)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def measured(folder: Path) -> Values:
    """All that the runs of a folder came to."""
    found: dict[str, dict[str, list[float]]] = {}
    for result in sorted(folder.glob("*/result.json")):
        for scenario in read_result(result.parent).scenarios:
            own = found.setdefault(scenario.origin.test, {})
            for boot in scenario.builds.boots:
                for name, value in boot.values.items():
                    own.setdefault(name, []).append(value)
    return found


def measure(tags: Sequence[str], kernel: str, folder: Path) -> None:
    """Compare a kernel with itself on some paths; what it comes to is in the folder."""
    subprocess.run(
        [PDRGATE, "gate", "--kernel", kernel, "--against", kernel, "--scenario", "OR".join(tags), "--afresh",
         "--set", "order=1", "--quiet", "--output", folder],
        check=False, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def rows(quiet: Values, busy: Values, every: bool) -> Iterator[tuple[str, str, float, float, float, float]]:
    """Path, measurand, median, difference when busy, and what equal boots deviate by, as it is and busy.

    Args:
        every: whether all measurands are wanted, and not only the first of each path.
    """
    for path in sorted(quiet.keys() & busy.keys()):
        shared = [name for name in quiet[path] if name in busy[path]]
        for name in shared if every else shared[:1]:
            before, after = (statistics.median(one[path][name]) for one in (quiet, busy))
            if before or after:
                change = after / before - 1 if before else math.inf
                yield path, name, before, change, *(_deviation(one[path][name]) for one in (quiet, busy))


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) / abs(statistics.fmean(values)) if len(values) > 1 and any(values) else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--beside", type=int, default=4, help="endless loops for each CPU")
    parser.add_argument("--together", type=int, default=6, help="paths of one run, for which four guests boot")
    parser.add_argument("--every", action="store_true", help="all measurands, not only what a path is judged by first")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    paths = portfolio()
    wanted = {test: tag for test, tag in paths.items() if not asked.paths or tag in asked.paths}
    folders = [asked.into / state.replace(" ", "-") for state in STATES]
    if not asked.table:
        for folder, loops in zip(folders, (0, asked.beside * (os.cpu_count() or 1)), strict=True):
            missing = [tag for test, tag in wanted.items() if test not in measured(folder)]
            while missing:
                now, missing = missing[: asked.together], missing[asked.together :]
                with beside(loops):
                    measure(now, asked.kernel, folder)
    faults = 0
    print(f"{'path':36} {'measurand':20} {'as it is':>10} {'busy':>8}   equal boots deviate by, as it is and busy")
    for path, name, before, change, *deviations in rows(*map(measured, folders), asked.every):
        if path in wanted:
            fault = abs(change) > FAULT
            faults += fault
            told = " ".join(f"{one:7.2%}" for one in deviations)
            print(f"{path:36} {name:20} {before:10.4g} {change:+8.2%}   {told}{'  FAULT' if fault else ''}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
