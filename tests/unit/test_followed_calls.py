"""Living boots follow calls where the first pair shows that a packet's cost may have changed, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from flat_values import flat_trial

from pdrgate.gate.comparisons.living_boots.living_counts import CountedPackets
from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.run.scenario import Scenario
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

LOAD, SECONDS = 250e3, 2304 / 250e3


def trial(phase: Phase, each: int, side: str, pair: int) -> Trial:
    """Half of all is lost at saturation, and a packet costs ``each``."""
    load = {Phase.IDLE: 0.0, Phase.COST: 4e3}.get(phase, LOAD)
    offered, forwarded = (2304, 1152) if phase == Phase.SATURATION else (400, 400) if load else (0, 0)
    functions = {"ip_forward": (each * forwarded, forwarded), "virtnet_poll": (1800, 18)} if load else {"tick": (9, 1)}
    return flat_trial(
        load, SECONDS, offered, forwarded, phase=phase, functions=functions, counted=0.3, side=side, pair=pair,
        boot="b",
    )  # fmt: skip


@dataclass
class CountedSut:
    """A SUT whose packets cost so much, and that measures whatever is asked."""

    side: str
    pair: int
    each: int
    follows_calls: bool = True
    sees_memory: bool = False
    trials: list[Trial] = field(default_factory=list)

    @property
    def boot_id(self) -> str:
        return f"{self.side} {self.pair}"

    @property
    def identity(self) -> Any:
        return SimpleNamespace(side=self.side, pair=self.pair)

    def take(self, known: Trial) -> None:
        self.trials.append(known)

    def measure(self, ask: Any) -> Trial:
        made = trial(ask.phase, self.each, self.side, self.pair)
        self.trials.append(made)
        return made


def counted(*suts: CountedSut) -> list[str]:
    """The boots whose calls were followed, once each."""
    session = SimpleNamespace(profile=PROFILES["quick"], observer=None)
    living = SimpleNamespace(builds={"baseline": None, "candidate": None}, resting={})
    task = SimpleNamespace(session=session, scenario=Scenario("ipv4-routing"))
    packets = CountedPackets(cast(Any, task), cast(Any, living))
    for sut in suts:
        packets.count(cast(Any, sut))
    for again in packets.doubtful([cast(Any, sut) for sut in suts]):
        packets.count(again)
    return [sut.boot_id for sut in suts for one in sut.trials if one.occasion.phase == Phase.PATH]


@pytest.mark.parametrize(("candidate", "followed"), [
    (5000, []),
    (5010, []),
    (5100, ["baseline 1", "candidate 1"]),
    (4900, ["baseline 1", "candidate 1"]),
])  # fmt: skip
def test_calls_of_the_first_pair_are_followed_where_its_cost_differs(candidate: int, followed: list[str]) -> None:
    suts = [CountedSut("baseline", 1, 5000), CountedSut("candidate", 1, candidate)]
    suts += [CountedSut("baseline", 2, 5000), CountedSut("candidate", 2, candidate)]
    assert counted(*suts) == followed


def test_what_a_kernel_does_by_itself_is_one_trial_of_a_boot_that_is_asked_again() -> None:
    suts = [CountedSut("baseline", 1, 5000), CountedSut("candidate", 1, 6000)]
    assert counted(*suts)
    assert [sum(one.occasion.phase == Phase.IDLE for one in sut.trials) for sut in suts] == [1, 1]


def test_nothing_is_followed_where_a_testbed_cannot() -> None:
    assert counted(CountedSut("baseline", 1, 5000, follows_calls=False), CountedSut("candidate", 1, 6000)) == []
