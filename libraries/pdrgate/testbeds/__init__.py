"""Testbeds (floor 3): TG and SUT put together from hosts, knobs and a generator, as a testbed file says."""

from pdrgate.testbeds.config import TestbedConfig
from pdrgate.testbeds.kinds import LocalNetns, LocalVm, Rack, open_testbed
from pdrgate.testbeds.protocol import PINNINGS, Booting, Pinning, Testbed
from pdrgate.testbeds.sharing import resources
from pdrgate.testbeds.testbed_file import load_testbed

__all__ = [
    "PINNINGS", "Booting", "LocalNetns", "LocalVm", "Pinning", "Rack", "Testbed", "TestbedConfig", "load_testbed",
    "open_testbed", "resources",
]  # fmt: skip
