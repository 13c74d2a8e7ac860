"""What did each release of Linux do to packets? Each kernel is compared with the one before it, on all paths.

    sudo .venv/bin/python tests/bench/releases RESULTS BUILD BUILD… [--table] [--picture FILE]
        [options of pdrgate gate, such as --scenario path-nat]

The builds are what `pdrgate gate --kernel` takes, the oldest first. A step that has been measured is kept, and one that
was ended before is resumed: a bench that is killed goes on from there. The sections of docs/releases.md are printed at
the end. --table measures nothing. Causes that people found stand in causes.yaml.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

from known_causes import causes
from picture import draw
from sections import sections
from step import Step


def main() -> None:
    """Measure the steps that are asked for, and print the page's sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    parser.add_argument("--table", action="store_true", help="print the sections, and measure nothing")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the instructions of a packet into this PNG")
    asked, more = parser.parse_known_args()
    steps = [Step(asked.results.resolve(), *builds) for builds in pairwise(asked.builds)]
    for step in () if asked.table else steps:
        print(f"{step.label}: {step.measured(more)}", flush=True)
    finished = [(step, result) for step in steps if (result := step.result()) is not None]
    print("\n".join(sections(finished, causes())))
    if asked.picture is not None:
        draw(finished, asked.picture)


if __name__ == "__main__":
    main()
