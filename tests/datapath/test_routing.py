"""Routing as a data path: applied, read back from the kernel, restored to the letter; and sabotage is noticed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from pdrgate.data_paths.catalogue import NETWORKS, DataPath, Hop, Port, data_path
from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.hosts.host import Completed, Host
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

both = pytest.mark.parametrize("family", [4, 6], ids=["ipv4", "ipv6"])


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=3)


def state(testbed: NetnsTestbed) -> dict[str, Any]:
    """Addresses, routes, neighbours and the sysctls of both IP versions, of every hop."""
    found: dict[str, Any] = {}
    for number, hop in enumerate(testbed.hops, start=1):
        found[f"{number} addresses"] = hop.host.run_json("ip", "-j", "address")
        for family in (4, 6):
            for what in (("route", "show", "table", "all"), ("neighbour", "show", "nud", "all"), ("rule", "show")):
                found[f"{number} {family} {what[0]}"] = hop.host.run_json("ip", "-j", f"-{family}", *what)
        found[f"{number} sysctls"] = hop.host.run(
            "sh", "-c",
            "grep -s . /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv[46]/conf/*/* /proc/sys/net/ipv[46]/neigh/*/*",
            check=False,
        ).stdout  # fmt: skip
    # That a new link is up the kernel tells a little later.
    late = {"operstate", "flags"}
    return json.loads(json.dumps(found), object_hook=lambda entry: {k: v for k, v in entry.items() if k not in late})


@contextlib.contextmanager
def applied(path: DataPath, testbed: NetnsTestbed) -> Iterator[None]:
    try:
        path.apply(testbed.hops)
        yield
    finally:
        path.restore()


@both
def test_restore_leaves_every_hop_as_it_was(testbed: NetnsTestbed, family: Literal[4, 6]) -> None:
    before = state(testbed)
    path = Routing(family)
    for _ in range(2):
        path.apply(testbed.hops)
        assert state(testbed) != before
        assert path.restore() == []
        assert state(testbed) == before
    assert path.restore() == []


@both
def test_the_kernel_routes_where_it_was_told(testbed: NetnsTestbed, family: Literal[4, 6]) -> None:
    networks = NETWORKS[family]
    with applied(data_path(f"ipv{family}-routing"), testbed):
        for hop in testbed.hops:
            for network, port in ((networks.forward, hop.egress), (networks.reverse, hop.ingress)):
                for address in (network.network_address, network.network_address + 0xFFFF):
                    (route,) = hop.host.run_json("ip", "-j", f"-{family}", "route", "get", str(address))
                    assert route["dev"] == port.interface
                    neighbours = hop.host.run_json("ip", "-j", f"-{family}", "neighbour", "show", "dev", port.interface)
                    (known,) = [entry for entry in neighbours if entry["dst"] == route["gateway"]]
                    assert (known["lladdr"], known["state"]) == (port.peer_mac, ["PERMANENT"])


def test_one_ip_version_comes_and_goes_without_the_other(testbed: NetnsTestbed) -> None:
    before = state(testbed)
    six, four = Routing(6), Routing(4)
    with applied(six, testbed):
        with applied(four, testbed):
            pass
        generator = testbed.generator(6)
        try:
            trial = generator.trial(20e3, 0.1, Frames(6, directions=2))
            assert trial.forwarded == trial.offered
        finally:
            generator.close()
    assert state(testbed) == before


SABOTAGE = {
    "a narrower route elsewhere": (
        ("replace", "{probe}/{all}", "dev", "in0"),
        "sends {probe} out of in0 and not out0; ",
    ),
    "a black hole": (("replace", "blackhole", "{probe}/{all}"), "does not know where to send {probe}: "),
    "unreachable": (("replace", "unreachable", "{probe}/{all}"), "does not know where to send {probe}: "),
}


@both
@pytest.mark.parametrize("how", SABOTAGE)
def test_a_sabotaged_route_is_noticed(testbed: NetnsTestbed, family: Literal[4, 6], how: str) -> None:
    before = state(testbed)
    command, message = SABOTAGE[how]
    names = {"probe": str(NETWORKS[family].forward.network_address + 1), "all": 32 if family == 4 else 128}
    words = [word.format(**names) for word in command]
    middle = testbed.hops[1]
    path = Routing(family)
    settle = None
    if family == 6:  # such a route needs IPv6 on the interface
        settle = middle.host.read("/proc/sys/net/ipv6/conf/in0/disable_ipv6")
        middle.host.write("/proc/sys/net/ipv6/conf/in0/disable_ipv6", "0")
    middle.host.run("ip", f"-{family}", "route", *words)
    try:
        with pytest.raises(TestbedError) as error:
            path.apply(testbed.hops)
    finally:
        path.restore()
        # With an interface's last IPv4 address its routes go by themselves.
        middle.host.run("ip", f"-{family}", "route", "delete", *words[1:], check=False)
        if settle is not None:
            middle.host.write("/proc/sys/net/ipv6/conf/in0/disable_ipv6", settle)
    assert str(error.value).startswith(f"{middle.host.name} {message.format(**names)}")
    assert "\n" not in str(error.value)
    assert state(testbed) == before


class _Forgetful:
    """A host on which some commands are said to have worked, and did nothing."""

    def __init__(self, host: Host, word: str) -> None:
        self._host = host
        self._word = word

    def script(self, text: str, **options: Any) -> Completed:
        kept = [line for line in text.splitlines() if not line.startswith(f"{self._word} replace")]
        return self._host.script("\n".join(kept), **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


@both
def test_a_neighbour_that_is_not_there_is_noticed(testbed: NetnsTestbed, family: Literal[4, 6]) -> None:
    before = state(testbed)
    first, second, third = testbed.hops
    path = Routing(family)
    try:
        with pytest.raises(TestbedError) as error:
            path.apply((first, Hop(_Forgetful(second.host, "neighbour"), second.ingress, second.egress), third))  # type: ignore[arg-type]
    finally:
        told = path.restore()
    assert f"{second.host.name} has None as the neighbour " in str(error.value)
    assert f"not {second.egress.peer_mac}; does something there remove static neighbours?" in str(error.value)
    assert told  # the neighbour could not be removed
    assert state(testbed) == before


def test_a_hop_without_its_interface_is_told_and_put_back(testbed: NetnsTestbed) -> None:
    before = state(testbed)
    first, second, third = testbed.hops
    wrong = Hop(second.host, second.ingress, Port("nope0", second.egress.mac, second.egress.peer_mac))
    path = Routing(4)
    try:
        with pytest.raises(TestbedError, match=r"nope0"):
            path.apply((first, wrong, third))
    finally:
        path.restore()
    assert state(testbed) == before


def test_an_unknown_data_path() -> None:
    with pytest.raises(TestbedError, match=r"^there is no data path 'bridge'; there are ipv6-routing, ipv4-routing, "):
        data_path("bridge")
