"""The embedded generator owes what every generator owes; `test_generator` looks at what is its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from generator_contract import GeneratorContract

from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.generator import Generator

pytestmark = pytest.mark.datapath


@pytest.fixture(scope="module")
def testbed(make_testbed) -> Iterator[NetnsTestbed]:
    testbed = make_testbed()
    paths = [Routing(6), Routing(4)]
    for path in paths:
        path.apply(testbed.hops)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    yield testbed
    for path in paths:
        path.restore()


@pytest.fixture(scope="module", params=[6, 4], ids=["ipv6", "ipv4"])
def family(request: pytest.FixtureRequest) -> Literal[4, 6]:
    found: Literal[4, 6] = request.param
    return found


@pytest.fixture(scope="module")
def generator(testbed: NetnsTestbed, family: Literal[4, 6]) -> Iterator[Generator]:
    generator = testbed.generator(family)
    yield generator
    generator.close()


class TestEmbedded(GeneratorContract):
    NAME = "embedded"
    OVERLOAD = 5e6
