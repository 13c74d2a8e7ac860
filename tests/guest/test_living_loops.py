"""Closed loops on guests that stay up: equal builds pass, and a slower one is told by what it is slower in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count

import pytest
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, Planted, Slowdown
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.knobs import Knob, offloads, sysctl
from pdrgate.measurands.transfers.answered_requests import RequestCost
from pdrgate.measurands.transfers.tcp import ByteCost
from pdrgate.measurands.transfers.tcp_growth import AdvertisedWindow, UsedWindow
from pdrgate.results.verdict import Verdict

pytestmark = pytest.mark.guest

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


def _searched(hop: Hop, steps: int) -> tuple[Knob, ...]:
    """Each segment has a route searched for, and a filter at each port's egress."""
    return (*EGRESS_FILTER.knobs(hop, EGRESS_FILTER.most), sysctl("net/ipv4/tcp_early_demux", 0))


SEARCHED = Slowdown("no-early-demux", "a search and a filter for each segment", "the same {} times", 1, _searched)


@pytest.fixture(scope="module")
def judged(
    cloud: KernelBuild, booting: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Scenario, Planted | None], tuple[Verdict, str]]]:
    """Judges a build with a slowdown against the same without, on guests that stay up for the next comparison."""
    number = count(1)
    with vm_session(tmp_path_factory.mktemp("loops")) as session:
        builds = {side: Build(side, name, partial(session.boot, cloud)) for side, name in zip(SIDES, "ab", strict=True)}
        suts = LivingSuts(session, builds)

        def judged(asked: Scenario, planted: Planted | None) -> tuple[Verdict, str]:
            suts.builds["candidate"] = replace(builds["candidate"], planted=planted)
            found = living_comparison_of(
                ComparisonTask(session, asked, suts.builds, Plan(2, 600, 0.5), longname=f"number {next(number)}"), suts
            )
            made = found.run()
            return made.verdict, made.reason

        # The generator of a path before had taken what came to the ports.
        assert judged(ROUTED, None)[0] in (Verdict.PASS, Verdict.INCONCLUSIVE)
        yield judged


@pytest.mark.parametrize(
    ("scenario", "slowdown", "telling"),
    [
        (SOCKET, QUARTER, (AdvertisedWindow.name, UsedWindow.name)),
        (BYTES, SINGLE, (ByteCost.name,)),
        (REQUESTS, SEARCHED, (RequestCost.name,)),
        (CONNECTIONS, SEARCHED, (RequestCost.name,)),
    ],
    ids=["windows", "bytes", "requests", "connections"],
)
def test_a_slower_build_is_told_by_what_it_is_slower_in(
    judged: Callable[[Scenario, Planted | None], tuple[Verdict, str]], scenario: Scenario, slowdown: Slowdown,
    telling: tuple[str, ...],
) -> None:  # fmt: skip
    verdict, reason = judged(scenario, None)
    assert verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), reason
    verdict, reason = judged(scenario, Planted(slowdown, 1))
    assert verdict is Verdict.REGRESSION, reason
    assert any(name in reason for name in telling)
