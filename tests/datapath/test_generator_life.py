"""The generator's worker: how it starts, how it is lost, and that it never outlives whoever started it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import bpf_build
from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.hosts.host import local_host
from pdrgate.safety.recovery import recover_stale
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic import native
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.embedded import EmbeddedGenerator
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.native import wire
from pdrgate.values.errors import GeneratorError, TestbedError

pytestmark = pytest.mark.datapath

LIBRARIES = Path(__file__).parents[2] / "libraries"
IPV6 = Frames()


@pytest.fixture(scope="module", params=["xdp", "packet"])
def testbed(request: pytest.FixtureRequest, make_testbed) -> Iterator[NetnsTestbed]:
    testbed = make_testbed(request.param, hops=1)
    path = Routing(6)
    path.apply(testbed.hops)
    yield testbed
    path.restore()
    testbed.close()


@pytest.fixture
def generator(testbed: NetnsTestbed) -> Iterator[EmbeddedGenerator]:
    generator = cast(EmbeddedGenerator, testbed.generator(6))
    yield generator
    generator.close()


def one_line(error: BaseException) -> str:
    assert "\n" not in str(error)
    return str(error)


def cpu_time(pid: int) -> float:
    """Seconds that a process has run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended(pid: int, within: float = 60.0) -> bool:
    """Whether a process, perhaps not our child, is gone or a zombie, or becomes so."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], within)[0])
    finally:
        os.close(descriptor)


def test_a_worker_killed_between_trials(generator: EmbeddedGenerator) -> None:
    os.kill(generator.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(GeneratorError) as error:
            generator.trial(20e3, 0.1, IPV6)
        assert one_line(error.value) == "the traffic generator has ended (signal 9); run again"
    generator.close()
    generator.close()


def test_a_worker_killed_in_a_trial(generator: EmbeddedGenerator) -> None:
    timer = threading.Timer(0.2, os.kill, (generator.pid, signal.SIGKILL))
    timer.start()
    with pytest.raises(GeneratorError) as error:
        generator.trial(20e3, 30.0, IPV6)
    timer.join()
    assert one_line(error.value) == "the traffic generator has ended (signal 9); run again"


def test_the_next_generator_starts_on_the_ports_of_a_killed_one(testbed: NetnsTestbed) -> None:
    first = cast(EmbeddedGenerator, testbed.generator(6))
    os.kill(first.pid, signal.SIGKILL)
    first.close()
    second = testbed.generator(6)
    try:
        trial = second.trial(20e3, 0.1, IPV6)
        assert trial.forwarded == trial.offered > 0
    finally:
        second.close()


def test_a_second_generator_on_the_same_ports_is_refused(testbed: NetnsTestbed, generator: EmbeddedGenerator) -> None:
    with pytest.raises(
        TestbedError, match=r"^the traffic generator does not start in namespace pdrgate-.*busy"
    ) as error:
        testbed.generator(6)
    one_line(error.value)
    assert generator.trial(20e3, 0.1, IPV6).forwarded > 0


def test_a_closed_generator(generator: EmbeddedGenerator) -> None:
    pid = generator.pid
    generator.close()
    generator.close()
    assert ended(pid, 0)
    with pytest.raises(GeneratorError) as error:
        generator.trial(20e3, 0.1, IPV6)
    assert one_line(error.value) == "the traffic generator has ended already; run again"


def test_a_worker_of_another_version_says_so(generator: EmbeddedGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "VERSION", wire.VERSION + 1)
    size, version = ctypes.sizeof(wire.Request), wire.VERSION
    with pytest.raises(GeneratorError) as error:
        generator.trial(20e3, 0.1, IPV6)
    assert one_line(error.value) == (
        f"the traffic generator: it was asked in version {version}, {size} bytes, and understands version "
        f"{version - 1}, {size} bytes; install pdrgate again"
    )
    assert ended(generator.pid)  # for it cannot know where the next request begins
    with pytest.raises(GeneratorError, match=r"has ended \(exit code 0\); run again$"):
        generator.trial(20e3, 0.1, IPV6)


def test_a_request_out_of_range_is_refused_by_name_and_the_next_one_served(generator: EmbeddedGenerator) -> None:
    request = generator._request(2000, 20e3, 0.1, IPV6, generator._built_in(IPV6), 0, None)
    request.batch = 65
    generator._send(request, b"")
    with pytest.raises(GeneratorError, match=r"asked for a trial whose batch is out of range$"):
        generator._answer(10.0)
    assert generator.trial(20e3, 0.1, IPV6).forwarded > 0


CHOSEN = Frames(6, chosen=chosen_traffic(["udp flows=3"]))


@pytest.mark.parametrize(
    ("tampered", "told"),
    [
        (lambda request, table: (request, b"\xff" * 4 + table[4:]), "a chosen frame is out of range"),
        (lambda request, table: (request, table[:-1] + b"\1"), "the order of chosen frames is out of range"),
        (lambda request, table: (changed(request, room=2000), table), "the table of chosen frames is out of range"),
        (lambda request, table: (changed(request, ordered=0), table), "the table of chosen frames is out of range"),
        (lambda request, table: (changed(request, table=0), b""), "asked for a trial whose table is out of range"),
    ],
)
def test_a_table_out_of_range_is_refused(generator: EmbeddedGenerator, tampered: Any, told: str) -> None:
    assert CHOSEN.chosen is not None
    sent, table = generator._chosen(CHOSEN, CHOSEN.chosen)
    request = generator._request(2000, 20e3, 0.1, CHOSEN, sent, len(table), None)
    generator._send(*tampered(request, table))
    with pytest.raises(GeneratorError, match=rf"{told}$"):
        generator._answer(10.0)


def changed(request: wire.Request, **fields: int) -> wire.Request:
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("load", [20e3, 1e6])
def test_closing_in_the_middle_of_a_trial(generator: EmbeddedGenerator, load: float) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(Interrupted):
            generator.trial(load, 30.0, IPV6)
    finally:
        signal.signal(signal.SIGALRM, before)
    # The trial's answer must not become the next one's.
    with pytest.raises(GeneratorError, match="has ended"):
        generator.trial(load, 0.1, IPV6)
    pid = generator.pid
    generator.close()
    assert ended(pid, 0)


def test_a_namespace_that_is_not_there(testbed: NetnsTestbed) -> None:
    with pytest.raises(
        TestbedError, match=r"^the traffic generator does not start in namespace pdrgate-nope: .*No such file"
    ) as error:
        EmbeddedGenerator("pdrgate-nope", 0, testbed.chain.paths(6))
    one_line(error.value)


def test_a_port_that_is_not_there(testbed: NetnsTestbed) -> None:
    paths = [testbed.chain.paths(6)[0]]
    absent = [type(path)("t9", path.source_mac, path.destination_mac, path.source, path.destination) for path in paths]
    namespace = testbed.chain.tg
    with pytest.raises(TestbedError, match=r": the traffic generator: t9: No such device$"):
        EmbeddedGenerator(namespace, 0, absent)


def test_a_cpu_that_is_not_there(testbed: NetnsTestbed) -> None:
    with pytest.raises(TestbedError, match=r"pinning the generator to its CPU: Invalid argument$"):
        EmbeddedGenerator(testbed.chain.tg, 1000, [testbed.chain.paths(6)[0]])


def test_the_worker_runs_on_its_cpu_alone_and_first(testbed: NetnsTestbed, generator: EmbeddedGenerator) -> None:
    (cpu,) = os.sched_getaffinity(generator.pid)
    assert cpu == testbed._cpus.generator
    assert os.getpriority(os.PRIO_PROCESS, generator.pid) == -20


def test_who_waits_for_packets_asleep_leaves_its_cpu_to_others(testbed: NetnsTestbed) -> None:
    with contextlib.closing(
        EmbeddedGenerator(testbed.chain.tg, testbed._cpus.generator, testbed.chain.paths(6), asleep=True)
    ) as generator:
        assert generator.engine == "packet"
        trials = [generator.trial(load, 0.5, IPV6) for load in (10e3, 20e3)]
        used = cpu_time(generator.pid)
        assert used < sum(trial.sending_time for trial in trials) / 2
        assert [trial.offered + trial.unsent for trial in trials] == [5000, 10_000]
        # Faster than it could sleep and wake up, it looks at the clock, and is no real-time process then.
        assert generator.trial(100e3, 0.5, IPV6).forwarded
        assert os.sched_getscheduler(generator.pid) == os.SCHED_OTHER


@pytest.mark.parametrize("program", ["send", "count"])
def test_a_tag_does_not_have_the_verifier_follow_a_program_twice(testbed: NetnsTestbed, program: str) -> None:
    """It takes each start of a generator: 469 000 instructions were 0.46 s."""
    with (
        contextlib.closing(local_host()) as here,
        loaded(here, bpf_build(f"{native.build().bpf}:{program}"), "") as found,
    ):
        assert found.cost.processed < 150_000


def test_missing_compilers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        TestbedError, match=r"takes gcc, which is not on PATH; run \./ci/bootstrap, or: apt-get install"
    ):
        native.build(tmp_path / "cache")


def test_programs_for_other_guests_take_their_compiler_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    compiler = native.ForeignCompiler("no-such-gcc", "gcc-of-another", "another", tmp_path)
    with pytest.raises(TestbedError, match=r"takes no-such-gcc, which is not on PATH; .*gcc-of-another"):
        native.build_foreign(compiler, cache)
    made = native.build_foreign(replace(compiler, program="gcc", root=Path("/")), cache)
    assert native.build_foreign(compiler, cache) == made
    assert all(one.stat().st_size for one in made.values())


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = tmp_path / "clang"
    clang.write_text("#!/bin/sh\necho 'x.c:1: fatal error: bpf/bpf_helpers.h: not found' >&2\nexit 1\n")
    clang.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TestbedError) as error:
        native.build(tmp_path / "cache")
    assert one_line(error.value).startswith(
        "compiling the traffic generator failed: clang: x.c:1: fatal error: bpf/bpf_helpers.h: not found; a missing"
    )
    assert not list((tmp_path / "cache").rglob("*.o"))


PARENT = """
import sys, time
from pathlib import Path
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames
testbed = NetnsTestbed(1, plan_cpus(None, None), Journal.begin(Path(sys.argv[1])))
generator = testbed.generator(6)
print(generator.pid, testbed.chain.tg, flush=True)
generator.trial(float(sys.argv[2]), 60.0, Frames())
"""


@pytest.mark.parametrize("load", ["20e3", "3e6"])
def test_the_worker_dies_with_a_parent_that_is_killed(
    machine: None, tmp_path: Path, load: str, state_of_machine: Callable[[], dict[str, object]]
) -> None:
    before = state_of_machine()
    parent = subprocess.Popen(
        (sys.executable, "-c", PARENT, str(tmp_path / "state"), load),
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(LIBRARIES)},
    )  # fmt: skip
    try:
        assert parent.stdout is not None
        worker, namespace = parent.stdout.readline().split()
        time.sleep(0.2)  # so that a trial runs; where it does not yet the test still holds
        assert Path("/run/netns", namespace).exists()
    finally:
        parent.kill()
        parent.communicate()
    assert ended(int(worker))
    told = recover_stale(tmp_path / "state")
    assert any(sentence.startswith(f"deleted namespace {namespace} (left by the killed run") for sentence in told)
    assert state_of_machine() == before
