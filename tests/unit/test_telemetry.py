import json

import pytest

from pdrgate.hosts.host import Completed
from pdrgate.observers.counters import (
    driver_losses,
    parse_conntrack,
    parse_driver,
    parse_net_dev,
    parse_netstat,
    parse_qdiscs,
    parse_snmp,
    parse_snmp6,
    parse_softnet,
    parse_stat,
    qdisc_drops,
)
from pdrgate.observers.drop_reasons import DropObserver, KallsymsNames, drop_counter, parse_histogram, parse_reasons
from pdrgate.observers.environment import Environment, PortEnvironment, capture_environment, parse_environment
from pdrgate.observers.reading import Counter, Place, gained, nested, without_zeros
from pdrgate.observers.watching import Observation, watching
from pdrgate.values.errors import TestbedError

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3024      29    0    0    0     0          0         0     3024      29    0    0    0     0       0          0
    s0:640000000 10000000    0 1234    0     0          0         0     180       2    0    7    0     0       0          0
s1.100:       0       0    0    0    0     0          0         0 64000000 1000000    0    0    0     0       0          0
"""  # noqa: E501

SOFTNET_6_18 = """\
00000012 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
0b3490d8 034749c9 0000206f 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000003 00000000 00000000
"""  # noqa: E501
SOFTNET_4_19 = """\
00000012 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
0000001f 0000000a 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
"""

SNMP = """\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates OutTransmits
Ip: 1 64 7634 1 0 7000 0 3 634 4251 5 2 0 0 0 0 0 0 0 11251
Icmp: InMsgs InErrors
Icmp: 1 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 40 1 9 3 8 0 1 0 0
"""  # noqa: E501

NETSTAT = """\
TcpExt: SyncookiesSent PruneCalled IPReversePathFilter
TcpExt: 0 1 7
IpExt: InNoRoutes InTruncatedPkts InMcastPkts
IpExt: 12 0 5
"""

CONNTRACK = """\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop
00000004  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000010 00000000
00000004  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000
"""

ETHTOOL = """\
NIC statistics:
     peer_ifindex: 2
     rx_queue_0_xdp_packets: 12
     rx_queue_0_drops: 3
     rx_queue_0_xdp_drops: 7
     rx_missed_errors: 2
"""

HISTOGRAM = """\
# event histogram
#
# trigger info: hist:keys=reason,location.sym:vals=hitcount:sort=hitcount:size=512 [active]
#

{ reason:         99, location: [ffffffff9c5a3d10] veth_xmit                               } hitcount:          1
{ reason:          2, location: [ffffffff9c6a3d10] ip6_mc_input                            } hitcount:          3
{ reason:         12, location: [ffffffff9c7a3d10] nf_hook_slow                            } hitcount:       2000

Totals:
    Hits: 2004
    Entries: 3
    Dropped: 0
