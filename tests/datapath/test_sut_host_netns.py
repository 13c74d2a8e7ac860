"""Hosts, knobs and counters on real namespaces with real sysctls; nothing outside the namespaces is changed."""

import os
import subprocess
import uuid

import pytest

from pdrgate.hosts.host import HostError, local_host, netns_host
from pdrgate.knobs import KnobSet, each, offloads, rps, sysctl
from pdrgate.knobs.file_knob import FileKnob, device_attribute, threaded_napi
from pdrgate.observers.counters import read_counters
from pdrgate.observers.environment import capture_environment
from pdrgate.observers.namespace_counters import NamespaceCounters
from pdrgate.observers.reading import Counter, Place, nested
from pdrgate.observers.watching import CounterObserver, watching
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath


@pytest.fixture
def namespace():
    name = f"pdrgate-t-{uuid.uuid4().hex[:8]}"
    made = subprocess.run(("ip", "netns", "add", name), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no namespace can be made here: {made.stderr.strip()}")
    yield name
    subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True)


@pytest.fixture
def host(namespace):
    with netns_host(namespace) as host:
        host.run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        yield host


def test_files_and_interfaces_are_those_of_the_namespace(host):
    assert host.run("ls", "/sys/class/net").stdout.split() == ["lo", "v0", "v1"]
    assert {link["ifname"] for link in host.run_json("ip", "-j", "link")} == {"lo", "v0", "v1"}
    host.write("/proc/sys/net/ipv4/ip_forward", "1\n")
    assert host.read("/proc/sys/net/ipv4/ip_forward") == "1\n"
    assert host.read("/proc/sys/net/ipv6/conf/v0/forwarding") == "0\n"


def test_a_namespace_that_goes_and_comes_back(namespace):
    with local_host() as local, netns_host(namespace) as host:
        host.run("true")
        with pytest.raises(HostError, match=r"did not end within 0\.1 s"):
            host.run("sleep", "600", timeout=0.1)
        local.run("ip", "netns", "delete", namespace)
        with pytest.raises(HostError, match=rf"^cannot open a shell on netns:{namespace}: .*No such file or directory"):
            host.run("true")
        local.run("ip", "netns", "add", namespace)
        assert host.run("ls", "/sys/class/net").stdout == "lo\n"


def test_the_kernels_refusal_of_a_value_is_told(host):
    with pytest.raises(
        TestbedError, match=r"^writing abc to /proc/sys/net/ipv4/ip_forward on netns:.*Invalid argument"
    ):
        KnobSet().apply(host, sysctl("net.ipv4.ip_forward", "abc"))


def test_knobs_of_all_kinds_go_on_and_back(host):
    for device in ("v0", "v1"):
        host.run("ip", "link", "set", device, "up")
    cpus = sorted(os.sched_getaffinity(0))
    turned = [
        sysctl("net.ipv4.ip_forward", 1),
        sysctl("net.ipv6.conf.v0.forwarding", 1),
        sysctl("net.ipv4.tcp_rmem", "4096 65536 131072"),
        rps("v0", each(cpus)),
        rps("v0", each(cpus[-1:])),
        device_attribute("v0", "gro_flush_timeout", 20_000),
        device_attribute("v0", "napi_defer_hard_irqs", 2),
        offloads("v0", {"tx": False, "tso": False, "gro": True, "lro": False}),
        offloads("v0", {"tx": True}),
        threaded_napi("v0"),
    ]

    def state():
        files = [host.read(knob.path) for knob in turned if isinstance(knob, FileKnob)]
        return files, rps("v0", each([])).read(host), host.run("ethtool", "-k", "v0").stdout

    before = state()
    with KnobSet() as knobs:
        for knob in turned:
            knobs.apply(host, knob)
        features = host.run_json("ethtool", "--json", "-k", "v0")[0]
        assert features["generic-receive-offload"]["active"]
        assert not features["tx-tcp-segmentation"]["active"]
        assert host.read("/proc/sys/net/ipv4/ip_forward") == "1\n"
        assert state() != before
    assert state() == before


def test_the_backlog_is_the_machines_and_not_the_namespaces(host):
    with pytest.raises(TestbedError, match=r"netdev_max_backlog: .* it is one for the whole machine"):
        KnobSet().apply(host, sysctl("net.core.netdev_max_backlog", 4096))


def test_a_cpu_that_is_not_there_is_not_steered_to(host):
    with pytest.raises(TestbedError, match="has no CPU 4000 online"):
        KnobSet().apply(host, rps("v0", each([4000])))
    assert int(host.read("/sys/class/net/v0/queues/rx-0/rps_cpus").replace(",", ""), 16) == 0


