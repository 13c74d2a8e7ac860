"""How long kernels take to boot in a guest, and what a guest costs in memory.

    .venv/bin/python tests/bench/boot_time.py [--boots 3] [BUILD…]

Command to shell: from the start of building the initramfs to the first command's answer. Prints one line a build.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from pdrgate.builds.kernel_build import kernel_build
from pdrgate.guests.guest import Guest, GuestConfig
from pdrgate.guests.initramfs import initramfs
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal, MachineLock


def main() -> None:
    """Boot each build in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["linux-image-cloud-amd64", "linux-image-amd64"])
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--memory", type=int, default=512)
    arguments = parser.parse_args()
    builds = [kernel_build(source) for source in arguments.builds]
    with MachineLock.acquire(wait=600), tempfile.TemporaryDirectory() as place, Journal.begin(Path(place)) as journal:
        config = GuestConfig(cpus=plan_cpus(None, None).sut, memory=arguments.memory)
        for build in builds:
            times, sizes = [], []
            began = time.monotonic()
            size = len(initramfs(build))
            made = time.monotonic() - began
            for _ in range(arguments.boots):
                began = time.monotonic()
                with Guest(build, config, journal, Path(place)) as guest:
                    guest.wait()
                    guest.run("true")
                    times.append(time.monotonic() - began)
                    sizes.append(guest.rss() >> 20)
                    accelerator = guest.accelerator
            print(
                f"{build.release}: command to shell {statistics.median(times):.2f} s "
                f"({min(times):.2f} to {max(times):.2f}, {len(times)} boots), RSS {max(sizes)} MiB, initramfs "
                f"{size / 1e6:.1f} MB made in {made:.2f} s, {accelerator.name} ({accelerator.why})"
            )


if __name__ == "__main__":
    main()
