"""Two configurations of one kernel, compared as two builds are: is a slower one told, by each kind of the end host's?

    sudo PYTHONPATH=libraries:tests/fakes .venv/bin/python tests/bench/two_configurations.py \
        [--where netns guest] [--kind udp starving livelock tcp latency] [--configuration equal slower] [--pairs 8]

udp, and tcp in namespaces: a classifier of 1 000 BPF instructions at the port's ingress, which matches nothing. tcp in
guests: no GRO, which namespaces have none of. starving: packets are taken in by
interrupts, which go before receivers, where else a thread of their priority does it. livelock: a thread polls
the port and goes before the receivers; where they share the CPU with what takes packets in by interrupts, as in
namespaces, that is the slower one, and a thread of their own priority the other. latency: ports wait for further
packets. Told are the verdict's sentence, and each measurand's change with what pairs deviate by.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from configurations import as_it_is, compared, fair, polled
from latency import TESTBEDS, Console, waiting

from pdrgate.data_paths.catalogue import TcpStreams
from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.run.scenario import Scenario
from pdrgate.testbeds import Testbed

Configure = Callable[[Testbed], None]

INSTRUCTIONS = 1000
LATER = {"netns": 100_000, "guest": 1_000_000}
"""Nanoseconds that a port's NAPI waits for further packets."""


def filtered(testbed: Testbed) -> None:
    """Work for each packet that comes in, and nothing else."""
    hop = testbed.hops[0]
    device = ("dev", hop.ingress.interface)
    program = ",".join([str(INSTRUCTIONS), *["0 0 0 0"] * (INSTRUCTIONS - 1), "6 0 0 0"])
    hop.host.run("tc", "qdisc", "add", *device, "clsact")
    hop.host.run("tc", "filter", "add", *device, "ingress", "protocol", "all", "bpf", "bytecode", program)


def ungathered(testbed: Testbed) -> None:
    """Each segment goes up the stack by itself."""
    hop = testbed.hops[0]
    hop.host.run("ethtool", "-K", hop.ingress.interface, "gro", "off")


def kinds(where: str) -> dict[str, tuple[Scenario, Configure, Configure]]:
    """By kind: what is measured, the one configuration, and the slower one."""
    livelock = (polled, as_it_is) if where == "netns" else (as_it_is, polled)
    costlier = filtered if where == "netns" else ungathered
    return {
        "udp": (Scenario("udp-delivery"), as_it_is, filtered),
        "starving": (Scenario("udp-delivery"), fair, as_it_is),
        "livelock": (Scenario("udp-delivery", overload=8), *livelock),
        "tcp": (Scenario("tcp-transfer", tcp=TcpStreams(window=64)), as_it_is, costlier),
        "latency": (Scenario("ipv4-routing", latency=True), as_it_is, waiting(LATER[where])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--where", nargs="+", choices=TESTBEDS, default=list(TESTBEDS))
    parser.add_argument("--kind", nargs="+", choices=kinds("guest"), default=list(kinds("guest")))
    parser.add_argument("--configuration", nargs="+", choices=("equal", "slower"), default=["equal", "slower"])
    parser.add_argument("--pairs", type=int, default=8, help="at most")
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    for where in options.where:
        for kind in options.kind:
            scenario, baseline, slower = kinds(where)[kind]
            for configuration in options.configuration:
                print(f"{where}, {kind}, {configuration}:", flush=True)
                begun = time.monotonic()
                with tempfile.TemporaryDirectory() as folder:
                    found = compared(
                        Path(folder), scenario, slower if configuration == "slower" else baseline, baseline=baseline,
                        pairs=options.pairs, tolerance=options.tolerance, testbed=TESTBEDS[where],
                        profile=options.profile, observer=Console(), wait="1 h",
                    )  # fmt: skip
                result = found.result()
                pairs = result.comparison.pairs if result.comparison else 0
                print(f"  {found.judgement}\n  {pairs} pairs, {time.monotonic() - begun:.0f} s")
                for change in result.comparison.changes if result.comparison else ():
                    deviation = f", pairs deviate by {change.evidence.deviation:.2%}" if change.evidence else ""
                    print(
                        f"  {change.measurand}: {change.baseline:.5g}, {change.candidate:.5g} {change.unit}, "
                        f"{change.change:+.1%} ({change.lower:+.1%} to {change.upper:+.1%}){deviation}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