def test_offloads_that_are_fixed_or_unknown(host):
    for features, message in (({"lro": True}, "lro of v0 on netns:.* is fixed at off"), ({"grow": True}, "mean gro")):
        with pytest.raises(TestbedError, match=message):
            KnobSet().apply(host, offloads("v0", features))
        assert not KnobSet().apply(host, offloads("v0", features), missing="skip")


def test_counters_of_real_packets(host):
    for command in ("link set v0 up", "link set v1 up", "link set lo up"):
        host.run("ip", *command.split())
    before = read_counters(host, ["v0", "v1", "lo"])
    host.run("python3", "-c", "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))")
    after = read_counters(host, ["v0", "v1", "lo"])
    sent = Counter(Place("interface", "lo"), "tx_packets")
    assert after[sent] > before[sent]
    assert before.keys() == after.keys()
    cpu = min(os.sched_getaffinity(0))
    names = {
        Counter(Place("interface", "v0"), "rx_dropped"),
        Counter(Place("backlog", str(cpu)), "dropped"),
        Counter(Place("cpu", str(cpu)), "steal_ticks"),
        Counter(Place("ip"), "ForwDatagrams"),
    }
    assert names <= before.keys()
    with pytest.raises(TestbedError, match=r"^netns:.* has no interface v9, but lo, v0, v1; was it removed or renamed"):
        read_counters(host, ["v0", "v9"])


def test_without_programs_a_namespace_tells_the_same(host, namespace):
    """Of drops in a queue too, and of a driver with statistics of its own."""
    for words in (
        ("ip", "link", "set", "v0", "up"), ("ip", "link", "set", "v1", "up"),
        ("ip", "address", "add", "10.0.0.1/24", "dev", "v0"),
        ("ip", "neigh", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "v0"),
        ("tc", "qdisc", "add", "dev", "v0", "root", "handle", "30:", "pfifo", "limit", "0"),
    ):  # fmt: skip
        host.run(*words)
    sends = "import socket; s = socket.socket(2, 2); [s.sendto(b'x', ('10.0.0.2', 9)) for _ in range(100)]"
    host.run("python3", "-c", sends)
    host.run("ip", "link", "set", "v1", "down")  # nothing moves any more
    reading = NamespaceCounters(namespace)
    try:
        found = reading.begin(["v0", "v1", "lo"]).result()
        by_programs = read_counters(host, ["v0", "v1", "lo"])
        moving = {"process_ticks", "softirq_ticks", "steal_ticks", "processed", "time_squeeze"}
        missed = {
            Counter(Place("interface", name), "rx_missed") for name in ("v0", "v1", "lo")
        }  # none of these counts it

        def still(counters):
            return {one: value for one, value in counters.items() if one.name not in moving}

        assert still(found) == {one: value for one, value in still(by_programs).items() if one not in missed}
        assert found.keys() == by_programs.keys() - missed
        assert Counter(Place("driver", "v0"), "rx_queue_0_xdp_drops") in found
        assert found[Counter(Place("qdisc", "v0"), "pfifo")] >= 100
        with pytest.raises(TestbedError, match=rf"^netns:{namespace} has no interface v9, but lo, v0, v1; was it"):
            reading.begin(["v9"]).result()
    finally:
        reading.close()
        reading.close()
    gone = NamespaceCounters(f"{namespace}-gone")
    with pytest.raises(
        TestbedError, match=r"^the counters of network namespace .*-gone cannot be read; was it deleted"
    ):
        gone.begin(["lo"]).result()


def test_the_environment_of_this_machine(host):
    environment = capture_environment(host)
    assert environment.kernel_release == os.uname().release
    assert environment.kernel_version == os.uname().version
    assert environment.memory_bytes is not None
    assert environment.cpus == os.cpu_count()


def test_a_program_runs_in_the_namespace_while_others_do(host):
    with host.start("ip", "monitor", "link") as monitor:
        while "v0" not in host.read(f"{monitor._folder}/out"):
            host.run("ip", "link", "set", "v0", "down")
            host.run("ip", "link", "set", "v0", "up")
        assert "v0" in monitor.stop().stdout


def test_what_watches_a_trial_reads_before_and_after_it(host):
    with watching((CounterObserver(lambda: read_counters(host, ["lo"])),)) as watch:
        host.run("ip", "link", "set", "lo", "up")
        host.run("python3", "-c", "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))")
    before, after = (nested(one)["lo"]["tx_packets"] for one in (watch.observation.before, watch.observation.after))
    assert after > before
