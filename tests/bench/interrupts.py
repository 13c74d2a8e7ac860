"""Signals at many moments of a gate: what is said, what is left, and does the run go on where it was?

    sudo .venv/bin/python tests/bench/interrupts.py [--only 'boot*'] [--signal TERM] [--twice] [--kernel BUILD]
        [--place DIR]

Each moment is known by what the gate has said. A terminal's Ctrl-C reaches all processes of its foreground group, and
so does the signal here. ``--twice``: a second one follows as soon as the first is answered, and only the next gate
puts back what was changed. Then: the exit code, what was said after it, words that are not pdrgate's, processes,
namespaces and settings that are left, whether each line of trials.jsonl is whole, and whether the run that is resumed
keeps them and comes to a verdict. A line for each moment; exit code 1 where one fails. Locks and the names of
namespaces are in a mount namespace of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PDRGATE = ROOT / ".venv/bin/pdrgate"
STATE, NAMESPACES = Path("/run/pdrgate"), Path("/run/netns")
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of <linux/prctl.h>."""
NEW_MOUNTS = 0x00020000
"""CLONE_NEWNS of <linux/sched.h>."""
FOREIGN = re.compile(r"Traceback|KeyboardInterrupt|Second signal|Execution|forcefully|Robot ended|Exception|\[ ?ERROR")
SETTINGS = (
    "net/core/netdev_max_backlog", "net/core/netdev_budget", "net/core/netdev_budget_usecs", "net/core/dev_weight",
    "net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "kernel/sched_rt_runtime_us", "net/core/bpf_jit_enable",
)  # fmt: skip


@dataclass(frozen=True)
class Moment:
    """When to interrupt which gate."""

    name: str
    options: tuple[str, ...]
    said: str
    """What the gate has said by then, as a pattern; empty: nothing is waited for."""
    later: float = 0.0
    """Seconds."""
    goes_on: bool = True
    """Whether there is a run to resume."""
    command: tuple[str, ...] = (str(PDRGATE), "gate")
    held: bool = False
    """Whether another has the machine meanwhile."""


def moments(kernel: str, place: Path) -> Iterator[Moment]:
    """All of them."""
    pairs = ("--kernel", kernel, "--against", kernel, "--scenario", "path-ipv4-routing")
    smoke = ("--profile", "smoke")
    netns = ("--testbed", "resources/testbeds/local-netns.yaml")
    yield Moment("imports", pairs, "", 0.3, goes_on=False)
    yield Moment("before the set-up", pairs, "pdrgate run")
    yield Moment("waiting in the queue", (*pairs, "--wait", "1 h"), "waiting for it to end", held=True)
    yield Moment("boot of one guest", smoke, "testbed steady-guest: a guest", 2.0)
    yield Moment("boot of four guests", pairs, "boot 2 of the candidate", 2.0)
    yield Moment("calibration", (*netns, *smoke), r"1 calibrate")
    yield Moment("the embedded generator sends", (*netns, "--profile", "standard"), r"\d search", 0.5)
    yield Moment("search", smoke, r"\d search")
    yield Moment("confirmation", smoke, r"\d (?:repeat|confirm)")
    yield Moment("pairs", pairs, r"\d candidate saturation")
    yield Moment("cost count", pairs, r"\d baseline +idle")
    yield Moment("memory trial", pairs, r"\d \w+ +memory")
    yield Moment("reports are written", pairs, "drawing what it rests on")
    yield Moment("reports after the verdict", pairs, r"(?m)^PASS: ")
    fresh = (str(place / "clone/ci/gate"),)
    for what in ("making .venv", "installing the Python packages", "building the traffic generator"):
        yield Moment(f"./ci/gate: {what}", (*netns, *smoke), what, 0.3, goes_on=False, command=fresh)


class Run:
    """A gate that was started, and all that it says."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env=environment,
        )  # fmt: skip
        self.told = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told += line

    def until(self, pattern: str) -> bool:
        """Wait for a text; whether it came before the end."""
        while not re.search(pattern, self.told):
            if self.process.poll() is not None:
                self._reader.join(5)
                return bool(re.search(pattern, self.told))
            time.sleep(0.005)
        return True

    def signal(self, number: int) -> None:
        """As a terminal does: all of the group get it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self) -> int:
        code = self.process.wait(900)
        self._reader.join(10)
        return code


def settings() -> dict[str, str]:
    """What gates change on a host, as it is now."""
    return {name: Path("/proc/sys", name).read_text().strip() for name in SETTINGS if Path("/proc/sys", name).exists()}


def namespaces() -> set[str]:
    return {path.name for path in NAMESPACES.iterdir()}


