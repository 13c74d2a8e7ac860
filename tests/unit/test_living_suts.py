"""Which guests stay up from scenario to scenario, by a session that boots nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.run.session import Session


class _Nothing:
    disposable = True


@dataclass
class BootsNothing:
    up: list[object] = field(default_factory=list)
    begun: int = 0
    observer: Any = field(default_factory=lambda: SimpleNamespace(said=lambda sentence: None))

    def begin(self, start: object, *, kept: bool) -> object:
        self.begun += 1
        self.up.append(_Nothing())
        return self.up[-1]

    def ready(self, testbed: object, *, introduce: bool) -> None:
        assert testbed in self.up

    def leave(self, testbeds: list[object]) -> None:
        for one in testbeds:
            self.up.remove(one)


def living(session: BootsNothing) -> LivingSuts:
    builds = {side: cast(Build, SimpleNamespace(label=side, identity=side)) for side in SIDES}
    return LivingSuts(cast(Session, session), builds)


def test_the_first_pairs_stay_up_and_further_ones_end_when_others_are_wanted() -> None:
    session = BootsNothing()
    suts = living(session)
    first = suts.pairs((1, 2))
    for numbers in ((3, 4), (5, 6), (7, 8), (9, 10), (11, 12)):
        suts.pairs(numbers)
        assert len(session.up) <= 2 * 6
    assert suts.pairs((1, 2)) == first
    assert len(session.up) == 2 * 4
    assert session.begun == 2 * 12
    suts.close()
    assert session.up == []


def test_who_wants_a_sut_waits_for_what_is_done_there_meanwhile() -> None:
    suts, done = living(BootsNothing()), list[str]()
    suts.pairs((1, 2))
    begun = threading.Event()

    def slow() -> None:
        begun.wait(10)
        done.append("put back")

    suts.meanwhile([slow, slow])
    assert done == []
    begun.set()
    suts.pairs((1, 2))
    assert done == ["put back", "put back"]
    suts.close()
