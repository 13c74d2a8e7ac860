"""Testbeds (floor 3): TG and SUT put together from hosts, knobs and a generator, as a testbed file says."""

from pdrgate.testbeds.opening import open_guest, open_testbed, start_guest
from pdrgate.testbeds.protocol import PINNINGS, Booting, Pinning, Testbed
from pdrgate.testbeds.testbed_file import TestbedConfig, load_testbed

__all__ = [
    "PINNINGS", "Booting", "Pinning", "Testbed", "TestbedConfig", "load_testbed", "open_guest", "open_testbed",
    "start_guest",
]  # fmt: skip
