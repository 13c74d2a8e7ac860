"""Who called whom: calls and returns as the plugin follows them, and the names that they get."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.metering.meter import Executed, Followed, VcpuMeter
from pdrgate.guests.metering.plugin import VCPU_METER, guest_code
from pdrgate.guests.metering.stacks import stacks
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols
from pdrgate.observers.function_names import OTHERS, condensed_stacks

DRIVER = Path(__file__).parents[1] / "fakes" / "plugin_driver.c"
NAMES = ("net_rx_action", "virtnet_poll", "ip6_rcv", "ip6_output", "kfree", "__x86_indirect_thunk_rax",
         "asm_common_interrupt", "handle_softirqs", "schedule", "kthread")  # fmt: skip
BASE = 0xFFFFFFFF81000000
AT = {name: BASE + 0x1000 * number for number, name in enumerate(NAMES)}
SYMBOLS = KernelSymbols([KernelSymbol(address, name) for name, address in AT.items()])
CALL, RET, JUMP = b"\xe8\0\0\0\0", b"\xc3", b"\xe9\0\0\0\0"
INDIRECT_CALL, INDIRECT_JUMP, LONG_CALL, NOTRACK = b"\xff\xd0", b"\xff\xe0", b"\x41\xff\x54\x24\x08", b"\x3e\xff\xe0"


class Cpu:
    """A CPU that executes blocks of ten instructions, each at a place in a function, which ends in some way."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.number = 0
        self._blocks: dict[tuple[str, int, bytes], int] = {}
        self.begun = 0

    def beside(self, number: int) -> Cpu:
        """Another CPU of the same guest, which executes the same code."""
        other = Cpu(self._library)
        other.number, other._blocks = number, self._blocks
        return other

    def often(self, function: str, times: int) -> None:
        """Execute a block that was executed before; other threads go on meanwhile."""
        self._library.driver_execute(self.number, self._blocks[function, 0, JUMP], times)

    def __call__(self, function: str, offset: int = 0, ends: bytes = JUMP) -> None:
        key = (function, offset, ends)
        if key not in self._blocks:
            address = AT[function] + offset if function else 0x400000
            # The last instruction ends 0x10 behind the block's begin: a call returns there.
            last = ctypes.c_uint64(address + 0x10 - len(ends))
            made = self._library.driver_block(
                ctypes.c_uint64(address), ctypes.c_uint64(10), last, ends, ctypes.c_size_t(len(ends))
            )
            self._blocks[key] = made
        self._library.driver_execute(self.number, self._blocks[key], 1)
        self.begun += bool(function) and offset == 0


