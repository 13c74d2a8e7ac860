"""Each kernel of the matrix has names: of its symbols, of lines that packets touch, of their fields and maps."""

from __future__ import annotations

import dataclasses
import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from guest_trials import guest_trials
from hostile_kernel import bz_image
from touching_routers import MAPS, router_of_maps

from pdrgate.builds.architecture import X86_64
from pdrgate.builds.boot_image import linked_image
from pdrgate.builds.image_symbols import image_symbols, typed_symbols
from pdrgate.builds.kernel_build import KernelBuild, kernel_build
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering.memory.line_areas import LineKind, read_areas
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import MemorySeen
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

PROGRAM = "bpf:xdp_router"
LEAST = {"direct_lines": 0.99, "symbol_lines": 0.9, "cpu_lines": 0.3}
"""The share of the lines of a kind that have a name of their own. What each CPU has is allocated for a good part."""


@pytest.fixture
def metered(matrix_kernel: KernelBuild, shared_testbed: Callable[..., VmTestbed]) -> VmTestbed:
    return shared_testbed(matrix_kernel, metered=True)


def test_an_image_has_the_symbols_that_its_kernel_shows(matrix_kernel: KernelBuild, metered: VmTestbed) -> None:
    linked = linked_image(matrix_kernel.image)
    assert linked is not None
    metered.guest.run("sh", "-c", "echo 0 >/proc/sys/kernel/kptr_restrict")
    shown = typed_symbols(metered.guest.run("cat", "/proc/kallsyms").stdout.splitlines())
    assert image_symbols(linked) == [one for one in shown if not one.module]


def test_lines_that_packets_touch_have_names_and_fields(metered: VmTestbed, tmp_path: Path) -> None:
    seen = seen_of(metered, tmp_path, "ipv6-routing")
    assert seen.missing == ()
    shares = shares_of(seen)
    assert all(shares[kind] >= least for kind, least in LEAST.items()), shares
    fields = {name: text for each in seen.fields.values() for name, text in each.items()}
    assert fields["skbuff_head_cache"].startswith("sk_buff.")
    assert fields["per-CPU napi_alloc_cache"].startswith("napi_alloc_cache.")


def test_lines_of_each_type_of_map_have_its_name(metered: VmTestbed, tmp_path: Path) -> None:
    seen = seen_of(metered, tmp_path, "xdp-ipv6-routing", router_of_maps(tmp_path))
    assert seen.missing == ()
    own = {name: count / seen.windows for kind in seen.named[PROGRAM].values() for name, count in kind.items()}
    named = {name: own.get(f"per-CPU map {name}" if name.startswith("each") else f"map {name}", 0) for name in MAPS}
    assert named == pytest.approx(dict.fromkeys(MAPS, 1), abs=0.02), own


def test_a_kernel_with_five_levels_of_page_tables_has_names(
    cloud: KernelBuild, boot_testbed: Callable[..., VmTestbed], config: GuestConfig, tmp_path: Path
) -> None:
    """A kernel that decompresses itself uses five, where the emulated CPU has them."""
    machine = dataclasses.replace(config, metered=True, pvh=False)
    testbed = boot_testbed(cloud, machine=machine)
    begins = read_areas(testbed.guest, X86_64)
    assert min(one.first for one in begins if one.kind == LineKind.DIRECT) >> 52 == 0xFF1
    seen = seen_of(testbed, tmp_path, "ipv6-routing")
    assert seen.missing == ()
    assert shares_of(seen)["direct_lines"] >= LEAST["direct_lines"]


def test_a_kernel_without_types_is_measured_and_what_it_lacks_is_said(
    cloud: KernelBuild, boot_testbed: Callable[..., VmTestbed], config: GuestConfig, tmp_path: Path
) -> None:
    linked = linked_image(cloud.image)
    assert linked is not None
    before, name, behind = linked.read_bytes().rpartition(b"\0.BTF\0")  # the names of sections come last
    nameless = before + name.replace(b"B", b"X") + behind
    image = bz_image(tmp_path / "bzImage", gzip.compress(nameless, 1), cloud.release)
    build = kernel_build(image, modules=cloud.modules)
    testbed = boot_testbed(build, machine=dataclasses.replace(config, metered=True))
    seen = seen_of(testbed, tmp_path, "ipv6-routing")
    assert seen.missing == (
        "no names of BPF maps, no fields of structs: the kernel's image has no types (CONFIG_DEBUG_INFO_BTF)",
    )
    assert seen.fields == {}
    assert shares_of(seen)["direct_lines"] >= LEAST["direct_lines"]


def shares_of(seen: MemorySeen) -> dict[str, float]:
    """The share of the lines that have names, by their kind."""
    touched = {kind: sum(getattr(one, kind) for one in seen.functions.values()) for kind in LEAST}
    named: Counter[str] = Counter()
    for kinds in seen.named.values():
        named.update({kind: sum(names.values()) for kind, names in kinds.items() if kind in LEAST})
    return {kind: named[kind] / touched[kind] for kind in LEAST}


def seen_of(testbed: VmTestbed, folder: Path, path: str, program: Path | None = None) -> MemorySeen:
    """What a memory trial of a path saw."""
    phases = (Phase.SATURATION, Phase.MEMORY)
    *_, last = guest_trials(testbed, folder / "trials.jsonl", path, *phases, program=program)
    assert last.seen.memory is not None
    return last.seen.memory
