"""Changes drawn by chance in a kernel's sources: is each path that gets dearer one that `--paths affected` selects?

    sudo .venv/bin/python tests/bench/random_changes TREE SYMBOLS RESULTS [--base REV] [--seed 1] [--groups 5]
        [--not NAME…] [--table] [options of pdrgate gate]

SYMBOLS is the System.map of TREE's kernel: changes are drawn in what it has. A group of eight changes becomes a
branch, pdrgate-known/random-SEED-N, of which nothing is checked out. The gate measures all paths of its build against
REV, and `pdrgate affected` says which of them run or touch what differs. Those that got dearer without that are asked
for once more by `--paths affected`, which looks at values after boot, too. A row of the table is a group: its changes,
how many paths run what differs, how many cost 0.5 % more, those of them that values after boot selected, and those that
nothing selected. Groups that are done are kept. --not leaves out changes of functions and variables with which the
kernel does not compile or boot.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "known_regressions"))

from groups import Group, groups, sources_of
from judging import touched_at_boot, touched_paths
from planting import git, planted

from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.launch.described import described_tests
from pdrgate.launch.shard import PORTFOLIO
from pdrgate.results.model import RunResult

PDRGATE = Path(sys.executable).parent / "pdrgate"
DEARER = 0.005
HEAD = ("group", "changes", "run what differs", "dearer", "of these by values after boot", "dearer and left out")


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


def row(group: Group, result: RunResult, touched: Mapping[str, Sequence[str]], at_boot: Sequence[str]) -> Sequence[str]:
    """The cells below `HEAD`.

    Args:
        touched: what differs of the code and variables of each path of which that is known.
        at_boot: paths that were selected for values after boot.
    """
    costs = dearer(result)
    unseen = {path: change for path, change in costs.items() if is_left_out(path, touched)}
    return (
        group.name,
        "; ".join(place.label for place in group.places),
        f"{sum(bool(names) for names in touched.values())} of {len(touched)}",
        str(len(costs)),
        ", ".join(f"{path} {unseen[path]:+.1%}" for path in at_boot) or "none",
        ", ".join(f"{path} {change:+.1%}" for path, change in unseen.items() if path not in at_boot) or "none",
    )


def is_left_out(path: str, touched: Mapping[str, Sequence[str]]) -> bool:
    """Whether it is known what the path runs, and none of that differs."""
    return path in touched and not touched[path]


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
        result = run_of(folder / "all", builds, more)
        touched = touched_paths(builds[3], builds[1], results) or {}
        tags = "OR".join(
            tag
            for test in tests
            if test.name in dearer(result) and is_left_out(test.name, touched)
            for tag in test.tags
            if tag.startswith("path-")
        )
        asked_again = (*more, "--scenario", tags)
        at_boot = touched_at_boot(builds[3], builds[1], results, asked_again) if tags else {}
        rows.append(row(group, result, touched, [path for path in at_boot if not touched.get(path)]))
        print("\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ("---",) * len(HEAD), *rows)), flush=True)


if __name__ == "__main__":
    main()
