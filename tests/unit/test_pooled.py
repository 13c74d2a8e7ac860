"""The mean of several groups, each known to an error of its own."""

from __future__ import annotations

import pytest

from pdrgate.stats.pooled import pooled_mean


def test_groups_that_deviate_by_more_than_their_errors_weigh_alike() -> None:
    assert pooled_mean([100.0, 110.0, 120.0], [0.01, 0.02, 0.01]) == pytest.approx(110.0, abs=1e-3)


def test_groups_that_do_not_weigh_by_how_well_they_are_known() -> None:
    assert pooled_mean([100.0, 103.0], [1.0, 10.0]) == pytest.approx((100.0 + 103.0 / 100) / 1.01)


def test_what_nothing_is_known_of_is_a_plain_mean() -> None:
    assert pooled_mean([1.0, 2.0, 6.0], [0.0, 0.1, 0.1]) == 3.0
    assert pooled_mean([7.0], [0.5]) == 7.0


def test_the_textbooks_weights() -> None:
    """Q = 8 on 2 degrees of freedom, C = 3 - 1 = 2: a variance of 3 between groups of equal errors."""
    assert pooled_mean([8.0, 10.0, 12.0], [1.0, 1.0, 1.0]) == pytest.approx(10.0)


@pytest.mark.parametrize(("values", "errors"), [([], []), ([1.0], []), ([1.0], [1.0, 2.0])])
def test_what_cannot_be_pooled(values: list[float], errors: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot be pooled"):
        pooled_mean(values, errors)
