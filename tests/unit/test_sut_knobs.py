"""Knobs against a host that exists only here, and that can misbehave."""

import json
from dataclasses import dataclass, field

import pytest

from pdrgate.hosts.host import CommandError, Completed
from pdrgate.knobs import KnobSet, each, knob_from_record, offloads, put_back, rps, sysctl
from pdrgate.knobs.file_knob import FileKnob, threaded_napi
from pdrgate.knobs.knob_set import Undone
from pdrgate.knobs.offloads import EthtoolFeatures
from pdrgate.values.errors import TestbedError

BACKLOG = "/proc/sys/net/core/netdev_max_backlog"


@dataclass
class FakeHost:
    """Files, and features of one device d0 as [active, requested, fixed]."""

    files: dict = field(default_factory=dict)
    features: dict = field(default_factory=dict)
    name: str = "fake"
    shows: dict = field(default_factory=dict)
    """What a file reads back whatever is written to it."""
    refuses: set = field(default_factory=set)
    asked: list = field(default_factory=list)

    def exists(self, path):
        return path in self.files or (path == "/sys/class/net/d0" and bool(self.features))

    def read(self, path):
        return f"{self.shows.get(path, self.files[path])}\n"

    def write(self, path, text):
        if path in self.refuses:
            raise CommandError(self.name, f"writing {path}", Completed((), 1, "", "Invalid argument"))
        self.files[path] = text.strip()

    def run(self, *argv, timeout=10.0, check=True):
        self.asked.append(argv)
        if argv[0] == "ls":
            return Completed(argv, 0, "rx-10\nrx-2\ntx-0\n", "")
        for name, word in zip(argv[3::2], argv[4::2], strict=True):
            self.features[name][1] = word == "on"
            self.features[name][0] = word == "on" and name != "rx-gro-hw"
        self._depend()
        return Completed(argv, 0, "", "")

    def run_json(self, *argv, timeout=10.0):
        told = {name: {"active": a, "requested": r, "fixed": f} for name, (a, r, f) in self.features.items()}
        told["tx-checksumming"] = {"active": True, "requested": None, "fixed": None}
        return [{"ifname": "d0", **json.loads(json.dumps(told))}]

    def _depend(self):
        """TSO needs transmit checksums, as in the kernel."""
        if "tx-tcp-segmentation" in self.features:
            checksums = self.features["tx-checksum-ip-generic"][0]
            self.features["tx-tcp-segmentation"][0] = checksums and self.features["tx-tcp-segmentation"][1]


def device():
    return FakeHost(
        features={
            "generic-receive-offload": [False, False, False],
            "large-receive-offload": [False, False, True],
            "rx-gro-hw": [False, False, False],
            "tx-checksum-ip-generic": [True, True, False],
            "tx-checksum-ipv4": [False, False, True],
            "tx-tcp-segmentation": [True, True, False],
        }
    )


class Log:
    def __init__(self):
        self.lines = []

    def change(self, host, knob, old, new):
        self.lines.append(("change", host, knob["path"], old, new))
        return len(self.lines)

    def undone(self, number):
        self.lines.append(("undone", number))


def test_a_knob_is_noted_applied_and_put_back():
    host, log = FakeHost({BACKLOG: "1000"}), Log()
    with KnobSet(log) as knobs:
        assert knobs.apply(host, sysctl("net.core.netdev_max_backlog", 4096))
        assert host.files[BACKLOG] == "4096"
        assert log.lines == [("change", "fake", BACKLOG, "1000", "4096")]
    assert host.files[BACKLOG] == "1000"
    assert log.lines[1:] == [("undone", 1)]


def test_it_is_noted_before_it_is_applied():
    host = FakeHost({BACKLOG: "1000"})

    class FullDisk(Log):
        def change(self, host, knob, old, new):
            raise TestbedError("full")

    with pytest.raises(TestbedError, match="full"):
        KnobSet(FullDisk()).apply(host, sysctl("net.core.netdev_max_backlog", 4096))
    assert host.files[BACKLOG] == "1000"


def test_knobs_are_put_back_in_reverse_order():
    host = FakeHost({BACKLOG: "1000", "/a": "x"})
    knobs = KnobSet()
    for value in (4096, 512):
        knobs.apply(host, sysctl("net.core.netdev_max_backlog", value))
    knobs.apply(host, FileKnob("/a", "y"))
    written = []

    def write(path, text, real=host.write):
        written.append((path, text.strip()))
        real(path, text)

    host.write = write
    assert knobs.restore() == []
    assert written == [("/a", "x"), (BACKLOG, "4096"), (BACKLOG, "1000")]
    assert host.files == {BACKLOG: "1000", "/a": "x"}
    assert knobs.restore() == []


