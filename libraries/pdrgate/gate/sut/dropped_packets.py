"""A look at drops: one trial with loss, in which a drop trace sees each packet that the SUT's kernel drops."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pdrgate.gate.run.options import Options
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.measurands import Ask
from pdrgate.observers.drop_trace import DropTracer
from pdrgate.observers.retis import Retis
from pdrgate.observers.watching import watching
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.drops import DropsResult
from pdrgate.results.file_name import distinct_names
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import TestbedError

_WANTED = 5000
"""Packets to be dropped while somebody looks, about: each takes a kilobyte."""
_SHORTEST = 0.1
"""Seconds that a trial lasts at least."""
_INODE = re.compile(r"\[(\d+)\]")


def drop_tracer(options: Options, testbed: Testbed) -> DropTracer | None:
    """What was asked to trace the drops of a testbed's SUT, if anything. Raises TestbedError where it cannot."""
    return Retis(testbed.machine, namespaces(testbed)) if options.traces_drops else None


def lossy_load(trials: Sequence[Trial], loss_ratio: float) -> tuple[float, float] | None:
    """The least load that loses more than the goal, else the highest that loses anything, and its loss ratio."""
    by_load: dict[float, list[float]] = defaultdict(list)
    for trial in trials:
        by_load[trial.intended_load].append(trial.loss_ratio)
    ratios = {load: median(each) for load, each in sorted(by_load.items())}
    beyond = [(load, ratio) for load, ratio in ratios.items() if ratio > loss_ratio]
    lossy = [(load, ratio) for load, ratio in ratios.items() if ratio]
    return beyond[0] if beyond else lossy[-1] if lossy else None


def traced_file(folder: Path, tracer: DropTracer, scenario: str) -> Path:
    """File for the trace of a scenario, by its title, which is not there yet: a run may look at a scenario again."""
    stem = f"{tracer.name}-{distinct_names([scenario])[0]}"
    names = itertools.chain((stem,), (f"{stem}-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := folder / f"{name}.data").exists())


def look(
    sut: PreparedSut, tracer: DropTracer, load: float, loss_ratio: float, duration: float, file: Path
) -> DropsResult:
    """Measure one more trial while its drops are traced, keep the trace, and count the packets by who dropped them.

    A kernel that cannot be looked at, and a trace that fails, cost the run nothing: the result holds the reason.
    """
    asked = min(duration, max(_SHORTEST, _WANTED / (load * loss_ratio)))
    trace = tracer.trace(file)
    try:
        with watching([trace]):
            trial = sut.measure(Ask(load, asked, Phase.DROPS))
        return trace.drops(trial)
    except TestbedError as error:
        return DropsResult(load=load, duration=asked, collector=tracer.version, failure=str(error))


def namespaces(testbed: Testbed) -> frozenset[int]:
    """The SUT's network namespaces, by inode number."""
    told = [hop.host.run("readlink", "/proc/self/ns/net").stdout for hop in testbed.hops]
    return frozenset(int(found[1]) for text in told if (found := _INODE.search(text)))
