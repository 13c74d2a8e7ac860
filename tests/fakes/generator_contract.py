"""What every generator owes: a class of tests that the tests of each generator derive from.

A derived class has fixtures ``generator`` and ``family``, and other loads than those below where its SUT asks for them.
Real generators share a machine with others: a trial that the generator limited says nothing and is measured again.
"""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar, Literal

import pytest

from pdrgate.record.trial import LOOKS, Trial
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import GeneratorError, UsageError


class GeneratorContract:
    LOW: ClassVar[float] = 20e3
    """Packets/s that the SUT forwards without loss."""
    OVERLOAD: ClassVar[float] = 2e6
    """Packets/s that are more than the SUT forwards, or the generator sends."""
    NAME: ClassVar[str]

    @staticmethod
    def measured(generator: Generator, load: float, duration: float, frames: Frames) -> Trial:
        for _ in range(20):
            trial = generator.trial(load, duration, frames)
            if not trial.generator_limited:
                return trial
        pytest.fail(f"20 times in a row the generator did not get {load:.0f} pps out: {trial}")

    def test_it_says_what_it_is(self, generator: Generator) -> None:
        about = generator.describe()
        assert about["name"] == self.NAME
        assert about["engine"]
        assert all(isinstance(value, str) for value in about.values())

    @pytest.mark.parametrize("directions", [1, 2])
    @pytest.mark.parametrize("size", [64, 1518])
    def test_counts_are_exact(
        self, generator: Generator, family: Literal[4, 6], size: int, directions: Literal[1, 2]
    ) -> None:
        trial = self.measured(generator, self.LOW, 0.1, Frames(family, size, directions=directions))
        assert (trial.intended, trial.offered, trial.unsent) == (2000, 2000, 0)
        assert (trial.forwarded, trial.lost, trial.surplus, trial.aside.refused) == (2000, 0, 0, 0)
        assert trial.sending_time == pytest.approx(0.1, rel=1e-3)
        assert trial.seen.latency is None
        assert (trial.intended_load, trial.intended_duration) == (self.LOW, 0.1)

    def test_odd_counts_are_exact_too(self, generator: Generator, family: Literal[4, 6]) -> None:
        for load, duration, count in ((1, 0.1, 1), (70, 0.1, 7), (12_345, 0.1, 1234)):
            trial = self.measured(generator, load, duration, Frames(family, directions=2))
            assert (trial.intended, trial.offered, trial.forwarded) == (count, count, count)

    @pytest.mark.parametrize("load", ["LOW", "OVERLOAD"])
    @pytest.mark.parametrize("directions", [1, 2])
    def test_it_tells_what_had_come_back_when_sending_ended(
        self, generator: Generator, family: Literal[4, 6], load: str, directions: Literal[1, 2]
    ) -> None:
        trial = generator.trial(getattr(self, load), 0.1, Frames(family, directions=directions))
        assert 0 <= trial.drained <= trial.forwarded
        assert trial.forwarding_rate <= trial.offered_load
        assert len(trial.under_way) in (0, LOOKS)
        if trial.under_way:
            assert all(0 <= look <= trial.offered for look in trial.under_way)
            # Where the time begins with the first packet that comes back, what is in flight at the end counts as back.
            assert trial.under_way[-1] >= trial.offered - (trial.forwarded - trial.drained)

    @pytest.mark.parametrize("vary", ["ports", "addresses"])
    def test_many_flows_all_arrive(
        self, generator: Generator, family: Literal[4, 6], vary: Literal["ports", "addresses"]
    ) -> None:
        trial = self.measured(generator, self.LOW, 0.1, Frames(family, flows=16384, vary=vary, directions=2))
        assert (trial.offered, trial.forwarded) == (2000, 2000)

    @pytest.mark.parametrize("directions", [1, 2])
    def test_probes_tell_the_latency(
        self, generator: Generator, family: Literal[4, 6], directions: Literal[1, 2]
    ) -> None:
        trial = self.measured(generator, self.LOW, 0.1, Frames(family, directions=directions, probe_rate=1000))
        assert (trial.offered, trial.forwarded) == (2000, 2000)
        latency = trial.seen.latency
        assert latency is not None
        assert latency.count == pytest.approx(100, rel=0.1)
        assert 0 < latency.p50 <= latency.p90 <= latency.p99 <= latency.max < 1

    def test_nothing_of_an_overload_is_in_the_next_trial(self, generator: Generator, family: Literal[4, 6]) -> None:
        for _ in range(2):
            flood = generator.trial(self.OVERLOAD, 0.1, Frames(family))
            assert flood.intended == round(self.OVERLOAD * 0.1)
            assert flood.lost > 0 or flood.generator_limited
            trial = self.measured(generator, self.LOW, 0.1, Frames(family))
            assert (trial.offered, trial.forwarded, trial.surplus) == (2000, 2000, 0)

    def test_a_mix_of_sizes_is_sent_exactly_or_refused(self, generator: Generator, family: Literal[4, 6]) -> None:
        try:
            trial = self.measured(generator, self.LOW, 0.1, Frames(family, imix=True))
        except UsageError as error:
            assert "IMIX" in str(error)
        else:
            assert (trial.offered, trial.forwarded) == (2000, 2000)

    def test_a_trial_can_be_kept(self, generator: Generator, family: Literal[4, 6]) -> None:
        trial = self.measured(generator, self.LOW, 0.05, Frames(family, probe_rate=500))
        assert Trial.from_mapping(decoded(trial)) == trial

    @pytest.mark.parametrize("load", [0, -1, math.nan, math.inf])
    def test_loads_without_meaning(self, generator: Generator, family: Literal[4, 6], load: float) -> None:
        with pytest.raises(UsageError, match=r"^a trial at a load of .* has no meaning; give a load above 0$"):
            generator.trial(load, 0.1, Frames(family))

    @pytest.mark.parametrize("duration", [0, -1, math.nan, math.inf])
    def test_durations_without_meaning(self, generator: Generator, family: Literal[4, 6], duration: float) -> None:
        with pytest.raises(UsageError, match=r"^a trial of .* s has no meaning; give a duration above 0$"):
            generator.trial(self.LOW, duration, Frames(family))

    def test_too_many_packets_for_one_trial(self, generator: Generator, family: Literal[4, 6]) -> None:
        with pytest.raises(UsageError, match=r"^3000000000 packets are too many for one trial"):
            generator.trial(3e6, 1000, Frames(family))

    def test_after_closing_there_are_no_trials(self, generator: Generator, family: Literal[4, 6]) -> None:
        """The last test of its class, for there is one generator for all of them."""
        generator.trial(self.LOW, 0.02, Frames(family))
        generator.close()
        generator.close()
        with pytest.raises(GeneratorError, match=r"closed|has ended already"):
            generator.trial(self.LOW, 0.02, Frames(family))


def decoded(trial: Trial) -> dict[str, Any]:
    record = json.loads(trial.to_json())
    assert isinstance(record, dict)
    return record