def test_what_somebody_else_has_set_since_is_left_and_told():
    host = FakeHost({BACKLOG: "1000"})
    knobs = KnobSet()
    knobs.apply(host, sysctl("net.core.netdev_max_backlog", 4096))
    host.files[BACKLOG] = "300"
    assert knobs.restore() == [
        "left alone net.core.netdev_max_backlog = 300 on fake: pdrgate had set 4096 in place of 1000, and somebody "
        "else has changed it since"
    ]
    assert host.files[BACKLOG] == "300"


def test_a_device_that_is_gone_needs_nothing_put_back():
    host = FakeHost({"/a": "1"})
    knobs = KnobSet()
    knobs.apply(host, FileKnob("/a", "2"))
    host.files.clear()
    assert knobs.restore() == []


def test_a_knob_that_reads_back_otherwise_is_an_error_and_is_put_back():
    host, log = FakeHost({BACKLOG: "1000"}), Log()

    def bounded(path, text, write=host.write):
        write(path, str(min(int(text), 2048)))

    host.write = bounded
    with pytest.raises(TestbedError) as error:
        KnobSet(log).apply(host, sysctl("net.core.netdev_max_backlog", 4096))
    assert str(error.value) == (
        f"wrote 4096 to {BACKLOG} on fake, but it reads back 2048; does the kernel or the driver bound it, or does a "
        "service set it?"
    )
    assert host.files[BACKLOG] == "1000"
    assert log.lines[-1] == ("undone", 1)


def test_a_knob_that_neither_takes_nor_goes_back_says_both():
    host, log = FakeHost({BACKLOG: "1000"}), Log()
    reads = iter(["1000\n", "7\n", "7\n", "7\n"])
    host.read = lambda path: next(reads)
    with pytest.raises(
        TestbedError, match=r"wrote 4096 .* reads back 7; .*; and it does not go back: wrote 1000 .* back 7"
    ):
        KnobSet(log).apply(host, sysctl("net.core.netdev_max_backlog", 4096))
    assert ("undone", 1) not in log.lines


def test_a_refused_value_changes_nothing():
    host = FakeHost({"/a": "1"}, refuses={"/a"})
    with pytest.raises(CommandError, match=r"Invalid argument"):
        KnobSet().apply(host, FileKnob("/a", "2"))


def test_restoring_goes_on_past_failures_and_reports_all_of_them():
    host = FakeHost({"/a": "1", "/b": "1", "/c": "1"})
    knobs = KnobSet()
    for path in host.files:
        knobs.apply(host, FileKnob(path, "2"))
    host.refuses = {"/a", "/c"}
    with pytest.raises(TestbedError) as error:
        knobs.restore()
    assert str(error.value) == (
        "2 of the settings could not be put back: writing /c on fake failed with exit code 1: Invalid argument; "
        "writing /a on fake failed with exit code 1: Invalid argument"
    )
    assert host.files == {"/a": "2", "/b": "1", "/c": "2"}
    host.refuses = set()
    knobs.restore()
    assert host.files == {"/a": "1", "/b": "1", "/c": "1"}


def test_a_setting_that_is_stuck_goes_back_all_the_way_later():
    host = FakeHost({"/a": "1"})
    knobs = KnobSet()
    for value in ("2", "3"):
        knobs.apply(host, FileKnob("/a", value))
    host.refuses = {"/a"}
    with pytest.raises(TestbedError, match=r"^1 of the settings could not be put back"):
        knobs.restore()
    host.refuses = set()
    assert knobs.restore() == []
    assert host.files == {"/a": "1"}


def test_the_first_error_is_the_one_that_is_told():
    host = FakeHost({"/a": "1"})
    with pytest.raises(RuntimeError, match=r"first") as error, KnobSet() as knobs:
        knobs.apply(host, FileKnob("/a", "2"))
        host.refuses = {"/a"}
        raise RuntimeError("first")
    assert "could not be put back" in error.value.__notes__[0]


def test_a_missing_knob_is_an_error_or_a_skip():
    host = FakeHost()
    knobs = KnobSet()
    lack = (
        f"fake has no {BACKLOG}: the kernel lacks it, or the device is absent, or it is one for the whole machine "
        "and not of this namespace"
    )
    with pytest.raises(TestbedError) as error:
        knobs.apply(host, sysctl("net.core.netdev_max_backlog", 1))
    assert str(error.value) == (
        f"cannot set net.core.netdev_max_backlog = 1: {lack}; take it out or let missing knobs be skipped"
    )
    assert not knobs.apply(host, sysctl("net.core.netdev_max_backlog", 1), missing="skip")
    assert knobs.skipped == [f"skipped net.core.netdev_max_backlog = 1: {lack}"]


