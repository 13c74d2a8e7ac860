"""Testbeds (floor 3): TG and SUT put together from hosts, knobs and a generator, as a testbed file says."""

from pdrgate.testbed.file import TestbedConfig, load_testbed
from pdrgate.testbed.opening import open_guest, open_testbed, start_guest
from pdrgate.testbed.protocol import PINNINGS, Booting, Pinning, Testbed

__all__ = [
    "PINNINGS", "Booting", "Pinning", "Testbed", "TestbedConfig", "load_testbed", "open_guest", "open_testbed",
    "start_guest",
]  # fmt: skip
