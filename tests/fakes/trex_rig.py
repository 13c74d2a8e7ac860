"""Paths, SUTs and configurations for a `trex_server.TRexServer` on loopback."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Literal

from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut
from trex_server import TRexServer

from pdrgate.traffic.frames import Path
from pdrgate.traffic.trex.trex_config import TRexConfig

SATURATION = 1e6
"""Packets/s that the SUT forwards unless a test says otherwise."""
ENDS = {4: ("198.19.0.1", "198.18.0.5"), 6: ("2001:2:0:2::1", "2001:2:0:1::5")}


def paths(family: Literal[4, 6] = 6) -> list[Path]:
    """Both directions between ports 0 and 1."""
    first, second = (ip_address(end) for end in ENDS[family])
    return [
        Path("0", "02:00:00:00:00:00", "02:00:00:00:01:00", first, second),
        Path("1", "02:00:00:00:00:01", "02:00:00:00:01:01", second, first),
    ]


def ideal(saturation: float = SATURATION, ceiling: Ceiling | None = None, buffer: int = 0) -> SimulatedSut:
    """A SUT without noise."""
    return SimulatedSut(IdealCurve(saturation), Behaviour(noise=0.0), ceiling=ceiling, buffer=buffer)


def config(server: TRexServer, **more: Any) -> TRexConfig:
    """The configuration for a server, without a warm-up unless asked for."""
    more = {"warm_up": 0.0} | more
    return TRexConfig("127.0.0.1", sync_port=server.sync_port, async_port=server.async_port, **more)
