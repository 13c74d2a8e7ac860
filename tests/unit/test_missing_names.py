"""What of a stranger's kernel has no names is said beside the verdict, with the reason, in every report."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import unescape

import made_results
import numpy as np
import pytest
from flat_values import changed

from pdrgate.builds.architecture import ARM64, X86_64
from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.memory.naming.line_names import GuestLineNames
from pdrgate.guests.metering.memory.naming.missing_names import LinesOfKind, TypesRead, missing_names
from pdrgate.guests.metering.memory.trial_memory import LISTED_LINE
from pdrgate.guests.metering.static_data import FOUND_BY_NAME, StaticData
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.words.build_words import build_lines
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.results.model import ComparisonResult, Findings, ScenarioResult, SideResult

AREAS = tuple(LineArea(at << 40, at << 40, kind) for at, kind in enumerate((LineKind.DIRECT, LineKind.PAGE)))
SYMBOLS = [(0xFFFF_FFFF_8200_0000 + 64 * at, name) for at, name in enumerate((*FOUND_BY_NAME, "jiffies"))]
WHOLE = TypesRead()
NAMED = {kind: LinesOfKind(100, 95) for kind in (LineKind.DIRECT, LineKind.SYMBOL)}
WHY = "no names of slab caches: the kernel's notes of pages (struct page) have none for 100 % of the lines"


def of(
    areas: Sequence[LineArea] = AREAS, types: TypesRead | None = WHOLE, lines: Mapping[LineKind, LinesOfKind] = {},
    without: Sequence[str] = (),
) -> tuple[str, ...]:  # fmt: skip
    data = StaticData.of([one for one in SYMBOLS if one[1] not in without])
    return missing_names(data, areas, types, NAMED | lines)


def test_nothing_is_missing_where_all_is_found() -> None:
    assert of() == ()
    # What each CPU has for itself is allocated for the most part, and no variable.
    assert of(lines={LineKind.PER_CPU: LinesOfKind(1000, 2)}) == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"without": [name for _, name in SYMBOLS]},
            "no names of variables, no names of slab caches, no names of per-CPU variables, no names of BPF maps: the "
            "kernel's table of symbols has no variables (CONFIG_KALLSYMS_ALL)",
        ),
        (
            {"areas": AREAS[:1]},
            "no names of slab caches, no names of per-CPU variables, no names of BPF maps: the kernel does not show "
            "where it maps its memory and pages (CONFIG_PROC_KCORE)",
        ),
        ({"without": ["slab_caches"]}, "no names of slab caches: the kernel's symbols have no slab_caches"),
        ({"without": ["map_idr"]}, "no names of BPF maps: the kernel's symbols have no map_idr"),
        (
            {"without": ["__per_cpu_offset", "__per_cpu_end"]},
            "no names of per-CPU variables: the kernel's symbols have no __per_cpu_offset, __per_cpu_end",
        ),
        (
            {"types": None},
            "no names of BPF maps, no fields of structs: the kernel's image has no types (CONFIG_DEBUG_INFO_BTF)",
        ),
        (
            {"types": TypesRead(of_maps={"xa_node.slots", "bpf_htab.elems"})},
            "no names of BPF maps: the kernel's types have no bpf_htab.elems, xa_node.slots",
        ),
        (
            {"types": TypesRead(of_caches=["kmem_cache.refcount"])},
            "no fields of slab caches: the kernel's types have no kmem_cache.refcount",
        ),
        (
            {"types": TypesRead(of_each_cpu=[".data..percpu"])},
            "no fields of per-CPU variables: the kernel's types have no .data..percpu",
        ),
        ({"lines": {LineKind.DIRECT: LinesOfKind(40, 0)}}, WHY),
        (
            {"lines": {LineKind.DIRECT: LinesOfKind(100, 57)}},
            "no names of slab caches: the kernel's notes of pages (struct page) have none for 43 % of the lines",
        ),
        (
            {"lines": {LineKind.PER_CPU: LinesOfKind(9, 0)}},
            "no names of per-CPU variables: the kernel's areas of CPUs (__per_cpu_offset) have none for 100 % of the "
            "lines",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_with_its_reason(given: dict[str, object], said: str) -> None:
    assert of(**given) == (said,)  # type: ignore[arg-type]


def test_what_one_reason_takes_is_said_once() -> None:
    assert of(types=None, without=["map_idr", "slab_caches"], lines={LineKind.DIRECT: LinesOfKind(40, 0)}) == (
        "no names of slab caches: the kernel's symbols have no slab_caches",
        "no names of BPF maps, no fields of structs: the kernel's image has no types (CONFIG_DEBUG_INFO_BTF)",
    )


def test_a_guest_of_which_nothing_is_known_names_nothing_and_says_why() -> None:
    lines = np.array([(1, 1, 0, 0, 0, 4, LineKind.DIRECT, 0, 0, 0)], LISTED_LINE)
    with GuestMemory(1, X86_64) as memory:
        found = GuestLineNames(memory, 1)(KernelSymbols(()), AREAS, lines)
    assert [one.name for one in found.names] == [""]
    assert found.missing[0].endswith("has no variables (CONFIG_KALLSYMS_ALL)")
    assert found.missing[1] == "no fields of structs: the kernel's image has no types (CONFIG_DEBUG_INFO_BTF)"


def test_a_kernel_of_larger_pages_is_seen_without_names_of_its_memory() -> None:
    lines = np.array([(1, 1, 0, 0, 0, 4, LineKind.DIRECT, 0, 0, 0)], LISTED_LINE)
    with GuestMemory(1, ARM64, 65536) as memory:
        found = GuestLineNames(memory, 1)(KernelSymbols(()), AREAS, lines)
    why = "no names of slab caches, no names of per-CPU variables, no names of BPF maps: the kernel has pages of 64 KiB"
    assert found.missing[0] == why


def compared(*sides: str) -> ScenarioResult:
    """A scenario of two builds, of which these have a kernel whose slab caches have no names."""
    seen = MemorySeen(100, 0, {"f": MemoryCounts(lines=100)}, missing=(WHY,))
    memory = memory_result([seen, seen])
    assert memory is not None
    assert memory.missing == (WHY,)
    change = ComparisonResult(baseline="b", tolerance=0.02, change=0.0, lower=0.0, upper=0.0, confidence=0.975)
    return changed(made_results.scenario("PASS"), comparison=change, sides=tuple(
        SideResult(side=side, build=side, findings=Findings(memory=memory if side in sides else None))
        for side in ("baseline", "candidate")
    ))  # fmt: skip


def test_every_report_says_what_has_no_names() -> None:
    one = compared("candidate")
    said = f"the candidate: of cache lines {WHY}"
    assert build_lines(one)[-1] == said
    assert build_lines(compared("baseline", "candidate"))[-1] == f"both builds: of cache lines {WHY}"
    result = made_results.result(one)
    screen = io.StringIO()
    show_verdict(result, Screen(screen, live=False))
    assert said in screen.getvalue()
    assert said[1:] in unescape(summary_page(result, {}))
    assert "struct page" in run_markdown(result)


def test_paths_that_pass_say_once_what_has_no_names() -> None:
    said = f"the candidate: of cache lines {WHY}"
    nameless = [compared("candidate")] * 2
    assert said in said_of_paths(made_results.result(*nameless))
    assert f"{said} (on 2 of 3 paths)" in said_of_paths(made_results.result(*nameless, compared()))