"""

QDISCS = [
    {"kind": "clsact", "handle": "ffff:", "dev": "in0", "parent": "ffff:fff1", "drops": 9},
    {"kind": "htb", "handle": "1:", "dev": "out0", "root": True, "drops": 17},
    {"kind": "fq_codel", "handle": "8001:", "dev": "out0", "parent": "1:1", "drops": 10},
    {"kind": "fq_codel", "handle": "8002:", "dev": "out0", "parent": "1:2", "drops": 6},
    {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True, "drops": 0},
]

SNMP6 = """\
Ip6InReceives                   \t1000
Ip6InHdrErrors                  \t4
Ip6InDiscards                   \t5
Ip6OutForwDatagrams             \t991
Icmp6InMsgs                     \t17
Udp6InDatagrams                 \t17
Udp6RcvbufErrors                \t3
"""

STAT = """\
cpu  5639 0 2649 109898 483 0 79 15 0 0
cpu0 1046 0 663 57663 14 0 10 3 0 0
cpu1 4592 0 1985 52234 469 0 68 11 0 0
intr 219799 0 0 0
ctxt 443198
"""


def test_interfaces():
    assert parse_net_dev(NET_DEV) == {
        "lo": {"rx_packets": 29, "rx_dropped": 0, "tx_packets": 29, "tx_dropped": 0},
        "s0": {"rx_packets": 10000000, "rx_dropped": 1234, "tx_packets": 2, "tx_dropped": 7},
        "s1.100": {"rx_packets": 0, "rx_dropped": 0, "tx_packets": 1000000, "tx_dropped": 0},
    }


def test_softnet_names_the_cpu_that_its_column_tells():
    counters = parse_softnet(SOFTNET_6_18)
    assert counters[Counter(Place("backlog", "0"), "processed")] == 0x12
    assert counters[Counter(Place("backlog", "3"), "dropped")] == 0x34749C9
    assert counters[Counter(Place("backlog", "3"), "time_squeeze")] == 0x206F
    assert Counter(Place("backlog", "1"), "dropped") not in counters


def test_softnet_of_older_kernels_has_a_line_for_each_cpu():
    assert nested(parse_softnet(SOFTNET_4_19)) == {
        "cpu0/backlog": {"processed": 18, "dropped": 0, "time_squeeze": 0},
        "cpu1/backlog": {"processed": 31, "dropped": 10, "time_squeeze": 2},
    }


def test_ip_counters_have_the_kernels_names():
    assert nested(parse_snmp(SNMP)) == {
        "ip": {
            "ForwDatagrams": 7000, "InHdrErrors": 1, "InAddrErrors": 0, "InDiscards": 3, "OutDiscards": 5,
            "OutNoRoutes": 2, "InUnknownProtos": 0, "FragFails": 0, "InDelivers": 634,
        },
        "udp": {"InDatagrams": 40, "NoPorts": 1, "InErrors": 9, "RcvbufErrors": 8, "InCsumErrors": 1, "MemErrors": 0},
    }  # fmt: skip
    assert nested(parse_snmp6(SNMP6)) == {
        "ip6": {"OutForwDatagrams": 991, "InHdrErrors": 4, "InDiscards": 5},
        "udp6": {"InDatagrams": 17, "RcvbufErrors": 3},
    }
    assert nested(parse_netstat(NETSTAT)) == {"ip": {"IPReversePathFilter": 7, "InNoRoutes": 12, "InTruncatedPkts": 0}}


def test_reasons_for_drops_have_the_kernels_names():
    names = parse_reasons('__print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 12, "NETFILTER_DROP" })')
    assert names == {2: "NOT_SPECIFIED", 12: "NETFILTER_DROP"}
    assert nested(parse_histogram(HISTOGRAM, names)) == {
        "drops": {"NOT_SPECIFIED ip6_mc_input": 3, "NETFILTER_DROP nf_hook_slow": 2000, "reason 99 veth_xmit": 1}
    }


def test_a_reason_that_comes_up_in_a_trial_began_at_none():
    first, second = drop_counter("XDP", "do_xdp_generic"), drop_counter("NOMEM", "alloc")
    readings = iter([{first: 5}, {first: 5, second: 7}])

    class Told:
        def read(self):
            return next(readings)

        def counter(self, drop):
            assert drop is second, "nobody asks for the name of what did not come"
            return drop

        def close(self):
            raise AssertionError("an observer closes nothing")

    observer = DropObserver(Told())
    observer.begin()
    seen = observer.end()
    assert gained(seen.before, seen.after) == {second: 7}


def test_a_function_is_told_by_an_address_within_it():
    symbols = KallsymsNames("ffffffff81000000 T begin\nffffffff81000100 t ip6_forward\nffffffff81000150 d data\n")
    assert [symbols.function(0xFFFFFFFF81000000 + at) for at in (0, 0xFF, 0x100, 0x900)] == [
        "begin", "begin", "ip6_forward", "ip6_forward"
    ]  # fmt: skip
    assert symbols.function(1) == "?"
    assert KallsymsNames("0000000000000000 T hidden\n").function(0xFFFFFFFF81000000) == "?"


def test_packets_that_no_connection_could_be_noted_for_are_summed_over_cpus():
    assert nested(parse_conntrack(CONNTRACK)) == {"conntrack": {"drop": 0x11}}


def test_a_driver_is_asked_for_what_it_dropped():
    assert nested(driver_losses("in0", parse_driver(ETHTOOL))) == {
        "in0/driver": {"rx_queue_0_drops": 3, "rx_queue_0_xdp_drops": 7, "rx_missed_errors": 2}
    }


def test_a_qdisc_has_what_it_dropped_itself_and_not_its_children():
    assert nested(qdisc_drops(("in0", "out0"), parse_qdiscs(json.dumps(QDISCS)))) == {
        "in0/qdisc": {"clsact": 9}, "out0/qdisc": {"htb": 1, "fq_codel": 16}
    }  # fmt: skip
    assert parse_qdiscs("qdisc noqueue 0: dev lo root refcnt 2") == []


def test_of_qdiscs_without_a_handle_the_root_is_the_parent():
    queues = [
        {"kind": "mq", "handle": "0:", "dev": "in0", "root": True, "drops": 12},
        {"kind": "pfifo_fast", "handle": "0:", "dev": "in0", "parent": ":1", "drops": 5},
        {"kind": "pfifo_fast", "handle": "0:", "dev": "in0", "parent": ":2", "drops": 7},
    ]
    assert nested(qdisc_drops(("in0",), parse_qdiscs(json.dumps(queues)))) == {"in0/qdisc": {"mq": 0, "pfifo_fast": 12}}


def test_cpu_times():
    assert nested(parse_stat(STAT)) == {
        "cpu0": {"process_ticks": 1709, "softirq_ticks": 10, "steal_ticks": 3},
        "cpu1": {"process_ticks": 6577, "softirq_ticks": 68, "steal_ticks": 11},
    }


def test_parsers_find_nothing_in_nothing():
    for parse in (parse_net_dev, parse_softnet, parse_snmp, parse_snmp6, parse_netstat, parse_conntrack, parse_stat):
        assert parse("") == {}


def test_a_counter_that_starts_to_grow_stays_in_both_readings():
    a, b, c = (Counter(Place("interface", "in0"), name) for name in "abc")
    before, after = without_zeros({a: 0, b: 0, c: 4}, {a: 0, b: 2, c: 4})
    assert before == {b: 0, c: 4}
    assert after == {b: 2, c: 4}
    assert gained(before, after) == {b: 2}


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("interface", "in0").of("hop1"), "hop1/in0"),
        (Place("interface", "eth0.100"), "eth0.100"),
        (Place("cpu", "12"), "cpu12"),
        (Place("backlog", "1"), "cpu1/backlog"),
        (Place("ip6").of("hop2"), "hop2/ip6"),
        (Place("vcpu", "0"), "vcpu0"),
        (Place("receiver", "7"), "receiver7"),
        (Place("heartbeat", "3"), "cpu3/heartbeat"),
        (Place("wire", "in0").of("hop1"), "hop1/in0/wire"),
        (Place("qdisc", "eth0.100"), "eth0.100/qdisc"),
        (Place("driver", "t0").of("tg"), "tg/t0/driver"),
    ],
)
def test_places_in_words(place, text):
    assert str(place) == text
    assert Place.parse(text) == place
    assert str(Counter(place, "x")) == f"{text}.x"


def test_every_observer_that_was_begun_is_ended():
    done = []

    class Seen:
        def __init__(self, name, fails=""):
            self.name, self.fails = name, fails

        def begin(self):
            done.append(f"begin {self.name}")
            if self.fails == "begin":
                raise TestbedError("no begin")

        def end(self):
            done.append(f"end {self.name}")
            if self.fails == "end":
                raise TestbedError("no end")
            return Observation({}, {Counter(Place("interface", self.name), "x"): 1})

    with watching((Seen("a"), Seen("b"))) as watch:
        done.append("trial")
    assert done == ["begin a", "begin b", "trial", "end b", "end a"]
    assert nested(watch.observation.after) == {"a": {"x": 1}, "b": {"x": 1}}

    done.clear()
    with pytest.raises(TestbedError, match="no begin"), watching((Seen("a"), Seen("b", "begin"), Seen("c"))):
        done.append("trial")
    assert done == ["begin a", "begin b", "end a"]

    done.clear()
    with pytest.raises(ValueError, match="trial") as error, watching((Seen("a"), Seen("b", "end"))):
        raise ValueError("trial")
    assert done == ["begin a", "begin b", "end b", "end a"]
    assert error.value.__notes__ == ["no end"]


ENVIRONMENT = """\
==> uname <==
6.12.1-amd64
#1 SMP PREEMPT_DYNAMIC Debian 6.12.1-1
x86_64

