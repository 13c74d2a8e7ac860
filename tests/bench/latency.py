"""Latency at shares of the PDR: how much it scatters, and whether a port that delays interrupts is found.

    sudo PYTHONPATH=libraries:tests/fakes .venv/bin/python tests/bench/latency.py [--where netns guest] [--pairs 8]

A SUT as it is against the same, and against one whose ports wait for further packets (napi_defer_hard_irqs and
gro_flush_timeout, which do what `ethtool -C rx-usecs` does for network cards), in pairs of boots by the gate's rule.
Told are each measurand's change, what the logs of the pairs' ratios deviate by, the verdict, and where it is counted
what a packet costs at each share, and how many a poll takes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from configurations import NAMESPACES, compared

from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.scenario import Scenario
from pdrgate.reports.words.latencies import latency_by_build, latency_part
from pdrgate.testbeds import Testbed

TESTBEDS = {"netns": NAMESPACES, "guest": NAMESPACES.with_name("steady-guest.yaml")}


class Console(RunObserver):
    """Prints what the gate says, and no trials."""

    def said(self, sentence: str) -> None:
        print(f"    {sentence}", flush=True)


def waiting(nanoseconds: int) -> Callable[[Testbed], None]:
    """All ports of a SUT wait so long for further packets."""

    def configure(testbed: Testbed) -> None:
        for hop in testbed.hops:
            for port in hop.ports:
                device = f"/sys/class/net/{port.interface}"
                hop.host.write(f"{device}/napi_defer_hard_irqs", "1")
                hop.host.write(f"{device}/gro_flush_timeout", str(nanoseconds))

    return configure


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--where", nargs="+", choices=TESTBEDS, default=list(TESTBEDS))
    parser.add_argument("--late", type=int, nargs="+", default=[0, 100_000], help="nanoseconds; 0: as it is")
    parser.add_argument("--pairs", type=int, default=8, help="at most")
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    options = parser.parse_args()
    for where in options.where:
        for late in options.late:
            print(f"{where}, ports that wait for {late / 1e3:g} us, profile {options.profile}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                found = compared(
                    Path(folder), Scenario("ipv4-routing", latency=True),
                    waiting(late) if late else lambda testbed: None, pairs=options.pairs, tolerance=0.02,
                    testbed=TESTBEDS[where], profile=options.profile, observer=Console(),
                )  # fmt: skip
            print(f"  {found.judgement}")
            for change in found.comparison.changes if found.comparison else ():
                deviation = f"{change.evidence.deviation:.2%}" if change.evidence else "unknown"
                print(f"  {change.measurand}: {change.change:+.1%}, pairs deviate by {deviation}")
            result = found.result()
            for line in latency_part(result).lines:
                print(f"  {line}")
            for side, by_share in latency_by_build(result):
                told = [
                    f"{one.instructions:.0f}, {one.batch:.3g}" for one in by_share if one.instructions and one.batch
                ]
                print(f"  {side}: instructions per packet, packets a poll: {'; '.join(told) or 'not counted'}")


if __name__ == "__main__":
    main()
