"""Testbeds (floor 3): TG and SUT put together from hosts, knobs and a generator, as a testbed file says."""

from pdrgate.testbeds.config import TestbedConfig
from pdrgate.testbeds.kinds import open_testbed
from pdrgate.testbeds.netns.netns_config import LocalNetns
from pdrgate.testbeds.protocol import PINNINGS, Booting, Furnishing, Pinning, Testbed
from pdrgate.testbeds.rack.rack_config import Rack
from pdrgate.testbeds.testbed_file import load_testbed
from pdrgate.testbeds.vm.vm_config import LocalVm

__all__ = [
    "PINNINGS", "Booting", "Furnishing", "LocalNetns", "LocalVm", "Pinning", "Rack", "Testbed", "TestbedConfig",
    "load_testbed", "open_testbed",
]  # fmt: skip
