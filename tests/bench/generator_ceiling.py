"""The generator's ceiling, rate error and overhead per trial, side by side with trafgen on the same veth topology.

    sudo .venv/bin/python tests/bench/generator_ceiling.py [--trials 7] [--duration 0.5] [--hops 3] [--family 6]

trafgen (netsniff-ng) is counted by the TG's own interface counters and timed by what it tells itself. Its TX_RING ends
with an error where the SUT takes packets on another CPU, for in a namespace it cannot enlarge its send buffer; then it
sends by sendto, whose small buffer makes it wait for the SUT: a closed loop, its ceiling is the SUT's. Its rate
holds over whole seconds only (a second's packets leave in one burst), so there its trials last 2 s. It is left out
where it is not installed. The machine should be quiet: the numbers are medians.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.hosts.host import CommandError, netns_host
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames, template
from pdrgate.values.errors import PdrGateError

FLAT_OUT = 20e6
LOADS = (50e3, 200e3, 500e3, 1e6)
TRAFGEN_FLAT_OUT = 2e6
"""What trafgen is asked to send per second of a trial when it may send as fast as it can."""

TRAFGEN_SECONDS = 2


@dataclass(frozen=True)
class Sample:
    """One trial: packets/s offered and forwarded, and the seconds it took beyond its duration."""

    offered: float
    forwarded: float
    overhead: float


def embedded(
    testbed: NetnsTestbed, frames: Frames, duration: float
) -> tuple[Callable[[float], Sample], Callable[[], None]]:
    """A way to measure one trial at a load, and how to end it."""
    generator = testbed.generator(frames.family)

    def measure(load: float) -> Sample:
        begun = time.monotonic()
        trial = generator.trial(load, duration, frames)
        wall = time.monotonic() - begun
        return Sample(trial.offered_load, trial.forwarding_rate, wall - max(duration, trial.sending_time))

    return measure, generator.close


def trafgen(testbed: NetnsTestbed, frames: Frames, duration: float, cpu: int) -> Callable[[float], Sample]:
    """The same for trafgen."""
    path = testbed.chain.paths(frames.family)[0]
    part = template(frames, path, tag=9, probe_tag=10)
    frame = bytearray(part.plain) + bytes(frames.wire_size - 4 - len(part.plain))
    config = Path(tempfile.mkstemp(suffix=".trafgen")[1])
    config.write_text("{ " + ", ".join(f"0x{byte:02x}" for byte in frame) + " }\n")
    host = netns_host(testbed.chain.tg)

    def counters() -> tuple[int, int]:
        def read(device: str, name: str) -> int:
            return int(host.read(f"/sys/class/net/{device}/statistics/{name}"))

        return read("t0", "tx_packets") + read("t0", "tx_dropped"), read("t1", "rx_packets")

    def run(count: int, *how: str) -> str:
        words = ("--dev", "t0", "--conf", str(config), "--cpus", f"{cpu}-{cpu}", "-P", "1", "-n", str(count), *how)
        return host.run("trafgen", *words, timeout=60 + 10 * duration).stdout

    flat: tuple[str, ...] = ()
    try:
        run(100_000)
    except CommandError as error:
        print(f"trafgen: {error.completed.stderr.strip().splitlines()[-1]} Using sendto")
        flat = ("-t", "0ns")

    def measure(load: float) -> Sample:
        flat_out = load >= FLAT_OUT
        count = round(TRAFGEN_FLAT_OUT * duration if flat_out else load * TRAFGEN_SECONDS)
        sent, back = counters()
        begun = time.monotonic()
        said = run(count, *(flat if flat_out else ("-b", f"{round(load)}pps")))
        wall = time.monotonic() - begun
        time.sleep(0.05)
        now_sent, now_back = counters()
        took = re.search(r"(\d+) sec, (\d+) usec", said)
        assert took is not None, said
        seconds = int(took[1]) + int(took[2]) / 1e6
        return Sample((now_sent - sent) / seconds, (now_back - back) / seconds, wall - seconds)

    return measure


def report(name: str, measure: Callable[[float], Sample], trials: int, saturation: float | None) -> float:
    """Print one generator's line; return the forwarding rate at its ceiling."""
    flat = [measure(FLAT_OUT) for _ in range(trials)]
    ceiling = statistics.median(sample.offered for sample in flat)
    forwarded = statistics.median(sample.forwarded for sample in flat)
    base = saturation or forwarded
    errors, overheads = [], []
    for load in LOADS:
        samples = [measure(load) for _ in range(trials)] if load < ceiling else []
        overheads += [sample.overhead for sample in samples]
        error = statistics.median(sample.offered / load - 1 for sample in samples) if samples else None
        worst = max((sample.offered / load - 1 for sample in samples), key=abs) if samples else None
        errors.append("beyond its ceiling" if error is None else f"{error:+.3%} ({worst:+.3%})")
    overhead = statistics.median(overheads) * 1e3 if overheads else float("nan")
    print(
        f"{name:<18}{ceiling / 1e3:>9.0f}{forwarded / 1e3:>12.0f}{ceiling / base:>8.2f}{overhead:>10.1f}  "
        + "  ".join(f"{error:>20}" for error in errors),
        flush=True,
    )
    return forwarded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--duration", type=float, default=0.5)
    parser.add_argument("--hops", type=int, default=3)
    parser.add_argument("--family", type=int, choices=(4, 6), default=6)
    options = parser.parse_args()
    frames = Frames(options.family)
    plan = plan_cpus(None, None)
    with (
        Lease.acquire(whole_machine(), wait=600),
        tempfile.TemporaryDirectory() as state,
        Journal.begin(Path(state)) as journal,
    ):
        print(f"{options.hops} routed hops, IPv{options.family}, {frames.wire_size}-byte frames, medians of "
              f"{options.trials} trials of {options.duration} s; rate errors: median (worst)")  # fmt: skip
        print(f"{'generator':<18}{'ceiling':>9}{'forwarded':>12}{'ratio':>8}{'overhead':>10}  "
              + "  ".join(f"{f'error at {load / 1e3:.0f} kpps':>20}" for load in LOADS))  # fmt: skip
        print(f"{'':<18}{'kpps':>9}{'there, kpps':>12}{'':>8}{'ms/trial':>10}")
        saturation = None
        for engine in ("xdp", "packet"):
            testbed = NetnsTestbed(options.hops, plan, journal, engine=engine)  # type: ignore[arg-type]
            routing = Routing(options.family)
            try:
                routing.apply(testbed.hops)
                testbed.set_buffer(4096)
                testbed.pin("1 cpu")
                measure, end = embedded(testbed, frames, options.duration)
                forwarded = report(f"embedded/{engine}", measure, options.trials, saturation)
                saturation = saturation or forwarded
                end()
                if engine == "packet" and shutil.which("trafgen"):
                    other = trafgen(testbed, frames, options.duration, plan.generator)
                    report("trafgen", other, options.trials, saturation)
                elif engine == "packet":
                    print("trafgen is not installed (apt-get install netsniff-ng)")
            except PdrGateError as error:
                print(f"embedded/{engine}: {error}")
            finally:
                testbed.close()


if __name__ == "__main__":
    main()
