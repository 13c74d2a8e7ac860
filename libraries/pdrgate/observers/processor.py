"""Instructions of the SUT's CPUs while a trial lasts, counted by the processor (perf_event_open(2)).

Instructions and cycles of the kernel are counted exactly, by a program of ours (`traffic/native/counts.c`). They are
split by function from samples of ``perf record``, if perf is installed: each function has its share of the counted
ones. Functions that were inlined count for their callers, and calls are not known.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence

from pdrgate.hosts.host import Host, HostError, Running
from pdrgate.hosts.piped_program import PipedProgram
from pdrgate.observers.function_names import condensed, function_name
from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import Counting, Observation, Observer
from pdrgate.record.stretch import USER_SPACE
from pdrgate.traffic import native
from pdrgate.values.errors import TestbedError

WHOLE_KERNEL = "the kernel"
"""Name for all functions of the kernel, if no profile distinguishes them."""

_SETTLED = 0.05
"""Seconds after the start of a program in which the kernel still has work of it."""
_RATE = 199
"""Samples a second of each CPU: off the beat of the kernel's tick."""
_LEAST = 1e-4
"""Share of a trial's instructions; what has less is not kept by itself."""
_SAMPLE = re.compile(r"\s*(\d+)\s*;\s*\[k\]\s*(\S.*?)\s*$")
"""A line of ``perf report``: the period of a symbol's samples, and the symbol, of the kernel's."""
_RECORD = (
    "perf", "record", "--quiet", "--all-cpus", "--event", "instructions:k", "--freq", str(_RATE), "--no-buildid",
    "--no-buildid-cache", "--synth", "no", "--delay", "-1",
)  # fmt: skip
"""Words that start perf with its counting off. A program that starts while a trial takes all of the machine is too
late."""
_ENABLE = """timeout 5 sh -c 'echo enable >"$1/control"; head -c 4 "$1/answer"' sh "$1" | grep -q ack"""
_REPORT = (
    "perf", "report", "--stdio", "--quiet", "--no-inline", "--percent-limit", "0", "--sort", "sym",
    "--fields", "period,sym", "--field-separator", ";",
)  # fmt: skip


class ProcessorCounts:
    """The counters of some CPUs of a host, from `__init__` to `close`.

    Args:
        machine: where the CPUs are, as root.

    Raises:
        TestbedError: its processor has no counters, or shows them to nobody, as a virtual one may.
    """

    def __init__(self, machine: Host, cpus: Sequence[int]) -> None:
        self.machine = machine
        self.cpus = ",".join(map(str, cpus))
        self.place = Place("cpu", str(cpus[0]))
        self.profiles = machine.run("sh", "-c", "command -v perf && perf --version", check=False).exit_code == 0
        """Whether perf is there to distinguish functions."""
        self._program = self._start()
        self._program.ask("begin")
        machine.run("taskset", "-c", str(cpus[0]), "true")
        if not self.end()["kernel_instructions"]:
            self.close()
            raise TestbedError(
                f"the processor's counters on {machine.name} stand still, as those of some virtual machines do"
            )

    def begin(self) -> None:
        """Count from 0. The program ends with the way to the host: where that was lost, it is started again."""
        try:
            self._program.ask("begin")
        except TestbedError:
            self.close()
            self._program = self._start()
            self._program.ask("begin")

    def end(self) -> dict[str, int]:
        """Counts of a trial: ``kernel_instructions``, ``user_instructions``, ``kernel_cycles``, ``counted_ns``.

        Raises TestbedError when the way to the host was lost meanwhile.
        """
        counts: dict[str, int] = self._program.ask("end")
        return counts

    def close(self) -> None:
        """Count no longer. Calling it twice is harmless. On a host that is gone nothing is left but a file in /tmp."""
        with contextlib.suppress(TestbedError):
            self._program.close()

    def _start(self) -> PipedProgram:
        return PipedProgram(self.machine, native.build().counts, self.cpus, what="the processor's counters")


