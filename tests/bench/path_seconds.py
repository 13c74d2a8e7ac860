"""Where do the seconds of a path go? The parts of a comparison on guests that stay up, each timed by itself.

    sudo .venv/bin/python tests/bench/path_seconds.py BUILD BASELINE [TAG…]

gates BUILD against BASELINE on the paths of these tags (all of the portfolio, where none is named). A row for each part
has the seconds of the main thread, for a path on average, and their share. Waiting for another part counts there.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "libraries")]

from pdrgate.cli import main as pdrgate  # noqa: E402
from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots  # noqa: E402
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts  # noqa: E402
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts  # noqa: E402
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison  # noqa: E402
from pdrgate.gate.run.run_record import RunRecord  # noqa: E402
from pdrgate.history.results import read_result  # noqa: E402
from pdrgate.keywords import comparing, library  # noqa: E402

_PARTS: tuple[tuple[object, str, str], ...] = (
    (LivingSuts, "settle", "wait for the path before to be taken away"),
    (LivingSuts, "pairs", "boot guests"),
    (LivingBoots, "_set_up", "set four guests up"),
    (LivingBoots, "_prepare_each", "prepare trials"),
    (LivingBoots, "_at_once", "trials of four guests"),
    (SeveralCpuSuts, "seen", "several CPUs"),
    (PairsComparison, "_by", "judge"),
    (comparing, "show_scenario", "pictures and tables in log.html"),
    (library, "show_run", "overview in report.html"),
    (RunRecord, "add", "write result.json"),
)


class Stopwatch:
    """Adds up the seconds of parts; of a part within another one the inner one's count."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._within: list[float] = []

    def timed(self, part: str, called: Callable[..., Any]) -> Callable[..., Any]:
        """The same callable, timed."""

        @functools.wraps(called)
        def timing(*given: Any, **named: Any) -> Any:
            begun = time.monotonic()
            self._within.append(0.0)
            try:
                return called(*given, **named)
            finally:
                took = time.monotonic() - begun
                self.seconds[part] += took - self._within.pop()
                if self._within:
                    self._within[-1] += took

        return timing


def main() -> int:
    """Gate, and print the rows."""
    if len(sys.argv) < 3:
        print(__doc__)
        return 64
    build, baseline, *tags = sys.argv[1:]
    watch = Stopwatch()
    for owner, name, part in _PARTS:
        if hasattr(owner, name):
            setattr(owner, name, watch.timed(part, getattr(owner, name)))
    chosen = [word for tag in tags or ("portfolio",) for word in ("--scenario", tag)]
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        code = pdrgate(["gate", "--quiet", "--kernel", build, "--against", baseline, *chosen, "--output", folder])
        whole = time.monotonic() - begun
        paths = len(read_result(Path(folder) / "latest").scenarios)
    watch.seconds["all else: Robot, start and end"] = whole - sum(watch.seconds.values())
    print(f"\nexit code {code}; {paths} paths in {whole:.0f} s, {whole / paths:.1f} s each\n")
    for part, seconds in watch.seconds.most_common():
        print(f"{part:45s} {seconds / paths:6.2f} s {100 * seconds / whole:5.1f} %")
    return code


if __name__ == "__main__":
    sys.exit(main())
