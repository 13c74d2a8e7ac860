"""Does the gate's answer repeat? Runs it several times with the same options, and prints what each came to.

    sudo .venv/bin/python tests/bench/verdicts.py --runs 10 [--busy] [--keep DIR] [-- --kernel A.deb --against B.deb]

A line for each run: seconds from the testbed's lease to the verdict on the console, and to the end, with all pages and
pictures written; the verdict, PDR and its change, what the cost of a packet changed by, trials that were repeated
because the machine had disturbed them. Then how often each verdict came, the median times, and the deviation of the
PDRs. `--busy` has a process run on each CPU meanwhile. Each run has a results
folder of its own, so none knows of the others; `--keep` leaves them in DIR, for `pdrgate history import DIR/*/2*`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.history.results import read_result
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
_VERDICT = re.compile(rf"\s*({'|'.join(Verdict)}): ")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    parser.add_argument("options", nargs="*", help="of pdrgate gate, after --")
    arguments = parser.parse_args()
    results: list[tuple[RunResult, float, float]] = []
    with tempfile.TemporaryDirectory() as passing, busy() if arguments.busy else contextlib.nullcontext():
        place = arguments.keep or Path(passing)
        for number in range(1, arguments.runs + 1):
            result, verdict, end = run(place / str(number), arguments.options)
            results.append((result, verdict, end))
            print(f"{number:3} {verdict:5.1f} {end:5.1f} s  {told(result)}", flush=True)
    verdicts = Counter(str(result.verdict) for result, _, _ in results)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()), end="; ")
    medians = (statistics.median(one[which] for one in results) for which in (1, 2))
    print("median {:.1f} s to the verdict, {:.1f} s to the end".format(*medians), end="")
    pdrs = [one.pdr.load for result, _, _ in results for one in result.scenarios if one.pdr is not None]
    if len(pdrs) > 1:
        print(f"; PDR {statistics.mean(pdrs) / 1e3:.2f} kpps, CV {statistics.stdev(pdrs) / statistics.mean(pdrs):.2%}")


def run(output: Path, options: list[str]) -> tuple[RunResult, float, float]:
    """One run, and after how many seconds, once it had the machine, the verdict was told and it ended."""
    process = subprocess.Popen(
        [ROOT / ".venv/bin/pdrgate", "gate", "--output", output, "--wait", "1h", *options],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    began, verdict, text = time.monotonic(), 0.0, []
    assert process.stdout is not None
    for line in process.stdout:
        text.append(line)
        if "waiting for it to end" in line:
            began = 0.0
        elif not began:
            began = time.monotonic()
        if not verdict and _VERDICT.match(line):
            verdict = time.monotonic()
    process.wait()
    folders = list(output.glob("2*/result.json"))
    if len(folders) != 1:
        sys.exit("".join(text))
    return read_result(folders[0]), verdict - began, time.monotonic() - began


def told(result: RunResult) -> str:
    """What one run came to."""
    parts = [str(result.verdict)]
    for one in result.scenarios:
        if one.pdr is not None:
            parts.append(f"PDR {one.pdr.load / 1e3:.2f} kpps")
        if one.comparison is not None:
            parts.append(f"{one.comparison.pairs} pairs")
            parts += [f"{change.measurand} {change.change:+.2%}" for change in one.comparison.changes]
        if found := re.search(r"\d+ of \d+ trials repeated", one.reason):
            parts.append(found[0])
    return ", ".join(parts)


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """A process that never waits on each CPU."""
    hogs = [
        subprocess.Popen(("taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"))
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


if __name__ == "__main__":
    main()
