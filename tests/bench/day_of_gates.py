"""A day of gates: many in turn, on a machine where things go wrong. Is anything lost, is anything left, does it grow?

    sudo .venv/bin/python tests/bench/day_of_gates.py --gates 60 [--minutes 600] [--place DIR] [--kernel BUILD]
        [--profile smoke] [--nice 15]

Each gate compares a kernel with itself on one path, in the folder of all of them. Eight kinds take turns: one that
nothing happens to; one killed (SIGKILL) at a random moment, then resumed; one whose results are on a disk that becomes
full, then resumed with room; one whose clock jumps by hours, both ways (as pdrgate's process reads it: the machine's
clock stays); one whose PostgreSQL goes away meanwhile; three stopped (SIGINT, SIGTERM, SIGHUP) at a random moment, then
resumed. A line for each gate; then a table as docs/soak.md has it, and what was lost or left, with exit code 1.

What is left of a gate is known by its journal (namespaces), by its parents (processes: orphans become this one's), and
by folders that only these gates have (TMPDIR, XDG_CACHE_HOME). It gives way to others, by ``--nice``, and waits for its
turn.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import re
import resource
import shlex
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "libraries"), str(ROOT / "tests/fakes")]

from postgresql_server import PostgresqlServer  # noqa: E402

from pdrgate.history.results import read_result  # noqa: E402

PDRGATE = ROOT / ".venv/bin/pdrgate"
STATE = Path("/run/pdrgate")
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of <linux/prctl.h>."""
JUMPS = (6, -6)
"""Hours."""
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Seconds by which the wall clock is off, as a file of digits says now. */
static long off(void)
{
    char text[32] = "";
    int file = open(getenv("JUMP_FILE"), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME)
        now->tv_sec += off();
    return failed;
}

time_t time(time_t *into)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
"""A library that is loaded before libc: the wall clock of a process, with a jump. Waits go by other clocks."""
NAMESPACE = re.compile(r"pdrgate-[0-9a-f]{6}-\w+")


@dataclass
class Gate:
    """A command that was started, and what became of it."""

    kind: str
    code: int = 0
    seconds: float = 0.0
    peak: float = 0.0
    """MB of its largest process."""
    said: str = ""
    namespaces: set[str] = field(default_factory=set)
    folder: Path | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        found = re.search(r"^(PASS|[A-Z_]{4,}): ", self.said, re.MULTILINE)
        return found[1] if found else "none"

    def owes(self, met: bool, what: str) -> None:
        """Note a fault unless it is met."""
        if not met:
            self.faults.append(what)


