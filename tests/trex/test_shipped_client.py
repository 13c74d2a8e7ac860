"""A server of API 5 with a client as it brings one: our stand-in, and the real one where there is one.

``PDRGATE_TREX_CLIENT`` names the folder of the real one, automation/trex_control_plane/interactive of a release.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Literal

import pytest
from generator_contract import GeneratorContract
from trex_rig import SATURATION, config, ideal, paths
from trex_server import TRexServer

from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator
from pdrgate.values.errors import TestbedError

STAND_IN = pathlib.Path(__file__).parents[1] / "fakes" / "shipped_client"
REAL = os.environ.get("PDRGATE_TREX_CLIENT")
CLIENTS = [pytest.param(STAND_IN, id="stand-in"), *([pytest.param(pathlib.Path(REAL), id="real")] if REAL else [])]


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> pathlib.Path:
    found: pathlib.Path = request.param
    return found


@pytest.fixture(scope="module")
def family() -> Literal[4, 6]:
    return 6


@pytest.fixture(scope="module")
def generator(client: pathlib.Path) -> Iterator[TRexGenerator]:
    with TRexServer(ideal(), api="5.1") as server:
        generator = TRexGenerator(config(server, client=client), paths())
        yield generator
        generator.close()
        assert [port.owner for port in server.ports] == ["", ""]


class TestTRexOfApi5(GeneratorContract):
    NAME = "trex"
    OVERLOAD = 2 * SATURATION

    def test_both_sides_are_told(self, generator: TRexGenerator) -> None:
        about = generator.describe()
        assert (about["server"], about["client"]) == ("v3.08", "the server's own")


def test_a_client_that_is_too_new(client: pathlib.Path) -> None:
    with TRexServer(ideal()) as server, pytest.raises(TestbedError) as caught:
        TRexGenerator(config(server, client=client), paths())
    assert str(caught.value) == (
        f"TRex at 127.0.0.1:{server.sync_port}: the TRex server speaks API 4.8, "
        f"the client of {client} speaks 5.1; "
        "set client: to the server's own automation/trex_control_plane/interactive, "
        "or leave it away for a server of v2.27 to v2.86"
    )


def test_a_held_port_and_a_killed_worker(client: pathlib.Path) -> None:
    with TRexServer(ideal(), api="5.1") as server:
        server.take(0, "bob")
        with pytest.raises(TestbedError, match=r"a port is held: 0 by 'bob'"):
            TRexGenerator(config(server, client=client), paths())
        generator = TRexGenerator(config(server, client=client, force=True), paths())
        try:
            worker = generator._worker
            assert worker is not None
            worker.kill()
            assert generator.trial(10e3, 0.1, Frames(6)).forwarded == 1000
        finally:
            generator.close()
