"""The suites of XDP, tc and SRv6, as a user starts them, on namespaces of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.test_real_gate import HONEST, gate, leaves_no_trace

__all__ = ["leaves_no_trace"]  # for each test here too

pytestmark = pytest.mark.datapath


@pytest.mark.parametrize(
    ("tag", "scenario", "title"),
    [
        ("xdp-ipv6", "xdp-ipv6-routing-1cpu-4096-64B", "IPv6 routing by XDP, 1 cpu, buffer 4096 packets"),
        ("xdp-ipv4", "xdp-ipv4-routing-1cpu-4096-64B", "IPv4 routing by XDP, 1 cpu, buffer 4096 packets"),
        ("tc", "tc-redirect-1cpu-4096-64B", "redirection by tc, 1 cpu, buffer 4096 packets"),
        ("srv6", "srv6-end-1cpu-4096-256B", "SRv6 End, 1 cpu, buffer 4096 packets, 256-byte frames"),
    ],
)
def test_a_suite_of_each_data_path(tmp_path: Path, tag: str, scenario: str, title: str) -> None:
    ended = gate(tmp_path, "--scenario", tag)
    assert ended.result["verdict"] in HONEST, ended.stdout + ended.stderr
    (entry,) = ended.result["scenarios"]
    assert entry["name"] == scenario
    assert entry["title"].startswith(title)
    assert entry["calibration"]["forwarding_rate"] > 0
    assert entry["calibration"]["ceiling"] > entry["calibration"]["forwarding_rate"]
