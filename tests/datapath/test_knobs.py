"""Knobs on real devices: veth in namespaces, by the real ethtool, tc, ip and nft; and what `pdrgate restore` undoes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from knob_snapshot import snapshot

from pdrgate.cli import main
from pdrgate.hosts.host import ShellHost, local_host, netns_host
from pdrgate.knobs import (
    MOST_INSTRUCTIONS,
    InterruptAffinity,
    Knob,
    KnobSet,
    RootQdisc,
    device_interrupts,
    each,
    egress_filter,
    in_turn,
    most_side_routes,
    offloads,
    plan_knobs,
    rings,
    rps,
    side_routes,
    sysctl,
)
from pdrgate.knobs.ethtool import channels, coalescing, pause_frames
from pdrgate.knobs.file_knob import mtu, threaded_napi
from pdrgate.knobs.firewall import FirewallRules
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.neighbours import neighbours
from pdrgate.knobs.queues import QueueFiles, rfs_off, xps
from pdrgate.knobs.rss import flow_hash
from pdrgate.values.errors import EXIT_FAULT, EXIT_PASS, TestbedError

pytestmark = [pytest.mark.datapath, pytest.mark.usefixtures("machine")]

LIBRARIES = Path(__file__).parents[2] / "libraries"
MAC = "02:70:64:72:00:01"
RULES = """\
table inet pdrgate_t {
    set known { type ipv4_addr; flags timeout; elements = { 192.0.2.7 timeout 1h }; }
    counter dns { }
    chain input {
        type filter hook input priority 0; policy accept;
        ct state established counter accept
        ip saddr @known drop
        udp dport 53 counter name dns
    }
}
"""

ON_VETH: list[Knob] = [
    channels("s0", {"rx": 2, "tx": 3}),
    offloads("s0", {"gro": True, "tx": False}),
    mtu("s0", 1400),
    rps("s0", each([0, 1])),
    rps("s0", in_turn([1, 0])),
    xps("s0", in_turn([0, 1])),
    QueueFiles("s0", "rps_flow_cnt", "each 256"),
    RootQdisc("s0", "pfifo limit 77"),
    RootQdisc("s0", "pfifo_fast"),
    neighbours("s0", {"192.0.2.1": MAC, "2001:db8::1": MAC}),
    sysctl("net.ipv4.ip_forward", 1),
    FirewallRules("none"),
]


@pytest.fixture
def host() -> Iterator[ShellHost]:
    """A namespace with a pair of veth, s0 of four queues and p0 of one, and rules of every sort."""
    name = f"pdrgate-t-{uuid.uuid4().hex[:8]}"
    subprocess.run(("ip", "netns", "add", name), check=True)
    try:
        with netns_host(name) as host:
            many, one = (("numrxqueues", number, "numtxqueues", number) for number in "41")
            host.run("ip", "link", "add", "s0", *many, "type", "veth", "peer", "name", "p0", *one)
            for device in ("s0", "p0"):
                host.run("ip", "link", "set", device, "up")
            if shutil.which("nft"):
                host.write(f"/run/{name}.nft", RULES)
                host.run("nft", "--file", f"/run/{name}.nft")
                host.run("rm", f"/run/{name}.nft")
            yield host
    finally:
        subprocess.run(("ip", "netns", "delete", name), check=True)


def comparable(state: dict[str, str]) -> dict[str, str]:
    """A snapshot without the time that an element of a set still has."""
    rules = " ".join(word for word in state.get("firewall", "").split() if not word.endswith("ms"))
    return state | {"firewall": rules}


def taken(host: ShellHost) -> dict[str, str]:
    return comparable(dict(snapshot(host, ["s0", "p0"])))


@pytest.mark.parametrize("knob", ON_VETH, ids=lambda knob: knob.describe())
def test_a_real_device_takes_it_and_has_back_what_it_had(host: ShellHost, knob: Knob) -> None:
    if isinstance(knob, FirewallRules) and not shutil.which("nft"):
        pytest.skip("nft is not installed")
    before = taken(host)
    with KnobSet() as knobs:
        assert knobs.apply(host, knob)
        assert knob.holds(knob.read(host), knob.value)
        assert taken(host) != before
    assert taken(host) == before


def test_work_in_the_way_of_packets_leaves_no_trace(host: ShellHost) -> None:
    """What a spike-in plants, on ports with addresses and routes."""

    def shown() -> list[str]:
        commands = ("tc qdisc show", "ip -4 route show table all", "ip -6 route show table all")
        lines = [line for command in commands for line in host.run(*command.split()).stdout.splitlines()]
        # Ports get addresses of their own when their links have been up for a while.
        return [line for line in lines if "fe80:" not in line and "ff00:" not in line]

    for network, address in (("198.18.0.0/16", "10.211.0.2/24"), ("2001:2:0:1::/64", "fd00:211::2/64")):
        host.run("ip", "address", "add", address, "dev", "s0", *(("nodad",) if ":" in address else ()))
        host.run("ip", "route", "add", network, "dev", "s0")
    before = shown()
    with KnobSet() as knobs:
        for knob in (
            egress_filter("s0", 1), egress_filter("s0", MOST_INSTRUCTIONS),
            *(side_routes(network, most_side_routes(network)) for network in ("198.18.0.0/16", "2001:2:0:1::/64")),
        ):  # fmt: skip
            assert knobs.apply(host, knob)
            assert knob.holds(knob.read(host), knob.value)
        assert shown() != before
        for destination in ("198.18.0.9", "2001:2:0:1::9"):  # goes where it went
            assert host.run_json("ip", "-j", "route", "get", destination)[0]["dev"] == "s0"
    assert shown() == before


def test_threaded_napi_where_a_veth_has_napi(host: ShellHost) -> None:
    before = taken(host)
    with KnobSet() as knobs:
        knobs.apply(host, offloads("s0", {"gro": True}))
        knobs.apply(host, threaded_napi("s0"))
        assert host.read("/sys/class/net/s0/threaded") == "1\n"
    assert taken(host) == before


def test_all_of_a_file_at_once(host: ShellHost) -> None:
    section = {
        "missing": "skip",
        "net.ipv4.ip_forward": 1,
        "ports": {
            "channels": {"rx": 2, "tx": 2}, "mtu": 1400, "offloads": {"gro": True}, "gro_flush_timeout": 20000,
            "napi_defer_hard_irqs": 2, "threaded_napi": True, "qdisc": "pfifo limit 9", "rps": [0],
            "xps": {"in_turn": [0]}, "rfs": False, "rings": {"rx": 512}, "interrupts": [0], "rss": "default",
            "flow_hash": {"udp4": "sdfn"}, "pause": {"rx": False}, "coalescing": {"rx-usecs": 9},
        },
        "neighbours": {"s0": {"192.0.2.1": MAC}},
    }  # fmt: skip
    host.write("/sys/class/net/s0/queues/rx-3/rps_cpus", "2\n")
    before = taken(host)
    knobs = KnobSet()
    for one in plan_knobs(section, ["s0"]):
        if knobs.apply(host, one.knob, one.missing) and not one.keeps:
            assert one.knob.holds(one.knob.read(host), one.knob.value)
    lacking = [sentence.removeprefix("skipped ").partition(":")[0] for sentence in knobs.skipped]
    assert sorted(set(lacking)) == [
        "RSS hash of s0", "RSS table of s0", "interrupt coalescing of s0", "interrupts of s0", "pause frames of s0",
        "rings of s0",
    ]  # fmt: skip
    knobs.restore()
    # The queue that went came back empty, and got its CPUs again.
    assert host.read("/sys/class/net/s0/queues/rx-3/rps_cpus") == "2\n"
    assert taken(host) == before


@pytest.mark.parametrize(
    ("knob", "lack"),
    [
        (rings("s0", {"rx": 512}), "has no rings that can be set (Operation not supported)"),
        (coalescing("s0", {"rx-usecs": 3}), "has no interrupt coalescing that can be set (Operation not supported)"),
        (pause_frames("s0", {"rx": False}), "has no pause frames that can be set (Operation not supported)"),
        (channels("s0", {"rx": 5}), "takes at most rx=4 of channels"),
        (channels("s0", {"combined": 1}), "has no combined among its channels"),
        (offloads("s0", {"lro": True}), "is fixed at off by its driver"),
        (flow_hash("s0", {"udp4": "sdfn"}), "has no RSS hash of udp4"),
        (InterruptAffinity("s0", each([0])), "has no interrupts of its own"),
        (xps("p0", each([0])), "it has one such queue only"),
        (rps("s0", each([4000])), "has no CPU 4000 online"),
        (rfs_off("nope"), "has no interface nope"),
    ],
    ids=lambda one: one.describe() if not isinstance(one, str) else "",
)
def test_what_a_veth_lacks_is_a_skip_or_an_error(host: ShellHost, knob: Knob, lack: str) -> None:
    before = taken(host)
    knobs = KnobSet()
    assert not knobs.apply(host, knob, "skip")
    assert lack in knobs.skipped[0]
    with pytest.raises(TestbedError) as error:
        knobs.apply(host, knob)
    assert lack in str(error.value)
    assert taken(host) == before


def test_a_qdisc_that_the_kernel_does_not_have_is_a_skip_too(host: ShellHost) -> None:
    knobs = KnobSet()
    assert not knobs.apply(host, RootQdisc("s0", "nonesuch"), "skip")
    assert "kind is unknown" in knobs.skipped[0]


def test_a_tree_of_classes_is_not_replaced(host: ShellHost) -> None:
    host.run("tc", "qdisc", "add", "dev", "s0", "root", "handle", "1:", "htb")
    with pytest.raises(TestbedError, match=r"the qdisc htb 1: of s0 .* was set up by somebody and could not be"):
        KnobSet().apply(host, RootQdisc("s0", "pfifo"), "skip")
    assert host.run("tc", "qdisc", "show", "dev", "s0").stdout.startswith("qdisc htb 1: root ")


def test_rules_come_back_with_sets_counters_and_tracking(host: ShellHost) -> None:
    if not shutil.which("nft"):
        pytest.skip("nft is not installed")
    before = taken(host)["firewall"]
    assert "ct state established counter" in before
    assert "elements = { 192.0.2.7 timeout 1h expires" in before
    knobs = KnobSet()
    knobs.apply(host, FirewallRules("none"))
    assert host.run("nft", "list", "ruleset").stdout == ""
    assert knobs.restore() == []
    assert taken(host)["firewall"] == before
    assert not list(Path("/run").glob("pdrgate-rules-*"))


def test_a_device_of_this_machine_has_the_interrupts_that_its_bus_gave_it() -> None:
    with local_host() as host:
        for path in sorted(Path("/sys/class/net").glob("*/device")):
            found = device_interrupts(host, path.parent.name)
            folders = [path.resolve() / "msi_irqs", path.resolve().parent / "msi_irqs"]
            given = next(({int(one.name) for one in folder.iterdir()} for folder in folders if folder.is_dir()), set())
            assert set(found) <= given
        assert device_interrupts(host, "lo") == {}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Path]:
    """A program that is called irqbalance."""
    if shutil.which("irqbalance") or Path("/run/systemd/system").exists():
        pytest.skip("this machine may have an irqbalance of its own")
    program = tmp_path / "irqbalance"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    yield program
    for path in Path("/proc").glob("[0-9]*/exe"):
        try:
            running = path.readlink() == program
        except OSError:
            continue
        if running:
            os.kill(int(path.parent.name), signal.SIGKILL)


def test_a_process_irqbalance_is_ended_and_started_again_as_it_was(daemon: Path) -> None:
    started = subprocess.Popen((str(daemon), "600"))
    try:
        with local_host() as host:
            knobs = KnobSet()
            before = Irqbalance("off").read(host)
            knobs.apply(host, Irqbalance("off"))
            assert before == f"process {daemon} 600"
            # It has ended and nobody has asked for its exit code yet: its entry in /proc still has its name.
            assert Path(f"/proc/{started.pid}/comm").read_text() == "irqbalance\n"
            assert Irqbalance("off").read(host) == "off"
            assert started.wait(60) == -signal.SIGTERM
            assert knobs.restore() == []
            assert Irqbalance("off").read(host) == before
    finally:
        started.kill()
        started.wait()


# --- pdrgate restore ---

RUN = """
import sys, time
from pathlib import Path
from pdrgate.hosts.host import netns_host
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.knobs import *
state, namespace, take = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "lock"
lock = Lease.acquire(whole_machine(), state) if take else None
host, knobs = netns_host(namespace), KnobSet(Journal.begin(state))
section = {"net.ipv4.ip_forward": 1, "firewall": "none", "neighbours": {"s0": {"192.0.2.1": "02:70:64:72:00:01"}},
           "ports": {"channels": {"rx": 2, "tx": 2}, "mtu": 1400, "offloads": {"gro": True}, "qdisc": "pfifo limit 9",
                     "rps": [0, 1], "xps": {"in_turn": [0, 1]}}}
