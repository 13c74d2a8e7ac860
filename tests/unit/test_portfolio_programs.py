"""What the paths of the portfolio are set up with is there after ci/bootstrap, on a machine that nobody prepared."""

from __future__ import annotations

import re

import pytest
from portfolio_paths import FILES, ROOT, scenario_of_path

from pdrgate.guests.furnishing import _FAMILIES

_OF_IPROUTE2 = {"tc", "bridge"}


@pytest.mark.parametrize("path", FILES)
def test_the_programs_of_a_path_are_installed_with_the_gate(path: str) -> None:
    set_up = scenario_of_path(path).set_up
    named = set() if set_up is None else set(set_up.programs) & {*_FAMILIES, "wg", "ethtool"}
    bootstrap = (ROOT / "ci/bootstrap").read_text(encoding="utf-8")
    packaged = set(re.findall(r"\[([\w-]+)\]=", bootstrap))
    asked = set(re.findall(r"[\w-]+", " ".join(re.findall(r"tools\+?=\(([^)]*)\)", bootstrap))))
    assert named - _OF_IPROUTE2 <= packaged & asked
