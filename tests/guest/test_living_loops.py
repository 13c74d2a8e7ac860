"""Closed loops on guests that stay up: equal builds pass, and a slower one is told by what it is slower in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, Planted, Slowdown
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.knobs import Knob, offloads, sysctl
from pdrgate.measurands.answered_requests import RequestCost
from pdrgate.measurands.tcp import ByteCost
from pdrgate.measurands.tcp_growth import AdvertisedWindow, UsedWindow
from pdrgate.results.verdict import Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

ROUTED = Scenario("ipv4-routing")
REQUESTS = Scenario("tcp-transfer", tcp=TcpStreams(request=64, buffers="kernel"))
CONNECTIONS = replace(REQUESTS, tcp=replace(REQUESTS.tcp, anew=True))
BYTES = Scenario("tcp-transfer", tcp=TcpStreams(window=256))
SOCKET = Scenario("tcp-transfer", tcp=TcpStreams(window=128, delay=0.01, buffers="socket"))


def _quarter(hop: Hop, steps: int) -> tuple[Knob, ...]:
    """The receive window is a quarter of the buffer, and not half of it: so it was in Linux 6.6."""
    return (sysctl("net/ipv4/tcp_adv_win_scale", -2),)


def _single(hop: Hop, steps: int) -> tuple[Knob, ...]:
    """Each segment goes up from the port by itself."""
    return (offloads(hop.ingress.interface, {"gro": False}),)


QUARTER = Slowdown("quarter-window", "a quarter of the buffer for the window", "the same {} times", 1, _quarter)
SINGLE = Slowdown("no-gro", "segments one by one", "the same {} times", 1, _single)
FILTERED = EGRESS_FILTER.most
"""Instructions of a filter for each packet that leaves."""


@pytest.mark.parametrize(
    ("scenario", "slowdown", "telling"),
    [
        (SOCKET, Planted(QUARTER, 1), (AdvertisedWindow.name, UsedWindow.name)),
        (BYTES, Planted(SINGLE, 1), (ByteCost.name,)),
        (REQUESTS, Planted(EGRESS_FILTER, FILTERED), (RequestCost.name,)),
        (CONNECTIONS, Planted(EGRESS_FILTER, FILTERED), (RequestCost.name,)),
    ],
    ids=["windows", "bytes", "requests", "connections"],
)
def test_a_slower_build_is_told_by_what_it_is_slower_in(
    cloud: KernelBuild, tmp_path: Path, scenario: Scenario, slowdown: Planted, telling: tuple[str, ...]
) -> None:
    with vm_session(tmp_path) as session:
        builds = {
            side: Build(side, name, partial(session.boot, cloud, counted=True))
            for side, name in zip(SIDES, "ab", strict=True)
        }
        suts = LivingSuts(session, builds)

        def judged(name: str, planted: Planted | None, asked: Scenario = scenario) -> tuple[Verdict, str]:
            suts.builds["candidate"] = replace(builds["candidate"], planted=planted)
            found = living_comparison_of(session, asked, suts, Plan(2, 600, 0.5), longname=name).run()
            return found.verdict, found.reason

        # The generator of a path before it had taken what came to the ports.
        assert judged("routed", None, ROUTED)[0] in (Verdict.PASS, Verdict.INCONCLUSIVE)
        assert judged("equal", None)[0] in (Verdict.PASS, Verdict.INCONCLUSIVE)
        verdict, reason = judged("slower", slowdown)
        assert verdict is Verdict.REGRESSION
        assert any(name in reason for name in telling)
