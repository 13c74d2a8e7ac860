"""How long kernels take to boot in a guest, as a bzImage and by PVH, and what a guest costs in memory.

    .venv/bin/python tests/bench/boot_time.py [--boots 3] [BUILD…]

Command to shell: from the start of building the initramfs to the first command's answer. The two ways take turns, so
that what else the machine does meets both. Prints two lines a build.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pdrgate.builds.boot_image import elf_image
from pdrgate.builds.kernel_build import kernel_build
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.initramfs import initramfs
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine

PATIENCE = 180.0


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Boot each build in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["linux-image-cloud-amd64", "linux-image-amd64"])
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--memory", type=int, default=512)
    arguments = parser.parse_args()
    builds = [kernel_build(source) for source in arguments.builds]
    with (
        Lease.acquire(whole_machine(), wait=600),
        tempfile.TemporaryDirectory() as place,
        Journal.begin(Path(place)) as journal,
    ):
        config = GuestConfig(cpus=plan_cpus(None, None).sut, memory=arguments.memory)
        for build in builds:
            began = time.monotonic()
            size = len(initramfs(build))
            made = time.monotonic() - began
            began = time.monotonic()
            elf_image(build.image)
            unpacked = time.monotonic() - began
            times: dict[str, list[float]] = {}
            sizes: dict[str, int] = {}
            for number in range(2 * arguments.boots):
                began = time.monotonic()
                with Guest(build, replace(config, pvh=number % 2 == 1), journal, Path(place)) as guest:
                    guest.wait(PATIENCE)
                    guest.run("true")
                    times.setdefault(guest.protocol, []).append(time.monotonic() - began)
                    sizes[guest.protocol] = max(resident(guest.pid) >> 20, sizes.get(guest.protocol, 0))
                    accelerator = guest.accelerator
            for protocol, taken in times.items():
                print(
                    f"{build.release} by {protocol}: command to shell {statistics.median(taken):.2f} s "
                    f"({min(taken):.2f} to {max(taken):.2f}, {len(taken)} boots), RSS {sizes[protocol]} MiB, initramfs "
                    f"{size / 1e6:.1f} MB made in {made:.2f} s, image ready in {unpacked:.2f} s, "
                    f"{accelerator.name} ({accelerator.why})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
