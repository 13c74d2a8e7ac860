"""What a route reads back as, by whichever iproute2 prints it."""

from __future__ import annotations

import pytest

from pdrgate.data_paths.paths.segment_routing import _ends_segments


@pytest.mark.parametrize(
    ("route", "ends"),
    [
        ({"dst": "fd00::1", "encap": "seg6local", "action": "End", "dev": "in0"}, True),  # iproute2 6.1
        ({"dst": "fd00::1", "encap": {"encap_type": "seg6local", "action": "End"}, "dev": "in0"}, True),  # 6.15
        ({"dst": "fd00::1", "encap": {"encap_type": "seg6local", "action": "End.X"}, "dev": "in0"}, False),
        ({"dst": "fd00::1", "encap": {"encap_type": "seg6", "mode": "encap"}, "dev": "in0"}, False),
        ({"dst": "fd00::1", "encap": "seg6", "dev": "in0"}, False),
        ({"dst": "fd00::1", "dev": "in0"}, False),
    ],
)
def test_a_segment_that_ends_here_is_known(route: dict[str, object], ends: bool) -> None:
    assert _ends_segments(route) is ends
