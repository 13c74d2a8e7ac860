"""A rate and a loss do not depend on how long a trial lasts, through a real queue before a SUT of constant speed.

What is right is told by the SUT's own books: how many frames it had written when sending ended. Its speed is no matter
of these tests, for a machine that others use takes its CPU away at times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from paced_forwarder import PacedForwarder

from pdrgate.hosts.cpus import plan_cpus
from pdrgate.record.trial import LOOKS, Trial
from pdrgate.traffic.embedded import EmbeddedGenerator, Engine
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

RATE, QUEUE = 20e3, 4096
FRAMES = Frames(6, probe_rate=1000)
DURATIONS = [0.25, 1.0, 4.0]


@pytest.fixture(scope="module")
def forwarder(machine: None) -> Iterator[PacedForwarder]:
    with PacedForwarder(RATE, QUEUE, plan_cpus(None, None).sut[0]) as forwarder:
        yield forwarder


@pytest.fixture(scope="module", params=["xdp", "packet", "asleep"])
def generator(request: pytest.FixtureRequest, forwarder: PacedForwarder) -> Iterator[EmbeddedGenerator]:
    asleep = request.param == "asleep"
    engine = "auto" if asleep else cast(Engine, request.param)
    cpu = plan_cpus(None, None).generator
    try:
        generator = EmbeddedGenerator(forwarder.namespace, cpu, forwarder.paths, engine, asleep=asleep)
    except TestbedError as error:
        if "cannot run BPF programs on live frames" not in str(error):
            raise
        pytest.skip(str(error))
    yield generator
    generator.close()


def measured(
    generator: EmbeddedGenerator, forwarder: PacedForwarder, load: float, duration: float
) -> tuple[Trial, int]:
    """A trial that the generator did not limit, if some seconds bring one, and the frames written while it sent."""
    for _ in range(round(max(2, 5 / duration))):
        trial = generator.trial(load, duration, FRAMES)
        written = forwarder.written(trial.sending_time)
        if not trial.generator_limited:
            break
    return trial, written  # one that it limited still counts rightly


@pytest.mark.parametrize("duration", DURATIONS)
def test_what_drains_is_in_no_rate(generator: EmbeddedGenerator, forwarder: PacedForwarder, duration: float) -> None:
    trial, written = measured(generator, forwarder, 2 * RATE, duration)
    assert trial.forwarded - trial.drained == pytest.approx(written, rel=0.01)
    assert 0 < trial.drained <= QUEUE * 1.1  # and what is on its way from queue to port
    assert trial.forwarding_rate * max(duration, trial.sending_time) == pytest.approx(written, rel=0.01)


@pytest.mark.parametrize("duration", DURATIONS[:2])  # this queue fills in 7 s: the longest looks like a shorter one
def test_what_is_under_way_is_looked_at_while_sending(
    generator: EmbeddedGenerator, forwarder: PacedForwarder, duration: float
) -> None:
    trial, written = measured(generator, forwarder, 1.03 * RATE, duration)
    assert len(trial.under_way) == LOOKS
    assert trial.under_way[-1] == trial.offered - (trial.forwarded - trial.drained)
    assert trial.under_way[-1] == pytest.approx(trial.offered - written, abs=0.01 * written)
    assert trial.steady_loss_ratio >= trial.loss_ratio
