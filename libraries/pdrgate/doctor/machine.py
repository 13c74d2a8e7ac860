"""Checks of a machine, this one or the SUT's: rights, tools, and whether it is quiet enough to measure on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence

from pdrgate.builds.architecture import ARCHITECTURES
from pdrgate.doctor.finding import Check, Outcome, check_named, fail, ok, unknown, warn
from pdrgate.hosts.cpus import format_cpu_list
from pdrgate.hosts.host import CommandError, Host
from pdrgate.observers.cpu_use import CpuUse, watch_cpus
from pdrgate.observers.environment import Environment
from pdrgate.this_process.checkout import FROM_CHECKOUT
from pdrgate.values.errors import TestbedError

_CAPABILITIES = {12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 21: "CAP_SYS_ADMIN", 23: "CAP_SYS_NICE"}
_BUSY, _MUCH = 0.02, 0.25
"""Shares of a CPU that others may have: more than the first shows in a PDR, more than the second spoils it."""
_STOLEN = 0.10
_GOOD_CLOCKS = frozenset({"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"})
_CLOCK_TOLERANCE = 1.0
"""Seconds that two clocks may be apart: results and console logs are ordered by time."""
_THROTTLE = "grep -H '' /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count 2>/dev/null"
_TOOLS: Mapping[str, tuple[str, str, str]] = {
    "ip": ("-V", r"iproute2-(\S+?),", "iproute2"),
    "ethtool": ("--version", r"version (\S+)", "ethtool"),
    "bpftool": ("version", r"v(\S+)", "bpftool"),
    **{one.qemu: ("--version", r"version (\S+)", one.qemu_package) for one in ARCHITECTURES},
}
"""Tools: how each is asked for its version, where that stands, and the package it comes in."""


@check_named("rights")
def rights(host: Host) -> Outcome:
    """Whether commands there run as root, and whether that root has the capabilities that measuring needs."""
    uid = host.run("id", "-u").stdout.strip()
    if uid != "0":
        return fail(
            f"commands run as user {uid}, and namespaces, interrupts and sysctls are root's",
            "run with sudo, or let that user use sudo",
        )
    match = re.search(r"(?m)^CapEff:\s*([0-9a-f]+)", host.read("/proc/self/status"))
    if match is None:
        return unknown("root, but the kernel does not report its capabilities")
    missing = [name for bit, name in _CAPABILITIES.items() if not int(match[1], 16) >> bit & 1]
    if missing:
        return fail(
            f"root, but without {', '.join(missing)}, as in a container",
            "start the container with --privileged, or measure outside of it",
        )
    return ok("root, with the capabilities that it takes")


@check_named("tools")
def tools(host: Host, needed: Sequence[str]) -> Outcome:
    """The tools' versions, and which tools are missing."""
    versions, missing = [], []
    for tool in needed:
        question, pattern, package = _TOOLS[tool]
        answer = host.run(tool, question, check=False)
        if answer.exit_code == 127:
            missing.append((tool, package))
            continue
        match = re.search(pattern, answer.stdout + answer.stderr)
        versions.append(f"{tool} {match[1] if match else 'of unknown version'}")
    if missing:
        return fail(
            f"there is no {', no '.join(tool for tool, _ in missing)}",
            f"install {', '.join(package for _, package in missing)}"
            + ("; here ./ci/bootstrap does it" if FROM_CHECKOUT else ""),
        )
    return ok(", ".join(versions))


@check_named("kernel")
def kernel_and_cpu(environment: Environment) -> Outcome:
    """The kernel and CPU of the machine. They are never a fault; a person may see that they are not the intended
    ones."""
    if environment.kernel_release is None:
        return unknown("the machine does not report its kernel")
    words = [environment.kernel_release]
    if environment.cpu_model:
        count = environment.cpus
        words.append(f"{count or '?'} CPU{'s' * (count != 1)}, {environment.cpu_model}")
    if environment.hypervisor:
        words.append("a virtual machine, whose speed may change by what else its host does")
    return ok(", ".join(words))


