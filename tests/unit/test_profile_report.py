"""Functions of a profile, as ``perf report`` tells them."""

from __future__ import annotations

import pytest

from pdrgate.observers.processor import function_shares

REPORT = """
 13137682   ;[k] ip6_forward
 6000000    ;[k] fib6_table_lookup.isra.0
 600000     ;[k] fib6_table_lookup.part.0
 200000     ;[k] bpf_prog_6deef7357e7b4530_xdp_router
 62318      ;[k] 0xffffffffc0a01234
# not a line of it
"""


def test_each_function_has_its_share_whatever_the_compiler_made_of_it() -> None:
    found = function_shares(REPORT)
    assert sum(found.values()) == pytest.approx(1)
    assert found["fib6_table_lookup"] == pytest.approx(0.33)
    assert found["bpf:xdp_router"] == pytest.approx(0.01)
    assert list(found) == ["ip6_forward", "fib6_table_lookup", "bpf:xdp_router", "0xffffffffc0a01234"]


def test_no_samples_are_no_shares() -> None:
    assert function_shares("") == {}
