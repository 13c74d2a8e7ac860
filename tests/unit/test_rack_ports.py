"""The ports of a rack by what a testbed file calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pdrgate.hosts.host import Completed
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.testbeds.rack.rack_ports import find_router
from pdrgate.testbeds.rack.traffic_source import found_link
from pdrgate.values.errors import TestbedError


class FakeLinks:
    """A host whose two cards have new names, and the old ones as alternative names."""

    name = "sut"

    def run_json(self, *argv: str) -> Any:
        number = int(argv[-1].removeprefix("enp")[0])
        flags = ["UP", "LOWER_UP"]
        link = {"ifname": f"enp{number}s0np0", "address": f"02:00:00:00:00:0{number}", "flags": flags}
        return json.loads(json.dumps([link | {"altnames": [f"enp{number}s0"]}]))

    def run(self, *argv: str, **_: object) -> Completed:
        raise AssertionError(argv)


class FakeSource:
    """A generator that knows the MAC addresses of its ports."""

    stations = "02:00:00:00:00:11", "02:00:00:00:00:12"

    def station(self, sut: object) -> None:
        return None


def test_an_alternative_name_stands_for_the_kernels() -> None:
    """udev keeps the name of before an upgrade so: ip takes it, and /proc and /sys do not know it."""
    found = found_link(FakeLinks(), "enp1s0", "sut.ports.0")  # type: ignore[arg-type]
    assert (found.interface, found.mac) == ("enp1s0np0", "02:00:00:00:00:01")
    ports = (PortConfig(interface="enp1s0"), PortConfig(interface="enp2s0np0"))
    hop = find_router(FakeLinks(), ports, FakeSource())  # type: ignore[arg-type]
    assert [port.interface for port in (hop.ingress, hop.egress)] == ["enp1s0np0", "enp2s0np0"]


def test_two_names_of_one_card_are_one_port() -> None:
    ports = (PortConfig(interface="enp1s0"), PortConfig(interface="enp1s0np0"))
    with pytest.raises(TestbedError, match=r"^sut\.ports: both are enp1s0np0; a router needs two$"):
        find_router(FakeLinks(), ports, FakeSource())  # type: ignore[arg-type]


def test_the_other_end_that_ip_shows_behind_a_name_is_no_part_of_it() -> None:
    """A link into another namespace is listed as ``enp1s0np0@if27``, which is often copied as a whole."""

    class Linked(FakeLinks):
        def run_json(self, *argv: str) -> Any:
            if "@" in argv[-1]:
                raise TestbedError(f'Cannot find device "{argv[-1]}"')
            return super().run_json(*argv)

        def run(self, *argv: str, **_: object) -> Completed:
            return Completed(argv, 0, "enp1s0np0\nlo\n", "")

    found = found_link(Linked(), PortConfig(interface="enp1s0np0@if27").interface, "sut.ports.0")  # type: ignore[arg-type]
    assert found.interface == "enp1s0np0"
    with pytest.raises(TestbedError, match="has no interface enp7s0@if27, but enp1s0np0"):
        found_link(Linked(), "enp7s0@if27", "sut.ports.0")  # type: ignore[arg-type]