@pytest.fixture(scope="module", params=[1, 3, 7])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By the version of QEMU's interface: instructions are handed out in two ways, and told in two."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    made = tmp_path_factory.mktemp("plugin") / f"plugin-{request.param}.so"
    subprocess.run(
        ("gcc", "-O2", "-w", "-shared", "-fPIC", "-fvisibility=hidden", *guest_code(X86_64),
         f"-DPLUGIN_API={request.param}",
         str(VCPU_METER.main), str(DRIVER), "-o", str(made)), check=True,
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def library(built: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(built))


@pytest.fixture
def library_of_its_own(built: Path, tmp_path: Path) -> ctypes.CDLL:
    """The plugin has one memory for as long as it is loaded; a file of another name is loaded anew."""
    return ctypes.CDLL(str(shutil.copy(built, tmp_path / "plugin.so")))


@pytest.fixture(scope="module")
def found(library: ctypes.CDLL) -> Iterator[Callable[[Callable[[Cpu], None]], dict[str, int]]]:
    """Instructions of what a CPU executes, by one for all tests: the plugin has one memory."""
    with VcpuMeter() as meter:
        option = ctypes.c_char_p(f"memory=/proc/self/fd/{meter.fd}".encode())
        assert library.qemu_plugin_install(ctypes.c_uint64(1), None, 1, ctypes.byref(option)) == 0
        for begins in (False, True):
            if begins:
                meter.begin()
            library.driver_idle(0)
            assert meter.counting == begins
        cpu = Cpu(library)

        def follow(run: Callable[[Cpu], None]) -> dict[str, int]:
            for calls in (False, True):
                meter.follow(calls)
                for _ in range(20_000):
                    cpu("", 0)  # it looks now and then
            cpu.begun = 0
            run(cpu)
            told = stacks(meter.followed(), SYMBOLS)
            calls = sum(calls for _, calls in told.values())
            assert calls == cpu.begun  # each that begins where a function does, whoever called it
            return {stack: instructions for stack, (instructions, _) in told.items()}

        yield follow


def test_no_thread_of_a_plugin_is_left_in_the_process_of_the_tests(library: ctypes.CDLL) -> None:
    """Each would wake up a hundred times a second, beside all tests that come later."""
    names = [task.joinpath("comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    assert "pdrgate-watch" not in names


def test_a_function_is_below_the_one_that_called_it(found: Callable[[Callable[[Cpu], None]], dict[str, int]]) -> None:
    def run(cpu: Cpu) -> None:
        for _ in range(3):
            cpu("net_rx_action", 0, CALL)
            cpu("virtnet_poll", 0, INDIRECT_CALL)
            cpu("ip6_rcv", 0, LONG_CALL)
            cpu("kfree", 0, RET)
            cpu("ip6_rcv", 0x10, RET)
            cpu("virtnet_poll", 0x10, CALL)
            cpu("kfree", 0, RET)
            cpu("virtnet_poll", 0x20, RET)
            cpu("net_rx_action", 0x10)

    assert found(run) == {
        "net_rx_action": 60, "net_rx_action;virtnet_poll": 90, "net_rx_action;virtnet_poll;ip6_rcv": 60,
        "net_rx_action;virtnet_poll;ip6_rcv;kfree": 30, "net_rx_action;virtnet_poll;kfree": 30,
    }  # fmt: skip


def test_jumps_at_an_end_and_through_thunks_are_calls(
    found: Callable[[Callable[[Cpu], None]], dict[str, int]],
) -> None:
    def run(cpu: Cpu) -> None:
        cpu("net_rx_action", 0, CALL)
        cpu("virtnet_poll", 0, INDIRECT_JUMP)  # a call at its end, as compilers make it
        cpu("ip6_rcv", 0, CALL)
        cpu("__x86_indirect_thunk_rax", 0, CALL)  # a retpoline: puts its target where its own call returns to
        cpu("__x86_indirect_thunk_rax", 0x20, RET)
        cpu("ip6_output", 0, NOTRACK)
        cpu("kfree", 0, RET)  # a second one after the first has the same caller
        cpu("ip6_rcv", 0x10, RET)
        cpu("net_rx_action", 0x10)

    assert found(run) == {
        "net_rx_action": 20, "net_rx_action;virtnet_poll": 10, "net_rx_action;virtnet_poll;ip6_rcv": 20,
        "net_rx_action;virtnet_poll;ip6_rcv;__x86_indirect_thunk_rax": 20,
        "net_rx_action;virtnet_poll;ip6_rcv;ip6_output": 10, "net_rx_action;virtnet_poll;ip6_rcv;kfree": 10,
    }  # fmt: skip


def test_interrupts_and_what_they_leave_are_nobodys(found: Callable[[Callable[[Cpu], None]], dict[str, int]]) -> None:
    def run(cpu: Cpu) -> None:
        cpu("ip6_rcv", 0)
        cpu("asm_common_interrupt", 0, CALL)
        cpu("handle_softirqs", 0, CALL)
        cpu("net_rx_action", 0, RET)
        cpu("handle_softirqs", 0x10, RET)
        cpu("asm_common_interrupt", 0x10)  # iret
        cpu("ip6_rcv", 0x20, CALL)
        cpu("kfree", 0, RET)
        cpu("ip6_rcv", 0x30)

    assert found(run) == {
        "asm_common_interrupt": 20, "handle_softirqs": 20, "handle_softirqs;net_rx_action": 10,
        "ip6_rcv": 30, "ip6_rcv;kfree": 10,
    }  # fmt: skip


def test_another_thread_goes_on_where_its_function_is_called_for_the_most_part(
    found: Callable[[Callable[[Cpu], None]], dict[str, int]],
) -> None:
    def run(cpu: Cpu) -> None:
        for _ in range(2):
            cpu("kthread", 0, CALL)
            cpu("virtnet_poll", 0, CALL)
            cpu("kfree", 0, RET)
            cpu("virtnet_poll", 0x10, RET)
            cpu("kthread", 0x10, CALL)
            cpu("schedule", 0, RET)
            cpu("virtnet_poll", 0x10, RET)  # of another thread, whose callers were not seen
            cpu("kthread", 0x10)

    assert found(run) == {
        "kthread": 60, "kthread;virtnet_poll": 60, "kthread;virtnet_poll;kfree": 20, "kthread;schedule": 20
    }  # fmt: skip


def test_recursion_without_end_ends(found: Callable[[Callable[[Cpu], None]], dict[str, int]]) -> None:
    def run(cpu: Cpu) -> None:
        for _ in range(1000):
            cpu("net_rx_action", 0, CALL)
            cpu("virtnet_poll", 0, CALL)

    told = found(run)
    assert sum(told.values()) == 20_000


def test_what_runs_while_it_is_read_is_left_out(
    found: Callable[[Callable[[Cpu], None]], dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU that halted when it was told to follow no longer goes on, and makes calls that were not seen before."""
    head = VcpuMeter._cpu_head

    def run(cpu: Cpu) -> None:
        def read(meter: VcpuMeter, number: int) -> dict[str, int]:
            told = head(meter, number)
            cpu("net_rx_action", 0x20, CALL)
            cpu("ip6_output", 0x40, RET)
            cpu("net_rx_action", 0x30)
            return told

        cpu("net_rx_action", 0)
        monkeypatch.setattr(VcpuMeter, "_cpu_head", read)

    assert found(run) == {"net_rx_action": 10}


@pytest.fixture
def two(library_of_its_own: ctypes.CDLL) -> Iterator[tuple[VcpuMeter, Cpu, Cpu]]:
    """A guest of two CPUs, which run the same code."""
    with VcpuMeter(2) as meter:
        option = ctypes.c_char_p(f"memory=/proc/self/fd/{meter.fd}".encode())
        assert library_of_its_own.qemu_plugin_install(ctypes.c_uint64(1), None, 1, ctypes.byref(option)) == 0
        meter.begin()
        library_of_its_own.driver_idle(0)
        first = Cpu(library_of_its_own)
        yield meter, first, first.beside(1)


def test_each_cpu_counts_for_itself_what_it_executes(two: tuple[VcpuMeter, Cpu, Cpu]) -> None:
    meter, first, second = two
    for cpu, times in ((first, 3), (second, 5)):
        for _ in range(times):
            cpu("ip6_rcv", 0)
    second("kfree", 0)
    assert [one.instructions for one in meter.counts()] == [30, 60]
    assert [SYMBOLS.functions(meter.executed_by(cpu)) for cpu in meter.cpus] == [
        {"ip6_rcv": (30, 3)}, {"ip6_rcv": (50, 5), "kfree": (10, 1)},
    ]  # fmt: skip
    assert SYMBOLS.functions(meter.executed()) == {"ip6_rcv": (80, 8), "kfree": (10, 1)}


def test_threads_that_run_at_once_lose_no_count(two: tuple[VcpuMeter, Cpu, Cpu]) -> None:
    """QEMU has a thread for each CPU; counts that both wrote were lost by the thousand."""
    meter, first, second = two
    times = 2_000_000
    first("ip6_rcv", 0)
    second("ip6_rcv", 0)
    threads = [threading.Thread(target=cpu.often, args=("ip6_rcv", times)) for cpu in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.instructions for one in meter.counts()] == [10 * (times + 1)] * 2
    assert SYMBOLS.functions(meter.executed()) == {"ip6_rcv": (20 * (times + 1), 2 * (times + 1))}


def test_calls_are_followed_on_each_cpu_by_itself(two: tuple[VcpuMeter, Cpu, Cpu]) -> None:
    """What one calls between the other's call and return is none of it."""
    meter, first, second = two
    meter.follow(True)
    for cpu in (first, second):
        for _ in range(20_000):
            cpu("", 0)  # it looks now and then
    first("net_rx_action", 0, CALL)
    second("kthread", 0, CALL)
    first("ip6_rcv", 0, RET)
    second("kfree", 0, RET)
    first("net_rx_action", 0x10)
    second("kthread", 0x10)
    told = {stack: found for stack, (found, _) in stacks(meter.followed(), SYMBOLS).items()}
    assert told == {"net_rx_action": 20, "net_rx_action;ip6_rcv": 10, "kthread": 20, "kthread;kfree": 10}


def test_a_cpu_that_slept_while_calls_were_followed_tells_none_of_those_before(
    two: tuple[VcpuMeter, Cpu, Cpu],
) -> None:
    meter, first, second = two
    for follows, those in ((True, (first, second)), (False, (first,)), (True, (first,))):
        meter.follow(follows)
        for cpu in those:
            for _ in range(20_000):
                cpu("", 0)
            cpu("ip6_rcv" if cpu is first else "kfree", 0)
    assert stacks(meter.followed(), SYMBOLS) == {"ip6_rcv": (10, 1)}


def test_calls_of_one_function_by_itself_are_told_once() -> None:
    address = np.array([AT["kfree"]], dtype=np.uint64)
    blocks = Executed(address, np.array([7], dtype=np.uint64), np.array([1], dtype=np.uint64))
    chains = np.array([0, AT["kfree"], AT["kfree"]], dtype=np.uint64)
    followed = Followed(
        chains, np.array([0, 0, 1]), np.array([0, 0, 0]), np.array([1, 2]), np.array([0, 0]),
        np.array([3, 5], dtype=np.uint64), blocks,
    )  # fmt: skip
    assert stacks(followed, SYMBOLS) == {"kfree": (56, 8)}


def test_what_is_too_small_counts_for_its_caller() -> None:
    known = {"a": (10, 1), "a;b": (900, 2), "a;b;c": (4, 7), "a;b;c;d": (4, 7), "e;f": (2, 1), "a;g": (80, 3)}
    least = {"a": (10, 1), "a;g": (80, 3), OTHERS: (2, 0)}
    assert condensed_stacks(known, 0.01) == least | {"a;b": (908, 2)}
    assert condensed_stacks(known, 0.008) == least | {"a;b": (900, 2), "a;b;c": (8, 7)}
    assert condensed_stacks({}, 0.01) == {}
