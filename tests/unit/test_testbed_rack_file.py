"""Testbed files of kind rack, and that every file that is shipped loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.testbeds import TestbedConfig, load_testbed
from pdrgate.testbeds.config import GeneratorConfig
from pdrgate.testbeds.kinds import KINDS
from pdrgate.testbeds.rack.rack_config import Rack
from pdrgate.testbeds.rack.rack_host import HostConfig
from pdrgate.testbeds.rack.rack_keys import PortConfig, StationConfig
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import TestbedError

SHIPPED = sorted((Path(__file__).parents[2] / "resources/testbeds").glob("*.yaml"))
KEY = "SHA256:" + "a" * 43

VALID = f"""\
name: rack-1
kind: rack
generator:
  kind: trex
  server: trex
  ports: [2, 3]
  client: stl
sut:
  host:
    kind: ssh
    alias: dut
    address: 10.0.0.2
    user: me
    key: keys/id
    host_key: {KEY}
    namespace: vrf1
    jump: {{address: gw, port: 2222}}
  ports:
    - interface: eth1
      faces: "AA:00:00:00:00:01"
    - pci: "0000:3B:00.1"
      faces: "aa:00:00:00:00:02"
  cpus: [3, 2]
  buffer: backlog
  steering: rps
  knobs: {{net.ipv4.ip_default_ttl: 32}}
station:
  host: {{kind: ssh, address: 10.0.0.3, key: keys/id, host_key: {KEY}}}
  interface: eth3
  cpu: 1
"""


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_load(path: Path) -> None:
    testbed = load_testbed(path)
    assert testbed.name
    assert type(testbed) is KINDS[testbed.kind]


def test_there_is_one_of_each_kind() -> None:
    assert {load_testbed(path).kind for path in SHIPPED} == {"local-netns", "local-vm", "rack"}
    generators = {load_testbed(path).generator.kind for path in SHIPPED if load_testbed(path).kind == "rack"}
    assert generators == {"embedded", "trex"}


def test_a_full_file_becomes_values(load: Callable[[str], TestbedConfig], tmp_path: Path) -> None:
    assert load(VALID) == Rack(
        name="rack-1",
        source=Path("x.yaml"),
        generator=GeneratorConfig(
            "trex", ports=("2", "3"), trex=TRexConfig("trex", (2, 3), client=tmp_path / "stl")
        ),
        cpus=(2, 3),
        knobs={"net.ipv4.ip_default_ttl": 32},
        host=HostConfig(
            "ssh",
            SshTarget(
                "dut", "10.0.0.2", user="me", key=tmp_path / "keys/id", host_key=KEY,
                jump=SshTarget("dut-jump", "gw", 2222),
            ),
            "vrf1",
        ),
        ports=(
            PortConfig("eth1", faces="aa:00:00:00:00:01"),
            PortConfig(pci="0000:3b:00.1", faces="aa:00:00:00:00:02"),
        ),
        buffer="backlog",
        steering="rps",
        station=StationConfig(
            HostConfig("ssh", SshTarget("station", "10.0.0.3", key=tmp_path / "keys/id", host_key=KEY)), "eth3", 1
        ),
    )  # fmt: skip


def test_a_password_is_never_shown(load: Callable[[str], TestbedConfig]) -> None:
    testbed = load(VALID).with_password("hunter2")
    assert isinstance(testbed, Rack) and testbed.host.ssh is not None
    assert testbed.host.ssh.password == "hunter2"
    assert "hunter2" not in repr(testbed) and "hunter2" not in str(testbed.host.ssh.to_record())
    with pytest.raises(TestbedError, match="testbed local-netns needs no password: its SUT is not reached by SSH"):
        load_testbed(next(path for path in SHIPPED if path.stem == "local-netns")).with_password("x")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: ssh", "kind: shh", "x.yaml:10: sut.host.kind: 'shh' is not one of ssh, local, netns; did you mean "),
        ("    address: 10.0.0.2\n", "", "x.yaml:9: sut.host: the key address is missing; add it, see "),
        ("user: me", "pasword: x", "x.yaml:13: sut.host.pasword: unknown key; did you mean password_env?"),
        ("user: me", "password: x", "x.yaml:13: sut.host.password: unknown key; did you mean password_env?"),
        (f"host_key: {KEY}", "host_key: abc", "x.yaml:15: sut.host.host_key: 'abc' does not fit; write the host's key, "
         "SHA256:… (as ssh-keygen -l shows it) or ssh-ed25519 AAAA…"),
        ("user: me", "password_env: PW", "x.yaml:13: sut.host.password_env: there is a key too; keep the key, or the "
         "password"),
        ("port: 2222", "prot: 2222", "x.yaml:17: sut.host.jump.prot: unknown key; did you mean port?"),
        ("interface: eth1", "interfcae: eth1", "x.yaml:19: sut.ports.0.interfcae: unknown key; did you mean"),
        ("interface: eth1", "mac: x", "x.yaml:19: sut.ports.0.mac: 'x' does not fit; write a MAC address in quotes"),
        ("    - interface: eth1\n      faces", "    - faces", "x.yaml:19: sut.ports.0: is named by nothing; name it by "
         "one of interface, mac and pci"),
        ("- interface: eth1", "- interface: eth1\n      mac: 'aa:00:00:00:00:09'", "x.yaml:19: sut.ports.0: is named "
         "by interface and mac; name it by one of interface, mac and pci"),
        ('      faces: "AA:00:00:00:00:01"\n', "", "x.yaml:19: sut.ports.0: the key faces is missing; write the MAC "
         "address of TRex's port at the other end"),
        ("buffer: backlog", "buffer: rings", "x.yaml:24: sut.buffer: 'rings' is not one of auto, ring, backlog; did "
         "you mean ring?"),
        ("interface: eth3", "interfaec: eth3", "x.yaml:29: station.interfaec: unknown key; did you mean interface?"),
        ("cpu: 1", "cpu: one", "x.yaml:30: station.cpu: 'one' does not fit; write auto or the number of a CPU of that"),
        ("server: trex", "servr: trex", "x.yaml:5: generator.servr: unknown key; did you mean server? (and 1 more)"),
        ("ports: [2, 3]", "ports: [2]", "x.yaml:6: generator.ports: "),
        ("kind: trex", "kind: trecks", "x.yaml:4: generator.kind: 'trecks' is not one of embedded, trex; did you mean"),
        ("net.ipv4.ip_default_ttl", "kernel.numa_balancing", "x.yaml:26: sut.knobs: kernel.numa_balancing is a setting "
         "of the whole machine; only those of net. belong to the SUT's namespace"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_key(
    load: Callable[[str], TestbedConfig], old: str, new: str, message: str
) -> None:
    assert old in VALID
    with pytest.raises(TestbedError) as error:
        load(VALID.replace(old, new, 1))
    assert str(error.value).startswith(message)


def test_a_whole_machine_may_have_all_sysctls(load: Callable[[str], TestbedConfig]) -> None:
    text = VALID.replace("    namespace: vrf1\n", "").replace("net.ipv4.ip_default_ttl", "kernel.numa_balancing")
    assert load(text).knobs == {"kernel.numa_balancing": 32}


def test_a_sut_over_ssh_has_cpus_of_its_own(load: Callable[[str], TestbedConfig]) -> None:
    text = VALID.replace(
        "kind: trex\n  server: trex\n  ports: [2, 3]\n  client: stl", "kind: embedded\n  ports: [a, b]\n  cpu: 2"
    )
    assert load(text).generator.cpu == 2
    assert load(text).generator.ports == ("a", "b")
