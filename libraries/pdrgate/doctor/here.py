"""Checks of what only the machine has that pdrgate runs on: its disk, its guests, and what other runs do or left."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from pdrgate.builds.architecture import this_machines
from pdrgate.doctor.finding import Outcome, check_named, fail, ok, warn
from pdrgate.guests.emulator.accelerator import KvmRecord, choose_accelerator
from pdrgate.guests.emulator.qemu import qemu_version
from pdrgate.history.results import ROOM_OF_A_RUN
from pdrgate.hosts.cpus import CpuPlan, format_cpu_list, parse_cpu_list
from pdrgate.hosts.host import Host
from pdrgate.observers.cpu_use import descendants, read_threads
from pdrgate.observers.environment import Environment
from pdrgate.safety.journal import NAMESPACE_PREFIX
from pdrgate.safety.recovery import Living
from pdrgate.values.errors import TestbedError

_LITTLE = 1 << 30
"""Bytes: a long run with its plots takes tens of MB, and kernels that are unpacked hundreds."""
_GENERATOR = "pdrgate-traffic"


@check_named("disk")
def disk(folder: Path) -> Outcome:
    """Whether results can be written, and whether there is room for them."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK):
        return fail(f"{place} cannot be written, where {folder} would be", "choose another folder with --output")
    free = shutil.disk_usage(place).free
    words = f"{_size(free)} free for {folder}"
    if free < _LITTLE:
        outcome = fail if free < ROOM_OF_A_RUN else warn
        return outcome(words, "make room there, or choose another folder with --output")
    return ok(words)


@check_named("leftovers")
def leftovers(host: Host, undone: Sequence[str], alive: Living) -> Outcome:
    """Leftovers of earlier runs: ``undone``, what became of it just now, and what no journal knows.

    Whatever belongs to runs that are ``alive`` is no leftover.
    """
    listed = [line.split()[0] for line in host.run("ip", "netns", "list").stdout.splitlines() if line.strip()]
    ours = re.compile(rf"{NAMESPACE_PREFIX}-[0-9a-f]{{6}}-(?:tg|sut\d)")
    names = [name for name in listed if ours.fullmatch(name) and name not in alive.namespaces]
    threads = read_threads(host)
    used = {process for owner in alive.owners for process in descendants(threads, owner)}
    workers = sorted(
        {str(one.process) for one in threads.values() if one.command == _GENERATOR and one.process not in used}
    )
    clauses = [f"earlier runs had left something: {'; '.join(undone)}"] if undone else []
    remedies = []
    if names:
        clauses.append(f"namespaces that no run knows of: {', '.join(names)}")
        remedies.append(f"ip netns delete {names[0]}")
    if workers:
        clauses.append(f"generators that no run knows of: process {', '.join(workers)}")
        remedies.append(f"kill {' '.join(workers)}")
    return warn("; ".join(clauses), "; ".join(remedies)) if clauses else ok("nothing is left of other runs")


@check_named("CPUs")
def cpus(plan: Callable[[], CpuPlan], environment: Environment) -> Outcome:
    """The CPUs that generate and route, and whether they disturb each other."""
    try:
        chosen = plan()
    except TestbedError as error:
        return fail(str(error))
    words = f"generator on CPU {chosen.generator}, SUT on CPU {format_cpu_list(chosen.sut)}"
    if chosen.shared_core:
        return warn(
            f"{words}: two threads of one core, which slow each other",
            "choose CPUs of different cores in the testbed file, or switch SMT off",
        )
    nodes = {node_of(environment, cpu) for cpu in (chosen.generator, *chosen.sut)}
    if len(nodes) > 1:
        return warn(
            f"{words}: on different NUMA nodes, between which every packet has to pass",
            "choose CPUs of one node in the testbed file, see lscpu",
        )
    return ok(words)


@check_named("guests")
def guests(accelerator: Literal["auto", "kvm", "tcg"], state: Path) -> Outcome:
    """Whether kernels can be booted here, and whether KVM is the faster way."""
    try:
        chosen = choose_accelerator(this_machines(), accelerator, KvmRecord(state))
    except TestbedError as error:
        return fail(str(error))
    words = f"guests run by {chosen.name.upper()} ({chosen.why}), QEMU {qemu_version(this_machines())}"
    if chosen.name == "tcg" and accelerator == "auto":
        return warn(
            f"{words}: emulated, so that their numbers are no router's",
            "measure where KVM boots guests, or take the numbers for a comparison of builds only",
        )
    return ok(words)


def node_of(environment: Environment, cpu: int) -> str | None:
    """The NUMA node of a CPU; None if the kernel does not report it."""
    nodes = environment.numa_nodes or {}
    return next((node for node, listed in nodes.items() if cpu in parse_cpu_list(listed)), None)


def _size(count: int) -> str:
    return f"{count >> 30} GiB" if count >= 10 << 30 else f"{count >> 20} MiB"
