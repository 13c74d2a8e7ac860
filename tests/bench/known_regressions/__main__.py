"""Regressions that happened, planted in a kernel's sources: does the default gate catch them, and name the cause?

    sudo .venv/bin/python tests/bench/known_regressions TREE RESULTS [--base REV] [--only PATTERN…] [--again] [--table]
        [options of pdrgate gate, such as --scenario path-fq-codel]

Each file of `changes/` is a regression of Linux's history, as a patch of our own with the same effect. On top of REV of
the git tree it becomes a branch, pdrgate-known/NAME, of which nothing is checked out; its build is judged by
`pdrgate gate --kernel` against REV, as a developer would. `pdrgate affected` says what of each path's code it touches.
Changes are planted that are written for the release of REV. One is done after the other, and kept: what is killed goes
on where it was. RESULTS has a folder for each line of releases, such as 6.1. The table of all that are kept is printed
at the end, with a column for each further line; --table measures nothing.
"""

from __future__ import annotations

import argparse
import re
from fnmatch import fnmatch
from pathlib import Path

from judging import judged
from known_change import known_changes
from outcome import outcomes, table
from planting import PlantingError, git, release

_RELEASE = re.compile(r"\d+\.\d+")


def main() -> None:
    """Judge those that are asked for, and print all that are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--base", default="HEAD", help="what branches are on top of")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="changes by their files' names")
    parser.add_argument("--again", action="store_true", help="also what is kept")
    parser.add_argument("--table", action="store_true", help="print the table, and measure nothing")
    asked, more = parser.parse_known_args()
    tree, results = asked.tree.resolve(), asked.results.resolve()
    changes = known_changes()
    if not asked.table:
        base = git(tree, "rev-parse", "--verify", f"{asked.base}^{{commit}}")
        line = release(tree, base)
        kept = results / line
        kept.mkdir(parents=True, exist_ok=True)
        for change in changes:
            if line in change.kernels and any(fnmatch(change.name, pattern) for pattern in asked.only):
                try:
                    told = judged(change, tree, base, kept, more, again=asked.again)
                except PlantingError as error:
                    told = str(error)
                print(f"{change.name}: {told}", flush=True)
    lines = [path for path in results.glob("*.*") if _RELEASE.fullmatch(path.name) and path.is_dir()]
    print("\n".join(table({path.name: outcomes(changes, path) for path in lines})))


if __name__ == "__main__":
    main()
