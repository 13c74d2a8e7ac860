"""Addresses to functions: what /proc/kallsyms says, and what a guest's CPU has executed there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from fake_host import FakeHost
from made_symbols import FORMS, bz_image_of, image_with

from pdrgate.builds.image_symbols import typed_symbols
from pdrgate.guests.metering.function_counts import FunctionObserver, why_unmetered
from pdrgate.guests.metering.meter import Executed
from pdrgate.guests.metering.symbols import (
    UNNAMED,
    KernelSymbol,
    KernelSymbols,
    own_symbols,
    parsed,
    read_symbols,
    shows_symbols,
)
from pdrgate.observers.function_names import OTHERS, condensed, function_name
from pdrgate.record.stretch import USER_SPACE
from pdrgate.values.errors import TestbedError

BASE = 0xFFFFFFFF81000000
MODULE = 0xFFFFFFFFC0201000


def executed(*blocks: tuple[int, int, int]) -> Executed:
    """Blocks of address, length and executions."""
    columns = np.array(blocks, dtype=np.uint64).reshape(-1, 3).T
    return Executed(*columns)


def test_a_block_belongs_to_the_last_symbol_at_or_before_it():
    symbols = KernelSymbols([KernelSymbol(BASE, "first"), KernelSymbol(BASE + 0x40, "second")])
    found = symbols.functions(
        executed((BASE, 5, 10), (BASE + 0x3F, 2, 7), (BASE + 0x40, 3, 4), (BASE + 0x4000, 1, 6), (BASE - 1, 8, 1))
    )
    assert found == {"first": (5 * 10 + 2 * 7, 10), "second": (3 * 4 + 6, 4), UNNAMED: (8, 0)}


def test_callers_are_functions_whose_code_calls_or_jumps_to_a_functions_begin():
    symbols = KernelSymbols(
        [KernelSymbol(BASE + 0x100 * at, name) for at, name in enumerate(("rcv", "finish", "find", "find.part.0"))]
    )
    rcv, finish, find, part = (BASE + 0x100 * at for at in range(4))
    blocks = (
        (rcv, finish), (rcv + 8, find), (finish, find),
        (finish + 8, finish + 4),  # a jump within itself
        (finish + 16, rcv + 4),  # into another function, but not to its begin
        (find, part), (find + 4, 0),
    )  # fmt: skip
    address, goes_to = np.array(blocks, dtype=np.uint64).T
    ones = np.ones(len(blocks), np.uint64)
    found = symbols.callers(Executed(address, ones, ones, goes_to))
    assert found == {"finish": ("rcv",), "find": ("finish", "rcv")}
    assert symbols.callers(executed((rcv, 5, 10))) == {}


def test_what_lies_far_behind_the_last_symbol_is_not_its():
    """A classic BPF program's code is named by nobody, and was once told as `exit_amd_microcode`."""
    symbols = KernelSymbols([KernelSymbol(BASE, "last")])
    assert symbols.functions(executed((BASE, 5, 2), (MODULE, 4, 3))) == {"last": (10, 2), UNNAMED: (12, 0)}


def test_bytes_of_a_program_that_ran_count_once_where_blocks_overlap() -> None:
    program, other = MODULE, MODULE + 0x100
    symbols = KernelSymbols(
        [
            KernelSymbol(BASE, "kernel"), KernelSymbol(program, "bpf_prog_0123456789abcdef_filter"),
            KernelSymbol(other, "bpf_prog_fedcba9876543210_called"),
        ]
    )  # fmt: skip
    address = np.array([BASE, program, program + 8, program + 40, program + 44, other], np.uint64)
    ones, size = np.ones(6, np.uint64), np.array([99, 20, 12, 16, 4, 7], np.uint64)
    blocks = Executed(address, ones, ones, np.zeros(6, np.uint64), size)
    assert symbols.reached(blocks) == {"bpf:filter": 20 + 16, "bpf:called": 7}
    assert symbols.reached(executed((program, 5, 1))) == {}, "nobody knows how long a block is"


