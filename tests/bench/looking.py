"""What does it cost the SUT that somebody looks where packets are lost, and how long does looking take?

    sudo .venv/bin/python tests/bench/looking.py [--where netns packet guest] [--trials 30] [--duration 0.4]

Trials in namespaces, with all that counts losses and with none of it in turn, at two loads: at saturation, where each
dropped packet is counted by its reason, and at half of it. Told are the ratios of neighbours: their median, and the
scatter that it has by itself. What others do on the machine is in the numbers. The observers' own time comes before and
after traffic. The kernel's own account has what the program took that counts reasons (kernel.bpf_stats_enabled).

What a trial's noise hides shows where one CPU sends one packet after the other to the generator's port, which drops
it, having counted it: `--trials` times with the program at the tracepoint and without, and with one that does nothing.
Told are the nanoseconds that it adds to a packet, and what part of the SUT's time for a packet that is. Packets that
come in batches find code and data in the caches: they take less.

In a guest of constant speed the same of the instructions that a packet costs, of which a third is dropped, and which
functions take them: what others do is not in these.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import math
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from end_host import FLAT_OUT, opened

from pdrgate.bpf.programs import loaded
from pdrgate.bpf.syscall import attach_tracepoint, map_fd, map_update, program_fd
from pdrgate.builds.bpf_build import BpfBuild, bpf_build, own_build
from pdrgate.data_paths.catalogue import NETWORKS, data_path
from pdrgate.guests.metering.speed import SpeedObserver
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.hosts.host import local_host
from pdrgate.observers.drop_reasons import DropObserver, reason_names
from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import CounterObserver, Observation, watching
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.drop_watch import drop_reasons_here, drop_reasons_of, inode
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

NOTHING = """
__attribute__((section("tp_btf/kfree_skb"), used)) int nothing(unsigned long long *context)
{
	return 0;
}
char _license[] __attribute__((section("license"), used)) = "GPL";
"""
STATS = "/proc/sys/kernel/bpf_stats_enabled"
SETTLED = 0.5
"""Seconds in which a kernel that programs were loaded into, or taken from, has finished with that: a run's stay."""


