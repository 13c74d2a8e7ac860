"""What the data paths forward at saturation, side by side on the testbed of namespaces and in a guest.

    sudo .venv/bin/python tests/bench/data_paths.py [--trials 7] [--duration 0.5] [--hops 3] [--part netns]

A line per data path: the generator's ceiling and the rate forwarded when it sends flat out (medians), and the loss at
half and at 0.9 of that rate. Flat out is no PDR: some paths forward less when they are flooded. The last two lines are
ways for native XDP on veth that were not taken: the program on the generator's CPU, and threaded NAPI on the SUT's.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.builds.kernel_build import kernel_build
from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, Hop, data_path
from pdrgate.data_paths.paths.xdp_routing import XdpRouting
from pdrgate.gate.sut.probe import probe_path
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds import Testbed
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

FLAT_OUT = {"netns": 20e6, "guest": 400e3}
"""Packets/s: beyond what any of them forwards. A guest's TAP is not flooded by millions: that takes QEMU's CPU."""
BUFFER = 4096


class Unsteered(XdpRouting):
    """Native XDP where veth runs it: in the softirq of whoever sends."""

    def apply(self, hops: Sequence[Hop]) -> None:
        super().apply([
            dataclasses.replace(
                hop,
                ingress=dataclasses.replace(hop.ingress, steering=None),
                egress=dataclasses.replace(hop.egress, steering=None),
            )
            for hop in hops
        ])  # fmt: skip


class Threaded(Unsteered):
    """The same with threaded NAPI at the first port, its thread on the SUT's CPU and before other processes."""

    def __init__(self, cpu: int) -> None:
        super().__init__(6)
        self._cpu = cpu
        self._file: tuple[Hop, str] | None = None

    def apply(self, hops: Sequence[Hop]) -> None:
        super().apply(hops)
        name = hops[0].ingress.interface
        self._file = (hops[0], f"/sys/class/net/{name}/threaded")
        before = set(_threads(f"napi/{name}-"))
        hops[0].host.write(self._file[1], "1\n")
        for pid in set(_threads(f"napi/{name}-")) - before:
            os.sched_setaffinity(pid, {self._cpu})
            os.setpriority(os.PRIO_PROCESS, pid, -20)

    def restore(self) -> list[str]:
        if self._file is not None:
            self._file[0].host.write(self._file[1], "0\n")
            self._file = None
        return super().restore()


def _threads(prefix: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(prefix):
                yield int(path.parent.name)


def measure(title: str, path: DataPath, testbed: Testbed, options: argparse.Namespace, flat_out: float) -> None:
    """Print the line of one data path."""
    kind = DATA_PATHS.get(path.name)
    try:
        path.apply(testbed.hops)
        testbed.set_buffer(BUFFER)
        testbed.pin("1 cpu")
        generator = counted_by(path.arrivals, testbed.generator(path.family))
        frames = kind.frames if kind is not None else Frames(path.family)
        try:
            probe_path(path, testbed, generator, frames)
            flat = [generator.trial(flat_out, options.duration, frames) for _ in range(options.trials)]
            forwarded = statistics.median(trial.forwarding_rate for trial in flat)
            losses = [
                [generator.trial(share * forwarded, options.duration, frames).loss_ratio for _ in range(options.trials)]
                for share in (0.5, 0.9)
            ]
        finally:
            generator.close()
        spread = [min(trial.forwarding_rate for trial in flat), max(trial.forwarding_rate for trial in flat)]
        ceiling = statistics.median(trial.offered_load for trial in flat)
        print(
            f"{title:34} {path.mode:26} {ceiling / 1e3:8.0f} {forwarded / 1e3:8.1f} "
            f"{spread[0] / 1e3:8.1f} .. {spread[1] / 1e3:.1f}   "
            + "   ".join(f"{statistics.median(loss):.3%} (worst {max(loss):.3%})" for loss in losses),
            flush=True,
        )
    except TestbedError as error:
        print(f"{title:34} {error}", flush=True)
    finally:
        for sentence in path.restore():
            print(sentence)


def paths(cpu: int | None) -> dict[str, Callable[[], DataPath]]:
    """Those of suites, generic XDP, and with a CPU the two ways not taken."""
    found: dict[str, Callable[[], DataPath]] = {
        kind.title: lambda name=name: data_path(name) for name, kind in DATA_PATHS.items() if not kind.transfers
    }
    found["IPv6 routing by generic XDP"] = lambda: XdpRouting(6, mode="generic")
    if cpu is not None:
        found["not taken: on the generator's CPU"] = lambda: Unsteered(6)
        found["not taken: threaded NAPI"] = lambda: Threaded(cpu)
    return found


def main() -> None:
    """Measure on one testbed after the other; the machine is given back in between."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--duration", type=float, default=0.5)
    parser.add_argument("--hops", type=int, default=3)
    parser.add_argument("--build", default="linux-image-cloud-amd64")
    parser.add_argument("--part", choices=("netns", "guest"), action="append")
    options = parser.parse_args()
    cpus = plan_cpus(None, None)
    for part in options.part or ("netns", "guest"):
        build = kernel_build(options.build) if part == "guest" else None
        with (
            Lease.acquire(whole_machine(), wait=900),
            tempfile.TemporaryDirectory() as place,
            Journal.begin(Path(place)) as journal,
        ):
            begun = time.monotonic()
            testbed: NetnsTestbed | VmTestbed
            if build is None:
                testbed = NetnsTestbed(options.hops, cpus, journal)
            else:
                testbed = VmTestbed(build, cpus, journal, Path(place)).ready()
            try:
                print(testbed.sentence())
                print(f"{'':61}  offered forwarded (kpps)               loss at 0.5         at 0.9")
                for title, make in paths(cpus.sut[0] if build is None else None).items():
                    measure(title, make(), testbed, options, FLAT_OUT[part])
            finally:
                testbed.close()
            print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
