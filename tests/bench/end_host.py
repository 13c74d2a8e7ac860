"""What the papers found on end hosts, measured here: UDP and TCP in namespaces and in a guest of constant speed.

    sudo .venv/bin/python tests/bench/end_host.py [--where netns guest] \
        [--part receivers onset livelock shares windows streams]

receivers: by receivers, system call and busy polling, the most that is delivered of any load, the PDR@0.5 %, and where
the most times four is lost (Marian et al., DSN 2010). onset: by socket buffer, the load at which a trial begins to lose
more than 0.5 %. livelock: what is delivered of multiples of the most (Eclipse/BSD). shares:
what each of four receivers gets of one, two and eight times the most, by their shares of the CPU. windows: by TCP
window, throughput and round trip times, received and sent (SLAC). streams: the same by streams, windows and congestion
control, and over a path of 10 ms where netem is there. Each figure but those of shares is a median of some trials.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from flat_values import changed

from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.catalogue import Receivers, TcpStreams, data_path
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.gate.sut.cost_counting import counting_of
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.knobs import KnobSet, rps_off
from pdrgate.knobs.file_knob import threaded_napi
from pdrgate.measurands.transfers.tcp import kernel_cost
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import nested
from pdrgate.observers.watching import watching
from pdrgate.record.trial import Trial
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds import Testbed
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.testbeds.testbed_base import Pinning
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

Measure = Callable[[float, float], Trial]
"""One trial at packets/s for seconds."""

KERNEL = "linux-image-cloud-amd64"
SPEED = 100_000_000
FLAT_OUT = {"netns": 4e6, "guest": 200e3}
LOSS = 0.005


@contextlib.contextmanager
def opened(where: str, folder: Path) -> Iterator[Testbed]:
    """A testbed, its machine's for as long."""
    cpus = plan_cpus(None, None)
    with Lease.acquire(whole_machine(), wait=3600, report=print):
        journal = Journal.begin(folder)
        testbed: NetnsTestbed | VmTestbed
        if where == "netns":
            testbed = NetnsTestbed(1, cpus, journal)
        else:
            machine = GuestConfig(cpus=cpus.sut, accelerator="tcg")
            testbed = VmTestbed(named_build(KERNEL), cpus, journal, folder, machine=machine, speed=SPEED)
        try:
            if isinstance(testbed, VmTestbed):
                testbed.ready()
            print(f"\n{where}: {testbed.sentence()}; load {os.getloadavg()[0]:.1f}", flush=True)
            yield testbed
        finally:
            testbed.close()
            journal.close()


@contextlib.contextmanager
def delivering(
    testbed: Testbed, receivers: Receivers, *, size: int = 64, pinning: Pinning = "1 cpu", buffer: int = 4096
) -> Iterator[Measure]:
    """UDP delivery set up on a testbed."""
    path = data_path("udp-delivery", receivers=receivers)
    try:
        path.apply(testbed.hops)
        testbed.set_buffer(buffer)
        testbed.pin(pinning)
        generator = counted_by(path.arrivals, testbed.generator(4))
        try:

            def measure(load: float, duration: float) -> Trial:
                with watching(testbed.observers(shared=True)) as watch:
                    trial = generator.trial(load, duration, Frames(4, size))
                seen = watch.observation
                return changed(
                    trial,
                    counters_before={**nested(seen.before), **trial.seen.counters_before},
                    counters_after={**nested(seen.after), **trial.seen.counters_after},
                    functions=seen.functions,
                    disturbed=seen.disturbed,
                )

            yield measure
        finally:
            generator.close()
    finally:
        path.restore()


def rate(measure: Measure, load: float, options: argparse.Namespace) -> float:
    """What is delivered of a load, packets/s."""
    return statistics.median(measure(load, options.duration).forwarding_rate for _ in range(options.trials))


def crossing(measure: Measure, top: float, options: argparse.Namespace, loss: Callable[[Trial], float]) -> float:
    """The load below ``top`` at which a loss crosses 0.5 %, by bisection to 2 %; a load is judged by medians."""
    low, high = 0.0, top
    while high - low > 0.02 * high:
        load = high / 2 if low == 0.0 else (low + high) / 2
        worst = statistics.median(loss(measure(load, options.duration)) for _ in range(options.trials))
        low, high = (load, high) if worst <= LOSS else (low, load)
        if high < top / 500:
            break
    return (low + high) / 2


def saturation(measure: Measure, where: str, options: argparse.Namespace) -> float:
    """The most that is delivered of any load: flat out, a livelock hides it."""
    most, load = 0.0, FLAT_OUT[where]
    while load > most:
        most, load = max(most, rate(measure, load, options)), load / 1.3
    return most