class ProcessorObserver:
    """Observer of the kernel's instructions on the SUT's CPUs during a trial."""

    def __init__(self, counts: ProcessorCounts) -> None:
        self._counts = counts
        self._sampling: Running | None = None
        self._folder = ""

    def begin(self) -> None:
        if self._counts.profiles:
            self._sample()
        self._counts.begin()

    def _sample(self) -> None:
        machine = self._counts.machine
        self._folder = folder = machine.folder("profile")
        machine.run("mkfifo", f"{folder}/control", f"{folder}/answer")
        self._sampling = machine.start(
            *_RECORD, "--cpu", self._counts.cpus, "--control", f"fifo:{folder}/control,{folder}/answer",
            "--output", f"{folder}/data",
        )  # fmt: skip
        if machine.run("sh", "-c", _ENABLE, "sh", folder, check=False).exit_code:
            self._counts.profiles = False  # an older perf, for one: the count is reported as a whole

    def end(self) -> Observation:
        try:
            counts = self._counts.end()
        except TestbedError:
            return Observation()  # whether the host is there, others find out
        finally:
            shares = self._shares()
        kernel = counts["kernel_instructions"]
        functions = {name: (round(share * kernel), 0) for name, share in shares.items()}
        functions = condensed(functions or {WHOLE_KERNEL: (kernel, 0)}, _LEAST) | {
            USER_SPACE: (counts["user_instructions"], 0)
        }
        after = {Counter(self._counts.place, name): counts[name] for name in ("kernel_instructions", "kernel_cycles")}
        return Observation(dict.fromkeys(after, 0), after, functions=functions, counted=counts["counted_ns"] / 1e9)

    def _shares(self) -> dict[str, float]:
        """The share of each function among all samples; nothing if there are none."""
        sampling, self._sampling = self._sampling, None
        if sampling is None:
            return {}
        with contextlib.suppress(HostError):
            try:
                sampling.stop()
                done = self._counts.machine.run(*_REPORT, "--input", f"{self._folder}/data", check=False)
                return function_shares(done.stdout) if self._counts.profiles else {}
            finally:
                self._counts.machine.run("rm", "-rf", self._folder)
        return {}


def function_shares(report: str) -> dict[str, float]:
    """Share of each function in all samples, from the output of ``perf report``."""
    periods: dict[str, int] = {}
    for line in report.splitlines():
        if (found := _SAMPLE.match(line)) is not None:
            name = function_name(found[2])
            periods[name] = periods.get(name, 0) + int(found[1])
    total = sum(periods.values())
    return {name: period / total for name, period in periods.items()} if total else {}


class ProcessorCounting(Counting):
    """Counting of a SUT that is no guest, by its machine's processor, which neither follows calls nor sees memory.

    The counters are opened when a trial is first to be counted, for that takes a moment.

    Args:
        forwarding: returns the CPUs that forward at present.
    """

    exact = False
    """Equal packets cost unequal numbers: a processor counts all that it is interrupted by, too."""
    uncounted = ""
    """Why nothing is counted, in words; empty while it may be."""

    def __init__(self, machine: Host, forwarding: Callable[[], Sequence[int]]) -> None:
        self._machine = machine
        self._forwarding = forwarding
        self._counts: dict[tuple[int, ...], ProcessorCounts] = {}

    def counting(self) -> tuple[Observer, ...]:
        chosen = tuple(self._forwarding())
        if not self.uncounted and chosen not in self._counts:
            try:
                self._counts[chosen] = ProcessorCounts(self._machine, chosen)
            except TestbedError as error:
                self.uncounted = str(error)
        return (ProcessorObserver(self._counts[chosen]),) if chosen in self._counts else ()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for cpu in self._forwarding():
                busy = ("taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done")
                stack.enter_context(self._machine.start(*busy))
            time.sleep(_SETTLED)
            yield

    def describe(self) -> dict[str, str]:
        """Properties that results need in common to be comparable: sampling takes its share of the CPU."""
        counting = list(self._counts.values())
        if not counting:
            return {}
        return {"counted": f"by the processor{f', {_RATE} samples/s' if counting[0].profiles else ''}"}

    def close(self) -> None:
        """Count no longer. Calling it twice is harmless."""
        while self._counts:
            _, counts = self._counts.popitem()
            counts.close()
