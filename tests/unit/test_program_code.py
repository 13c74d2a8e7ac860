"""Whose code is that lies where programs do: the plugin knows a program's by how it accesses memory."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from qemu_stubs import QEMU_STUBS, said_by

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.metering.meter import VcpuMeter
from pdrgate.guests.metering.plugin import MEMORY_TRIAL, VCPU_METER, guest_code
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.function_names import UNNAMED
from pdrgate.record.stretch import USER_SPACE

DRIVER = Path(__file__).parents[1] / "fakes" / "plugin_driver.c"
READS, WRITES = 1, 2
KERNEL, LOW = 0xFFFFFFFF81000000, 0x400000
MOV, JUMP, SYSRET, IRET, REP_STOSB = b"\x8b\x07", b"\xe9\0\0\0\0", b"\x48\x0f\x07", b"\x48\xcf", b"\xf3\xaa"
FIRMWARE_OF, PROGRAM_OF, KERNEL_OF = {"old": 2, "new": 5}, {"old": 1, "new": 2}, {"old": 0, "new": 0}
"""By the versions of QEMU: the views of the page tables by which firmware, programs and kernels access memory."""


class Emulator:
    """QEMU, which hands blocks of ten instructions to the plugin and executes them."""

    def __init__(self, library: ctypes.CDLL, meter: VcpuMeter, version: str) -> None:
        self._library = library
        self._meter = meter
        self._version = version
        self._blocks: dict[tuple[int, bytes], int] = {}

    def runs(self, address: int, ends: bytes = JUMP, *, view: int | None = None) -> None:
        """Execute a block whose last instruction is that; it reads memory by a view where one is given."""
        key = (address, ends)
        if key not in self._blocks:
            last = ctypes.c_uint64(address + 16 - len(ends))
            self._blocks[key] = self._library.driver_block(
                ctypes.c_uint64(address), ctypes.c_uint64(10), last, ends, ctypes.c_size_t(len(ends))
            )
        self._library.driver_execute(0, self._blocks[key], 1)
        if view is not None:
            self._library.driver_access_by(0, self._blocks[key], view, WRITES if ends == REP_STOSB else READS)

    def program(self, address: int = LOW) -> None:
        self.runs(address, MOV, view=PROGRAM_OF[self._version])

    def kernel(self, address: int = LOW + 0x1000) -> None:
        """Code of a kernel's where programs are, which reads memory."""
        self.runs(address, MOV, view=KERNEL_OF[self._version])

    def named(self) -> dict[str, int]:
        """Instructions by name, when the CPU has nothing to do."""
        self._library.driver_idle(0)
        return {name: count for name, (count, _) in KernelSymbols(()).functions(self._meter.executed()).items()}


@pytest.fixture(params=[(1, "old"), (3, "new"), (7, "new")], ids=lambda one: "-".join(map(str, one)))
def emulator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Emulator]:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    api, version = request.param
    made = tmp_path / "plugin.so"
    subprocess.run(
        ("gcc", "-O2", "-w", "-shared", "-fPIC", "-fvisibility=hidden", *guest_code(X86_64),
         f"-DPLUGIN_API={api}", str(VCPU_METER.main),
         str(DRIVER), "-o", str(made)), check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(made))
    with VcpuMeter() as meter:
        option = ctypes.c_char_p(f"memory=/proc/self/fd/{meter.fd}".encode())
        assert library.qemu_plugin_install(ctypes.c_uint64(1), None, 1, ctypes.byref(option)) == 0
        made_up = Emulator(library, meter, version)
        made_up.runs(0xFE05B, MOV, view=FIRMWARE_OF[version])
        meter.begin()
        library.driver_idle(0)
        assert meter.counting
        yield made_up


def test_what_a_program_executes_is_its_own_from_its_first_instruction_on(emulator: Emulator) -> None:
    emulator.runs(KERNEL, SYSRET)
    emulator.runs(LOW)
    emulator.program(LOW + 0x10)
    emulator.runs(LOW)
    emulator.runs(KERNEL)
    assert emulator.named() == {USER_SPACE: 30, UNNAMED: 20}