def quiet(
    host: Host, roles: Mapping[int, str], own: int | None = None, *, window: float, pause: Callable[[float], None]
) -> tuple[Check, Check]:
    """Whether other processes and a hypervisor leave the measuring CPUs alone.

    Args:
        roles: the user of each CPU.
        own: the process that does not count, see `watch_cpus`.
    """
    seen: dict[int, CpuUse] = {}

    def use() -> dict[int, CpuUse]:
        if not seen:
            seen.update(watch_cpus(host, roles, own, window=window, pause=pause))
        return seen

    def processes() -> Outcome:
        clauses, first = [], None
        for cpu, found in sorted(use().items()):
            if found.processes >= _BUSY:
                named = [f"{one.command} ({one.process}) {one.share:.0%}" for one in found.busiest]
                if found.processes - sum(one.share for one in found.busiest) >= _BUSY:
                    named.append(
                        "some that began or ended meanwhile" if named else "all of them began or ended meanwhile"
                    )
                clauses.append(
                    f"other processes have {found.processes:.0%} of CPU {cpu}, {roles[cpu]}'s: {', '.join(named)}"
                )
                first = first or (found.busiest[0] if found.busiest else None)
        if not clauses:
            return ok(f"nothing else runs on CPU {format_cpu_list(roles)}")
        move = f", such as taskset -a -p -c OTHER_CPUS {first.process}" if first else ""
        outcome = fail if max(found.processes for found in seen.values()) >= _MUCH else warn
        return outcome("; ".join(clauses), f"end them, or move them to other CPUs{move}")

    def steal() -> Outcome:
        most, cpu = max(((found.steal, cpu) for cpu, found in use().items()), default=(0.0, 0))
        if most < _BUSY:
            return ok("no hypervisor withholds time")
        message = f"the hypervisor withholds {most:.0%} of CPU {cpu}, {roles[cpu]}'s"
        return (fail if most >= _STOLEN else warn)(message, "give this machine CPUs of its own, or wait")

    return Check("quiet CPUs", processes), Check("steal", steal)


@check_named("load")
def load(host: Host, cpus: int | None) -> Outcome:
    """Load average of the last minute, which shows what comes and goes."""
    value = host.read("/proc/loadavg").split()[0]
    if cpus and float(value) > cpus / 2:
        return warn(
            f"load {value} on {cpus} CPUs over the last minute",
            "see what runs with top, and wait until it has ended",
        )
    return ok(f"load {value}" + (f" on {cpus} CPUs" if cpus else ""))


@check_named("frequency")
def frequency(environment: Environment) -> Outcome:
    """Whether the CPUs keep their speed."""
    governor, turbo = environment.governor, environment.turbo
    if governor is None:
        return unknown(
            "the kernel shows no frequency policy; hypervisor or firmware decide"
            if environment.hypervisor
            else "the kernel shows no frequency policy; the firmware decides"
        )
    state = f"governor {governor}" + ("" if turbo is None else ", turbo on" if turbo else ", turbo off")
    if governor != "performance":
        return warn(
            f"{state}: the CPUs change their speed with the load",
            "cpupower frequency-set -g performance, or governor: performance in the testbed file's knobs",
        )
    if turbo:
        return warn(
            f"{state}: the CPUs are as fast as their temperature lets them be",
            "turbo: false in the testbed file's knobs, or in the firmware's settings",
        )
    return ok(state)


@check_named("thermal")
def throttling(host: Host) -> Outcome:
    """Whether the CPUs have slowed down because of their temperature since the machine was started."""
    counters = host.run("sh", "-c", _THROTTLE, check=False).stdout
    counts = [int(count) for count in re.findall(r"(?m):(\d+)$", counters)]
    if not counts:
        return unknown("the kernel counts no thermal throttling here")
    if sum(counts):
        return warn(
            f"the CPUs were throttled {sum(counts)} times since the machine was started",
            "look at its cooling; a PDR falls with the frequency",
        )
    return ok("never throttled since the machine was started")


@check_named("clock")
def clock(environment: Environment) -> Outcome:
    """The kernel's clock source. Packets are stamped by it."""
    source = environment.clocksource
    if source is None:
        return unknown("the kernel does not report its clock source")
    if source not in _GOOD_CLOCKS:
        return warn(
            f"clock source {source}, which is slow to read",
            "see dmesg for why tsc is not used; tsc=reliable on the kernel's command line if it is sound",
        )
    return ok(f"clock source {source}")


@check_named("time")
def same_time(host: Host, now: Callable[[], float] = time.time) -> Outcome:
    """Whether another machine's clock agrees with ours, to the second."""
    before = now()
    their_time = host.run("date", "+%s.%N").stdout.strip()
    after = now()
    apart = abs(float(their_time) - (before + after) / 2)
    if apart > _CLOCK_TOLERANCE + (after - before) / 2:
        return warn(f"its clock is {apart:.1f} s from ours", "synchronise both with NTP")
    return ok(f"its clock agrees with ours within {max(apart, 0.001):.3f} s")


@check_named("reached")
def reached(host: Host, identity: Callable[[], str], clock: Callable[[], float] = time.perf_counter) -> Outcome:
    """Whether the host answers, and how fast. ``identity`` makes sure that it is the right host."""
    times = []
    try:
        for _ in range(5):
            begin = clock()
            host.run("true")
            times.append(clock() - begin)
    except CommandError as error:
        return fail(str(error), "look at its shell")
    except TestbedError as error:
        return fail(str(error))
    return ok(f"{host.name} answers in {sorted(times)[2] * 1000:.1f} ms{identity()}")
