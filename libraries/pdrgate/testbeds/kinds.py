"""The kinds of testbeds that a file can describe."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.safety.journal import Journal
from pdrgate.testbeds.config import TestbedConfig
from pdrgate.testbeds.netns.netns_config import LocalNetns
from pdrgate.testbeds.rack.rack_config import Rack
from pdrgate.testbeds.testbed_base import Testbed
from pdrgate.testbeds.vm.vm_config import LocalVm

KINDS: Mapping[str, type[TestbedConfig]] = {kind.kind: kind for kind in (LocalNetns, LocalVm, Rack)}
"""Each kind by what a file calls it."""


def open_testbed(config: TestbedConfig, journal: Journal) -> Testbed:
    """Open a testbed by `TestbedConfig.open`, as the default of callers that can be handed another way."""
    return config.open(journal)
