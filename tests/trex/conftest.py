"""Servers and generators for the tests of TRex: everything is on loopback, and no packet is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from trex_rig import config, ideal, paths
from trex_server import Api, Sut, TRexServer

from pdrgate.traffic.trex import TRexGenerator


@pytest.fixture
def serve() -> Iterator[Callable[..., TRexServer]]:
    """Starts servers, which end with the test."""
    servers: list[TRexServer] = []

    def start(sut: Sut | None = None, api: Api = "4.1") -> TRexServer:
        server = TRexServer(sut or ideal(), api=api)
        server.__enter__()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.die()


@pytest.fixture
def connect(serve: Callable[..., TRexServer]) -> Iterator[Callable[..., TRexGenerator]]:
    """Opens generators, which are closed before the servers end."""
    generators: list[TRexGenerator] = []

    def open_it(server: TRexServer, family: Literal[4, 6] = 6, **more: Any) -> TRexGenerator:
        generator = TRexGenerator(config(server, **more), paths(family))
        generators.append(generator)
        return generator

    yield open_it
    for generator in generators:
        generator.close()
