"""The bench's model of a CPU, on small programs: what waits for each other adds up, and what does not overlaps."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pdrgate.guests.metering.memory.memory_meter import _CODE, _PLACE, _STEP, BLOCK, STEP_SHIFT, Traced

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench/fidelity"))

from timing.instructions import INSN, SLOW, Flag, describe
from timing.timed_trace import Cpu, Executed, Model, Timed, cpu_named, executed, variants

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
CPU = cpu_named("intel-6-207")
AT = 0xFFFFFFFF81000000
WINDOW, STARTS, STORE, LAST = 1, 2, 4, 8 | 16 | 32
"""What steps are."""
NOP, RETURN, LOCKED_ADD = b"\x90", b"\xc3", b"\xf0\x48\xff\x00"
LOAD_NEXT = b"\x48\x8b\x00"
"""mov rax, [rax]"""
LOAD_OTHER = b"\x48\x8b\x0b"
"""mov rcx, [rbx]"""
MULTIPLY = b"\x48\x0f\xaf\xc0"
"""imul rax, rax"""
JUMP_IF = b"\x74\x01"
"""je, over one byte"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The compiled model."""
    return Model(tmp_path_factory.mktemp("model"))


class Program:
    """Blocks of code, and what they did."""

    def __init__(self) -> None:
        self.places: list[tuple[int, int, int, int, str]] = []
        self.code: list[bytes] = []
        self.steps: list[tuple[int, int]] = []
        self._blocks: dict[int, tuple[int, list[int]]] = {}

    def block(self, address: int, code: Sequence[bytes], function: str = "f", traits: int = 0) -> int:
        """Add a block; returns its place."""
        place = len(self.places)
        self.places.append((address, BLOCK, len(code), 0, function))
        self.code.append(b"")
        insns = []
        for one in code:
            insns.append(len(self.places))
            self.places.append((address, 1, 1, traits, function))
            self.code.append(one)
            address += len(one)
        self._blocks[place] = (self.places[place][0], insns)
        return place

    def window(self) -> None:
        """Begin a window."""
        self.steps.append((1, WINDOW << STEP_SHIFT))

    def ran(self, block: int, accesses: Sequence[tuple[int, int, int]] = ()) -> None:
        """Run a block, whose instructions of these numbers access these addresses in these ways."""
        address, insns = self._blocks[block]
        self.steps.append((address, STARTS << STEP_SHIFT | block))
        for number, where, how in accesses:
            self.steps.append((where, how << STEP_SHIFT | insns[number]))

    def executed(self) -> Executed:
        """The trace of all of it."""
        places = np.zeros(len(self.places), _PLACE)
        code = np.zeros(len(self.places), _CODE)
        for at, (address, kind, length, traits, _) in enumerate(self.places):
            places[at]["address"], places[at]["kind"], places[at]["length"] = address, kind, length
            places[at]["traits"] = traits
            code[at]["size"] = len(self.code[at])
            code[at]["bytes"][: len(self.code[at])] = list(self.code[at])
        steps = np.array(self.steps, _STEP)
        return executed(places, Traced(code, steps), [one[-1] for one in self.places])


def repeated(model: Model, code: Sequence[bytes], how: int = 0, traits: int = 0, cpu: Cpu = CPU) -> Timed:
    """What a block takes whose instructions each access another line, if any do."""
    program = Program()
    block = program.block(AT, code, traits=traits)
    line = 0xFFFF888000000000
    for _ in range(60):
        program.window()
        count = len(code) if how else 0
        program.ran(block, [(number, line + number * 4096 * 64, how) for number in range(count)])
        line += count * 4096 * 64
    return model.timed(cpu, program.executed())


def test_misses_that_wait_for_each_other_add_up_and_others_overlap(model: Model) -> None:
    waits, overlaps = (repeated(model, [code] * 8, LAST).cycles for code in (LOAD_NEXT, LOAD_OTHER))
    assert waits == pytest.approx(8 * CPU.memory + CPU.walk, rel=0.1)  # eight lie in a large page
    assert overlaps < waits / 8
    # Where a CPU has one miss at a time, they wait for it.
    assert repeated(model, [LOAD_OTHER] * 8, LAST, cpu=replace(CPU, misses=1.0)).cycles > 8 * CPU.memory * 0.9


def test_chains_take_their_latency_and_what_waits_for_nothing_the_width(model: Model) -> None:
    assert repeated(model, [MULTIPLY] * 10).cycles == pytest.approx(30, abs=1)
    assert repeated(model, [NOP] * 60).cycles == pytest.approx(60 / CPU.entered, abs=1)
    # 20 stores: two ports take them in 10 cycles.
    assert repeated(model, [b"\x48\x89\x0b"] * 20, STORE).cycles == pytest.approx(10, abs=1)