def median_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The median and its standard error, from the median of absolute deviations."""
    middle = statistics.median(values)
    return middle, 1.2533 * _spread(values) / math.sqrt(len(values))


def _spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return 1.4826 * statistics.median(abs(one - middle) for one in values)


def told(ratios: Sequence[float]) -> str:
    """The median of logs of ratios, its standard error, and what they scatter by."""
    middle, error = median_and_error(ratios)
    return f"{math.expm1(middle):+7.2%} ± {error:.2%}   {_spread(ratios):9.2%}"


def in_namespaces(options: argparse.Namespace) -> None:
    frames = Frames(6)
    with contextlib.ExitStack() as stack:
        stack.enter_context(Lease.acquire(whole_machine(), wait=900))
        journal = Journal.begin(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(journal.close)
        testbed = NetnsTestbed(3, plan_cpus(None, None), journal)
        stack.callback(testbed.close)
        path = data_path("ipv6-routing", None)
        path.apply(testbed.hops)
        stack.callback(path.restore)
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")
        generator = testbed.generator(6)
        stack.callback(generator.close)
        namespaces = [hop.host.name.removeprefix("netns:") for hop in testbed.hops]
        generators = inode(testbed.chain.tg)
        machine = local_host()
        stack.callback(machine.close)
        around: list[float] = []

        def bare(load: float) -> Trial:
            time.sleep(SETTLED)
            return generator.trial(load, options.duration, frames)

        def watched(load: float) -> Trial:
            nodes = {inode(name): f"hop{number}" for number, name in enumerate(namespaces, start=1)}
            reasons = drop_reasons_here(
                machine, nodes, None, generators
            )  # each time anew: it must not count while nobody looks
            try:
                time.sleep(SETTLED)
                begun = time.monotonic()
                with watching((CounterObserver(testbed.counters), DropObserver(reasons))):
                    before = time.monotonic()
                    trial = generator.trial(load, options.duration, frames)
                    after = time.monotonic()
                around.append(before - begun + time.monotonic() - after)
            finally:
                reasons.close()
            return trial

        capacity = statistics.median(bare(20e6).forwarding_rate for _ in range(5))
        ceiling = 0.9 * max(bare(20e6).offered_load for _ in range(3))
        print(f"{capacity / 1e3:.0f} kpps forwarded flat out; {options.trials} pairs of {options.duration:g} s a load")
        print("LOAD                    LOST   RATE WITH AGAINST WITHOUT   OF ONE PAIR")
        for name, load in (("saturation", min(ceiling, 1.5 * capacity)), ("half of the rate", 0.5 * capacity)):
            ratios, lost = [], []
            for number in range(options.trials):
                order = (watched, bare) if number % 2 else (bare, watched)
                pair = {measure: measure(load) for measure in order}
                ratios.append(math.log(pair[watched].forwarding_rate / pair[bare].forwarding_rate))
                lost.append(pair[watched].loss_ratio)
            print(f"{name:16s} {load / 1e3:5.0f} k {statistics.median(lost):6.1%}   {told(ratios)}")
        print(f"reading, before and after a trial: {statistics.median(around) * 1e3:.0f} ms, median of {len(around)}")
        before = machine.read(STATS)
        machine.write(STATS, "1\n")
        stack.callback(machine.write, STATS, before)
        nodes = {inode(name): f"hop{number}" for number, name in enumerate(namespaces, start=1)}
        stack.callback(drop_reasons_here(machine, nodes, None, generators).close)
        lost, seconds = 0, 0.0
        for _ in range(options.trials):
            trial = generator.trial(min(ceiling, 1.5 * capacity), options.duration, frames)
            lost, seconds = lost + trial.lost, seconds + options.duration
        program = machine.run_json("bpftool", "-j", "prog", "show", "name", "drop_reasons")
        (told_by_kernel,) = program if isinstance(program, list) else [program]
        took, runs = told_by_kernel["run_time_ns"], told_by_kernel["run_cnt"]
        print(f"the program that counts reasons: {took / runs:.0f} ns for each of {runs} packets, {lost} of them the "
              f"trials'; {took / seconds / 1e9:.2%} of one CPU")  # fmt: skip


def of_one_packet(options: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(Lease.acquire(whole_machine(), wait=900))
        journal = Journal.begin(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(journal.close)
        testbed = NetnsTestbed(3, plan_cpus(None, None), journal)
        stack.callback(testbed.close)
        path = data_path("ipv6-routing", None)
        path.apply(testbed.hops)
        stack.callback(path.restore)
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")
        generator = testbed.generator(6)
        stack.callback(generator.close)
        capacity = statistics.median(generator.trial(20e6, 0.2, Frames(6)).forwarding_rate for _ in range(9))
        machine = stack.enter_context(contextlib.closing(local_host()))
        unspecified = next(number for number, name in reason_names(machine).items() if name == "NOT_SPECIFIED")
        with loaded(machine, own_build("drop_reasons"), "tp_btf/kfree_skb") as program:
            back = map_fd(program.maps["received"].number)
            map_update(back, struct.pack("=I", 0), struct.pack("=II", inode(testbed.chain.tg), unspecified))
            os.close(back)
            ours = program_fd(program.number)
        with loaded(machine, nothing(stack), "tp_btf/kfree_skb") as program:
            none = program_fd(program.number)
        ways = {"ours": ours, "one that does nothing": none}
        for fd in ways.values():
            stack.callback(os.close, fd)
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        bare: list[float] = []
        more: dict[str, list[float]] = {name: [] for name in ways}
        last = testbed.hops[-1]
        with packets_from(last.host.name.removeprefix("netns:"), last.egress.interface) as send:
            for number in range(options.trials):
                before = quick(send)
                for name in sorted(ways, reverse=bool(number % 2)):
                    attached = attach_tracepoint(ways[name])
                    try:
                        seen = quick(send)
                    finally:
                        os.close(attached)
                    after = quick(send)
                    more[name].append(seen - (before + after) / 2)
                    bare.append(before)
                    before = after
        print(f"the SUT forwards {capacity / 1e3:.0f} kpps flat out, {1e9 / capacity:.0f} ns a packet")
        print(f"one packet to the generator's port, sent alone: {statistics.median(bare):.0f} ns")
        print("PROGRAM                    NS MORE FOR EACH   OF THE SUT'S TIME FOR A PACKET")
        for name, times in more.items():
            middle, error = median_and_error(times)
            part, sure = middle * capacity / 1e9, error * capacity / 1e9
            print(f"{name:24s} {middle:10.1f} ± {error:4.1f}   {part:21.2%} ± {sure:.2%}")


def nothing(stack: contextlib.ExitStack) -> BpfBuild:
    """A program for the same tracepoint that returns at once."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    source = folder / "nothing.bpf.c"
    source.write_text(NOTHING)
    command = ("clang", "-O2", "-g", "-target", "bpf", "-c", str(source), "-o", str(folder / "nothing.o"))
    subprocess.run(command, check=True)
    return bpf_build(folder / "nothing.o")