def test_the_observer_counts_the_code_of_programs_without_pdrgates_own_at_a_tracepoint() -> None:
    symbols = KernelSymbols(
        [
            KernelSymbol(BASE, "bpf_prog_0123456789abcdef_filter"),
            KernelSymbol(BASE + 0x40, "bpf_prog_0123456789abcdef_drop_reasons"),
        ]
    )
    address, ones = np.array([BASE, BASE + 0x40], np.uint64), np.ones(2, np.uint64)
    meter = Meter()
    meter.tables = [executed(), Executed(address, ones, ones, ones, np.array([30, 50], np.uint64))]
    observer = FunctionObserver(meter, lambda executed: symbols)  # type: ignore[arg-type]
    observer.begin()
    assert {str(one): value for one, value in observer.end().whole().after.items()} == {"program.reached": 30}


def test_a_block_that_was_translated_in_two_lengths_is_called_by_both():
    symbols = KernelSymbols([KernelSymbol(BASE, "f")])
    assert symbols.functions(executed((BASE, 5, 10), (BASE, 7, 3))) == {"f": (71, 13)}


def test_programs_are_one_function_without_calls():
    symbols = KernelSymbols([KernelSymbol(BASE, "f")])
    assert symbols.functions(executed((0, 100, 5), (0, 3, 1))) == {USER_SPACE: (503, 0)}


def test_nothing_executed_is_no_function():
    assert KernelSymbols([KernelSymbol(BASE, "f")]).functions(executed()) == {}


def test_parts_of_a_function_are_that_function_and_no_calls_of_it():
    symbols = KernelSymbols(
        [KernelSymbol(BASE, "f.isra.0"), KernelSymbol(BASE + 0x100, "f.cold"), KernelSymbol(BASE + 0x200, "f.part.0")]
    )
    found = symbols.functions(executed((BASE, 2, 10), (BASE + 0x100, 1, 1), (BASE + 0x200, 4, 2)))
    assert found == {"f": (20 + 1 + 8, 10)}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("ip6_forward", "ip6_forward"),
        ("page_to_skb.constprop.0.isra.0", "page_to_skb"),
        ("bpf_prog_6deef7357e7b4530_xdp_main", "bpf:xdp_main"),
        ("bpf_prog_6deef7357e7b4530", "bpf:program"),
        ("__x86_indirect_thunk_rax", "__x86_indirect_thunk_rax"),
    ],
)
def test_what_the_compiler_adds_to_a_name_is_left_out(symbol, name):
    assert function_name(symbol) == name


def test_of_several_names_of_an_address_one_is_taken_whatever_their_order():
    names = [KernelSymbol(BASE, name) for name in ("__memcpy", "memcpy", "memcpy_alias", "x_start", "_text")]
    for order in (names, names[::-1]):
        assert KernelSymbols(order).functions(executed((BASE, 1, 1))) == {"memcpy": (1, 1)}


def test_data_is_no_function():
    lines = ["ffffffff81000000 T f", "ffffffff82000000 D data", "ffffffffc0201000 t g\t[virtio_net]", "", "torn"]
    assert list(parsed(lines)) == [(KernelSymbol(BASE, "f"), ""), (KernelSymbol(MODULE, "g"), "virtio_net")]


def test_what_lies_in_the_kernels_data_is_a_variable_though_its_type_is_text():
    lines = [
        "ffffffff81000000 T _text", "ffffffff81000100 t ip6_forward", "ffffffff82000000 T _sdata",
        "ffffffff82000000 t init_stack", "ffffffff82000040 T slab_caches", "ffffffff82001000 T _edata",
        "ffffffff82002000 T late_code", "ffffffff82003000 B jiffies", "ffffffffc0201000 t poll\t[virtio_net]",
    ]  # fmt: skip
    functions, variables = own_symbols(typed_symbols(lines))
    assert [one.name for one in functions] == ["_text", "ip6_forward", "_edata", "late_code"]
    assert [name for _, name in sorted(variables)] == ["_sdata", "init_stack", "slab_caches", "jiffies"]


