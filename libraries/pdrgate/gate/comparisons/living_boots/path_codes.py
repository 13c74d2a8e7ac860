"""What both kernels run on each path, seen on the first guest of each while the path is compared.

Later runs look at it to know which paths a change of the kernel touches, see `pdrgate.differences.affected_paths`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from pdrgate.differences.boot_values import values_that_differ
from pdrgate.gate.run.selection_file import code_key
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.observers.function_names import UNNAMED, kernel_functions
from pdrgate.observers.watching import Counting
from pdrgate.record.path_code import PathCode
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import PdrGateError, TestbedError

FIRST = 1
"""The pair whose guests show what packets run and touch, before any other does."""
_BY_ITSELF = 2.2
"""Seconds in which a kernel does once what it does each second: statistics, compaction."""
_COMMAND = ("cat", "/proc/version")
"""A command like any other: its kernel starts a program, opens a file, reads and writes."""
_VARIABLES = frozenset(("symbol_lines", "cpu_lines"))
"""Kinds of lines, as `MemoryCounts` has them, that belong to variables."""
_PER_CPU = "per-CPU "


class PathCodes:
    """Sees what kernels run, and keeps it in the history; that it cannot be kept changes no verdict.

    Args:
        session: what it knows is kept in its experience; without one nothing is watched.
        digests: the digest of each build; what belongs to one that has none is not kept.
    """

    def __init__(self, session: Session, digests: Mapping[Side, str]) -> None:
        self._session = session
        self._digests = digests
        self._every: frozenset[str] | None = None
        """What the baseline's kernel runs on every path."""
        self._set_up: dict[Side, tuple[str, frozenset[str]]] = {}
        """The scenario that was set up last, and what was run for that, by side."""

    def set_up(self, sut: PreparedSut) -> None:
        """Set a SUT up, and see what its kernel runs for that. Raises TestbedError."""
        side = sut.identity.side
        if side is None or sut.identity.pair != FIRST or self._session.experience is None:
            sut.set_up()
            return
        counting = sut.testbed.executed
        if counting is None or not counting.names_code:
            sut.set_up()
            return
        if side == "baseline" and self._every is None:
            self._every = _on_every_path(sut.testbed, counting)
        counting.begin_naming()
        sut.set_up()
        self._set_up[side] = sut.scenario.name, counting.named()

    def boot_differences(self, suts: Mapping[tuple[Side, int], Testbed]) -> Mapping[str, tuple[str, ...]]:
        """The variables that packets touch and that both kernels leave with other values after boot, by scenario.

        Scenarios are those of which it is known what packets touch. There is none where nobody sees the variables.

        Args:
            suts: boots of both kernels, two of each, by side and pair, as they are without a scenario.

        Raises:
            TestbedError: a SUT does not answer.
        """
        codes = self._known()
        names = frozenset(name for code in codes.values() for name in code.variables)
        seen: dict[Side, list[Mapping[str, bytes]]] = {"baseline": [], "candidate": []}
        for (side, _), testbed in suts.items():
            counting = testbed.executed
            if counting is not None:
                seen[side].append(counting.values(names))
        if not all(seen[side] and all(seen[side]) for side in seen):
            return {}
        differ = values_that_differ(seen["baseline"], seen["candidate"])
        return {scenario: tuple(sorted(code.variables & differ)) for scenario, code in codes.items()}

    def carry_on(self, scenario: str) -> None:
        """Know of the candidate what is known of the baseline, on a path of the same code."""
        if (code := self._known().get(scenario)) is not None:
            self._keep("candidate", scenario, code)

    def keep(self, suts: Iterable[PreparedSut]) -> None:
        """Keep what kernels ran for a scenario that was counted. What was not seen whole is not kept.

        A candidate says itself what it runs. So it is known to run what the baseline does, and more if it says so.
        """
        every, seen = self._every, dict[Side, PathCode]()
        for sut in suts:
            side = sut.identity.side
            if side is None or sut.identity.pair != FIRST:
                continue
            scenario = sut.scenario.name
            set_up_for, set_up = self._set_up.pop(side, ("", frozenset[str]()))
            if set_up_for != scenario:
                continue
            found = _of_packets(sut.trials)
            if every is not None and found is not None:
                packets, variables = found
                seen[side] = PathCode(packets, set_up - every - packets, variables)
        if (baseline := seen.get("baseline")) is not None:
            self._keep("baseline", scenario, baseline)
            if (candidate := seen.get("candidate")) is not None:
                self._keep("candidate", scenario, candidate.with_more(baseline))

    def _known(self) -> Mapping[str, PathCode]:
        """What is known of the baseline, by scenario."""
        experience = self._session.experience
        if experience is None:
            return {}
        try:
            return experience.path_codes(self._key("baseline"))
        except PdrGateError as error:
            self._session.observer.warned(f"what the kernel runs on each path is not known: {error}")
            return {}

    def _keep(self, side: Side, scenario: str, code: PathCode) -> None:
        experience = self._session.experience
        if experience is None or not self._digests[side]:
            return
        try:
            experience.add_path_codes(self._key(side), {scenario: code}, time.time())
        except PdrGateError as error:
            self._session.observer.warned(f"what the kernel runs on this path is not kept: {error}")

    def _key(self, side: Side) -> str:
        return code_key(self._digests[side], self._session.config)


def _on_every_path(testbed: Testbed, counting: Counting) -> frozenset[str] | None:
    """What a kernel runs for any command, and by itself; None where it does not answer."""
    host = testbed.hops[0].host
    try:
        counting.begin_naming()
        host.run(*_COMMAND)
        time.sleep(_BY_ITSELF)
        host.run(*_COMMAND)
        return counting.named()
    except TestbedError:
        return None  # the path's own set-up finds out what is wrong


def _of_packets(trials: Sequence[Trial]) -> tuple[frozenset[str], frozenset[str]] | None:
    """The functions that ran in trials, and the variables that were touched; None where not all of that was seen."""
    names = {name for one in trials for name in one.seen.functions}
    memory = [one.seen.memory for one in trials if one.seen.memory is not None]
    if not names or not memory or UNNAMED in names:
        return None
    variables = (
        name.removeprefix(_PER_CPU)
        for seen in memory
        for kinds in seen.named.values()
        for kind, lines in kinds.items()
        if kind in _VARIABLES
        for name in lines
    )
    return kernel_functions(names | {name for seen in memory for name in seen.functions}), frozenset(variables)
