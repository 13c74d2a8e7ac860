"""What the doctor says of machines that lack something, are busy, hot or far away, and of traffic that is lost."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_testbed import CONFIG, FakeTestbed
from flat_values import flat_trial
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut

from pdrgate.cli import main
from pdrgate.data_paths.catalogue import Hop, Port
from pdrgate.doctor import Examination, Finding, Status, here, machine, ports, worst
from pdrgate.doctor.finding import Check
from pdrgate.doctor.traffic import self_test
from pdrgate.guests.emulator.accelerator import KvmFinding, KvmRecord
from pdrgate.hosts.cpus import CpuPlan
from pdrgate.hosts.host import CommandError, Completed, HostError, local_host
from pdrgate.knobs import KnobSet
from pdrgate.knobs.file_knob import FileKnob
from pdrgate.observers.cpu_use import descendants, parse_threads, watch_cpus
from pdrgate.observers.environment import Environment, PortEnvironment
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.record.trial import Trial
from pdrgate.reports.words.findings import findings_summary, render_findings
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, Resource, whole_machine
from pdrgate.safety.recovery import Living, recover_stale
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import GeneratorError, TestbedError, closed_on_error

ROOT = "Name:\tsh\nCapEff:\t000001ffffffffff\n"
Answer = str | Completed | Exception


class Scripted:
    """A host that answers commands and files as it was told, and knows no others."""

    def __init__(self, answers: Mapping[str, Answer | list[Answer]], name: str = "ssh:sut") -> None:
        self.name = name
        self.answers = dict(answers)

    def run(self, *argv: str, timeout: float = 10.0, check: bool = True) -> Completed:
        answer = self._answer(" ".join(argv), argv)
        done = answer if isinstance(answer, Completed) else Completed(argv, 0, answer, "")
        if check and done.exit_code:
            raise CommandError(self.name, f"`{argv[0]}`", done)
        return done

    def run_json(self, *argv: str, timeout: float = 10.0) -> Any:
        return json.loads(self.run(*argv).stdout)

    def read(self, path: str) -> str:
        return self.run("read", path).stdout

    def close(self) -> None: ...

    def _answer(self, words: str, argv: tuple[str, ...]) -> str | Completed:
        for start, answer in self.answers.items():
            if words.startswith(start):
                if isinstance(answer, list):
                    answer = answer.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return Completed(argv, 127, "", f"sh: {argv[0]}: not found")


def told(check: Check) -> tuple[str, str, str]:
    finding = check.on("here")
    return finding.status.value, finding.message, finding.remedy


def host(**answers: Answer | list[Answer]) -> Any:
    return Scripted(answers)


# --- Rights and tools ---


def test_root_in_full() -> None:
    assert told(machine.rights(Scripted({"id": "0\n", "read /proc/self/status": ROOT}))) == (  # type: ignore[arg-type]
        "ok", "root, with the capabilities that it takes", "",
    )  # fmt: skip


def test_no_root() -> None:
    assert told(machine.rights(host(id="1000\n"))) == (
        "fail", "commands run as user 1000, and namespaces, interrupts and sysctls are root's",
        "run with sudo, or let that user use sudo",
    )  # fmt: skip


def test_root_of_a_container() -> None:
    answers = {"id": "0\n", "read /proc/self/status": "CapEff:\t00000000a80425fb\n"}
    assert told(machine.rights(Scripted(answers))) == (  # type: ignore[arg-type]
        "fail", "root, but without CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_SYS_NICE, as in a container",
        "start the container with --privileged, or measure outside of it",
    )  # fmt: skip


def test_tools_and_their_versions() -> None:
    answers = {"ip -V": "ip utility, iproute2-6.1.0, libbpf 1.1.2\n", "ethtool --version": "ethtool version 6.1\n"}
    assert told(machine.tools(Scripted(answers), ["ip", "ethtool"])) == ("ok", "ip 6.1.0, ethtool 6.1", "")  # type: ignore[arg-type]
    assert told(machine.tools(host(), ["ip", "ethtool"])) == (
        "fail", "there is no ip, no ethtool", "install iproute2, ethtool; here ./ci/bootstrap does it",
    )  # fmt: skip


class OnPath(Scripted):
    """This machine with a PATH of its own."""

    def __init__(self, path: Path) -> None:
        super().__init__({})
        self._path = path

    def run(self, *argv: str, timeout: float = 10.0, check: bool = True) -> Completed:
        # As ShellHost does: a shell looks the program up.
        done = subprocess.run(
            ("/bin/sh", "-c", 'exec "$@"', "sh", *argv), env={"PATH": str(self._path)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return Completed(argv, done.returncode, done.stdout, done.stderr)


def test_a_tool_that_is_not_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "ip").write_text("#!/bin/sh\necho 'ip utility, iproute2-6.13.0, libbpf 1.5.0'\n")
    (tmp_path / "ip").chmod(0o755)
    check = machine.tools(OnPath(tmp_path), ["ip", "ethtool"])  # type: ignore[arg-type]
    assert told(check) == ("fail", "there is no ethtool", "install ethtool; here ./ci/bootstrap does it")


# --- Quiet ---


def stat(ticks: Mapping[int, tuple[int, int]]) -> str:
    """/proc/stat with process and steal ticks by CPU."""
    return "cpu  0 0 0 0\n" + "".join(
        f"cpu{cpu} {process} 0 0 1000 0 0 0 {steal} 0 0\n" for cpu, (process, steal) in ticks.items()
    )


def thread(process: int, command: str, cpu: int, ticks: int, *, parent: int = 1, number: int | None = None) -> str:
    rest = ["S", str(parent), *["0"] * 9, str(ticks), "0", *["0"] * 23, str(cpu), *["0"] * 13]
    return f"/proc/{process}/task/{number or process}/stat:{number or process} ({command}) {' '.join(rest)}\n"


def watched(
    before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]], first: str, last: str
) -> tuple[Any, Callable[[float], None]]:
    return Scripted({"read /proc/stat": [stat(before), stat(after)], "sh -c find": [first, last]}), lambda seconds: None


def clock(*times: float) -> Callable[[], float]:
    return iter(times).__next__


def test_who_had_which_cpu() -> None:
    own = 500
    machine_, pause = watched(
        {0: (100, 0), 1: (50, 0)}, {0: (180, 0), 1: (70, 30)},
        thread(own, "pdrgate", 0, 10) + thread(7, "job (x) y", 0, 5) + thread(8, "quiet", 0, 1000),
        thread(own, "pdrgate", 0, 20) + thread(501, "worker", 0, 10, parent=own) + thread(7, "job (x) y", 0, 45)
        + thread(7, "its thread", 0, 9, number=70) + thread(8, "quiet", 0, 1000),
    )  # fmt: skip
    found = watch_cpus(machine_, (0, 1), own, pause=pause, clock=clock(10.0, 11.0))
    # Of 80 ticks in a second 20 were ours, our child's included.
    assert found[0].processes == pytest.approx(0.60)
    assert [(one.process, one.command, one.share) for one in found[0].busiest] == [(7, "job (x) y", 0.49)]
    assert (found[1].processes, found[1].steal) == (pytest.approx(0.2), pytest.approx(0.3))


def test_threads_that_end_while_they_are_read_are_left_out() -> None:
    assert parse_threads("/proc/1/task/1/stat:1 (init) S 0\nnonsense\n") == {}
    threads = parse_threads(thread(2, "a", 0, 0, parent=1) + thread(3, "b", 0, 0, parent=2))
    assert descendants(threads, 2) == {2, 3}
    assert descendants(threads, 99) == {99}


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        (1, ("ok", "nothing else runs on CPU 1", "")),
        (12, ("warn", "other processes have 12% of CPU 1, the SUT's: make (7) 12%",
              "end them, or move them to other CPUs, such as taskset -a -p -c OTHER_CPUS 7")),
        (60, ("fail", "other processes have 60% of CPU 1, the SUT's: make (7) 60%",
              "end them, or move them to other CPUs, such as taskset -a -p -c OTHER_CPUS 7")),
    ],
)  # fmt: skip
def test_a_cpu_that_is_not_left_alone(
    busy: int, expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_, pause = watched({1: (0, 0)}, {1: (busy, 0)}, thread(7, "make", 1, 0), thread(7, "make", 1, busy))
    monkeypatch.setattr(
        "pdrgate.doctor.machine.watch_cpus", lambda h, c, o, **k: watch_cpus(h, c, o, clock=clock(0, 1), **k)
    )
    processes, steal = machine.quiet(machine_, {1: "the SUT"}, window=1.0, pause=pause)
    assert told(processes) == expected
    assert told(steal) == ("ok", "no hypervisor withholds time", "")


def test_work_of_processes_that_did_not_live_long_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_, pause = watched({0: (0, 20)}, {0: (40, 35)}, "", "")
    monkeypatch.setattr(
        "pdrgate.doctor.machine.watch_cpus", lambda h, c, o, **k: watch_cpus(h, c, o, clock=clock(0, 1), **k)
    )
    processes, steal = machine.quiet(machine_, {0: "the generator"}, window=1.0, pause=pause)
    assert told(processes)[1] == (
        "other processes have 40% of CPU 0, the generator's: all of them began or ended meanwhile"
    )
    assert told(steal)[:2] == ("fail", "the hypervisor withholds 15% of CPU 0, the generator's")


def test_a_host_that_cannot_be_asked_is_unknown_and_not_quiet() -> None:
    processes, steal = machine.quiet(
        Scripted({"sh -c find": HostError("no answer")}), {0: "the SUT"}, window=1.0, pause=lambda s: None  # type: ignore[arg-type]
    )  # fmt: skip
    assert told(processes) == ("unknown", "could not be found out: no answer", "")
    assert told(steal)[0] == "unknown"


def test_load() -> None:
    busy = Scripted({"read /proc/loadavg": "3.10 1 1 1/1 1\n"})
    assert told(machine.load(busy, 2))[:2] == ("warn", "load 3.10 on 2 CPUs over the last minute")  # type: ignore[arg-type]
    assert told(machine.load(busy, 8))[:2] == ("ok", "load 3.10 on 8 CPUs")  # type: ignore[arg-type]
    assert told(machine.load(busy, None))[:2] == ("ok", "load 3.10")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environment", "status", "message"),
    [
        (Environment(governor="performance", turbo=False), "ok", "governor performance, turbo off"),
        (Environment(governor="performance"), "ok", "governor performance"),
        (Environment(governor="performance", turbo=True), "warn",
         "governor performance, turbo on: the CPUs are as fast as their temperature lets them be"),
        (Environment(governor="performance, powersave", turbo=True), "warn",
         "governor performance, powersave, turbo on: the CPUs change their speed with the load"),
        (Environment(hypervisor=True), "unknown",
         "the kernel shows no frequency policy; hypervisor or firmware decide"),
        (Environment(), "unknown", "the kernel shows no frequency policy; the firmware decides"),
    ],
)  # fmt: skip
def test_frequency(environment: Environment, status: str, message: str) -> None:
    assert told(machine.frequency(environment))[:2] == (status, message)


def test_heat() -> None:
    file = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    assert told(machine.throttling(host(sh="")))[:2] == ("unknown", "the kernel counts no thermal throttling here")
    assert told(machine.throttling(host(sh=f"{file}:0\n{file}:0\n")))[0] == "ok"
    assert told(machine.throttling(host(sh=f"{file}:3\n{file}:4\n")))[:2] == (
        "warn", "the CPUs were throttled 7 times since the machine was started",
    )  # fmt: skip


def test_clocks() -> None:
    assert told(machine.clock(Environment(clocksource="tsc")))[0] == "ok"
    assert told(machine.clock(Environment(clocksource="hpet")))[:2] == (
        "warn", "clock source hpet, which is slow to read",
    )  # fmt: skip
    assert told(machine.clock(Environment()))[0] == "unknown"
    assert told(machine.same_time(host(date="1000.5\n"), clock(1000.0, 1000.2)))[0] == "ok"
    assert told(machine.same_time(host(date="1090.1\n"), clock(1000.0, 1000.2))) == (
        "warn", "its clock is 90.0 s from ours", "synchronise both with NTP",
    )  # fmt: skip


def test_kernel() -> None:
    known = Environment(kernel_release="6.12", cpus=1, cpu_model="AMD EPYC", hypervisor=False)
    assert told(machine.kernel_and_cpu(known))[:2] == ("ok", "6.12, 1 CPU, AMD EPYC")
    assert told(machine.kernel_and_cpu(Environment()))[0] == "unknown"


def test_reaching_a_host() -> None:
    ticks = clock(*[number / 1000 for number in range(10)])
    assert told(machine.reached(host(true=""), lambda: "; it is the right one", ticks))[:2] == (
        "ok", "ssh:sut answers in 1.0 ms; it is the right one",
    )  # fmt: skip
    unknown_key = HostError("the host key of ssh:sut is not known; add it to known_hosts")
    assert told(machine.reached(host(true=unknown_key), lambda: ""))[:2] == ("fail", str(unknown_key))


# --- This machine ---


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "not" / "yet" / "made"

    def free(count: int) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=count))

    free(20 << 30)
    assert told(here.disk(results)) == ("ok", f"20 GiB free for {results}", "")
    free(200 << 20)
    assert told(here.disk(results))[:2] == ("warn", f"200 MiB free for {results}")
    free(2 << 20)
    assert told(here.disk(results)) == (
        "fail", f"2 MiB free for {results}", "make room there, or choose another folder with --output",
    )  # fmt: skip
    (tmp_path / "file").touch()
    assert told(here.disk(tmp_path / "file" / "below"))[0] == "fail"


NONE = Living(frozenset(), frozenset())


def test_leftovers_that_no_journal_knows() -> None:
    answers = {
        "ip netns list": "pdrgate-0a1b2c-sut1 (id: 2)\nsomebody-elses\npdrgate-0a1b2c-tg\n",
        "sh -c find": thread(77, "pdrgate-traffic", 0, 0) + thread(78, "vim", 0, 0),
    }
    assert told(here.leftovers(Scripted(answers), ["deleted namespace pdrgate-1-tg"], NONE)) == (  # type: ignore[arg-type]
        "warn",
        "earlier runs had left something: deleted namespace pdrgate-1-tg; namespaces that no run knows of: "
        "pdrgate-0a1b2c-sut1, pdrgate-0a1b2c-tg; generators that no run knows of: process 77",
        "ip netns delete pdrgate-0a1b2c-sut1; kill 77",
    )
    alive = Living(frozenset((70,)), frozenset(("pdrgate-0a1b2c-sut1", "pdrgate-0a1b2c-tg")))
    answers["sh -c find"] = thread(77, "pdrgate-traffic", 0, 0, parent=70)
    assert told(here.leftovers(Scripted(answers), [], alive))[0] == "ok"  # type: ignore[arg-type]
    clean = Scripted({"ip netns list": "mine\n", "sh -c find": ""})
    assert told(here.leftovers(clean, [], NONE)) == ("ok", "nothing is left of other runs", "")  # type: ignore[arg-type]


def test_cpus_that_are_in_each_others_way() -> None:
    nodes = Environment(numa_nodes={"0": "0-3", "1": "4-7"})
    assert told(here.cpus(lambda: CpuPlan(0, (1, 2)), nodes)) == ("ok", "generator on CPU 0, SUT on CPU 1-2", "")
    assert told(here.cpus(lambda: CpuPlan(0, (1,), shared_core=True), nodes))[:2] == (
        "warn", "generator on CPU 0, SUT on CPU 1: two threads of one core, which slow each other",
    )  # fmt: skip
    assert told(here.cpus(lambda: CpuPlan(0, (5,)), nodes))[:2] == (
        "warn", "generator on CPU 0, SUT on CPU 5: on different NUMA nodes, between which every packet has to pass",
    )  # fmt: skip

    def one_cpu() -> CpuPlan:
        raise TestbedError("only CPU 0 is available")

    assert told(here.cpus(one_cpu, nodes))[:2] == ("fail", "only CPU 0 is available")


@pytest.mark.parametrize(
    ("wanted", "found", "status", "words"),
    [
        ("auto", KvmFinding(True, "a probe took 1 s", 9.0), "ok", "guests run by KVM (a probe took 1 s), QEMU 7.2"),
        ("auto", KvmFinding(False, "KVM is no faster here"), "warn",
         "guests run by TCG (KVM is no faster here), QEMU 7.2: emulated, so that their numbers are no router's"),
        ("tcg", KvmFinding(True, ""), "ok", "guests run by TCG (asked for), QEMU 7.2"),
        ("kvm", KvmFinding(False, "KVM is no faster here"), "fail",
         "no guest can run by KVM here: KVM is no faster here; use accelerator: auto or tcg in the testbed file"),
    ],
)  # fmt: skip
def test_guests(
    wanted: Any, found: KvmFinding, status: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pdrgate.guests.emulator.accelerator.DEVICE", "/dev/null")
    monkeypatch.setattr("pdrgate.guests.emulator.accelerator.compare_accelerators", lambda qemu: found)
    monkeypatch.setattr("pdrgate.guests.emulator.accelerator.find_qemu", lambda architecture: "/usr/bin/qemu")
    monkeypatch.setattr("pdrgate.doctor.here.qemu_version", lambda architecture: "7.2")
    assert told(here.guests(wanted, tmp_path))[:2] == (status, words)
    if wanted == "auto":
        KvmRecord(tmp_path).write(False, "by KVM it was silent")
        outcome = told(here.guests(wanted, tmp_path))
        assert outcome[0] == "warn"
        assert "guests run by TCG (by KVM it was silent; remembered in " in outcome[1]


# --- Ports ---


def hop(*flags: str, errors: int = 0) -> Hop:
    link = json.dumps([{"flags": flags}])
    files = "".join(
        f"==> /sys/class/net/{port}/statistics/{name} <==\n{errors if name == 'rx_errors' else 0}\n\n"
        for port in ("eth0", "eth1")
        for name in ("rx_errors", "tx_errors", "rx_crc_errors")
    )
    answers = {"ip -j link": link, "tail": files}
    return Hop(Scripted(answers), Port("eth0", "a", "b"), Port("eth1", "c", "d"))  # type: ignore[arg-type]


def test_links() -> None:
    real = [PortEnvironment("eth0", bus="0000:01:00.0", speed=25000), PortEnvironment("eth1", bus="x", speed=25000)]
    assert told(ports.links(hop("UP", "LOWER_UP"), real))[:2] == (
        "ok", "eth0 25000 Mbit/s, eth1 25000 Mbit/s: up, without errors",
    )  # fmt: skip
    assert told(ports.links(hop("UP", "LOWER_UP"), [PortEnvironment("eth0", speed=10000)]))[1] == (
        "eth0, eth1: up, without errors"
    )
    assert told(ports.links(hop("BROADCAST"))) == (
        "fail", "eth0 is down, eth1 is down", "ip link set eth0 up; ip link set eth1 up",
    )  # fmt: skip
    assert told(ports.links(hop("UP")))[1:] == (
        "eth0 has no link, eth1 has no link",
        "check the cable of eth0 and the port at its other end; check the cable of eth1 and the port at its other end",
    )
    slow = [real[0], PortEnvironment("eth1", bus="x", speed=1000)]
    assert told(ports.links(hop("UP", "LOWER_UP"), slow))[:2] == (
        "warn", "eth0 25000 Mbit/s, eth1 1000 Mbit/s: the slower link is the limit",
    )  # fmt: skip
    assert told(ports.links(hop("UP", "LOWER_UP", errors=9)))[:2] == (
        "warn", "eth0, eth1: up, with errors since the start: eth0 rx_errors 9, eth1 rx_errors 9",
    )  # fmt: skip


def test_numa() -> None:
    two = {"0": "0-15", "1": "16-31"}
    far = Environment(
        numa_nodes=two, ports=(PortEnvironment("eth0", numa_node=1), PortEnvironment("eth1", numa_node=1))
    )
    assert told(ports.numa(far, (16,))) == ("ok", "eth0 at node 1, eth1 at node 1, as the SUT's CPUs", "")
    assert told(ports.numa(far, (3,))) == (
        "warn", "eth0 at node 1, eth1 at node 1, and the SUT's CPU 3 at node 0",
        "choose of CPUs 16-31 as sut.cpus in the testbed file, or plug the card in elsewhere",
    )  # fmt: skip
    assert told(ports.numa(Environment(numa_nodes={"0": "0-1"}), (1,)))[:2] == ("ok", "the machine has one NUMA node")
    assert told(ports.numa(Environment(numa_nodes=two, ports=(PortEnvironment("eth0"),)), (1,)))[0] == "unknown"
    assert told(ports.numa(Environment(), (1,)))[0] == "unknown"


# --- Traffic ---


def traffic_of(testbed: FakeTestbed) -> dict[str, Finding]:
    return {finding.check: finding for finding in self_test(testbed)}


def sut(saturation: float = 1e6, ceiling: float = 3e6) -> SimulatedSut:
    return SimulatedSut(IdealCurve(saturation), Behaviour(0.0), seed=1, ceiling=Ceiling(ceiling))


def test_traffic_of_a_sound_testbed() -> None:
    testbed = FakeTestbed(sut())
    found = traffic_of(testbed)
    assert {check: finding.status.value for check, finding in found.items()} == dict.fromkeys(
        ("generator", "forward", "both directions", "headroom"), "ok"
    )
    assert found["generator"].message == "simulated, engine none (for a test)"
    assert found["forward"].message == "none of 10000 packets lost at 10 kpps"
    assert found["headroom"].message.startswith("up to 3 Mpps offered, 1000 kpps forwarded: 3.0 times what the SUT")
    assert testbed.generators_open == 0
    assert testbed.settings == [4096, "1 cpu"]


def test_a_generator_that_is_no_faster_than_the_sut() -> None:
    found = traffic_of(FakeTestbed(sut(ceiling=1.02e6)))["headroom"]
    assert (found.status, found.message.partition(",")[0]) == (Status.FAIL, "up to 1.02 Mpps offered")
    assert found.remedy == "give the SUT more hops or less CPU, or use a faster generator"
    assert traffic_of(FakeTestbed(sut(ceiling=1.3e6)))["headroom"].status is Status.WARN


def test_a_router_that_loses_packets_at_a_low_load() -> None:
    found = traffic_of(FakeTestbed(sut(saturation=9_000)))["forward"]
    assert found.status is Status.FAIL
    assert re.fullmatch(
        r"1\d\d\d of 10000 packets were lost at 10 kpps; 1\d\d\d of 10000 the second time", found.message
    )


class Odd(FakeTestbed):
    """A testbed whose trials are what a test says, one after another, and whose SUT counts what it drops."""

    def __init__(self, *counts: Mapping[str, int] | Exception) -> None:
        super().__init__(sut())
        self._counts = iter(counts)
        self.dropped = 0

    def counters(self) -> Reading:
        place = Place("interface", "eth0")
        return {Counter(place, "rx_dropped"): self.dropped, Counter(place, "rx_packets"): self.dropped}

    def generator(self, family: int) -> Any:
        return self

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        if load != 10_000 or duration < 1:
            return self.sut.measure(load, duration)
        counts = next(self._counts, {"offered": 10_000, "forwarded": 10_000})
        if isinstance(counts, Exception):
            raise counts
        trial = flat_trial(load, duration, **counts, sending_time=duration)
        self.dropped += trial.lost
        return trial

    def close(self) -> None: ...

    describe = staticmethod(lambda: {"name": "odd", "engine": "none"})  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("counts", "status", "message"),
    [
        ([{"offered": 10_000, "forwarded": 0}], "fail", "none of 10000 packets came back (eth0.rx_dropped +10000)"),
        ([{"offered": 0, "forwarded": 0, "unsent": 10_000}], "fail", "the generator sent nothing at 10 kpps"),
        ([{"offered": 10_000, "forwarded": 9_998}], "warn",
         "2 of 10000 packets were lost at 10 kpps (eth0.rx_dropped +2), none of 10000 the second time"),
        ([{"offered": 10_000, "forwarded": 9_998}] * 2, "fail",
         "2 of 10000 packets were lost at 10 kpps (eth0.rx_dropped +2); 2 of 10000 the second time "
         "(eth0.rx_dropped +2)"),
        ([{"offered": 10_000, "forwarded": 10_000, "stray": 4}], "ok", "none of 10000 packets lost at 10 kpps"),
        ([{"offered": 10_000, "forwarded": 10_000, "stray": 400}], "warn",
         "none of 10000 packets lost, and 400 came that are not ours"),
        ([{"offered": 9_000, "forwarded": 9_000, "unsent": 1000}], "warn",
         "no packet lost, but 1000 of 10000 were not sent in time"),
        ([GeneratorError("it has ended")], "unknown", "could not be found out: it has ended"),
    ],
)  # fmt: skip
def test_what_becomes_of_packets_at_a_low_load(counts: list[Any], status: str, message: str) -> None:
    found = traffic_of(Odd(*counts))["forward"]
    assert (found.status.value, found.message) == (status, message)


def test_a_buffer_that_cannot_be_had_is_told_and_the_rest_is_still_traffic_of(monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = FakeTestbed(sut())

    def refuse(packets: int) -> None:
        raise TestbedError("a receive ring of 4096 packets cannot be had")

    monkeypatch.setattr(testbed, "set_buffer", refuse)
    found = traffic_of(testbed)
    assert found["buffer"].status is Status.FAIL  # as the gate of the default scenarios
    assert found["forward"].status is Status.OK


def test_a_sut_that_cannot_be_set_up_ends_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = FakeTestbed(sut())

    def refuse(pinning: str) -> None:
        raise TestbedError("no interrupts")

    monkeypatch.setattr(testbed, "pin", refuse)
    assert [(finding.check, finding.status.value, finding.message) for finding in self_test(testbed)] == [
        ("set-up", "fail", "no interrupts")
    ]


# --- All of it, and how it reads ---


def test_an_examination_of_a_testbed(tmp_path: Path) -> None:
    testbed = FakeTestbed(sut())
    found = list(
        Examination(CONFIG, tmp_path, opener=testbed.open_with, state=tmp_path, pause=lambda seconds: None).findings()
    )
    checks = [(finding.part, finding.check) for finding in found]
    assert checks[:9] == [
        ("this machine", check)
        for check in ("kernel", "rights", "tools", "disk", "CPUs", "clock", "frequency", "thermal", "other runs")
    ]
    assert checks[-6:] == [
        ("testbed", "set-up"), ("SUT", "NUMA"), ("traffic", "generator"), ("traffic", "forward"),
        ("traffic", "both directions"), ("traffic", "headroom"),
    ]  # fmt: skip
    assert not testbed.open
    Lease.acquire(whole_machine(), tmp_path).release()
    assert not list(tmp_path.glob("run-*"))


def test_a_testbed_that_cannot_be_set_up_leaves_no_check_out(tmp_path: Path) -> None:
    def refuse(config: object, journal: object) -> Any:
        raise TestbedError("ssh:sut refuses the key of root; add it to authorized_keys")

    found = list(Examination(CONFIG, tmp_path, opener=refuse, state=tmp_path, pause=lambda seconds: None).findings())
    assert [(one.check, one.status.value, one.message) for one in found if one.part == "testbed"] == [
        ("set-up", "fail", "ssh:sut refuses the key of root; add it to authorized_keys"),
        ("reached", "unknown", "not looked at: the testbed cannot be set up"),
        ("links", "unknown", "not looked at: the testbed cannot be set up"),
        ("self-test", "unknown", "not looked at: the testbed cannot be set up"),
    ]


def test_a_sut_that_dies_meanwhile_is_told_and_the_testbed_closed(tmp_path: Path) -> None:
    testbed = FakeTestbed(sut())
    testbed.environment = lambda: (_ for _ in ()).throw(HostError("ssh:sut got no answer"))  # type: ignore[method-assign]
    found = list(
        Examination(CONFIG, tmp_path, opener=testbed.open_with, state=tmp_path, pause=lambda seconds: None).findings()
    )
    assert found[-1] == Finding("testbed", "examination", Status.FAIL, "it ended early: ssh:sut got no answer")
    assert not testbed.open


def test_what_a_testbed_could_not_put_back_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, state = tmp_path / "setting", tmp_path / "state"
    setting.write_text("1\n")
    really, fails = FileKnob.restore, [True, False, True, True]

    def restore(knob: FileKnob, host: Any, old: str) -> None:
        if fails.pop(0):
            raise TestbedError("it is busy")
        really(knob, host, old)

    def refuse(config: object, journal: Journal) -> Any:
        knobs = KnobSet(journal)
        with local_host() as machine, closed_on_error(knobs.restore):
            knobs.apply(machine, FileKnob(str(setting), "2"))
            raise TestbedError("no link")

    def put_back() -> list[tuple[str, str]]:
        found = Examination(CONFIG, tmp_path, opener=refuse, state=state, pause=lambda seconds: None).findings()
        return [(one.status.value, one.message) for one in found if one.check == "put back"]

    monkeypatch.setattr(FileKnob, "restore", restore)
    assert put_back() == [("warn", f"put back {setting} = 1 on local (left by this run)")]
    assert setting.read_text() == "1\n"
    ((status, message),) = put_back()
    assert (status, message.partition(": it is busy; ")[2]) == (
        "fail", "the next start tries again, and so does: sudo pdrgate restore",
    )  # fmt: skip
    assert len(list(state.glob("run-*"))) == 1
    monkeypatch.undo()
    assert len(recover_stale(state)) == 1
    assert setting.read_text() == "1\n"


def test_a_testbed_that_does_not_close_is_a_finding(tmp_path: Path) -> None:
    testbed = FakeTestbed(sut())
    testbed.close = lambda: (_ for _ in ()).throw(TestbedError("it is busy"))  # type: ignore[method-assign]
    found = Examination(CONFIG, tmp_path, opener=testbed.open_with, state=tmp_path, pause=lambda seconds: None)
    assert list(found.findings())[-1] == Finding("testbed", "put back", Status.FAIL, "it is busy")


def test_who_reads_no_further_closes_the_testbed(tmp_path: Path) -> None:
    testbed = FakeTestbed(sut())
    found = Examination(
        CONFIG, tmp_path, opener=testbed.open_with, state=tmp_path, pause=lambda seconds: None
    ).findings()
    while next(found).part != "testbed":
        pass
    assert testbed.open
    found.close()
    assert not testbed.open
    Lease.acquire(whole_machine(), tmp_path).release()


def test_another_run_is_not_disturbed(tmp_path: Path) -> None:
    with Lease.acquire([Resource("host", CONFIG.name)], tmp_path):
        found = list(Examination(CONFIG, tmp_path, opener=FakeTestbed(sut()).open_with, state=tmp_path).findings())
    other = next(one for one in found if one.check == "other runs")
    assert other.status is Status.FAIL
    assert other.message.startswith("the SUT simulated is in use by this run's other testbed; ")
    assert [one.status for one in found if one.part == "testbed"] == [Status.UNKNOWN] * 3


FOUND = (
    Finding("this machine", "rights", Status.OK, "root"),
    Finding("this machine", "quiet CPUs", Status.WARN, "busy " * 30 + "end", "end it"),
    Finding("traffic", "forward", Status.FAIL, "lost", "look"),
    Finding("traffic", "headroom", Status.UNKNOWN, "not looked at"),
)


def test_a_person_can_read_it() -> None:
    assert list(render_findings(FOUND)) == [
        "",
        "this machine",
        "  ok       rights            root",
        "  warn     quiet CPUs        " + ("busy " * 18).strip(),
        " " * 29 + ("busy " * 12) + "end",
        " " * 29 + "-> end it",
        "",
        "traffic",
        "  FAIL     forward           lost",
        " " * 29 + "-> look",
        "  unknown  headroom          not looked at",
    ]
    assert max(map(len, render_findings(FOUND))) <= 120


@pytest.mark.parametrize(
    ("findings", "status", "words"),
    [
        (FOUND, Status.FAIL, "FAIL: mend what failed before you measure (1 failure, 1 warning, 1 unknown)"),
        (FOUND[:2] * 2, Status.WARN, "WARN: it can be measured, and the numbers may suffer (2 warnings)"),
        (FOUND[3:], Status.UNKNOWN, "OK: this testbed is fit to measure (1 unknown)"),
        (FOUND[:1], Status.OK, "OK: this testbed is fit to measure"),
        ((), Status.OK, "OK: this testbed is fit to measure"),
    ],
)
def test_what_it_comes_to(findings: tuple[Finding, ...], status: Status, words: str) -> None:
    assert worst(findings) is status
    assert findings_summary(findings) == words


@pytest.mark.parametrize(("number", "code"), [(4, 2), (2, 0), (1, 0)])
def test_the_command(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Examination, "findings", lambda self: (finding for finding in FOUND[:number]))
    file = "resources/testbeds/local-netns.yaml"
    assert main(["doctor", file]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("testbed local-netns (")
    assert lines[-1] == findings_summary(FOUND[:number])
    assert main(["doctor", file, "--format", "json"]) == code
    record = json.loads(capsys.readouterr().out)
    assert record["status"] == worst(FOUND[:number])
    assert record["findings"] == [finding.to_dict() for finding in FOUND[:number]]
    assert record["findings"][0] == {
        "part": "this machine", "check": "rights", "status": "ok", "message": "root", "remedy": "",
    }  # fmt: skip


def test_the_commands_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "no-such.yaml"]) == 2
    assert capsys.readouterr().err.startswith("pdrgate: no-such.yaml: cannot read it: No such file or directory; name")
    assert main(["doctor"]) == 64
    assert main(["doctor", "resources/testbeds/local-netns.yaml", "--kernel", "x.deb"]) == 64
    assert capsys.readouterr().err.endswith("boots no kernels; leave out --kernel\n")


def test_a_testbed_for_kernels_without_one_is_told_to_be_given_one(tmp_path: Path) -> None:
    from pdrgate.testbeds import load_testbed

    config = load_testbed(Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml")
    found = list(Examination(config, tmp_path, state=tmp_path, pause=lambda seconds: None).findings())
    last = [finding for finding in found if finding.part == "testbed"]
    assert (last[0].status, last[0].message, last[0].remedy) == (
        Status.WARN, "it boots kernels, and none was named", "name one with --kernel BUILD",
    )  # fmt: skip
    assert [finding.message for finding in last[1:]] == ["not looked at: there is no kernel to boot"] * 3