==> config <==
cd69f98a06748cbd55a2046a0436aaff9f52c5943c458029e8590e3618f2598e  -

==> /proc/cmdline <==
BOOT_IMAGE=/vmlinuz root=/dev/sda1

==> /proc/cpuinfo <==
processor\t: 0
model name\t: AMD EPYC
flags\t\t: fpu hypervisor

==> /proc/meminfo <==
MemTotal:       24684084 kB

==> /etc/os-release <==
PRETTY_NAME="Debian GNU/Linux 13 (trixie)"
NAME="Debian GNU/Linux"

==> /sys/devices/system/cpu/online <==
0-3,6

==> /sys/devices/system/cpu/smt/active <==
1

==> /sys/devices/system/cpu/vulnerabilities/meltdown <==
Not affected

==> /sys/devices/system/cpu/vulnerabilities/spectre_v2 <==
Mitigation: Retpolines

==> /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor <==
powersave

==> /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor <==
performance
"""


def test_environment():
    environment = parse_environment(ENVIRONMENT)
    assert environment == Environment(
        kernel_release="6.12.1-amd64",
        kernel_version="#1 SMP PREEMPT_DYNAMIC Debian 6.12.1-1",
        architecture="x86_64",
        config_sha256="cd69f98a06748cbd55a2046a0436aaff9f52c5943c458029e8590e3618f2598e",
        cmdline="BOOT_IMAGE=/vmlinuz root=/dev/sda1",
        mitigations={"meltdown": "Not affected", "spectre_v2": "Mitigation: Retpolines"},
        cpu_model="AMD EPYC",
        cpus=5,
        governor="performance, powersave",
        smt=True,
        hypervisor=True,
        memory_bytes=24684084 * 1024,
        distribution="Debian GNU/Linux 13 (trixie)",
    )
    assert environment.to_dict()["cpus"] == 5


def test_what_a_host_does_not_tell_is_none():
    assert parse_environment("") == Environment()
    odd = "==> uname <==\n6.1\n\n==> config <==\n\n\n==> /sys/devices/system/cpu/online <==\nall\n"
    assert parse_environment(odd) == Environment(kernel_release="6.1")


RACK = """\
==> /proc/cpuinfo <==
processor\t: 0
microcode\t: 0xd0003a5
processor\t: 1
microcode\t: 0xd0003b9

