"""What does the gate say of faults that are no slowdown? Each is made for real, and the whole gate is run on it.

    sudo .venv/bin/python tests/bench/faults.py [--runs 3] [early-loss flips hog stopped]

- early-loss: an XDP router in guests that drops every sixteenth packet beyond 0.8 of what it can forward, against the
  same program that does so beyond far more: the same instructions, the same capacity.
- flips: eight routers in namespaces, of which the second has packets go through a firewall of 200 rules that match
  nothing, and past it, every two seconds: a SUT that flips, on a CPU that nobody disturbs.
- flips-in-a-guest: a guest of constant speed that gets 60 policy rules and loses them, every two seconds.
- hog: namespaces, and a process of equal priority that never waits on the SUT's CPU.
- stopped: two equal builds in guests, of which each is stopped for two seconds (SIGSTOP) every eight.

A line for each run: verdict, seconds, and the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from planted import Silent

from pdrgate.gate.run.options import Options
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.history.results import read_result
from pdrgate.results.model import RunResult
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.units import Duration

ROOT = Path(__file__).resolve().parents[2]
NETNS = ROOT / "resources/testbeds/local-netns.yaml"
STEADY = ROOT / "resources/testbeds/steady-guest.yaml"
KERNEL = "linux-image-cloud-amd64"
RULES = 200
"""Of a router that flips; the generator's source ports are above them."""
WINDOW = 0.004
"""Seconds of a jiffy in Debian's kernels."""

_FLIPS = """
ip -6 rule add fwmark 77 table main
for what in add del; do
    for mark in $(seq 100 159); do echo "rule $what fwmark $mark table main"; done > /run/$what
done
(while :; do ip -6 -batch /run/add; sleep 2; ip -6 -batch /run/del; sleep 2; done) > /dev/null 2>&1 &
"""

_LOSES = """
struct window { __u64 jiffy, packets; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct window);
} windows SEC(".maps");

static __always_inline int lost(void)
{
	__u64 now = bpf_jiffies64();
	__u32 first = 0;
	struct window *window = bpf_map_lookup_elem(&windows, &first);

	if (!window)
		return 0;
	if (window->jiffy != now) {
		window->jiffy = now;
		window->packets = 0;
	}
	return ++window->packets > LOSES_BEYOND && !(window->packets & 15);
}
"""


def router(folder: Path, beyond: int) -> Path:
    """pdrgate's XDP router, made to lose every sixteenth packet beyond so many in a jiffy."""
    source = (ROOT / "resources/bpf/xdp_router.bpf.c").read_text()
    for before, after in (
        ('#include "counters.h"\n', f'#include "{ROOT}/resources/bpf/counters.h"\n{_LOSES}'),
        ("\treturn counted(REDIRECTED,", "\tif (lost())\n\t\treturn counted(DROPPED_UNREACHABLE, XDP_DROP);\n"
         "\treturn counted(REDIRECTED,"),
    ):  # fmt: skip
        assert before in source
        source = source.replace(before, after)
    file, made = folder / f"loses-beyond-{beyond}.bpf.c", folder / f"loses-beyond-{beyond}.o"
    file.write_text(source)
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    target = ("-O2", "-g", "-target", "bpf", include, f"-DLOSES_BEYOND={beyond}")
    subprocess.run(("clang", *target, "-c", str(file), "-o", str(made)), check=True)
    return made


def gate(folder: Path, *options: str) -> tuple[RunResult, float]:
    """One run of the gate, and its seconds."""
    command = (
        sys.executable,
        "-m",
        "pdrgate.cli",
        "gate",
        "--output",
        str(folder),
        "--wait",
        "1h",
        "--quiet",
        *options,
    )
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "libraries")}, capture_output=True, text=True
    )
    results = list(folder.glob("2*/result.json"))
    if len(results) != 1:
        sys.exit(done.stdout + done.stderr)
    return read_result(results[0]), time.monotonic() - began