@contextlib.contextmanager
def packets_from(namespace: str, interface: str) -> Iterator[Callable[[], object]]:
    """Call it, and a frame of an experimental protocol (RFC 5342) leaves the interface."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        libc.setns(there, 0)
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        port.bind((interface, 0))
        port.setsockopt(263, 20, 1)  # SOL_PACKET, PACKET_QDISC_BYPASS
    finally:
        libc.setns(home, 0)
        os.close(home)
        os.close(there)
    frame = b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x88\xb5" + bytes(46)
    with port:
        yield lambda: port.send(frame)


def quick(send: Callable[[], object]) -> float:
    """Nanoseconds of a packet, of the quicker ones of some hundreds: what else runs here only makes them slower."""
    times = []
    for _ in range(40):
        begun = time.perf_counter_ns()
        for _ in range(100):
            send()
        times.append((time.perf_counter_ns() - begun) / 100)
    return statistics.quantiles(times, n=4)[0]


class Settled:
    """Lets what was started to count and to read come to its end, which is no part of what a packet costs.

    The watcher of busybox's timeout looks once a second whether it is still needed.
    """

    def begin(self) -> None:
        time.sleep(1.5)

    def end(self) -> Observation:
        return Observation()


def in_a_guest(options: argparse.Namespace) -> None:
    """Instructions, which no neighbour of this machine's changes: what the guest's kernel executes for each packet that
    it takes, a third of which it drops, while it counts why, and while it does not."""
    frames = Frames(6, flows=192, vary="addresses")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        testbed = stack.enter_context(opened("guest", folder))
        assert isinstance(testbed, VmTestbed)
        path = data_path("ipv6-routing", None)
        path.apply(testbed.hops)
        stack.callback(path.restore)
        guest, port = testbed.guest, Place("interface", testbed.hops[0].ingress.interface)
        guest.run("ip", "-6", "rule", "add", "from", f"{NETWORKS[6].reverse.network_address}/122", "blackhole")
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")
        generator = testbed.generator(6)
        stack.callback(generator.close)
        generator.trial(FLAT_OUT["guest"], 0.2, frames)  # neighbours and caches are warm
        plain = [one for one in testbed.observers() if isinstance(one, SpeedObserver)]
        testbed._drops.close()  # it must not count while nobody looks

        def cost(looking: bool) -> tuple[float, float, dict[str, float]]:
            """Instructions per packet, the part of the packets that the guest dropped, and instructions by function."""
            reasons = drop_reasons_of(guest) if looking else None
            more = (DropObserver(reasons),) if reasons else ()
            try:
                before = testbed.counters()
                with watching((*more, *plain, Settled(), *testbed.executed.counting())) as watch:
                    trial = generator.trial(FLAT_OUT["guest"], options.duration, frames)
                after = testbed.counters()
            finally:
                if reasons:
                    reasons.close()
            taken = after[Counter(port, "rx_packets")] - before[Counter(port, "rx_packets")]
            each = {
                name: count / taken for name, (count, _) in watch.observation.functions.items() if name != USER_SPACE
            }
            return sum(each.values()), 1 - trial.forwarded / taken, each

        made: dict[bool, list[tuple[float, float, dict[str, float]]]] = {True: [], False: []}
        for number in range(options.trials):
            for looking in (True, False) if number % 2 else (False, True):
                made[looking].append(cost(looking))
        ratios = [math.log(seen[0] / unseen[0]) for seen, unseen in zip(made[True], made[False], strict=True)]
        costs = {looking: statistics.median(one[0] for one in own) for looking, own in made.items()}
        dropped = statistics.median(one[1] for one in made[True])
        print(f"{options.trials} pairs of {options.duration:g} s; {dropped:.1%} of what the guest took it dropped")
        print(
            f"instructions per packet: {costs[False]:.1f} without, {costs[True]:.1f} with; {told(ratios)} of one pair"
        )
        names = {name for own in made.values() for one in own for name in one[2]}
        change, sure = {}, []
        for name in names:
            with_it, without = ([one[2].get(name, 0.0) for one in made[looking]] for looking in (True, False))
            change[name] = statistics.median(with_it) - statistics.median(without)
            spread = max(statistics.stdev(with_it), statistics.stdev(without)) / math.sqrt(options.trials)
            if abs(change[name]) > 4 * spread:
                sure.append(name)
        sum_of_sure = sum(change[name] for name in sure)
        print(f"in functions that take surely more or less: {sum_of_sure:+.1f}, {sum_of_sure / costs[False]:+.2%}")
        for name in sorted(sure, key=lambda name: -abs(change[name]))[:12]:
            print(f"  {name:40s} {change[name]:+8.1f}")


WHERE = {"netns": in_namespaces, "packet": of_one_packet, "guest": in_a_guest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", nargs="+", choices=WHERE, default=list(WHERE))
    parser.add_argument("--trials", type=int, default=30, help="pairs of trials, in namespaces at each load")
    parser.add_argument("--duration", type=float, default=0.4)
    options = parser.parse_args()
    for where in options.where:
        WHERE[where](options)


if __name__ == "__main__":
    main()