class Day:
    """Gates in turn, in one place."""

    def __init__(self, place: Path, kernel: str, profile: str, chance: random.Random) -> None:
        self.place, self.results, self.chance = place, place / "results", chance
        self.options = (
            "--kernel", kernel, "--against", kernel, "--scenario", "path-ipv4-routing", "--profile", profile,
            "--wait", "3h",
        )  # fmt: skip
        self.gates: list[Gate] = []
        self.usual = 30.0
        """Seconds that a gate takes."""
        self.server = PostgresqlServer()
        self.server.start()
        self.environment = {
            **os.environ, "TMPDIR": str(place / "tmp"), "XDG_CACHE_HOME": str(place / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        for name in ("tmp", "cache"):
            (place / name).mkdir(parents=True, exist_ok=True)
        self.clock = place / "clock.so"
        compile_it = ("gcc", "-O2", "-shared", "-fPIC", "-o", self.clock, "-x", "c", "-", "-ldl")
        subprocess.run(compile_it, input=CLOCK, text=True, check=True)

    # --- One command ---

    def gate(
        self,
        kind: str,
        *options: str,
        at: float | None = None,
        then: Callable[[subprocess.Popen[str]], object] = lambda process: None,
        output: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Gate:
        """Run one; ``then`` happens to it after ``at`` seconds, counted from when it has the machine."""
        output = output or self.results
        before = set(output.glob("2*"))
        asked = options if "--resume" in options else (*self.options, *options)
        gate = Gate(kind)
        process = subprocess.Popen(
            (PDRGATE, "gate", "--output", output, *asked), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**self.environment, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        begun = threading.Event()
        said: list[str] = []

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if "waiting for it to end" not in line:
                    begun.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        start = time.monotonic()
        done = False
        while True:
            for journal in STATE.glob(f"run-{process.pid}-*"):
                with contextlib.suppress(OSError):
                    gate.namespaces |= set(NAMESPACE.findall(journal.read_text()))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not begun.is_set():
                start = time.monotonic()
            elif at is not None and not done and time.monotonic() - start >= at:
                then(process)
                done = True
            time.sleep(0.02)
        process.returncode = gate.code = os.waitstatus_to_exitcode(status)
        reader.join(5)  # what outlives a killed gate may hold its output
        gate.said = "".join(said)
        gate.seconds, gate.peak = time.monotonic() - start, usage.ru_maxrss / 1024
        made = sorted(set(output.glob("2*")) - before)
        gate.folder = made[-1] if made else None
        gate.owes("Traceback" not in gate.said, "a traceback")
        gate.owes(not list(STATE.glob(f"run-{process.pid}-*")) or gate.code < 0, "its journal is left")
        gate.owes(gate.code < 0 or not children(), f"processes are left: {', '.join(children())}")
        if gate.code >= 0:
            gate.owes(not self._namespaces(gate), f"namespaces are left: {self._namespaces(gate)}")
        self.gates.append(gate)
        (self.place / "consoles").mkdir(exist_ok=True)
        (self.place / "consoles" / f"{len(self.gates)}.txt").write_text(gate.said)
        return gate

    def _namespaces(self, gate: Gate) -> list[str]:
        return sorted(name for name in gate.namespaces if Path("/run/netns", name).exists())

    # --- What may happen ---

    def plain(self) -> None:
        gate = self.gate("nothing")
        self.ended(gate)
        self.usual = gate.seconds

    def killed(self) -> None:
        self._stopped("kill -9", signal.SIGKILL)

    def interrupted(self) -> None:
        self._stopped("Ctrl-C", signal.SIGINT)

    def terminated(self) -> None:
        self._stopped("SIGTERM", signal.SIGTERM)

    def hung_up(self) -> None:
        self._stopped("SIGHUP", signal.SIGHUP)

    def _stopped(self, kind: str, number: int) -> None:
        moment = self.chance.uniform(0.5, self.usual)
        gate = self.gate(kind, at=moment, then=lambda process: process.send_signal(number))
        if gate.code == 0:
            return self.ended(gate)  # it was quicker
        gate.owes(gate.code == (-9 if number == signal.SIGKILL else 128 + number), f"exit code {gate.code}")
        had = whole_lines(gate)
        if gate.folder is None or not (gate.folder / "run.json").exists():
            return None  # before it had anything to keep
        resumed = self.gate(f"{kind}, resumed", "--resume", str(gate.folder))
        resumed.folder = gate.folder
        self.ended(resumed)
        gate.owes(whole_lines(resumed)[: len(had)] == had, "trials are lost")
        gate.owes(not self._namespaces(gate), "namespaces are left after the next gate")
        return None

    def full_disk(self) -> None:
        disk = self.place / "disk"
        disk.mkdir(exist_ok=True)
        size = self.chance.choice((40, 120, 400, 1200))
        subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk), check=True)
        # A run that finds the disk full does not begin.
        threading.Thread(target=_shrink_once_used, args=(disk, size), daemon=True).start()
        try:
            gate = self.gate("full disk", output=disk)
            gate.owes(gate.code in {0, 2}, f"exit code {gate.code}")
            gate.owes(gate.code == 0 or "No space left on device" in gate.said, "the disk is not named")
            had = whole_lines(gate)
            subprocess.run(("mount", "-o", "remount,size=64m", disk), check=True)
            if gate.code == 0 or gate.folder is None or not (gate.folder / "run.json").exists():
                return
            resumed = self.gate("full disk, resumed with room", "--resume", str(gate.folder), output=disk)
            resumed.folder = gate.folder
            self.ended(resumed)
            gate.owes(whole_lines(resumed)[: len(had)] == had, "trials are lost")
        finally:
            subprocess.run(("umount", "--lazy", disk), check=True)

    def jumping_clock(self) -> None:
        jump = self.chance.choice(JUMPS)
        file = self.place / "jump"
        file.write_text("0")
        moment = self.chance.uniform(0.2, 0.8) * self.usual
        gate = self.gate(
            f"clock jumps {jump:+} h", at=moment, then=lambda _: file.write_text(str(jump * 3600)),
            environment={"LD_PRELOAD": str(self.clock), "JUMP_FILE": str(file)},
        )  # fmt: skip
        self.ended(gate)

    def gone_database(self) -> None:
        moment = self.chance.uniform(0.0, 0.8) * self.usual
        known = {"PDRGATE_HISTORY": self.server.url("postgres")}
        gate = self.gate("database goes away", at=moment, then=lambda _: self.server.stop(), environment=known)
        self.server.start()
        self.ended(gate)
        command = re.search(r"pdrgate (history import .*?)(?: \(.*)?$", gate.said, re.MULTILINE)
        if command is None:
            # The server may have gone when the run was in already, or have been back by then.
            known_there = gate.folder is not None and gate.folder.name in self._history()
            gate.owes(known_there, "the history has it not, and no line says how it is put in later")
        else:
            words = (PDRGATE, *shlex.split(command[1]))
            done = subprocess.run(words, env=self.environment, check=False, capture_output=True, text=True)
            gate.owes(done.returncode == 0, f"putting it in later fails: {done.stderr}")

    def _history(self) -> set[str]:
        """The runs that the server knows."""
        listing = (
            PDRGATE, "history", "list", "--limit=9999", "--format=json", "--history", self.server.url("postgres"),
        )  # fmt: skip
        listed = json.loads(subprocess.run(listing, check=True, capture_output=True).stdout)
        return {one["run"] for one in listed["results"]}

    # --- What must hold ---

    def ended(self, gate: Gate) -> None:
        """A gate that had to come to a verdict did, and all of it is on disk."""
        gate.owes(gate.code == 0, f"exit code {gate.code}")
        gate.owes(gate.verdict == "PASS", f"verdict {gate.verdict}")
        if gate.folder is not None and gate.code == 0:
            result = read_result(gate.folder / "result.json")
            gate.owes(str(result.verdict) == gate.verdict, "result.json says another verdict")
            gate.owes(bool(whole_lines(gate)), "no trial is on disk")

    def over(self) -> list[str]:
        """What is lost or left at the end of all."""
        faults = [
            f"gate {number} ({gate.kind}): {fault}"
            for number, gate in enumerate(self.gates, 1)
            for fault in gate.faults
        ]
        verdicts = [gate for gate in self.gates if gate.code == 0 and not gate.kind.startswith("full disk")]
        kept = [gate for gate in verdicts if gate.kind == "database goes away"]
        runs = self._history()
        if len(runs) != len(kept):
            faults.append(f"the history has {len(runs)} runs of {len(kept)}")
        # One that was killed after its verdict has two tries.
        with contextlib.closing(sqlite3.connect(self.results / "history.db")) as history:
            tried = {
                json.loads(text)["run"]
                for (text,) in history.execute("SELECT content FROM experience WHERE kind = 'try'")
            }
        if len(tried) != len(verdicts) - len(kept):
            faults.append(f"the history of the results has {len(tried)} tries of {len(verdicts) - len(kept)}")
        if left := [path.name for path in (self.place / "tmp").iterdir()]:
            faults.append(f"files are left in TMPDIR: {', '.join(left)}")
        if left := sorted({name for gate in self.gates for name in self._namespaces(gate)}):
            faults.append(f"namespaces are left: {', '.join(left)}")
        if found := children():
            faults.append(f"processes are left: {', '.join(found)}")
        return faults


def whole_lines(gate: Gate) -> list[str]:
    """The trials on disk; one that was being written may be cut at the end, and no other."""
    file = gate.folder / "trials.jsonl" if gate.folder else None
    if file is None or not file.exists():
        return []
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines):
        try:
            json.loads(line)
        except ValueError:
            gate.owes(number == len(lines) - 1, f"line {number + 1} of trials.jsonl is cut")
            return lines[:number]
    return lines


def _shrink_once_used(disk: Path, size: int) -> None:
    """Leave a tmpfs as many KiB as soon as anything is on it."""
    while not any(disk.iterdir()):
        time.sleep(0.01)
    subprocess.run(("mount", "-o", f"remount,size={size}k", disk), check=False)


def children() -> list[str]:
    """Names of processes that became this one's; those that have ended are forgotten."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):
            found.append(Path("/proc", pid, "comm").read_text().strip())
    return [name for name in found if name not in {"postgres", "pg_ctl"}]


def size_of(folder: Path) -> tuple[int, int]:
    """Files below a folder, and their bytes."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return len(files), sum(path.stat().st_size for path in files)


def table(day: Day, begun: float) -> Iterator[str]:
    """As docs/soak.md has it."""
    yield "| what happened | gates | exit codes | seconds, median (all) | largest process, MB |"
    yield "|---|---|---|---|---|"
    kinds = dict.fromkeys(gate.kind for gate in day.gates)
    for kind in kinds:
        gates = [gate for gate in day.gates if gate.kind == kind]
        codes = ", ".join(f"{sum(g.code == code for g in gates)} × {code}" for code in sorted({g.code for g in gates}))
        seconds = [gate.seconds for gate in gates]
        yield (
            f"| {kind} | {len(gates)} | {codes} | {statistics.median(seconds):.0f} ({min(seconds):.0f} to "
            f"{max(seconds):.0f}) | {min(g.peak for g in gates):.0f} to {max(g.peak for g in gates):.0f} |"
        )
    plain = [gate for gate in day.gates if gate.kind == "nothing"]
    third = max(len(plain) // 3, 1)
    first, last = (statistics.median(g.peak for g in part) for part in (plain[:third], plain[-third:]))
    yield f"\n{len(day.gates)} gates in {(time.monotonic() - begun) / 60:.0f} min"
    yield f"largest process where nothing happened: {first:.1f} MB in the first third, {last:.1f} in the last"
    for name in ("results", "cache", "tmp"):
        files, size = size_of(day.place / name)
        yield f"{name}: {files} files, {size / 1e6:.1f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=600, help="no gate begins later")
    parser.add_argument("--place", type=Path, help="an empty folder, which is kept")
    parser.add_argument("--kernel", default="linux-image-cloud-amd64")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--nice", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.nice(given.nice)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it, and so would its gates
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the same of nohup
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as passing:
        day = Day(given.place or Path(passing), given.kernel, given.profile, random.Random(given.seed))
        kinds = (
            day.full_disk, day.interrupted, day.gone_database, day.terminated, day.killed, day.hung_up,
            day.jumping_clock, day.plain,
        )  # fmt: skip
        day.plain()
        number, told = 0, 0
        try:
            while len(day.gates) < given.gates and time.monotonic() - begun < given.minutes * 60:
                for gate in day.gates[told:]:
                    files, size = size_of(day.place)
                    print(
                        f"{time.strftime('%H:%M:%S')} {gate.kind:<22} {gate.verdict:<13} {gate.code:>4}"
                        f"{gate.seconds:7.1f} s {gate.peak:6.0f} MB  {files} files {size / 1e6:.0f} MB  "
                        f"{'; '.join(gate.faults)}",
                        flush=True,
                    )
                told = len(day.gates)
                kinds[number % len(kinds)]()
                number += 1
            day.plain()  # what the last one left, the next undoes
        finally:
            faults = day.over()
            print("\n".join(table(day, begun)))
            day.server.remove()
    print("\n".join(faults) or "nothing lost, nothing left")
    print(f"this bench: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