def test_functions_of_hardly_any_instructions_are_told_as_one_and_the_sum_stays():
    functions = {"much": (1_000_000, 10), "little": (3, 3), "less": (1, 1)}
    found = condensed(functions, 1e-4)
    assert found == {"much": (1_000_000, 10), OTHERS: (4, 0)}
    assert condensed({}, 1e-4) == {}


class Kernel(FakeHost):
    """Stands for a guest; ``later`` are lines of modules."""

    def __init__(self, base: int = BASE, later: int = 3) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.lines = [f"{base:016x} T _text", f"{base:016x} T startup_64", f"{base + 0x100:016x} t ip6_forward"]
        self.lines += [f"{base + 0x9000:016x} d data", f"{base + 0x9100:016x} D slab_caches"]
        self.lines += [f"{MODULE + 16 * n:016x} t poll_{n}\t[virtio_net]" for n in range(later)]

    def run(self, *argv, timeout=0.0, check=True):
        from pdrgate.hosts.host import Completed

        out = ""
        if argv[0] == "tail":
            out = "\n".join(self.lines[-int(argv[2]) :])
        elif argv[0] == "grep":
            out = "\n".join(line for line in self.lines if re.search(argv[-2], line))
            out = out.split("\n")[0] if "-m" in argv else out
        self.reads.append(argv[0])
        return Completed(argv, 0, out, "")


