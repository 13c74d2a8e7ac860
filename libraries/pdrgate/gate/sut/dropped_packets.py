"""A deep look: one trial with loss in which Retis sees each packet that the SUT's kernel drops."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from statistics import median

from pdrgate.errors import StorageError, TestbedError
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut
from pdrgate.observers.accounting import losses
from pdrgate.observers.retis import MOST, Collected, Dropped, Retis, bindings_missing, read_events, way
from pdrgate.observers.retis import Collection as Collecting
from pdrgate.phase import Phase
from pdrgate.results.drops import DroppedPacket, DropPlace, DropsResult
from pdrgate.results.file_name import file_name
from pdrgate.testbeds import Testbed
from pdrgate.trial import Trial

_WANTED = 5000
"""Packets to be dropped while somebody looks, about: each takes a kilobyte."""
_SHORTEST = 0.1
"""Seconds that a trial lasts at least."""
_ALL = Collected()
_INODE = re.compile(r"\[(\d+)\]")


def retis_of(testbed: Testbed) -> Retis:
    """The collector on the SUT's host. Raises TestbedError when it, or what reads its events, is not installed."""
    if missing := bindings_missing():
        raise TestbedError(missing)
    return Retis(testbed.machine)


def lossy_load(trials: Sequence[Trial], loss_ratio: float) -> tuple[float, float] | None:
    """The least load that loses more than the goal, else the highest that loses anything, and its loss ratio."""
    by_load: dict[float, list[float]] = defaultdict(list)
    for trial in trials:
        by_load[trial.intended_load].append(trial.loss_ratio)
    ratios = {load: median(each) for load, each in sorted(by_load.items())}
    beyond = [(load, ratio) for load, ratio in ratios.items() if ratio > loss_ratio]
    lossy = [(load, ratio) for load, ratio in ratios.items() if ratio]
    return beyond[0] if beyond else lossy[-1] if lossy else None


def events_file(folder: Path, scenario: str) -> Path:
    """Where a scenario's events go: a file that is not there yet, since a run may look at a scenario again."""
    stem = f"retis-{file_name(scenario)}"
    names = itertools.chain((stem,), (f"{stem}-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := folder / f"{name}.data").exists())


def look(
    subject: OpenLoopSut, retis: Retis, load: float, loss_ratio: float, duration: float, file: Path
) -> DropsResult:
    """Measure one more trial while Retis collects, keep what it has collected, and count it by who dropped.

    A kernel that cannot be looked at, and a collector that fails, cost the run nothing: they are told in the result.
    """
    asked = min(duration, max(_SHORTEST, _WANTED / (load * loss_ratio)))
    try:
        with retis.collecting() as collection:
            trial = subject.measure(load, asked, Phase.DROPS)
            collected = _kept(collection, file)
        ours = namespaces(subject.testbed)
        return counted(read_events(file), ours, trial, retis.version, file.name, collected)
    except TestbedError as error:
        return DropsResult(load=load, duration=asked, collector=retis.version, failure=str(error))


def _kept(collection: Collecting, file: Path) -> Collected:
    try:
        return collection.end(file)
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror}; make room there and run again") from error


def counted(
    events: Iterable[Dropped], ours: Collection[int], trial: Trial, collector: str, file: str,
    collected: Collected = _ALL,
) -> DropsResult:  # fmt: skip
    """Events of our namespaces by reason and function, each looked at once and not kept."""
    groups: dict[tuple[str, str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    firsts: dict[tuple[str, tuple[str, ...]], Dropped] = {}
    read = 0
    for read, one in enumerate(events, start=1):  # noqa: B007
        if one.netns not in ours:
            continue
        functions = way(one.stack)
        groups[one.reason, functions[-1] if functions else ""][functions] += 1
        firsts.setdefault((one.reason, functions), one)
    places = []
    for (reason, function), ways in groups.items():
        (most, packets), *_ = ways.most_common(1)
        places.append(DropPlace(reason=reason, function=function, packets=ways.total(), way=most, by_way=packets))
    places.sort(key=lambda one: (-one.packets, one.reason, one.function))
    example = None
    if places:
        reason, most = places[0].reason, places[0].way
        first = firsts[reason, most]
        example = DroppedPacket(reason=reason, packet=first.packet, device=first.device, way=most)
    return DropsResult(
        load=trial.intended_load, duration=trial.intended_duration, losses=losses(trial),
        seen=sum(one.packets for one in places), bounded=collected.full or read >= MOST, missed=collected.missed,
        places=tuple(places), example=example, collector=collector, file=file,
    )  # fmt: skip


def namespaces(testbed: Testbed) -> frozenset[int]:
    """The SUT's network namespaces, by inode number."""
    told = [hop.host.run("readlink", "/proc/self/ns/net").stdout for hop in testbed.hops]
    return frozenset(int(found[1]) for text in told if (found := _INODE.search(text)))