@contextlib.contextmanager
def again_and_again(act: Callable[[], None], seconds: float) -> Iterator[None]:
    """Act meanwhile, with a pause of so many seconds between."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(seconds):
            act()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def flip(fast: dict[str, bool]) -> None:
    """Have packets go through the second router's firewall, or past it; a jump is cheap to add, the rules are not.

    Args:
        fast: of each router with a firewall, whether packets go past it now.
    """
    told = json.loads(subprocess.run(("ip", "-j", "netns", "list"), capture_output=True, text=True).stdout or "[]")
    for one in (name for entry in told if (name := entry["name"]).startswith("pdrgate-") and name.endswith("-sut2")):
        if one in fast:
            text = "add rule inet flip forwarded jump slow" if fast[one] else "flush chain inet flip forwarded"
        else:
            rules = "\n".join(f"add rule inet flip slow udp sport {1 + number} drop" for number in range(RULES))
            chains = "add chain inet flip forwarded { type filter hook forward priority 0; }\nadd chain inet flip slow"
            text = f"add table inet flip\n{chains}\n{rules}"
        inside = ("ip", "netns", "exec", one, "nft", "-f", "-")
        if subprocess.run(inside, input=text, text=True, capture_output=True).returncode == 0:
            fast[one] = not fast.get(one, False)


def stop_guests() -> None:
    """Stop each guest of the gate's for two seconds."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"qemu-system" in (words := (process / "cmdline").read_bytes()) and b"pdrgate" in words:
                os.kill(int(process.name), signal.SIGSTOP)
                time.sleep(2)
                os.kill(int(process.name), signal.SIGCONT)


@contextlib.contextmanager
def hog() -> Iterator[None]:
    """A process that never waits on the last CPU, which is the SUT's."""
    cpu = max(os.sched_getaffinity(0))
    process = subprocess.Popen(("taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def early_loss(folder: Path) -> tuple[RunResult, float]:
    """What the program can forward is measured first."""
    never = router(folder, 1_000_000_000)
    known, _ = gate(
        folder / "known", "--bpf", str(never), "--against", str(never), "--profile", "smoke", "--set", "boots=3"
    )
    pdr = known.scenarios[0].pdr
    assert pdr is not None
    loses = router(folder, round(0.8 * pdr.load * WINDOW))
    return gate(folder / "gated", "--bpf", str(loses), "--against", str(never))


def flips(folder: Path) -> tuple[RunResult, float]:
    """More routers than usual: fewer forward as much as the generator sends."""
    testbed = folder / "eight.yaml"
    testbed.write_text(NETNS.read_text().replace("  hops: 3 ", "  hops: 8 "))
    with again_and_again(functools.partial(flip, {}), 2):
        return gate(folder, "--testbed", str(testbed))


def flips_in_a_guest(folder: Path) -> tuple[RunResult, float]:
    """In this process, which has the guest's shell."""
    began = time.monotonic()
    options = Options(profile="quick", wait=Duration(3600.0))
    record = RunRecord(folder, options.profile)
    session = Session(load_testbed(STEADY), options, record, Silent())
    try:
        session.open()
        testbed = session.testbed
        assert isinstance(testbed, VmTestbed)
        testbed.guest.run("sh", "-ec", _FLIPS)
        run = ScenarioRun(session, Scenario())
        try:
            run.prepare()
            run.search()
            run.repeat()
            run.judge(0.02)
        finally:
            run.finish()
    finally:
        session.close()
        record.close()
    return read_result(folder), time.monotonic() - began


def under(what: Callable[[], AbstractContextManager[None]], *options: str) -> Callable[[Path], tuple[RunResult, float]]:
    """The gate with these options, while something is done."""

    def run(folder: Path) -> tuple[RunResult, float]:
        with what():
            return gate(folder, *options)

    return run


FAULTS: dict[str, Callable[[Path], tuple[RunResult, float]]] = {
    "early-loss": early_loss,
    "flips": flips,
    "flips-in-a-guest": flips_in_a_guest,
    "hog": under(hog, "--testbed", str(NETNS)),
    "stopped": under(lambda: again_and_again(stop_guests, 6), "--kernel", KERNEL, "--against", KERNEL),
}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("faults", nargs="*", choices=[[], *FAULTS], metavar="FAULT")
    arguments = parser.parse_args()
    for fault in arguments.faults or FAULTS:
        for number in range(1, arguments.runs + 1):
            with tempfile.TemporaryDirectory() as place:
                result, seconds = FAULTS[fault](Path(place))
            reason = "; ".join(one.reason for one in result.scenarios) or result.reason
            print(f"{fault:16} {number} {seconds:4.0f} s {result.verdict}: {reason}", flush=True)


if __name__ == "__main__":
    main()