@pytest.mark.parametrize(
    ("knob", "shown", "same"),
    [
        (FileKnob("/a", "4096"), "4096", True),
        (FileKnob("/a", "4096 8192 16384"), "4096\t8192\t16384", True),
        (FileKnob("/a", "0x10"), "16", True),
        (FileKnob("/a", "007"), "7", True),
        (FileKnob("/a", "40"), "4", False),
        (FileKnob("/a", "powersave"), "performance", False),
    ],
)
def test_values_are_compared_by_what_they_mean(knob, shown, same):
    assert knob.holds(shown, knob.value) is same


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("net.core.netdev_max_backlog", BACKLOG),
        ("net.ipv6.conf.eth0/100.forwarding", "/proc/sys/net/ipv6/conf/eth0.100/forwarding"),
        ("net/ipv6/conf/eth0.100/forwarding", "/proc/sys/net/ipv6/conf/eth0.100/forwarding"),
    ],
)
def test_sysctl_names_as_sysctl_8_reads_them(name, path):
    assert sysctl(name, 1).path == path


@pytest.mark.parametrize("name", ["", "net", "net..core", "net/../../etc/passwd", "net.core.a b", "../x"])
def test_what_is_no_sysctl_is_refused(name):
    with pytest.raises(TestbedError, match=r"is no sysctl name"):
        sysctl(name, 1)


def test_threaded_polling_is_a_file_of_the_device():
    assert threaded_napi("s0") == FileKnob("/sys/class/net/s0/threaded", "1")


def test_offloads_are_set_and_put_back():
    host = device()
    before = json.dumps(host.features)
    with KnobSet() as knobs:
        knobs.apply(host, offloads("d0", {"gro": True, "lro": False, "tx": False}))
        assert host.features["generic-receive-offload"][0]
        assert host.features["tx-tcp-segmentation"][0] is False
    assert json.dumps(host.features) == before
    # Only what was asked for is asked for again: TSO comes back by itself.
    assert host.asked[-1] == ("ethtool", "-K", "d0", "generic-receive-offload", "off", "tx-checksum-ip-generic", "on")


def test_a_group_with_a_fixed_member_goes_on_and_back_in_any_order():
    host = device()
    before = json.dumps(host.features)
    knobs = KnobSet()
    for wanted in ({"tx": False, "tso": False}, {"tx": True}, {"tso": True, "lro": False}):
        knobs.apply(host, offloads("d0", wanted))
    assert knobs.restore() == []
    assert json.dumps(host.features) == before


def test_an_offload_that_already_is_so_is_not_touched():
    host = device()
    KnobSet().apply(host, offloads("d0", {"tso": True}))
    assert host.asked == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"lro": True}, "lro of d0 on fake is fixed at off by its driver"),
        ({"gso-x": True}, "d0 on fake has no offload gso-x, did you mean gso?"),
    ],
)
def test_an_offload_the_device_cannot_have_is_an_error_or_a_skip(wanted, message):
    knobs = KnobSet()
    with pytest.raises(TestbedError) as error:
        knobs.apply(device(), offloads("d0", wanted))
    assert message in str(error.value)
    assert not knobs.apply(device(), offloads("d0", wanted), missing="skip")
    assert message in knobs.skipped[0]
    assert knobs.apply(device(), offloads("d0", {"lro": False}))


def test_an_offload_that_does_not_stick_is_an_error_and_is_put_back():
    host = device()
    with pytest.raises(TestbedError) as error:
        KnobSet().apply(host, offloads("d0", {"rx-gro-hw": True}))
    assert str(error.value) == (
        "set rx-gro-hw of d0 on fake to on, but rx-gro-hw reads back off; it may need another offload that is off, see "
        "ethtool -k d0"
    )
    assert host.features["rx-gro-hw"] == [False, False, False]


def test_an_interface_that_is_not_there():
    with pytest.raises(TestbedError, match=r"fake has no interface d0"):
        KnobSet().apply(FakeHost(), offloads("d0", {"gro": True}))


def test_offload_text_is_checked():
    with pytest.raises(TestbedError, match=r"'gro' is no offload setting; write one such as gro=off"):
        KnobSet().apply(device(), EthtoolFeatures("d0", "gro"))


def test_the_words_for_offloads_name_only_what_differs():
    host = device()
    host.features |= {f"filler-{number}": [True, True, False] for number in range(10)}
    knob = offloads("d0", {"gro": True})
    old = knob.read(host)
    knob.apply(host)
    undone = put_back(host, knob, old, knob.value)
    assert undone == Undone(True, "put back offloads of d0: generic-receive-offload=off on fake")


@pytest.mark.parametrize("knob", [sysctl("a.b", 1), rps("s0", each([1])), offloads("d0", {"gro": True})])
def test_a_knob_survives_its_record(knob):
    assert knob_from_record(knob.to_record(), knob.value) == knob


def test_an_unknown_record_is_refused():
    with pytest.raises(ValueError, match=r"is no knob that this version of pdrgate knows"):
        knob_from_record({"kind": "irq"}, "1")


def test_nothing_to_put_back_is_silent():
    assert put_back(FakeHost({"/a": "01"}), FileKnob("/a", "2"), "1", "2") is None