OWN = (
    (BASE, "T", "_text"), (BASE + 0x100, "t", "ip6_forward"), (BASE + 0x9000, "d", "data"),
    (BASE + 0x9100, "D", "slab_caches"), *((BASE + 0xA000 + 16 * at, "r", f"skb_{at}") for at in range(600)),
)  # fmt: skip


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A kernel that has its symbols in its image."""
    return bz_image_of(tmp_path / "vmlinuz", image_with(OWN, FORMS[1]))


def test_the_kernels_own_symbols_are_read_once_in_its_image_wherever_it_lies(tmp_path: Path, image: Path) -> None:
    first, moved = Kernel(), Kernel(BASE + 0x1C00000)
    symbols = read_symbols(first, image, tmp_path)
    assert symbols.functions(executed((BASE + 0x100, 4, 2), (MODULE + 16, 1, 1))) == {
        "ip6_forward": (8, 2), "poll_1": (1, 1),
    }  # fmt: skip
    again = read_symbols(moved, image, tmp_path)
    assert again.functions(executed((BASE + 0x1C00100, 4, 2))) == {"ip6_forward": (8, 2)}
    assert (symbols.data.marks, again.data.marks) == (
        {"slab_caches": BASE + 0x9100}, {"slab_caches": BASE + 0x1C09100},
    )  # fmt: skip
    assert (symbols.data.at(BASE + 0x9008), again.data.at(BASE + 0x1C09108)) == (
        ("data", BASE + 0x9000), ("slab_caches", BASE + 0x1C09100),
    )  # fmt: skip
    # Where it begins, and the modules: no more is read in a guest.
    assert first.reads == moved.reads
    assert (first.reads.count("grep"), first.reads.count("tail")) == (1, 1)
    assert len(list(tmp_path.glob("names-*.npz"))) == 1


@pytest.mark.parametrize("kept", [True, False], ids=["by its image", "by its boot"])
def test_what_one_boot_says_names_no_later_one(tmp_path: Path, image: Path, *, kept: bool) -> None:
    """A kernel that gives its functions the names of others misnames that run of itself, and no other."""
    if not kept:
        image.write_bytes(b"a kernel without a table of symbols")
    liar, honest = Kernel(), Kernel()
    liar.lines[2] = f"{BASE + 0x100:016x} t napi_gro_receive"
    liar.lines[5] = f"{MODULE:016x} t ip6_forward\t[virtio_net]"
    told = [read_symbols(one, image, tmp_path).function(BASE + 0x100) for one in (liar, honest)]
    assert told == ["ip6_forward" if kept else "napi_gro_receive", "ip6_forward"]
    assert read_symbols(honest, image, tmp_path).function(MODULE) == "poll_0"


def test_symbols_that_were_kept_are_those_that_were_made(tmp_path: Path) -> None:
    """Parts of functions are no entries, functions of one name are one, and code without a name has none."""
    made = KernelSymbols(
        [
            KernelSymbol(BASE + 0x20, "f"),
            KernelSymbol(BASE + 0x40, "f.cold"),
            KernelSymbol(BASE + 0x60, "g"),
            KernelSymbol(BASE + 0x80, "f"),
        ]
    )
    kept = tmp_path / "symbols.npz"
    with kept.open("wb") as file:
        made.save(file, BASE)
    moved = KernelSymbols.load(kept, BASE + 0x1000)
    ran = [(address, 4, 2) for address in range(0x10, 0xA0, 0x10)]
    there = executed(*((BASE + 0x1000 + at, length, times) for at, length, times in ran))
    here = executed(*((BASE + at, length, times) for at, length, times in ran))
    assert moved.functions(there) == made.functions(here)
    assert moved.function(BASE + 0x1060) == "g"
    assert moved.function(BASE) == UNNAMED
    assert len(moved) == 4
    assert moved.with_more([KernelSymbol(MODULE, "poll")]).function(MODULE) == "poll"


def test_another_image_has_symbols_of_its_own(tmp_path: Path) -> None:
    for form in FORMS[1:]:
        read_symbols(Kernel(), bz_image_of(tmp_path / "vmlinuz", image_with(OWN, form)), tmp_path)
    assert len(list(tmp_path.glob("names-*.npz"))) == 2


def test_a_kernel_without_a_table_in_its_image_is_asked_in_each_boot(tmp_path: Path) -> None:
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    kernels = [Kernel(), Kernel()]
    for one in kernels:
        assert read_symbols(one, tmp_path / "vmlinuz", tmp_path).function(BASE + 0x100) == "ip6_forward"
    assert [one.reads.count("grep") for one in kernels] == [2, 2]
    assert not list(tmp_path.glob("names-*"))


def test_many_modules_are_read_whole(tmp_path):
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    symbols = read_symbols(Kernel(later=20000), tmp_path / "vmlinuz", tmp_path)
    assert symbols.functions(executed((MODULE, 1, 1), (MODULE + 16 * 19999, 1, 1))) == {
        "poll_0": (1, 1), "poll_19999": (1, 1),
    }  # fmt: skip


def test_a_kernel_that_hides_its_addresses_is_told_of(tmp_path):
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    assert shows_symbols(Kernel())
    assert not shows_symbols(Kernel(0))
    with pytest.raises(TestbedError, match="shows no addresses of its functions"):
        read_symbols(Kernel(0), tmp_path / "vmlinuz", tmp_path)


class Meter:
    """Stands for a guest's meter: a table that grows."""

    def __init__(self) -> None:
        self.tables = [executed((BASE, 2, 100)), executed((BASE, 2, 110), (BASE + 0x40, 5, 3))]

    def executed(self):
        return self.tables.pop(0)


def test_the_observer_tells_what_was_executed_during_the_trial():
    meter, symbols = Meter(), KernelSymbols([KernelSymbol(BASE, "f"), KernelSymbol(BASE + 0x40, "g")])
    observer = FunctionObserver(meter, lambda executed: symbols)  # type: ignore[arg-type]
    observer.begin()
    seen = observer.end().whole()
    assert seen.functions == {"f": (20, 10), "g": (15, 3)}
    assert seen.counted > 0
    meter.tables = [executed(), executed((BASE, 2, 1))]
    observer.begin()
    assert observer.end().whole().functions == {"f": (2, 1)}
    assert observer.end().whole().functions == {}  # it was never begun


@pytest.mark.parametrize(
    ("accelerator", "vcpus", "why"),
    [("kvm", 1, "runs by KVM"), ("tcg", 2, "has 2 virtual CPUs"), ("tcg", 1, "sut.cpu_speed")],
)
def test_why_a_guest_is_not_metered(accelerator, vcpus, why):
    assert why in why_unmetered(accelerator, vcpus)


def test_symbols_are_cached_beside_the_rest(tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read_symbols(Kernel(), image)
    assert list((tmp_path / "cache" / "pdrgate").glob("names-*.npz"))
