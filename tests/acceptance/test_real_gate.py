"""The gate on this machine's own data path, started and mistreated as users do it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_noise import MEASURED, UNDECIDED

from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.safety.recovery import recover_stale
from tests.acceptance.conftest import PDRGATE, ROOT, Ended, Started, forked, run, started
from tests.datapath.conftest import is_ours

pytestmark = pytest.mark.datapath

SMOKE = ("--profile", "smoke", "--wait", "5 min", "--testbed", "resources/testbeds/local-netns.yaml")


def traces() -> dict[str, object]:
    """What a run changes on this machine."""
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.split()
    threads = [path for path in Path("/proc").glob("[0-9]*/comm") if _read(path).startswith("ksoftirqd/")]
    return {
        "namespaces": sorted(name for name in namespaces if name.startswith("pdrgate")),
        "workers": sorted(
            path.parent.name
            for path in Path("/proc").glob("[0-9]*/comm")
            if _read(path) == "pdrgate-traffic" and is_ours(int(path.parent.name))
        ),
        "backlog": Path("/proc/sys/net/core/netdev_max_backlog").read_text(),
        "nice": {path.read_text(): _nice(path.parent) for path in threads},
    }


def at_rest() -> dict[str, object]:
    """The traces once nobody measures: another run on this machine leaves its own while it lasts."""
    with Lease.acquire(whole_machine(), wait=600):
        return traces()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _nice(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[16]


@contextlib.contextmanager
def leaving_no_trace() -> Iterator[None]:
    with Lease.acquire(whole_machine(), wait=600) as lease:
        recover_stale(lease=lease)  # what runs that other tests killed have left
        before = traces()
    yield
    # What a run that has ended leaves to the kernel takes a moment to go.
    for _ in range(100):
        if not left_since(before):
            break
        time.sleep(0.1)
    assert left_since(before) == {}


def left_since(before: dict[str, object]) -> dict[str, object]:
    """What is not as it was; that what others had is gone by now is not our doing."""
    after = at_rest()
    more = {name: sorted(set(after[name]) - set(before[name])) for name in ("namespaces", "workers")}
    changed = {name: after[name] for name in ("backlog", "nice") if after[name] != before[name]}
    return changed | {name: found for name, found in more.items() if found}


@pytest.fixture(autouse=True)
def leaves_no_trace() -> Iterator[None]:
    with leaving_no_trace():
        yield


def gate(output: Path, *options: str, prefix: tuple[str, ...] = ()) -> Ended:
    arguments = ["gate", "--output", str(output), *SMOKE, *options]
    return run([*prefix, str(PDRGATE), *arguments], output) if prefix else forked(arguments, output)


def start(output: Path, *options: str) -> Started:
    """Start a run and return once it has measured a few trials."""
    output.mkdir()
    begun = started(["gate", "--output", str(output), *SMOKE, *options], output.parent)
    begun.until_told(r"^ +5 ")
    return begun


def only_folder(output: Path) -> Path:
    (folder,) = (path for path in output.iterdir() if path.is_dir() and not path.is_symlink())
    return folder


def test_the_default_scenario_end_to_end(tmp_path):
    ended = run([str(PDRGATE), "gate", "--output", str(tmp_path), *SMOKE], tmp_path)
    verdict = ended.result["verdict"]
    assert verdict in MEASURED, ended.stdout
    assert f"\n{ended.headline}\n" in ended.stdout
    ((status, message),) = ended.robot_messages.values()
    assert (status == "PASS") == (ended.code == 0) == (ended.xunit_failures == [])
    if ended.code:
        assert message.splitlines()[0] == ended.xunit_failures[0] == ended.headline
    (scenario,) = ended.result["scenarios"]
    assert scenario["fingerprint"]["kernel"] == os.uname().release
    assert scenario["calibration"]["ceiling"] >= scenario["calibration"]["forwarding_rate"] > 0
    assert scenario["trials"] == len((ended.folder / "trials.jsonl").read_text().splitlines())
    again = subprocess.run([PDRGATE, "assess", ended.folder], capture_output=True, text=True, check=False)
    assert str(ended.folder) in again.stdout


def test_without_options_it_is_a_guest_of_constant_speed(tmp_path):
    """On a machine that others use too its PDR is to repeat: the samples of one run lie within a few percent."""
    ended = forked(["gate", "--output", str(tmp_path), "--profile", "smoke", "--wait", "5 min"], tmp_path)
    assert ended.stdout.splitlines()[1].startswith("  testbed steady-guest: "), ended.stdout
    assert ended.result["verdict"] in MEASURED, ended.stdout
    (scenario,) = ended.result["scenarios"]
    assert scenario["fingerprint"]["testbed_cpu_speed"].endswith(" MIPS")
    assert scenario["carried"].startswith("the kernel routes")
    assert scenario["calibration"]["forwarding_rate"] > 1000
    assert ended.result["testbed"]["name"] == "steady-guest"
    assert "its CPU held at" in ended.result["testbed"]["sentence"]


def test_a_testbed_is_calibrated(tmp_path):
    """Namespaces set up anew, two pairs of them: what they deviate by is kept, or the machine was in the way."""
    ended = forked(["calibrate", SMOKE[-1], *SMOKE[:-2], "--pairs", "2", "--output", str(tmp_path)], tmp_path)
    verdict = ended.result["verdict"]
    assert verdict in UNDECIDED | {"PASS", "IMPROVEMENT"}, ended.stdout  # two sides that are one
    (scenario,) = ended.result["scenarios"]
    if ended.code:
        # What a busy machine comes to is told, and nothing is learned from it.
        assert f"\n{ended.headline}\n" in ended.stdout
        assert not (tmp_path / "history.db").exists()
        return
    with contextlib.closing(sqlite3.connect(tmp_path / "history.db")) as history:
        assert history.execute("SELECT count(*) FROM experience WHERE kind = 'noise'").fetchall() == [(1,)]
    assert scenario["comparison"]["pairs"] == 2
    assert "2 pairs, 4 boots; what they deviate by" in ended.stdout


def test_robot_alone_runs_the_same_suites(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "robot", "--pythonpath", "libraries", "--include", "path-ipv4-routing",
         "--variable", "MEASURE:mrr", "--variable", "PROFILE:smoke",
         "--variable", "TESTBED:resources/testbeds/local-netns.yaml",
         "--variable", "WAIT:5 min", "--outputdir", tmp_path, "robot/gate"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "IPv4 Routing" in done.stdout
    assert (tmp_path / "result.json").exists(), done.stdout + done.stderr
    assert (tmp_path / "trials.jsonl").exists()
    (entry,) = json.loads((tmp_path / "result.json").read_text())["scenarios"]
    assert entry["name"] == "ipv4-routing-1cpu-4096-64B"
    assert [one["name"] for one in entry["measurands"]] == ["MRR"] or entry["verdict"] == "DISTURBED", done.stdout


def test_ctrl_c_puts_everything_back_and_can_be_resumed(tmp_path):
    process = start(tmp_path / "results")
    process.send_signal(signal.SIGINT)
    assert process.code() == 130, process.told
    folder = only_folder(tmp_path / "results")
    assert f"continue with: --resume {folder}" in process.told
    kept = (folder / "trials.jsonl").read_text().splitlines()
    assert len(kept) >= 5


def test_a_killed_run_is_cleaned_up_by_the_next_and_resumed(tmp_path):
    suite = tmp_path / "search.robot"
    steps = "Search Partial Drop Rate\n    Measure Load    20 kpps    1 s"
    suite.write_text(suite_of(steps, setup="The Testbed Is Open"))
    process = start(tmp_path / "results", "--scenario", "all", "--suite", str(suite))
    process.send_signal(signal.SIGKILL)
    assert process.code() == -signal.SIGKILL
    folder = only_folder(tmp_path / "results")
    kept = (folder / "trials.jsonl").read_text().splitlines()
    resumed = forked(["gate", "--resume", str(folder)], tmp_path / "results")
    assert "deleted namespace pdrgate-" in resumed.stdout
    assert "from the resumed run" in resumed.stdout
    assert (folder / "trials.jsonl").read_text().splitlines()[: len(kept)] == kept
    assert resumed.result["verdict"] in MEASURED
    # The kill may have left a trial that was measured but of which the console had not told.
    replayed = resumed.stdout.count("from the resumed run")
    assert replayed == len(kept)


def test_a_second_run_at_the_same_time_is_told_so(tmp_path):
    process = start(tmp_path / "first", "--profile", "quick")
    try:
        second = gate(tmp_path / "second", "--wait", "0 s")
        assert second.code == 2
        assert re.search(
            rf"CPU \d+ is in use by another pdrgate run \(pid {process.pid}, since [\d:]+\); wait for it to end",
            second.result["reason"],
        ), second.stdout
        assert second.result["verdict"] == "ERROR"
        assert re.search(rf"\nERROR: CPU \d+ is in use by another pdrgate run \(pid {process.pid}", second.stdout)
        process.send_signal(signal.SIGINT)
        suite = tmp_path / "load.robot"
        suite.write_text(suite_of("Measure Load    20 kpps    300 ms"))
        patient = gate(tmp_path / "third", "--scenario", "all", "--suite", str(suite))
        assert patient.result["verdict"] in MEASURED, patient.stdout
        assert patient.result["scenarios"][0]["trials"] > 0
    finally:
        process.send_signal(signal.SIGINT)
        process.code()


def test_one_cpu_is_refused_with_the_reason(tmp_path):
    ended = gate(tmp_path, prefix=("taskset", "-c", "0"))
    assert ended.code == 2
    assert "ERROR: only CPU 0 is available" in ended.stdout
    assert "give this machine or container two CPUs" in ended.result["reason"]


def test_without_root_it_says_so(tmp_path):
    source = "import os, sys; os.geteuid = lambda: 65534; from pdrgate.cli import main; sys.exit(main())"
    ended = run([sys.executable, "-c", source, "gate", "--output", str(tmp_path), *SMOKE], tmp_path)
    assert ended.code == 2
    assert "makes network namespaces, which takes root; run with sudo" in ended.stdout


def test_missing_tools_are_named_with_their_package(tmp_path):
    source = (
        "import shutil, sys; real = shutil.which;"
        "shutil.which = lambda tool, **rest: None if tool == 'ethtool' else real(tool, **rest);"
        "from pdrgate.cli import main; sys.exit(main())"
    )
    ended = run([sys.executable, "-c", source, "gate", "--output", str(tmp_path), *SMOKE], tmp_path)
    assert ended.code == 2
    assert "ERROR: ethtool is not installed; run ./ci/bootstrap, or: apt-get install ethtool" in ended.stdout


def test_a_disk_that_is_full_from_the_start_is_told_before_anything_is_done(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    try:
        ended = gate(disk)
        assert (ended.code, ended.folder, ended.stdout) == (2, None, "")
        assert ended.stderr == (
            f"pdrgate: {disk} has 8 MB free, and a run wants 50 MB: make room there, or choose another with --output\n"
        )
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_was_measured(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)

    def shrink() -> None:
        while not any(disk.iterdir()):
            time.sleep(0.01)
        subprocess.run(["mount", "-o", "remount,size=40k", disk], check=True)

    shrinking = threading.Thread(target=shrink, daemon=True)
    shrinking.start()
    try:
        ended = gate(disk)
        shrinking.join(10)
        assert ended.code == 2, ended.stdout + ended.stderr
        assert "No space left on device" in ended.stdout + ended.stderr
        lines = (ended.folder / "trials.jsonl").read_text().splitlines()
        assert lines
        assert all(line.endswith("}") for line in lines)
    finally:
        subprocess.run(["umount", disk], check=True)


SUITE = """\
*** Settings ***
Resource          {root}/resources/gate.resource
Suite Setup       {setup}