def test_atomic_instructions_wait_for_what_was_stored_before(model: Model) -> None:
    atomic = repeated(model, [LOCKED_ADD] * 4, LAST, traits=1)
    assert atomic.cycles > 4 * CPU.lock
    free = repeated(model, [b"\x48\xff\x00"] * 4)
    assert free.cycles < atomic.cycles / 4


def taken(model: Model, outcomes: Sequence[bool], cpu: Cpu = CPU) -> Timed:
    """What a branch takes that goes these ways, one in each window."""
    program = Program()
    branch, over = program.block(AT, [b"\x48\x85\xc0", JUMP_IF], "branches"), AT + 5
    plain, target = program.block(over, [NOP]), program.block(over + 1, [NOP] * 4)
    for one in outcomes:
        program.window()
        program.ran(branch)
        if not one:
            program.ran(plain)
        program.ran(target)
    return model.timed(cpu, program.executed())


def test_branches_with_a_pattern_are_foreseen_and_random_ones_are_not(model: Model) -> None:
    drawn = random.Random(7)
    foreseen = taken(model, [at % 5 == 0 for at in range(3000)])
    unforeseen = taken(model, [drawn.random() < 0.5 for _ in range(3000)])
    assert foreseen.mispredicted < 0.02
    assert unforeseen.mispredicted == pytest.approx(0.5, abs=0.1)
    assert unforeseen.mispredicted_of == {"branches": pytest.approx(unforeseen.mispredicted)}
    assert unforeseen.cycles > foreseen.cycles + 0.4 * CPU.redirect
    without = taken(model, [drawn.random() < 0.5 for _ in range(3000)], variants(CPU)["all branches foreseen"])
    assert without.cycles < unforeseen.cycles / 2


def test_returns_are_foreseen_by_their_calls_and_thunks_stand_for_what_they_replace(model: Model) -> None:
    program = Program()
    callers = [program.block(AT + 256 * at, [b"\xe8\x00\x10\x00\x00"], "caller") for at in range(4)]
    behind = [program.block(AT + 256 * at + 5, [NOP], "caller") for at in range(4)]
    called = program.block(AT + 0x1005, [NOP, b"\xe9\x00\x20\x00\x00"], "called")
    thunk = program.block(AT + 0x3000, [RETURN], "srso_alias_return_thunk")
    drawn = random.Random(3)
    for _ in range(600):
        program.window()
        for _ in range(4):
            caller = drawn.randrange(4)
            program.ran(callers[caller], [(0, 0xFFFFC90000000000, STORE)])
            program.ran(called)
            program.ran(thunk, [(0, 0xFFFFC90000000000, 0)])
            program.ran(behind[caller])
    found = model.timed(CPU, program.executed())
    assert found.mispredicted < 0.05
    assert found.instructions == pytest.approx(4 * 4, abs=0.1)
    assert "srso_alias_return_thunk" not in found.cycles_of
    assert sum(found.cycles_of.values()) == pytest.approx(found.cycles, rel=0.01)


@pytest.mark.parametrize(
    ("code", "name", "flags", "sources", "targets"),
    [
        (LOAD_NEXT, "mov", Flag.LOADS, [0], [0]),
        (b"\x48\x89\x4b\x08", "mov", Flag.STORES, [3, 1], []),
        (b"\x31\xc0", "xor", Flag.FREE, [], [16, 0]),
        (b"\x53", "push", Flag.STORES, [3], []),
        (RETURN, "ret", Flag.RETURNS | Flag.LOADS, [], []),
        (b"\xff\xe0", "jmp", Flag.INDIRECT, [0], []),
        (b"\xf3\xa4", "movsb", Flag.REPEATS, [1, 4, 5], [1, 4, 5]),
        (b"\x0f\xae\xe8", "lfence", Flag.SERIALISES, [], []),
    ],
)
def test_an_instruction_has_the_registers_that_it_reads_and_writes(
    code: bytes, name: str, flags: Flag, sources: Sequence[int], targets: Sequence[int]
) -> None:
    row = np.zeros(1, INSN)[0]
    assert describe(code, AT, row) == name
    assert Flag(int(row["flags"])) == flags
    assert list(row["source"][: row["sources"]]) == sources
    assert sorted(row["target"][: row["targets"]]) == sorted(targets)


def test_slow_instructions_are_known_by_their_names() -> None:
    row = np.zeros(1, INSN)[0]
    for code, name in (
        (b"\xfa", "cli"),
        (b"\xfb", "sti"),
        (b"\x9d", "popf"),
        (b"\x0f\x20\xd8", "cr"),
        (b"\xff\xc0", ""),
    ):
        row["slow"] = 0
        describe(code, AT, row)
        assert ("", *SLOW)[row["slow"]] == name


def test_a_cpu_without_a_model_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(ValueError, match=r"'z80'; there are .*intel-6-207"):
        cpu_named("z80")
    with pytest.raises(ValueError, match="no model of a CPU of aarch64"):
        cpu_named("intel-6-207", "aarch64")
