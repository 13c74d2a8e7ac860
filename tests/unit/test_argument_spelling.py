"""Options in an error, as a suite writes them."""

from __future__ import annotations

import pytest

from pdrgate.keywords.library import as_arguments


@pytest.mark.parametrize(
    ("told", "spelled"),
    [
        (
            "wait for it to end (--wait 1h), or give it other CPUs",
            "wait for it to end (wait=1 h), or give it other CPUs",
        ),
        ("ask for less with --cost-tolerance 2%", "ask for less with cost_tolerance=2%"),
        ("name another with --baseline; it has none", "name another with baseline=…; it has none"),
        ("unless --set below_noise=true is given", "unless below_noise=true is given"),
        ("boot it beside this one (--kernel and --against)", "boot it beside this one (--kernel and --against)"),
    ],
)
def test_only_arguments_of_open_testbed_are_spelled_so(told: str, spelled: str) -> None:
    assert as_arguments(told) == spelled