*** Test Cases ***
{tests}"""


OPENED = f"Open Testbed    {ROOT}/resources/testbeds/local-netns.yaml    profile=smoke    wait=5 min"


def suite_of(*steps: str, setup: str = OPENED) -> str:
    """A suite of one test for each step, called by its number."""
    tests = (f"{number}\n    Set Data Path    ipv4-routing\n    {step}\n" for number, step in enumerate(steps, start=1))
    return SUITE.format(root=ROOT, setup=setup, tests="\n".join(tests))


MISTAKES = {
    "Measure Load    1.2 Mbananas    1 s": "unknown rate unit 'Mbananas'; use pps, kpps, Mpps or Gpps",
    "Measure Load    0 pps    1 s": "a trial at a load of 0.0 packets/s has no meaning; give a load above 0",
    "Search Partial Drop Rate    width=0%": "a width of 0.000% would never be reached; use one above 0 %",
    "Search Partial Drop Rate    loss=100%": "a loss ratio of 100.000% has no meaning",
    "Set Receive Buffers    0": "buffer: 0 is no whole number from 1 to 1000000",
    "Set Frame Size    20": "frame size 20 is out of range; use 64 to 1518 bytes",
    "Set Data Path    ipx-routing": "there is no data path 'ipx-routing'; there are ipv6-routing, ipv4-routing, ",
    "Pin Interrupts    3 cpus": "'3 cpus'",
    "Get PDR    >=    1 Mpps": "there is no PDR; measure it first with Measurement Should Be Stable, after Search",
    "Get Relevant Lower Bound": "there is no lower bound; search one first with Search Partial Drop Rate",
    "Measurement Should Be Stable": "nothing is measured; begin with Search Partial Drop Rate, or with Measure",
    "Get Latency    p99": "there is no trial in this test; measure one first with Measure Load",
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    """A run that makes every mistake, each in a test of its own."""
    folder = tmp_path_factory.mktemp("mistaken")
    suite = folder / "mistakes.robot"
    suite.write_text(suite_of(*MISTAKES))
    return gate(folder / "results", "--scenario", "all", "--suite", str(suite))


@pytest.mark.parametrize(("number", "message"), list(enumerate(MISTAKES.values(), start=1)), ids=list(MISTAKES))
def test_mistakes_in_a_suite_are_told_in_one_line(mistaken, number, message):
    assert mistaken.code != 0
    assert len(mistaken.robot_messages) == len(MISTAKES)
    status, text = mistaken.robot_messages[str(number)]
    assert status == "FAIL"
    told, *fault = text.splitlines()
    assert message in told
    assert fault in ([], ["The testbed, a tool or what both builds share is at fault, not the change."])
    assert "Traceback" not in mistaken.stdout + mistaken.stderr


def test_a_load_can_be_measured_and_asserted(tmp_path):
    suite = tmp_path / "load.robot"
    steps = (
        "Send Latency Probes    500 pps\n    Measure Load    20 kpps    300 ms\n    Get Loss Ratio    <=    1%\n"
        "    Get Latency    p50    <    1 s\n    Get Latency    max    <    1 us"
    )
    suite.write_text(suite_of(steps))
    ended = gate(tmp_path / "results", "--scenario", "all", "--suite", str(suite))
    status, text = ended.robot_messages["1"]
    assert status == "FAIL"
    assert re.fullmatch(
        r"ASSERTION_FAILED: Latency max '[\d.]+ (ns|µs|ms|s)' .* should be less than '1 µs' .*", text.splitlines()[0]
    ), text
    assert ended.code == 1


def test_a_suite_that_only_measures_passes(tmp_path):
    suite = tmp_path / "load.robot"
    suite.write_text(suite_of("Measure Load    20 kpps    300 ms\n    Get Loss Ratio    <=    5%"))
    ended = gate(tmp_path / "results", "--scenario", "all", "--suite", str(suite))
    assert ended.code == 0, ended.stdout
    assert ended.result["verdict"] == "NO_BASELINE"
    assert ended.result["reason"] == "the test asked for no comparison"


def test_packets_of_ones_own_are_sent_and_told(tmp_path):
    suite = tmp_path / "load.robot"
    measured = "Measure Load    20 kpps    300 ms\n    Get Loss Ratio    <=    5%"
    own = "Send Packets Like    tcp flags=S dst=@out flows=20    udp    dport=53    weight=2"
    suite.write_text(suite_of(f"Set Data Path    ipv4-routing\n    {own}\n    {measured}"))
    ended = gate(tmp_path / "results", "--scenario", "all", "--suite", str(suite))
    assert ended.code == 0, ended.stdout
    (scenario,) = ended.result["scenarios"]
    assert "frames like tcp flags=S dst=@out flows=20; udp dport=53 weight=2" in scenario["title"]
    assert scenario["fingerprint"]["traffic"] == "tcp flags=S dst=@out flows=20; udp dport=53 weight=2"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: x\nkind: local-netns\ngenerator:\n  kind: embedded\nsut:\n  hopps: 2\n", ":6: sut.hopps: unknown key"),
        ("name: [", ":1:8: is no YAML"),
    ],
)
def test_a_malformed_testbed_file_names_line_and_key(tmp_path, content, message):
    testbed = tmp_path / "x.yaml"
    testbed.write_text(content)
    ended = gate(tmp_path / "results", "--testbed", str(testbed))
    assert ended.code == 2
    assert f"{testbed}{message}" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tolerance", "lots"), "'lots' is not a ratio"),
        (("--profile", "eternal"), "'eternal' is not one of"),
        (("--baseline", "/nowhere"), "the baseline /nowhere does not exist"),
        (("--resume", "nothing"), "cannot go on with"),
        (("--scenario", "no-such-tag"), "no test"),
    ],
)
def test_mistakes_on_the_command_line(tmp_path, options, message):
    ended = (
        gate(tmp_path, *options)
        if options[0] not in ("--profile", "--resume")
        else forked(["gate", "--output", str(tmp_path), *options], tmp_path)
    )
    assert ended.code in (2, 64)
    assert message in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_build_that_is_no_kernel_is_named_before_anything_is_begun(tmp_path):
    output = tmp_path / "results"
    builds = ("--kernel", str(ROOT / "README.md"), "--against", str(ROOT / "README.md"))
    command = (sys.executable, "-m", "pdrgate.cli", "gate", "--output", str(output), *builds)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "libraries")}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"pdrgate: {ROOT / 'README.md'}: is no kernel image; name the bzImage")
    assert not output.exists()
