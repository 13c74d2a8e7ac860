"""Retis as a drop trace: the drops of one trial, counted by function."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection as Numbers
from collections.abc import Iterable
from pathlib import Path

from pdrgate.hosts.host import Host
from pdrgate.observers.accounting import losses
from pdrgate.observers.retis.collector import Collected, Collection, version_of
from pdrgate.observers.retis.events import MOST_EVENTS, Dropped, bindings_missing, read_events, way
from pdrgate.observers.watching import Observation
from pdrgate.record.trial import Trial
from pdrgate.results.drops import DroppedPacket, DropPlace, DropsResult
from pdrgate.values.errors import StorageError, TestbedError

_ALL = Collected()


class Retis:
    """The tracer of a SUT's machine.

    Args:
        machine: the machine that the SUT's network namespaces are on.
        namespaces: these, by inode number.

    Raises:
        TestbedError: the collector, or what reads its events, is not installed.
    """

    name = "retis"

    def __init__(self, machine: Host, namespaces: Numbers[int]) -> None:
        if missing := bindings_missing():
            raise TestbedError(missing)
        self._machine, self._namespaces = machine, namespaces
        self.version = f"Retis {version_of(machine)}"

    def trace(self, into: Path) -> RetisTrace:
        """Trace a trial."""
        return RetisTrace(self._machine, self._namespaces, into, self.version)


class RetisTrace:
    """Collects what a machine drops while a trial is measured."""

    def __init__(self, machine: Host, namespaces: Numbers[int], into: Path, version: str) -> None:
        self._machine, self._namespaces, self._into, self._version = machine, namespaces, into, version
        self._collection: Collection | None = None
        self._collected = _ALL

    def begin(self) -> None:
        self._collection = Collection(self._machine)

    def end(self) -> Observation:
        assert self._collection is not None
        try:
            with self._collection as collection:
                self._collected = collection.end(self._into)
        except OSError as error:
            raise StorageError(f"cannot write {self._into}: {error.strerror}; make room there and run again") from error
        return Observation()

    def drops(self, trial: Trial) -> DropsResult:
        events = read_events(self._into)
        return counted(events, self._namespaces, trial, self._version, self._into.name, self._collected)


def counted(
    events: Iterable[Dropped], ours: Numbers[int], trial: Trial, collector: str, file: str,
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
        seen=sum(one.packets for one in places), bounded=collected.full or read >= MOST_EVENTS, missed=collected.missed,
        places=tuple(places), example=example, collector=collector, file=file,
    )  # fmt: skip
