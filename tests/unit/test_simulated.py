"""The simulated SUT follows the paper's curves, so that the mathematics can be tested against a known truth."""

from __future__ import annotations

import pytest
from simulated_sut import Behaviour, Ceiling, IdealCurve, RealisticCurve, SimulatedSut, TrashingCurve

from pdrgate.record.trial import LOOKS

EXACT = Behaviour(noise=0.0)


def test_equation_3() -> None:
    curve = IdealCurve(1e6)
    assert curve.loss_ratio(0) == curve.loss_ratio(1e6) == 0
    assert curve.loss_ratio(2e6) == pytest.approx(0.5)


def test_equations_4_and_5_with_the_numbers_of_figure_4() -> None:
    # Saturation at 1 Mpps with 0.99 of it forwarded, trashing from 1.5 Mpps, M = 1 Mpps.
    curve = TrashingCurve(RealisticCurve(1e6), 1.5e6, 1e6)
    throughput = {load: load * (1 - curve.loss_ratio(load)) for load in (1e6, 1.25e6, 1.5e6, 2e6, 2.5e6, 3e6)}
    assert throughput[1e6] == throughput[1.25e6] == throughput[1.5e6] == pytest.approx(0.99e6)
    assert throughput[2e6] == pytest.approx(0.495e6)
    assert throughput[2.5e6] == throughput[3e6] == pytest.approx(0.0)


def test_realistic_loss_grows_from_a_millionth_to_a_hundredth() -> None:
    curve = RealisticCurve(1e6)
    losses = [curve.loss_ratio(load) for load in (1e5, 5e5, 8e5, 9e5, 9.5e5, 1e6, 1.1e6)]
    assert losses == sorted(losses)
    assert losses[0] < 1e-6
    assert losses[5] == pytest.approx(0.01)
    assert curve.loss_ratio(1e6 * (1 - 1e-9)) == pytest.approx(0.01, rel=1e-6)


def test_a_trial_counts_what_the_curve_loses() -> None:
    trial = SimulatedSut(IdealCurve(1e6), EXACT).measure(2e6, 1.0)
    assert trial.offered == 2_000_000
    assert trial.loss_ratio == pytest.approx(0.5, abs=0.002)
    assert not trial.generator_limited


def test_the_same_seed_gives_the_same_trials() -> None:
    def run(seed: int) -> list[int]:
        sut = SimulatedSut(RealisticCurve(1e6), Behaviour(0.01), seed=seed)
        return [trial.forwarded for trial in sut.repeat([9e5, 1.1e6], 1.0, 5)]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_drift_moves_the_capacity_trial_by_trial() -> None:
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.0, drift=-0.01))
    rates = [sut.measure(2e6, 1.0).forwarding_rate for _ in range(11)]
    assert rates[0] == pytest.approx(1e6, rel=0.005)
    assert rates[10] == pytest.approx(0.9e6, rel=0.005)


def test_modes_are_visited_about_equally() -> None:
    sut = SimulatedSut(IdealCurve(10e6), Behaviour(0.0, modes=(1.0, 0.8)), seed=5)
    rates = [sut.measure(15e6, 0.1).forwarding_rate for _ in range(100)]
    slow = sum(rate == pytest.approx(8e6, rel=0.01) for rate in rates)
    fast = sum(rate == pytest.approx(10e6, rel=0.01) for rate in rates)
    assert slow + fast == 100
    assert 35 <= slow <= 65


@pytest.mark.parametrize("heavy", [False, True])
def test_noise_has_the_deviation_asked_for(heavy: bool) -> None:
    from pdrgate.stats.intervals import sample_deviation

    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.02, heavy_tails=heavy), seed=3)
    rates = [sut.measure(2e6, 1.0).forwarding_rate for _ in range(3000)]
    assert sample_deviation(rates) / 1e6 == pytest.approx(0.02, rel=0.25)


def test_correlated_noise_is_alike_from_trial_to_trial() -> None:
    from pdrgate.stats.ranks import lag1_autocorrelation

    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.02, correlation=0.9), seed=3)
    found = lag1_autocorrelation([sut.measure(2e6, 1.0).forwarding_rate for _ in range(300)])
    assert found is not None
    assert 0.8 < found.value < 0.97


BUFFER = 65_536
"""Packets: at 2 Mpps offered and 1 Mpps forwarded, 66 ms of excess; at 1.01 Mpps, more than any trial here."""
DURATIONS = (0.25, 1.0, 4.0)


def test_a_buffer_fills_overflows_and_drains() -> None:
    trial = SimulatedSut(IdealCurve(1e6), EXACT, buffer=BUFFER).measure(2e6, 1.0)
    excess = trial.lost + BUFFER
    assert excess == pytest.approx(1e6, rel=0.01)
    assert (trial.offered, trial.drained, trial.forwarded) == (2_000_000, BUFFER, 2_000_000 - excess + BUFFER)
    assert len(trial.under_way) == LOOKS
    assert trial.under_way[-1] == excess
    assert trial.under_way[7] == pytest.approx(excess / 2, abs=1)
    assert SimulatedSut(IdealCurve(1e6), EXACT, buffer=BUFFER).measure(1e6, 1.0).under_way == (0,) * LOOKS


def test_a_buffer_that_is_not_full_loses_nothing() -> None:
    trial = SimulatedSut(IdealCurve(1e6), EXACT, buffer=BUFFER).measure(1.03e6, 1.0)
    assert trial.lost == 0
    assert trial.drained == trial.under_way[-1] == pytest.approx(30_000, rel=0.03)


@pytest.mark.parametrize("overload", [1.01, 1.03, 2.0])
def test_neither_rate_nor_loss_depends_on_the_length_of_a_trial(overload: float) -> None:
    sut = SimulatedSut(IdealCurve(1e6), EXACT, buffer=BUFFER)
    for duration in DURATIONS:
        trial = sut.measure(overload * 1e6, duration)
        assert trial.forwarding_rate == pytest.approx(1e6, rel=0.01)
        assert trial.steady_loss_ratio == pytest.approx(1 - 1 / overload, abs=0.001)


def test_the_pdr_does_not_depend_on_the_length_of_its_trials() -> None:
    """By bisection on what a load is judged by; without the buffer's part one of 0.25 s finds a quarter more."""
    for duration in DURATIONS:
        sut = SimulatedSut(IdealCurve(1e6), EXACT, buffer=BUFFER)
        low, high = 0.5e6, 4e6
        while high > low * 1.001:
            middle = (low + high) / 2
            below = sut.measure(middle, duration).steady_loss_ratio <= 0.005
            low, high = (middle, high) if below else (low, middle)
        assert low == pytest.approx(1e6 / 0.995, rel=0.01)


@pytest.mark.parametrize("stretches", [False, True])
def test_a_generator_at_its_ceiling_is_limited_and_its_shortfall_is_no_loss(stretches: bool) -> None:
    sut = SimulatedSut(IdealCurve(10e6), EXACT, ceiling=Ceiling(1e6, stretches))
    free, limited = sut.measure(0.9e6, 1.0), sut.measure(2e6, 1.0)
    assert not free.generator_limited
    assert limited.generator_limited
    assert limited.loss_ratio == 0
    assert (limited.unsent, limited.sending_time) == ((0, 2.0) if stretches else (1_000_000, 1.0))
    assert limited.occasion.started == free.occasion.started + 1.0