==> /proc/sys/kernel/random/boot_id <==
0f9a8e8c-8d0c-4b5c-9c0f-3c6f0a1f2e11

==> /sys/devices/system/clocksource/clocksource0/current_clocksource <==
tsc

==> /sys/devices/system/cpu/intel_pstate/no_turbo <==
1

==> /sys/devices/system/cpu/cpuidle/current_driver <==
intel_idle

==> /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver <==
intel_pstate

==> /sys/devices/system/node/node0/cpulist <==
0-15

==> /sys/devices/system/node/node1/cpulist <==
16-31

==> /proc/sys/net/core/netdev_budget <==
300

==> /proc/sys/kernel/timer_migration <==
1
"""
PORTS = """\

==> /proc/sys/net/ipv4/conf/all/rp_filter <==
2

==> /sys/class/net/ens1f0/mtu <==
1500

==> /sys/class/net/ens1f0/speed <==
25000

==> /sys/class/net/ens1f0/device/numa_node <==
1

==> ethtool -i ens1f0 <==
driver: ice
version: 6.8.0-45-generic
firmware-version: 4.40 0x8001c7f0 1.3534.0
expansion-rom-version:
bus-info: 0000:b1:00.0
supports-statistics: yes

==> ethtool -k ens1f0 <==
Features for ens1f0:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: on
generic-receive-offload: on
large-receive-offload: off [fixed]
rx-gro-hw: off [requested on]
highdma: on [fixed]

