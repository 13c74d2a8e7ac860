"""What the plugin counts for a string instruction: what it moves, however QEMU executes it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.metering.meter import VcpuMeter
from pdrgate.guests.metering.plugin import VCPU_METER, guest_code

DRIVER = Path(__file__).parents[1] / "fakes" / "plugin_driver.c"
AT = 0xFFFFFFFF81000000
READS, WRITES = 1, 2
BEGINS, AT_ONCE = 16, 32
"""What it costs before it moves anything, and bytes that cost one more."""
REP_STOSB, REP_STOSQ, REP_MOVSB, REP_MOVSL = b"\xf3\xaa", b"\xf3\x48\xab", b"\xf3\xa4", b"\xf3\xa5"
REPNE_SCASB, REP_LODSW = b"\xf2\xae", b"\x66\xf3\xad"
STOSB, REP_RET, POPCNT, ENDBR = b"\xaa", b"\xf3\xc3", b"\xf3\x48\x0f\xb8\xc7", b"\xf3\x0f\x1e\xfa"


class Emulator:
    """QEMU with one CPU."""

    def __init__(self, library: ctypes.CDLL, meter: VcpuMeter) -> None:
        self._library = library
        self._meter = meter
        self._blocks: dict[tuple[int, int, bytes], int] = {}

    @property
    def counted(self) -> int:
        return self._meter.counts()[0].instructions

    def block(self, address: int, length: int, ends: bytes) -> int:
        """Execute a block, which ends with that instruction."""
        key = (address, length, ends)
        if key not in self._blocks:
            last = ctypes.c_uint64(address + length - 1)
            self._blocks[key] = self._library.driver_block(
                ctypes.c_uint64(address), ctypes.c_uint64(length), last, ends, ctypes.c_size_t(len(ends))
            )
        self._library.driver_execute(0, self._blocks[key], 1)
        return self._blocks[key]

    def access(self, block: int, size: int, which: int = WRITES, times: int = 1) -> None:
        self._library.driver_access(0, block, size.bit_length() - 1, which, times)

    def in_blocks(self, ends: bytes, size: int, times: int, which: int = WRITES) -> None:
        """A string instruction as QEMU before 10 has it: after its first step each is a block of its own."""
        step = self.block(AT, 10, ends)
        for _ in range(times):
            self.access(step, size, which)
            step = self.block(AT + 9, 1, ends)

    def in_a_loop(self, ends: bytes, size: int, times: int, which: int = WRITES) -> None:
        """The same as QEMU 10 has it."""
        self.access(self.block(AT, 10, ends), size, which, times)


@pytest.fixture(params=[1, 3, 7])
def emulator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Emulator]:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    made = tmp_path / "plugin.so"
    subprocess.run(
        ("gcc", "-O2", "-w", "-shared", "-fPIC", "-fvisibility=hidden", *guest_code(X86_64),
         f"-DPLUGIN_API={request.param}",
         str(VCPU_METER.main), str(DRIVER), "-o", str(made)), check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(made))
    with VcpuMeter() as meter:
        option = ctypes.c_char_p(f"memory=/proc/self/fd/{meter.fd}".encode())
        assert library.qemu_plugin_install(ctypes.c_uint64(1), None, 1, ctypes.byref(option)) == 0
        meter.begin()
        library.driver_idle(0)
        yield Emulator(library, meter)


@pytest.mark.parametrize(
    ("ends", "size", "times", "which"),
    [
        (REP_STOSB, 1, 1, WRITES), (REP_STOSB, 1, 33, WRITES), (REP_STOSB, 1, 4096, WRITES),
        (REP_STOSQ, 8, 512, WRITES), (REP_MOVSB, 1, 1500, WRITES), (REP_MOVSL, 4, 16, WRITES),
        (REPNE_SCASB, 1, 40, READS), (REP_LODSW, 2, 100, READS),
    ],
)  # fmt: skip
def test_it_costs_what_it_moves_on_each_qemu(
    emulator: Emulator, ends: bytes, size: int, times: int, which: int
) -> None:
    costs = 9 + BEGINS + -(-size * times // AT_ONCE)
    for number, executes in enumerate((emulator.in_blocks, emulator.in_a_loop, emulator.in_blocks), 1):
        executes(ends, size, times, which)
        assert emulator.counted == number * costs


def test_what_is_copied_counts_once(emulator: Emulator) -> None:
    """It is read, and written."""
    block = emulator.block(AT, 10, REP_MOVSB)
    for _ in range(64):
        emulator.access(block, 1, READS)
        emulator.access(block, 1, WRITES)
    assert emulator.counted == 9 + BEGINS + 2


def test_one_that_moves_nothing_costs_nothing(emulator: Emulator) -> None:
    emulator.in_blocks(REP_STOSB, 1, 0)
    assert emulator.counted == 9


def test_one_behind_another_begins_anew(emulator: Emulator) -> None:
    """As memcpy copies by words, and then what is left by bytes."""
    words, rest = emulator.block(AT, 10, REP_STOSQ), emulator.block(AT + 10, 3, REP_STOSB)
    before = emulator.counted
    emulator.access(words, 8, times=5)
    emulator.access(rest, 1, times=3)
    assert emulator.counted - before == BEGINS + 2 + BEGINS + 1


def test_one_that_was_interrupted_begins_anew(emulator: Emulator) -> None:
    block = emulator.block(AT, 10, REP_STOSB)
    emulator.access(block, 1, times=16)
    emulator.block(AT + 0x1000, 5, STOSB)
    emulator.access(block, 1, times=16)
    assert emulator.counted == 9 + 5 + 2 * (BEGINS + 1)


@pytest.mark.parametrize("ends", [STOSB, REP_RET, POPCNT, ENDBR])
def test_others_count_as_one(emulator: Emulator, ends: bytes) -> None:
    """Such a prefix means something else before other instructions."""
    emulator.access(emulator.block(AT, 10, ends), 8, WRITES | READS, 4)
    assert emulator.counted == 10


def test_what_it_moves_is_its_functions(emulator: Emulator) -> None:
    emulator.in_a_loop(REP_STOSB, 1, 64)
    executed = emulator._meter.executed()
    ran = executed.executions > 0
    counted = executed.length[ran] * executed.executions[ran]
    assert dict(zip(executed.address[ran].tolist(), counted.tolist(), strict=True)) == {AT: 9, AT + 9: BEGINS + 2}


@pytest.mark.parametrize(
    ("ends", "distance"),
    [
        (b"\xe8\x10\x02\0\0", 0x210),
        (b"\xe9\xf0\xff\xff\xff", -0x10),
        (b"\x2e\xe8\x10\0\0\0", 0x10),  # padded, as patched calls are
        (b"\x0f\x84\x20\0\0\0", 0x20),  # where something is equal
        (b"\x0f\xb6\x84\x24\0\0\0\0", None),  # a load
        (b"\xeb\x10", None),  # within its function
        (b"\xff\xd0", None),  # by a pointer
        (b"\xc3", None),
    ],
)
def test_where_a_block_calls_or_jumps_is_taken_from_its_code(
    emulator: Emulator, ends: bytes, distance: int | None
) -> None:
    emulator.block(AT, 10, ends)
    executed = emulator._meter.executed()
    (goes_to,) = executed.goes_to[executed.executions > 0].tolist()
    behind = AT + 9 + len(ends)
    assert goes_to == (0 if distance is None else behind + distance)
