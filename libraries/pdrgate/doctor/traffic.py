"""The self-test of the generator: at a low load nothing may be lost, and at the highest the SUT must be the limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal

from pdrgate.data_paths.catalogue import data_path
from pdrgate.doctor.finding import Check, Finding, Outcome, Status, fail, ok, unknown, warn
from pdrgate.observers.reading import gained
from pdrgate.record.trial import Trial
from pdrgate.search.calibration import calibrate
from pdrgate.testbeds import Testbed
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator, generator_in_words
from pdrgate.values.errors import PdrGateError, UsageError
from pdrgate.values.units import Rate, Ratio

PART = "traffic"
LOW_LOAD = 10_000.0
"""Packets/s that any router forwards, emulated ones too."""

_PATH = "ipv6-routing"
_BUFFER = 4096
"""The receive buffer of the default scenarios, packets."""
_WARM_UP, _DURATION, _FLAT_OUT = 0.2, 1.0, 0.3
"""Seconds."""
_HEADROOM, _LITTLE_HEADROOM = 1.1, 1.5
"""Ratios of the generator's ceiling to the SUT's saturation.

Below the first, no PDR can be found. Below the second, two loads past the PDR may be out of reach, which the stability
check needs.
"""
_LOSSES = re.compile(r"drop|discard|error|noroute|squeeze|missed|refused", re.IGNORECASE)
_STRAY = 1e-3
"""Share of foreign packets that is nobody's traffic: neighbours that announce themselves."""


def self_test(testbed: Testbed) -> Iterator[Finding]:
    """Set the SUT up for IPv6 routing, send, and put it back. A step that fails is reported and ends the test."""
    path = data_path(_PATH)
    with ExitStack() as undo:
        try:
            undo.callback(path.restore)
            path.apply(testbed.hops)
            buffer = _buffer(testbed)
            testbed.pin("1 cpu")
            generator = testbed.generator(path.family)
            undo.callback(generator.close)
        except PdrGateError as error:
            yield Finding(PART, "set-up", Status.FAIL, str(error))
            return
        if buffer is not None:
            yield buffer
        yield Finding(PART, "generator", Status.OK, generator_in_words(generator.describe()))
        test = _SelfTest(testbed, generator, path.family)
        for check in (
            Check("forward", lambda: test.loses_nothing(1)),
            Check("both directions", lambda: test.loses_nothing(2)),
            Check("headroom", test.headroom),
        ):
            yield check.on(PART)


def _buffer(testbed: Testbed) -> Finding | None:
    try:
        testbed.set_buffer(_BUFFER)
    except PdrGateError as error:
        return Finding(
            PART, "buffer", Status.FAIL, str(error), "use scenarios with a buffer that can be had, see --scenario"
        )
    return None


class _SelfTest:
    def __init__(self, testbed: Testbed, generator: Generator, family: Literal[4, 6]) -> None:
        self._testbed = testbed
        self._generator = generator
        self._family = family
        self._warm = False

    def loses_nothing(self, directions: Literal[1, 2]) -> Outcome:
        """A second at a low load. A loss is looked at once more, for a busy machine may stop for a moment."""
        try:
            trial, where = self._measure(directions)
        except UsageError as error:
            return unknown(f"cannot be sent: {error}")
        load = f"at {Rate(LOW_LOAD)}"
        if trial.offered == 0:
            return fail(f"the generator sent nothing {load}", "see its messages, and the link of its port")
        if trial.forwarded == 0:
            return fail(
                f"none of {trial.offered} packets came back{where}",
                "check the cabling and the order of ports, and the addresses that the testbed file says they face",
            )
        if trial.lost:
            again, where_again = self._measure(directions)
            lost = f"{trial.lost} of {trial.offered} packets were lost {load}{where}"
            if again.lost:
                return fail(
                    f"{lost}; {again.lost} of {again.offered} the second time{where_again}",
                    "a router that loses packets at such a load has no PDR: look at links, buffers and what else runs",
                )
            return warn(f"{lost}, none of {again.offered} the second time", "see above what disturbs the SUT's CPU")
        if trial.aside.stray > trial.offered * _STRAY:
            return warn(
                f"none of {trial.offered} packets lost, and {trial.aside.stray} came that are not ours",
                "see with tcpdump what else sends on these links",
            )
        if trial.generator_limited:
            return warn(
                f"no packet lost, but {trial.unsent} of {trial.intended} were not sent in time",
                "see above what disturbs the generator's CPU",
            )
        return ok(f"none of {trial.offered} packets lost {load}")

    def headroom(self) -> Outcome:
        """Ratio of the generator's ceiling to the SUT's forwarding rate."""
        calibration = calibrate(
            lambda load, duration: self._generator.trial(load, duration, self._frames(1)), _FLAT_OUT
        )
        if calibration.forwarding_rate <= 0:
            return fail(f"the SUT forwards nothing at {Rate(calibration.ceiling)}", "see the checks above")
        ratio = calibration.ceiling / calibration.forwarding_rate
        words = (
            f"up to {Rate(calibration.ceiling)} offered, {Rate(calibration.forwarding_rate)} forwarded: {ratio:.1f} "
            "times what the SUT can do"
        )
        remedy = "give the SUT more hops or less CPU, or use a faster generator"
        if ratio < _HEADROOM:
            loss = Ratio(1 - calibration.forwarding_rate / calibration.ceiling)
            return fail(
                f"up to {Rate(calibration.ceiling)} offered, of which the SUT loses only {loss}",
                remedy,
            )
        return warn(words, remedy) if ratio < _LITTLE_HEADROOM else ok(words)

    def _frames(self, directions: Literal[1, 2]) -> Frames:
        return Frames(family=self._family, directions=directions)

    def _measure(self, directions: Literal[1, 2]) -> tuple[Trial, str]:
        """A trial, and which counters of losses grew meanwhile."""
        frames = self._frames(directions)
        if not self._warm:
            self._generator.trial(LOW_LOAD, _WARM_UP, frames)  # the first packets find cold caches
            self._warm = True
        before = self._testbed.counters()
        trial = self._generator.trial(LOW_LOAD, _DURATION, frames)
        changes = gained(before, self._testbed.counters())
        grown = [f"{counter} +{gain}" for counter, gain in changes.items() if gain > 0 and _LOSSES.search(counter.name)]
        return trial, f" ({', '.join(grown)})" if trial.lost and grown else ""
