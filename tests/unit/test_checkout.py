"""What a message tells its reader to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdrgate.this_process.checkout import FROM_CHECKOUT, GATE_COMMAND, how_to_install, own_testbed_file


@pytest.mark.parametrize(
    ("checkout", "told"),
    [
        (True, "run ./ci/bootstrap, or: apt-get install clang"),
        (False, "run as root: apt-get install clang"),
    ],
)
def test_only_a_checkout_has_scripts(checkout: bool, told: str) -> None:
    assert how_to_install("clang", checkout=checkout) == told


def test_these_tests_run_from_a_checkout() -> None:
    assert (FROM_CHECKOUT, GATE_COMMAND) == (True, "./ci/gate")


@pytest.mark.parametrize("checkout", [True, False])
def test_a_testbed_file_that_is_named_is_there(checkout: bool) -> None:
    named = Path(own_testbed_file("local-netns", checkout=checkout))
    assert named.is_absolute() is not checkout
    assert (Path(__file__).parents[2] / named).is_file()
