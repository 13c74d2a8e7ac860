"""Does a comparison of builds see a slowdown that was planted, and name where it is?

    sudo .venv/bin/python tests/bench/planted.py [--comparisons 5] [--rules 0 1 4 8] [--cost-tolerance 0.5%]

Both sides boot the same kernel in guests of constant speed, with one policy rule that takes routing off its fast path.
The candidate has so many more, of which none matches; each costs a packet some 15 instructions in fib_rules_lookup. A
line for each comparison, and one for each number of rules: verdicts, the median change, and how often the function was
the first that is named.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.builds.named_build import named_build
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.units import Duration, Ratio

FUNCTION = "fib_rules_lookup"
FILE = Path(__file__).resolve().parents[2] / "resources/testbeds/local-vm.yaml"


class Silent(RunObserver):
    """An observer that tells nobody."""


@dataclass(frozen=True)
class Planted:
    """A testbed that is coming up, and gets its rules when it is up."""

    testbed: VmTestbed
    rules: int

    def ready(self) -> object:
        self.testbed.ready()
        rules = (f"ip -6 rule add fwmark {77 + number} table main" for number in range(1 + self.rules))
        self.testbed.guest.run("sh", "-ec", "\n".join(rules))
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self.testbed, name)


def compared(rules: int, options: argparse.Namespace, place: Path) -> PairsComparison:
    """One comparison, from boots to judgement."""
    asked = Options(profile="quick", wait=Duration(3600.0), cost_tolerance=options.cost_tolerance)
    config, kernel = load_testbed(FILE), named_build(options.kernel)
    session = Session(config, asked, RunRecord(place, asked.profile), Silent())

    def build(side: str, planted: int) -> Build:
        def boot(journal: Journal) -> Planted:
            testbed = config.boot(kernel, journal, place / "consoles", lambda step: None)
            assert isinstance(testbed, VmTestbed)
            return Planted(testbed, planted)

        return Build(side, f"{planted} rules", boot)  # type: ignore[arg-type]

    builds = {side: build(side, planted) for side, planted in zip(SIDES, (0, rules), strict=True)}
    try:
        session.take()
        comparison = comparison_of(ComparisonTask(session, Scenario(), builds, Plan(48, None, options.tolerance)))
        comparison.measure()
        comparison.judge(options.tolerance)
        comparison.finish()
    finally:
        session.close()
    return comparison


def in_words(change: ChangeResult) -> str:
    """How one measurand changed, and what is said of it alone."""
    judged = f" ({change.verdict})" if change.verdict != Verdict.NO_BASELINE else ""
    return f"{change.measurand} {change.change:+.2%}{judged}"


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=5)
    parser.add_argument("--rules", type=int, nargs="+", default=[0, 1, 4, 8])
    parser.add_argument("--kernel", default="linux-image-cloud-amd64")
    parser.add_argument("--tolerance", type=Ratio.parse, default=Ratio(0.02))
    parser.add_argument("--cost-tolerance", type=Ratio.parse, default=Ratio(0.01))
    options = parser.parse_args()
    for rules in options.rules:
        verdicts, named, costs = Counter[str](), 0, []
        for number in range(1, options.comparisons + 1):
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as place:
                comparison = compared(rules, options, Path(place))
            assert comparison.judgement is not None
            verdicts[str(comparison.judgement.verdict)] += 1
            found = comparison.comparison
            first = next((one for one in found.functions if one.sure), None) if found else None
            named += first is not None and first.function == FUNCTION
            changes = ", ".join(map(in_words, found.changes)) if found else ""
            costs += [one.change for one in found.changes if one.measurand == "cost"] if found else []
            told = f"{first.function} {first.change:+.1f}" if first else "no function beyond doubt"
            if found and found.notice:
                told += f"; notice: {found.notice}"
            pairs = found.pairs if found else 0
            print(
                f"{rules:3} rules {number:3} {time.monotonic() - began:5.0f} s {comparison.judgement.verdict}, "
                f"{pairs} pairs, {changes}; {told}",
                flush=True,
            )
        print(
            f"{rules:3} rules: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.most_common())}; cost "
            f"{statistics.median(costs) if costs else 0:+.2%}; {FUNCTION} named first in {named} of "
            f"{options.comparisons}",
            flush=True,
        )


if __name__ == "__main__":
    main()
