"""Changes drawn by chance in a kernel's sources: is each path that gets dearer one that `--paths affected` selects?

    sudo .venv/bin/python tests/bench/random_changes TREE SYMBOLS RESULTS [--base REV] [--seed 1] [--groups 5]
        [--not NAME…] [--table] [options of pdrgate gate]

SYMBOLS is the System.map of TREE's kernel: changes are drawn in what it has. A group of eight changes becomes a
branch, pdrgate-known/random-SEED-N, of which nothing is checked out. The gate judges its build against REV with
`--paths affected`, and then all paths that this left out. A first run against the first group lets the history know
what REV runs on each path. A row of the table is a group: its changes, the paths that were selected, those of them that
cost 0.5 % more, and those that did and were left out. Groups that are done are kept. --not leaves out changes of
functions and variables with which the kernel does not compile or boot.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "known_regressions"))

from groups import Group, groups, sources_of
from planting import git, planted

from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.launch.described import described_tests
from pdrgate.launch.shard import PORTFOLIO
from pdrgate.results.model import RunResult

PDRGATE = Path(sys.executable).parent / "pdrgate"
DEARER = 0.005
HEAD = ("group", "changes", "functions that differ", "selected", "of these dearer", "dearer and left out")


def run_of(folder: Path, builds: Sequence[str], more: Sequence[str]) -> RunResult:
    """The result of a gate in that folder: the one that is kept there, or else that of a new run.

    Raises:
        SystemExit: the gate did not measure.
    """
    if not (kept := sorted(folder.glob(f"*/{RESULT_FILE}"))):
        subprocess.run(
            (str(PDRGATE), "gate", "--quiet", "--wait", "1 h", "--output", str(folder), *builds, *more), check=False
        )
        kept = sorted(folder.glob(f"*/{RESULT_FILE}"))
    if not kept:
        raise SystemExit(f"{folder}: the gate has no result; does this kernel compile and boot?")
    return read_result(kept[-1].parent)


def dearer(result: RunResult) -> Mapping[str, float]:
    """The paths whose packets cost at least `DEARER` more, and by how much."""
    changes = {
        scenario.origin.test or scenario.title: next(
            (change.change for change in scenario.comparison.changes if change.measurand == "cost"), 0.0
        )
        for scenario in result.scenarios
        if scenario.comparison is not None
    }
    return {path: change for path, change in changes.items() if change >= DEARER}


def row(group: Group, selected: RunResult, rest: RunResult | None) -> Sequence[str]:
    """The cells below `HEAD`."""
    selection = selected.selection
    assert selection is not None
    chosen = [path.path for path in selection.paths if path.is_measured]
    outside = {path.path for path in selection.paths if not path.is_measured or path.reason == "audit"}
    costs = {**dearer(selected), **(dearer(rest) if rest else {})}
    missed = {path: change for path, change in costs.items() if path in outside}
    return (
        group.name,
        "; ".join(place.label for place in group.places),
        str(len(selection.differ)),
        f"{len(chosen)} of {len(selection.paths)}",
        str(len(costs) - len(missed)),
        ", ".join(f"{path} {change:+.1%}" for path, change in missed.items()) or "none",
    )


def main() -> None:
    """Judge each group that is not kept, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("symbols", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--base", default="HEAD", help="what branches are on top of")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--not", nargs="+", default=[], dest="without", metavar="NAME")
    parser.add_argument("--table", action="store_true", help="print what is kept, and measure nothing")
    asked, more = parser.parse_known_args()
    tree, results = asked.tree.resolve(), asked.results.resolve()
    base = git(tree, "rev-parse", "--verify", f"{asked.base}^{{commit}}")
    compiled = frozenset(line.split()[2] for line in asked.symbols.read_text().splitlines())
    compiled -= frozenset(asked.without)
    tests = described_tests(patterns=(PORTFOLIO,))
    rows: list[Sequence[str]] = []
    history = ("--history", str(results / "history.db"))
    for group in groups(sources_of(tree, base), compiled, asked.seed, asked.groups):
        folder = results / group.name
        if asked.table and not folder.exists():
            continue
        builds = ("--kernel", f"{tree}@{planted(tree, base, group)}", "--against", f"{tree}@{base}", *history)
        if not (results / "history.db").exists():
            run_of(results / "all", builds, more)
        selected = run_of(folder / "affected", builds, (*more, "--paths", "affected"))
        left_out = {path.path for path in selected.selection.paths if not path.is_measured}
        tags = "OR".join(tag for test in tests if test.name in left_out for tag in test.tags if tag.startswith("path-"))
        rest = run_of(folder / "rest", builds, (*more, "--scenario", tags)) if tags else None
        rows.append(row(group, selected, rest))
        print("\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ("---",) * len(HEAD), *rows)), flush=True)


if __name__ == "__main__":
    main()