==> /sys/class/net/eth1/mtu <==
9000

==> /sys/class/net/eth1/speed <==
-1

==> /sys/class/net/eth1/device/numa_node <==
-1

==> ethtool -i eth1 <==
driver: virtio_net
version: 1.0.0
firmware-version:
bus-info: 0000:00:04.0

"""
ICE = PortEnvironment(
    "ens1f0", driver="ice", driver_version="6.8.0-45-generic", firmware="4.40 0x8001c7f0 1.3534.0", bus="0000:b1:00.0",
    numa_node=1, mtu=1500, speed=25000,
    offloads=("generic-receive-offload", "highdma", "rx-checksumming", "tx-checksum-ipv4", "tx-checksumming"),
)  # fmt: skip


def test_environment_of_a_machine_with_network_cards():
    environment = parse_environment(RACK + PORTS, ("ens1f0", "eth1"))
    assert environment == Environment(
        boot_id="0f9a8e8c-8d0c-4b5c-9c0f-3c6f0a1f2e11",
        microcode="0xd0003a5, 0xd0003b9",
        frequency_driver="intel_pstate",
        turbo=False,
        idle_driver="intel_idle",
        clocksource="tsc",
        numa_nodes={"0": "0-15", "1": "16-31"},
        sysctls={"net.core.netdev_budget": "300", "kernel.timer_migration": "1", "net.ipv4.conf.all.rp_filter": "2"},
        ports=(
            ICE,
            PortEnvironment(
                "eth1", driver="virtio_net", driver_version="1.0.0", bus="0000:00:04.0", mtu=9000, offloads=None
            ),
        ),
    )
    assert environment.to_dict()["ports"][0]["offloads"][0] == "generic-receive-offload"


def test_turbo_by_the_switch_of_other_drivers():
    assert parse_environment("==> /sys/devices/system/cpu/cpufreq/boost <==\n1\n").turbo is True


def test_a_port_without_ethtool_is_unknown_and_still_listed():
    assert parse_environment("", ("eth0",)).ports == (PortEnvironment("eth0"),)


class Scripted:
    """Answers every command with one text, and counts the commands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[tuple[str, ...]] = []

    def run(self, *argv: str, timeout: float = 10.0, check: bool = True) -> Completed:
        self.asked.append(argv)
        return Completed(argv, 0, self.text, "")


def test_a_machine_and_its_namespace_are_asked_once_each():
    machine, namespace = Scripted(RACK), Scripted(PORTS.replace("conf/all/rp_filter", "ip_early_demux"))
    environment = capture_environment(machine, ("ens1f0",), namespace)  # type: ignore[arg-type]
    assert environment.ports == (ICE,)
    assert environment.sysctls == {
        "net.core.netdev_budget": "300", "kernel.timer_migration": "1", "net.ipv4.ip_early_demux": "2",
    }  # fmt: skip
    assert (len(machine.asked), len(namespace.asked)) == (1, 1)
    assert namespace.asked[0][3:] == ("sh", "ens1f0")
    assert "ethtool" not in machine.asked[0][2]
