"""Does each path of the portfolio come up on each kernel, and is all known that counting rests on?

    sudo env PYTHONPATH=libraries:tests/fakes .venv/bin/python tests/bench/kernels.py BUILD… [--path NAME…]

A guest of each build is booted once. Each path is set up on it, probed by packets or by a transfer, and taken away. A
line for each kernel has the seconds until it answered, the paths that came up, and what is not known of it. A path that
did not come up has a line of its own that says why. The exit code is 1 where one did not.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path

from applied_path import applied
from portfolio_paths import FILES, scenario_of_path

from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.gate.sut.probe import probe_path
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.values.errors import PdrGateError

PATIENCE = 180.0
"""Seconds that a kernel may take to answer, on a busy machine."""


def comes_up(testbed: VmTestbed, name: str) -> str:
    """Set a path up, use it, and take it away. Return why that failed, or what stays; empty where all is well."""
    scenario = scenario_of_path(name)
    before = NetworkState.of(testbed.hops[0].host)
    try:
        with applied(testbed, scenario, scenario.set_up) as path:
            if path.loop is not None:
                if not path.loop.transfer(65536, 0.2).transfer.delivered:
                    return "no byte of a transfer arrives"
            else:
                generator = counted_by(path.arrivals, testbed.generator(path.family))
                with contextlib.closing(generator):
                    probe_path(path, testbed, generator, scenario.frames, scenario.counts)
    except PdrGateError as error:
        return str(error)
    except AssertionError as error:
        return f"it is not put back: {error}"
    return "" if NetworkState.of(testbed.hops[0].host) == before else "what it set up stays"


def main() -> int:
    """Print a line for each kernel, and one for each path that did not come up on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    parser.add_argument("--path", nargs="+", default=list(FILES), choices=list(FILES), metavar="NAME")
    asked = parser.parse_args()
    failed = 0
    cpus = plan_cpus(None, None)
    config = GuestConfig(cpus=cpus.sut, accelerator="tcg", metered=True)
    with tempfile.TemporaryDirectory() as folder, Journal.begin(Path(folder) / "state") as journal:
        for name in asked.builds:
            begun = time.monotonic()
            testbed = VmTestbed(
                named_build(name), cpus, journal, Path(folder) / "consoles", machine=config, patience=PATIENCE
            )
            try:
                testbed.ready()
                seconds = time.monotonic() - begun
                faults = {path: fault for path in asked.path if (fault := comes_up(testbed, path))}
                unknown = "; ".join(testbed.check()) or "all is known"
                came_up = len(asked.path) - len(faults)
                print(
                    f"{testbed.guest.build.release}: {seconds:.1f} s, {came_up} of {len(asked.path)} paths; {unknown}"
                )
                for path, fault in faults.items():
                    print(f"  {path}: {fault}")
                failed += len(faults)
            finally:
                testbed.close()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