def receivers_part(testbed: Testbed, where: str, options: argparse.Namespace) -> None:
    print(f"{'':42} {'most kpps':>9} {'PDR kpps':>9}  user space / kernel; loss at 4 times the most")
    cases: list[tuple[str, Receivers, dict[str, object]]] = [
        ("1 receiver, recvmsg", Receivers(), {}),
        ("1 receiver, recvmmsg", Receivers(call="recvmmsg"), {}),
        ("2 receivers, recvmsg", Receivers(2), {}),
        ("4 receivers, recvmsg", Receivers(4), {}),
        ("8 receivers, recvmsg", Receivers(8), {}),
        ("1 receiver, busy polling 50 us", Receivers(busy_poll=50), {}),
        ("1 receiver, frames of 1518 bytes", Receivers(), {"size": 1518}),
        ("1 receiver, interrupts unpinned", Receivers(), {"pinning": "unpinned"}),
    ]
    for title, receivers, more in cases:
        with delivering(testbed, receivers, **more) as measure:  # type: ignore[arg-type]
            most = saturation(measure, where, options)
            pdr = crossing(measure, 1.5 * most, options, lambda trial: trial.steady_loss_ratio)
            trial = measure(4 * most, 2 * options.duration)  # long enough to fill what waits
        kernel = sum(count for name, (count, _) in trial.seen.functions.items() if name != "user space")
        user = trial.seen.functions.get("user space", (0, 0))[0]
        share = f"{user / kernel:.1%}" if kernel else "not counted"
        print(f"{title:42} {most / 1e3:9.1f} {pdr / 1e3:9.1f}  {share}; {losses(trial).sentence()}", flush=True)


def onset_part(testbed: Testbed, where: str, options: argparse.Namespace) -> None:
    """The loss of a whole trial, as the paper has it, and not the steady one, which no buffer changes.

    The receiver has a fifth of the CPU, so that what waits does so in its socket; hardly anything waits before the SUT.
    """
    options = argparse.Namespace(**vars(options) | {"duration": 4 * options.duration})
    print(f"{'socket buffer':14} {'most kpps':>9} {'onset kpps':>10} {'packets beyond the most':>25}")
    for size in (1024, 2048, 4096):
        with delivering(testbed, Receivers(buffer=size, background=4), buffer=512) as measure:
            most = saturation(measure, where, options)
            onset = crossing(measure, 4 * most, options, lambda trial: trial.loss_ratio)
        beyond = (onset - most) * options.duration
        print(f"{size // 1024:10} MiB {most / 1e3:9.1f} {onset / 1e3:10.1f} {beyond:25.0f}", flush=True)


@contextlib.contextmanager
def threaded(testbed: Testbed) -> Iterator[None]:
    """A cure in namespaces: no steering by interrupts between CPUs, but a thread of the SUT's CPU that polls the port,
    with the priority of the receivers."""
    hop = testbed.hops[0]
    port = hop.ingress.interface
    with KnobSet() as knobs:
        knobs.apply(hop.host, rps_off(port))
        knobs.apply(hop.host, threaded_napi(port, True))
        for path in Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if path.read_text().startswith(f"napi/{port}-"):
                    os.sched_setaffinity(int(path.parent.name), hop.cpus)
                    os.setpriority(os.PRIO_PROCESS, int(path.parent.name), -20)
        yield


def livelock_part(testbed: Testbed, where: str, options: argparse.Namespace) -> None:
    factors = (0.5, 1, 2, 4, 8, 16)
    print("delivered kpps of multiples of the most that is: " + "  ".join(f"{factor:>7g}" for factor in factors))
    cases: list[tuple[str, Receivers, contextlib.AbstractContextManager[None]]] = [
        ("1 receiver", Receivers(), contextlib.nullcontext()),
        ("1 receiver, recvmmsg", Receivers(call="recvmmsg"), contextlib.nullcontext()),
        ("4 receivers", Receivers(4), contextlib.nullcontext()),
        ("1 receiver, socket buffer of 64 KiB", Receivers(buffer=64), contextlib.nullcontext()),
    ]
    if where == "netns":
        cases.append(("1 receiver, threaded NAPI", Receivers(), threaded(testbed)))
    for title, receivers, cure in cases:
        with delivering(testbed, receivers) as measure, cure:
            most = saturation(measure, where, options)
            delivered = [rate(measure, factor * most, options) for factor in factors]
        print(f"{title:36} {most / 1e3:8.1f}:  " + "  ".join(f"{one / 1e3:7.1f}" for one in delivered), flush=True)