def children() -> list[str]:
    """Names of processes that became this one's; those that have ended are forgotten."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):
            found.append(Path("/proc", pid, "comm").read_text().strip())
    return found


def trials(folder: Path | None) -> list[str]:
    file = folder / "trials.jsonl" if folder else None
    lines = file.read_text().splitlines() if file and file.exists() else []
    for line in lines:
        json.loads(line)
    return lines


@contextlib.contextmanager
def machine_held(held: bool) -> Iterator[None]:
    """Have another run use the machine, where so asked."""
    if not held:
        yield
        return
    hold = (
        "import sys, time; from pdrgate.safety.locks import Lease, whole_machine; from pathlib import Path\n"
        f"with Lease.acquire(set(whole_machine()), Path('{STATE}')): print('held', flush=True); time.sleep(3600)"
    )
    holder = subprocess.Popen(
        (ROOT / ".venv/bin/python", "-c", hold), stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "libraries")},
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        yield
    finally:
        holder.kill()
        holder.wait()


def tried(moment: Moment, place: Path, number: int, twice: bool) -> tuple[str, list[str], str]:
    """What came of a moment: a summary, faults, and what was said after the signal."""
    output = place / "results" / re.sub(r"\W+", "-", moment.name)
    environment = {
        **os.environ,
        "TMPDIR": str(place / "tmp"),
        "XDG_CACHE_HOME": str(place / "cache"),
        "PYTHONUNBUFFERED": "1",
    }
    if moment.command[0].endswith("ci/gate"):
        shutil.rmtree(place / "clone", ignore_errors=True)
        subprocess.run(("git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", place / "clone"), check=True)
        environment["XDG_CACHE_HOME"] = str(place / "fresh-cache")
    faults: list[str] = []

    def owes(met: object, what: str) -> None:
        if not met:
            faults.append(what)

    before, had_before = settings(), namespaces()
    with machine_held(moment.held):
        run = Run([*moment.command, "--output", str(output), *moment.options], environment)
        if not run.until(moment.said):
            return "never came", [f"it never said {moment.said!r}"], run.told
        time.sleep(moment.later)
        mark = len(run.told)
        run.signal(number)
        start = time.monotonic()
        if twice:
            run.until("stopping|interrupted")
            run.signal(number)
        code = run.end()
    seconds = time.monotonic() - start
    after = run.told[mark:]
    owes(code == 128 + number, f"exit code {code}")
    owes(not FOREIGN.search(after), f"words: {FOREIGN.findall(after)}")
    owes(after.strip(), "nothing is said")
    if not twice:
        owes(namespaces() <= had_before, f"namespaces are left: {sorted(namespaces() - had_before)}")
        owes(
            settings() == before,
            "settings are left: "
            + ", ".join(f"{name}: {before[name]} -> {now}" for name, now in settings().items() if before[name] != now),
        )
        owes(not list(STATE.glob("run-*")), "a journal is left")
        owes(not list((place / "tmp").iterdir()), f"TMPDIR: {[*(place / 'tmp').iterdir()]}")
    time.sleep(0.3)
    owes(not children(), f"processes are left: {children()}")
    folder = next(iter(sorted(output.glob("2*"))), None)
    kept = trials(folder)
    verdict = ""
    if moment.goes_on and folder is None:
        faults.append("no folder of a run")
    elif moment.goes_on:
        command = re.search(r"--resume (\S+)", after)
        owes(command or twice, "no line says how to go on")
        again = Run([str(PDRGATE), "gate", "--resume", command[1] if command else str(folder)], environment)
        ended = again.end()
        found = re.search(r"(?m)^([A-Z_]{4,}): ", again.told)
        verdict = f"; resumed: {found[1] if found else 'none'} ({ended})"
        owes(found and found[1] != "ERROR", f"resumed, it says {again.told[-300:]}")
        owes(trials(folder)[: len(kept)] == kept, "trials are lost")
        owes(namespaces() <= had_before, f"namespaces are left at last: {sorted(namespaces() - had_before)}")
        owes(settings() == before, "settings are left at last")
    elif not moment.said.startswith("making") and "ci/gate" in moment.command[0]:
        again = Run([*moment.command, "--list-scenarios"], environment)
        owes(again.end() == 0, f"the next ./ci/gate fails: {again.told[-300:]}")
    return f"{code} in {seconds:.1f} s, {len(kept)} trials{verdict}", faults, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--skip", type=int, default=0, help="so many of them")
    parser.add_argument("--signal", default="INT")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--kernel", default="linux-image-cloud-amd64")
    parser.add_argument("--place", type=Path)
    given = parser.parse_args()
    given.only = given.only or ["*"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and what they start
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # so does what nohup starts
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    assert libc.unshare(NEW_MOUNTS) == 0
    subprocess.run(("mount", "--make-rprivate", "/"), check=True)
    for folder in (STATE, NAMESPACES):
        folder.mkdir(exist_ok=True)
        subprocess.run(("mount", "-t", "tmpfs", "none", folder), check=True)
    failed = False
    with tempfile.TemporaryDirectory() as passing:
        place = given.place or Path(passing)
        for name in ("tmp", "cache"):
            (place / name).mkdir(parents=True, exist_ok=True)
        for moment in [*moments(given.kernel, place)][given.skip :]:
            if not any(fnmatch.fnmatch(moment.name, pattern) for pattern in given.only):
                continue
            summary, faults, after = tried(moment, place, getattr(signal, f"SIG{given.signal}"), given.twice)
            failed |= bool(faults)
            print(f"{moment.name:<32} {summary}  {'; '.join(faults) or 'all holds'}", flush=True)
            for line in after.splitlines():
                print(f"    | {line[:150]}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
