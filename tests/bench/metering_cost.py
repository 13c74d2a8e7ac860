"""What does a change of the plugin that counts cost the guests that it counts?

    sudo .venv/bin/python tests/bench/metering_cost.py BEFORE [--rounds 15] [--vcpus 1]

BEFORE is the folder `libraries` of another checkout. A guest of each is up, and they take turns with the same work of
system calls, unheld. Told is the time that a virtual CPU's thread has had for an instruction: the median of all rounds,
and the quartiles of the ratios of the two in one round.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "libraries"
WORK = "dd if=/dev/zero of=/dev/null bs=1 count=150000 2>/dev/null"


def serve(vcpus: int) -> None:
    """Be the process of one checkout: a line of nanoseconds for an instruction is the answer to each line."""
    from pdrgate.builds.kernel_build import kernel_build
    from pdrgate.guests.guest import Guest
    from pdrgate.guests.guest_config import GuestConfig
    from pdrgate.hosts.cpus import plan_cpus
    from pdrgate.safety.journal import Journal

    config = GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg", metered=True, vcpus=vcpus)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        journal = stack.enter_context(Journal.begin(folder / "state"))
        guest = stack.enter_context(Guest(kernel_build("linux-image-cloud-amd64"), config, journal, folder))
        guest.wait(180.0)
        guest.count()
        meter = guest.meter
        assert meter is not None

        def look() -> tuple[int, int]:
            """Nanoseconds that the virtual CPUs had, and instructions."""
            tasks = Path(f"/proc/{guest.pid}/task").iterdir()
            own = [task for task in tasks if (task / "comm").read_text().startswith("CPU ")]
            had = sum(int((task / "schedstat").read_text().split()[0]) for task in own)
            counts = meter.counts()
            each = counts if isinstance(counts, tuple) else (counts,)  # earlier meters knew one CPU
            return had, sum(one.instructions for one in each)

        print("up", flush=True)
        for _ in sys.stdin:
            before = look()
            guest.script(WORK, timeout=120.0)
            after = look()
            print((after[0] - before[0]) / (after[1] - before[1]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--vcpus", type=int, default=1)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        sys.path.insert(0, str(asked.before))
        serve(asked.vcpus)
        return
    sides: list[subprocess.Popen[str]] = []
    try:
        for libraries in (asked.before, HERE):
            command = [sys.executable, __file__, str(libraries), "--serve", "--vcpus", str(asked.vcpus)]
            sides.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for side in sides:
            assert side.stdout is not None
            assert side.stdout.readline() == "up\n"
        rounds = [tuple(_round(side) for side in sides) for _ in range(asked.rounds)]
    finally:
        for side in sides:
            assert side.stdin is not None
            side.stdin.close()
            side.wait()
    before, after = (statistics.median(values) for values in zip(*rounds, strict=True))
    low, middle, high = statistics.quantiles([new / old for old, new in rounds], n=4)
    print(f"before {before:.3f} ns an instruction, after {after:.3f}: {after / before - 1:+.1%}")
    print(f"ratio in a round: {middle - 1:+.1%} ({low - 1:+.1%} to {high - 1:+.1%}), {len(rounds)} rounds")


def _round(side: subprocess.Popen[str]) -> float:
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write("\n")
    side.stdin.flush()
    return float(side.stdout.readline())


if __name__ == "__main__":
    main()