def test_what_a_kernel_executes_where_programs_are_is_the_kernels(emulator: Emulator) -> None:
    emulator.program()
    for _ in range(3):
        emulator.runs(KERNEL)
        emulator.runs(LOW + 0x2000)
        emulator.kernel()
    emulator.runs(KERNEL, IRET)
    emulator.program()
    assert emulator.named() == {USER_SPACE: 20, UNNAMED: 100}


def test_what_accesses_no_memory_is_no_programs(emulator: Emulator) -> None:
    """A kernel calls code of its own there, which works in registers alone, and returns to a program."""
    emulator.program()
    emulator.runs(KERNEL)
    emulator.runs(LOW + 0x1000)
    emulator.runs(KERNEL, SYSRET)
    emulator.program()
    assert emulator.named() == {USER_SPACE: 20, UNNAMED: 30}


CHANGES = (SYSRET, IRET, b"\xcd\x80", b"\x0f\x05", b"\xff\x2f", b"\xcb", b"\x0f\x35")


def test_what_goes_before_a_change_of_privilege_is_not_shown_by_what_comes_after_it(emulator: Emulator) -> None:
    for number, change in enumerate(CHANGES, start=1):
        emulator.runs(KERNEL)
        emulator.runs(LOW + 0x1000, change)
        emulator.program()
        assert emulator.named() == {USER_SPACE: 10 * number, UNNAMED: 20 * number}


def test_what_a_string_instruction_moves_is_whose_that_is(emulator: Emulator) -> None:
    emulator.runs(KERNEL)
    for view, name in ((KERNEL_OF["new"], UNNAMED), (PROGRAM_OF[emulator._version], USER_SPACE)):
        before = emulator.named().get(name, 0)
        emulator.runs(KERNEL)
        emulator.runs(LOW, REP_STOSB, view=view)
        assert emulator.named()[name] > before + 16


def test_an_emulator_whose_firmware_shows_nothing_known_has_programs_by_their_addresses(tmp_path: Path) -> None:
    made = tmp_path / "plugin.so"
    subprocess.run(
        ("gcc", "-O2", "-w", "-shared", "-fPIC", "-fvisibility=hidden", *guest_code(X86_64),
         "-DPLUGIN_API=1", str(VCPU_METER.main),
         str(DRIVER), "-o", str(made)), check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(made))
    with VcpuMeter() as meter:
        option = ctypes.c_char_p(f"memory=/proc/self/fd/{meter.fd}".encode())
        assert library.qemu_plugin_install(ctypes.c_uint64(1), None, 1, ctypes.byref(option)) == 0
        emulator = Emulator(library, meter, "new")
        emulator.runs(0xFE05B, MOV, view=9)
        meter.begin()
        library.driver_idle(0)
        emulator.runs(KERNEL)
        emulator.kernel()
        assert emulator.named() == {USER_SPACE: 10, UNNAMED: 10}


_MEMORY_DRIVER = f"""
#include "memory_trial.c"
{QEMU_STUBS}
static void nothing(void) {{}}

/* What a memory trial notes of an access by each view, of code where programs are. */
static void each(void)
{{
    struct place *place = place_at(NOWHERE, INSTRUCTION, 1, 0);
    for (unsigned view = 0; view < 6; view++) {{
        notes = 0;
        accessed_low(0, view, FIRST_KERNEL_ADDRESS + ((uint64_t)(window * 8 + view) << 20), place);
        printf("%d", (int)notes);
    }}
    window++;
    printf(" ");
}}

int main(void)
{{
    record = calloc(1, sizeof *record);
    for (int number = 0; number < LEVELS; number++) {{
        record->level[number].sets = 64;
        record->level[number].ways = 4;
    }}
    begin_trial();
    each();
    see_firmware(0, 5, 0, nothing);
    each();
    firmware_was_seen = 0;
    see_firmware(0, 2, 0, nothing);
    each();
    return 0;
}}
"""


def test_a_memory_trial_sees_what_a_kernel_touches_from_where_programs_are(tmp_path: Path) -> None:
    """It sees nothing of it where nothing is known, and of each version of QEMU all but what programs touch."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    assert said_by(_MEMORY_DRIVER, MEMORY_TRIAL.main.parent, tmp_path).split() == ["000000", "110011", "101111"]
