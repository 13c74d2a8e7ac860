"""TRex owes what every generator owes: with the client of PyPI, which speaks API 4.1 to the server of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from generator_contract import GeneratorContract
from trex_rig import SATURATION, config, ideal, paths
from trex_server import TRexServer

from pdrgate.traffic.trex import TRexGenerator


@pytest.fixture(scope="module", params=[6, 4], ids=["ipv6", "ipv4"])
def family(request: pytest.FixtureRequest) -> Literal[4, 6]:
    found: Literal[4, 6] = request.param
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[TRexServer]:
    with TRexServer(ideal()) as server:
        yield server


@pytest.fixture(scope="module")
def generator(server: TRexServer, family: Literal[4, 6]) -> Iterator[TRexGenerator]:
    generator = TRexGenerator(config(server), paths(family))
    yield generator
    generator.close()


class TestTRex(GeneratorContract):
    NAME = "trex"
    OVERLOAD = 2 * SATURATION
