"""The network set-up of a port goes back to what it was, whatever a data path has made of it."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath

import pytest

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import own_build
from pdrgate.hosts.host import Host, netns_host
from pdrgate.knobs import KnobSet, knob_from_record
from pdrgate.knobs.knob import ANY
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath


@pytest.fixture
def host() -> Iterator[Host]:
    name = f"pdrgate-t-{uuid.uuid4().hex[:8]}"
    made = subprocess.run(("ip", "netns", "add", name), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no namespace can be made here: {made.stderr.strip()}")
    with netns_host(name) as host:
        host.run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        for command in (
            "link set v0 up", "link set v1 up",
            "address add 192.0.2.1/24 dev v0", "-6 address add 2001:db8::1/64 dev v0 nodad",
            "route add 198.51.100.0/24 via 192.0.2.9 dev v0 metric 50",
            "-6 route add 2001:db8:1::/64 via 2001:db8::9 dev v0",
            "neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 dev v0 nud permanent",
        ):  # fmt: skip
            host.run("ip", *command.split())
        yield host
    subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True)


def of_kernel(host: Host) -> list[str]:
    """What the tools say of the whole namespace, apart from what the kernel does by itself."""
    told = [host.run("ip", *words.split()).stdout for words in ("-o address", "route", "-6 route", "neighbour")]
    told.append(host.run("tc", "qdisc", "show", "dev", "v0").stdout)
    lines = [" ".join(line.split()) for text in told for line in text.splitlines()]
    return sorted(line for line in lines if "fe80" not in line and "ff00" not in line)


def test_its_state_is_readable(host: Host) -> None:
    assert PortNetwork("v0").read(host).splitlines() == [
        "address 192.0.2.1/24",
        "address 2001:db8::1/64",
        "neighbour 192.0.2.9 02:00:00:00:00:09",
        "route4 198.51.100.0/24 via 192.0.2.9 metric 50",
        "route6 2001:db8:1::/64 via 2001:db8::9 metric 1024 pref medium",
    ]
    assert PortNetwork("v1").read(host) == ""


@pytest.mark.parametrize(
    "changes",
    [
        ["ip address add 10.211.0.2/24 dev v0",
         "ip neighbour replace 10.211.0.1 lladdr 02:0:0:0:0:1 dev v0 nud permanent",
         "ip route add 198.18.0.0/16 via 10.211.0.1 dev v0"],
        ["ip -6 address add fd00:211:1::1/64 dev v0 nodad", "ip -6 route add 2001:2::/48 via fd00:211:1::2 dev v0",
         "ip -6 neighbour replace fd00:211:1::2 lladdr 02:0:0:0:0:1 dev v0 nud permanent"],
        ["tc qdisc add dev v0 clsact"],
        ["ip link set dev v0 xdpgeneric obj {router} sec xdp"],
        ["ip link set dev v0 xdpdrv obj {router} sec xdp"],
        ["ip route delete 198.51.100.0/24", "ip address delete 192.0.2.1/24 dev v0",
         "ip -6 address delete 2001:db8::1/64 dev v0"],
        ["ip neighbour replace 192.0.2.9 lladdr 02:00:00:00:00:10 dev v0 nud permanent"],
        ["ip address flush dev v0", "ip neighbour flush dev v0 nud permanent"],
    ],
    ids=["ipv4", "ipv6", "tc", "xdp-generic", "xdp-native", "removed", "replaced", "flushed"],
)  # fmt: skip
def test_what_was_changed_goes_back(host: Host, changes: list[str]) -> None:
    before, said = PortNetwork("v0").read(host), of_kernel(host)
    with KnobSet() as knobs:
        knobs.apply(host, PortNetwork("v0"))
        assert of_kernel(host) == said
        for change in changes:
            host.run(*change.format(router=own_build("xdp_router").path).split())
        assert PortNetwork("v0").read(host) != before
    assert PortNetwork("v0").read(host) == before
    assert of_kernel(host) == said


def test_links_that_a_killed_run_has_left_are_ended(host: Host) -> None:
    before = PortNetwork("v0").read(host)
    numbers = tuple(int(host.read(f"/sys/class/net/{name}/ifindex")) for name in ("v0", "v1"))
    with ExitStack() as killed:
        knobs = KnobSet()
        knobs.apply(host, PortNetwork("v0"))
        knobs.apply(host, PortNetwork("v1"))
        links = [f"tcx egress {number}" for number in numbers]
        program = killed.enter_context(loaded(host, own_build("tc_redirect"), "classifier", links=links))
        folder = PurePosixPath(program.pin).parent
        assert f"tcx {folder}/tcx-{numbers[0]}" in PortNetwork("v0").read(host).splitlines()
        assert knobs.restore() == []
        assert PortNetwork("v0").read(host) == before
        assert not host.exists(str(folder))


def test_a_record_makes_the_same_knob() -> None:
    knob = PortNetwork("v0")
    assert knob_from_record(knob.to_record(), ANY) == knob


def test_a_port_that_is_gone_has_nothing_to_put_back(host: Host) -> None:
    knobs = KnobSet()
    knobs.apply(host, PortNetwork("v0"))
    host.run("ip", "link", "delete", "v0")
    assert knobs.restore() == []
    with pytest.raises(TestbedError, match=r"has no interface v0"):
        knobs.apply(host, PortNetwork("v0"))
