"""Servers and generators for the tests of TRex: everything is on loopback, and no packet is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from trex_rig import config, ideal, paths
from trex_server import FLIGHT, Api, Faults, Sut, TRexServer

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


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[TRexServer, TRexGenerator]]:
    """A connection for all tests that need no other, for a client takes its time to load."""
    with TRexServer(ideal()) as server:
        generator = TRexGenerator(config(server), paths())
        yield server, generator
        generator.close()


@pytest.fixture
def server(opened: tuple[TRexServer, TRexGenerator]) -> TRexServer:
    """As new; ``sut`` may be set to another one."""
    server, _ = opened
    server.sut, server.faults, server.flight = ideal(), Faults(), FLIGHT
    server.seen.clear()
    return server


@pytest.fixture
def generator(opened: tuple[TRexServer, TRexGenerator], server: TRexServer) -> TRexGenerator:
    return opened[1]