def shares_part(testbed: Testbed, where: str, options: argparse.Namespace) -> None:
    """Four receivers at twice the most that is, beside as many busy programs."""
    for shares in ((), (25, 25, 25, 25), (97, 1, 1, 1)):
        for background in (0, 4):
            receivers = Receivers(4, shares=shares, background=background)
            try:
                # Little waits before the SUT, so that what drains is little beside what is delivered meanwhile.
                with delivering(testbed, receivers, buffer=512) as measure:
                    most = saturation(measure, where, options)
                    trials = [measure(factor * most, 4 * options.duration) for factor in (1, 2, 8)]
            except TestbedError as error:
                print(f"{receivers.shares_text or 'none'}: {error}")
                continue
            told = []
            for trial in trials:
                each = [trial.seen.counters_after[f"receiver{number}"]["in_time"] for number in range(receivers.count)]
                told.append("/".join(f"{one / options.duration / 4e3:.1f}" for one in each))
            print(
                f"{receivers.shares_text or 'none':12} {background:2} busy, most {most / 1e3:6.1f}: {'   '.join(told)}"
            )


@contextlib.contextmanager
def talking(testbed: Testbed, streams: TcpStreams) -> Iterator[Callable[[int, float], Trial]]:
    """TCP set up on a testbed: makes a transfer at a window in KiB, and at bits/s or as fast as it goes."""
    path = TcpTransfer(4, streams)
    try:
        path.apply(testbed.hops)
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")

        def transfer(window: int, rate: float = 0.0) -> Trial:
            with watching((*testbed.observers(shared=True), *counting_of(testbed))) as watch:
                found = path.loop.transfer(window * 1024, 0.25 if rate else 1.0, rate)
            return changed(found, functions=watch.observation.functions)

        yield transfer
    finally:
        path.restore()


def tcp_line(transfers: list[Trial]) -> str:
    """What some equal transfers come to."""
    moved = [one.transfer for one in transfers]
    rtts = [one.senders.rtt for one in moved if one.senders.rtt is not None]
    costs = [cost for one in transfers if (cost := kernel_cost(one)) is not None]
    busy = [one.cpu.sut_busy for one in moved if one.cpu.sut_busy is not None]
    again = sum(one.senders.retransmitted for one in moved) / max(1, sum(one.senders.segments for one in moved))
    return (
        f"{statistics.median(one.throughput for one in moved) / 1e6:9.1f} Mbit/s"
        f"{1e3 * statistics.median(rtts) if rtts else 0.0:10.3f} ms{again:10.4%} again"
        + (f"{statistics.median(costs):8.2f} instructions/byte" if costs else "")
        + (f"  SUT's CPU {statistics.median(busy):.0%} busy" if busy else "")
    )


def windows_part(testbed: Testbed, where: str, options: argparse.Namespace) -> None:
    for streams in (TcpStreams(), TcpStreams(direction="sends")):
        with talking(testbed, streams) as transfer:
            rest = min(transfer(1024, 10e6).transfer.senders.rtt or 1.0 for _ in range(options.trials))
            print(f"the SUT {streams.direction}; a round trip at rest takes {1e3 * rest:.3f} ms")
            for window in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
                made = [transfer(window) for _ in range(options.trials)]
                print(f"{window:6} KiB {tcp_line(made)}", flush=True)


def streams_part(testbed: Testbed, where: str, options: argparse.Namespace) -> None:
    asked = [TcpStreams(count, window) for count in (1, 4, 16) for window in (16, 256)]
    asked += [TcpStreams(1, 1024, one, side) for side in ("receives", "sends") for one in ("cubic", "reno", "bbr")]
    asked += [TcpStreams(1, window, direction="sends", delay=0.01) for window in (64, 256, 1024)]
    asked += [TcpStreams(1, 1024, one, "sends", loss=0.01) for one in ("cubic", "reno", "bbr")]
    for streams in asked:
        try:
            with talking(testbed, streams) as transfer:
                made = [transfer(streams.window) for _ in range(options.trials)]
            print(f"{streams!s:92} {tcp_line(made)}", flush=True)
        except TestbedError as error:
            print(f"{streams!s:92} {error}", flush=True)


PARTS = {
    "shares": shares_part, "receivers": receivers_part, "onset": onset_part, "livelock": livelock_part,
    "windows": windows_part, "streams": streams_part,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--where", nargs="+", choices=("netns", "guest"), default=["netns", "guest"])
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--duration", type=float, default=0.25)
    options = parser.parse_args()
    for where in options.where:
        with tempfile.TemporaryDirectory() as folder, opened(where, Path(folder)) as testbed:
            for part in options.part:
                print(f"\n{part}, trials of {options.duration:g} s:")
                PARTS[part](testbed, where, options)


if __name__ == "__main__":
    main()
