"""How long ``pdrgate assess`` takes over PASTRAMI's published files, interpreter start included.

.venv/bin/python tests/bench/assess_time.py [--runs 7] [DIRECTORY]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=ROOT.parent / "shared" / "pastrami")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    if not options.directory.is_dir():
        sys.exit(f"{options.directory}: no such directory; name one with files of trials")
    command = [sys.executable, "-m", "pdrgate.cli", "assess", str(options.directory), "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    seconds = []
    for _ in range(options.runs):
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds.append(time.perf_counter() - start)
        if done.returncode not in (0, 1, 3):  # a judgement, or none can be made
            sys.exit(done.stderr)
    print(
        f"assess: median {statistics.median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f} s "
        f"over {options.runs} runs"
    )


if __name__ == "__main__":
    main()