for one in plan_knobs(section, ["s0"]):
    knobs.apply(host, one.knob, one.missing)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[object]:
    """Starts a process that has turned knobs, with their changes in a journal; ended after the test."""
    children: list[subprocess.Popen[str]] = []

    def start(namespace: str, lock: str = "lock") -> subprocess.Popen[str]:
        child = subprocess.Popen(
            (sys.executable, "-c", RUN, str(tmp_path / "state"), namespace, lock),
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(LIBRARIES)},
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.skipif(not shutil.which("nft"), reason="nft is not installed")
def test_restore_undoes_what_a_killed_run_left(host, run, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    before = taken(host)
    state = str(tmp_path / "state")
    child = run(host.name.removeprefix("netns:"))
    turned = taken(host)
    assert turned != before

    assert main(["restore", "--state", state]) == EXIT_PASS
    assert capsys.readouterr().out.startswith("nothing to undo")  # the run is alive
    assert taken(host) == turned

    child.kill()
    child.wait()
    assert main(["restore", "--state", state]) == EXIT_PASS
    told = capsys.readouterr().out.splitlines()
    left = f" on {host.name} (left by the killed run of pid {child.pid})"
    assert all(line.startswith("put back ") and line.endswith(left) for line in told)
    assert [line.partition(": ")[0].partition(" = ")[0] for line in told] == [
        "put back static neighbours of s0", "put back XPS of s0", "put back RPS of s0", "put back qdisc of s0",
        "put back offloads of s0", "put back /sys/class/net/s0/mtu", "put back channels of s0",
        "put back firewall rules", "put back net.ipv4.ip_forward",
    ]  # fmt: skip
    assert taken(host) == before
    assert main(["restore", "--state", state]) == EXIT_PASS
    assert capsys.readouterr().out == "nothing to undo: no run has left anything\n"


def test_restore_leaves_a_run_that_lives_alone(host, run, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    run(host.name.removeprefix("netns:"), "no lock")
    turned = taken(host)
    assert main(["restore", "--state", str(tmp_path / "state")]) == EXIT_PASS
    assert capsys.readouterr().out.startswith("nothing to undo")
    assert taken(host) == turned


def test_restore_says_what_it_could_not_undo_and_tries_again(host, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    state = tmp_path / "state"
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom pdrgate.safety.journal import Journal\n"
        "Journal.begin(Path(sys.argv[1])).change('local', {'kind': 'knob-of-a-later-version'}, '1', '2')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    child = subprocess.Popen(
        (sys.executable, "-c", script, str(state)), env={**os.environ, "PYTHONPATH": str(LIBRARIES)}
    )
    assert child.wait(60) == -signal.SIGKILL
    for _ in range(2):
        assert main(["restore", "--state", str(state)]) == EXIT_FAULT
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith("could not undo {")
        assert "is no knob that this version of pdrgate knows; the next start tries again, and so does: " in line
    assert len(list(state.glob("run-*.jsonl"))) == 1


def test_a_testbed_files_knobs_are_each_hops(make_testbed) -> None:  # type: ignore[no-untyped-def]
    section = {
        "missing": "skip", "net.ipv4.ip_default_ttl": 77, "cpu": {"governor": "nonesuch"},
        "ports": {"mtu": 1400, "rings": {"rx": 512}, "qdisc": "pfifo limit 9"},
    }  # fmt: skip
    testbed = make_testbed(hops=2, section=section)
    for hop in testbed.hops:
        assert hop.host.read("/proc/sys/net/ipv4/ip_default_ttl") == "77\n"
        for port in (hop.ingress, hop.egress):
            assert hop.host.read(f"/sys/class/net/{port.interface}/mtu") == "1400\n"
            assert RootQdisc(port.interface, "").read(hop.host) == "pfifo limit 9"
    sentence = testbed.sentence()
    # Once for each port of a hop, for all hops are alike.
    assert [sentence.count(f"; skipped rings of {port}: rx=512: ") for port in ("in0", "out0")] == [1, 1]
    assert sentence.count("; skipped CPU frequency governor: nonesuch: ") == 1
    assert testbed.describe()["knobs"] == (
        "cpu.governor=nonesuch; missing=skip; net.ipv4.ip_default_ttl=77; ports.mtu=1400; ports.qdisc=pfifo limit 9; "
        "ports.rings.rx=512"
    )
    with pytest.raises(TestbedError, match=r"cannot set rings of in0: rx=512: in0 on .* has no rings that can be set"):
        make_testbed(hops=1, section={"ports": {"rings": {"rx": 512}}})
