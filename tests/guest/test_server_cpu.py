"""The CPU of an emulated guest is one as servers have, and its string instructions cost what they move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering.symbols import read_symbols
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

PATIENCE = 180.0
PAGE = 4096
PAGE_COSTS = 16 + PAGE / 32 + 3
"""By the plugin's measure: the instruction, what it moves, and those around it."""
TAKES_MEMORY = "for n in 1 2; do head -c 300000 /dev/zero | tail -c 300000 >/dev/null; done"
"""Has the kernel clear pages for programs."""


@pytest.fixture
def guest(request: pytest.FixtureRequest, cloud: KernelBuild, journal: Journal, tmp_path: Path) -> Iterator[Guest]:
    """A guest with this CPU, whose instructions can be counted where that is asked for."""
    cpu, metered = request.param
    cpus = plan_cpus(None, None)
    config = GuestConfig(
        cpus=(cpus.generator,), accelerator="tcg", isolate=False, boot_cpus=(cpus.generator, *cpus.sut),
        cpu=cpu, metered=metered,
    )  # fmt: skip
    with Guest(cloud, config, journal, tmp_path) as guest:
        guest.wait(PATIENCE)
        yield guest


@pytest.mark.parametrize(
    ("guest", "flags", "lacks", "words", "clears"),
    [
        (("server", True), {"rep_good"}, {"pti", "erms", "fsrm"},
         {"spectre_v2": "Mitigation: Retpolines", "spec_rstack_overflow": "safe RET", "meltdown": "Not affected"},
         "clear_page_rep"),
        (("intel-skylake", False), {"erms", "pti"}, {"fsrm"},
         {"spectre_v2": "Mitigation: IBRS", "retbleed": "Mitigation: IBRS", "mds": "Clear CPU buffers"},
         ""),
        (("amd-milan", True), {"erms", "fsrm"}, {"pti"}, {"meltdown": "Not affected"}, "clear_page_erms"),
    ],
    indirect=["guest"],
    ids=["by words", "Intel", "by bytes"],
)  # fmt: skip
def test_a_kernel_decides_as_on_a_server_and_a_string_instruction_costs_what_it_moves(
    guest: Guest, flags: set[str], lacks: set[str], words: dict[str, str], clears: str
) -> None:
    """By bytes with the fast string instructions, by words of eight without: that makes no difference."""
    found = set(guest.run("grep", "-m1", "^flags", "/proc/cpuinfo").stdout.split())
    assert flags <= found
    assert not lacks & found
    for name, told in words.items():
        assert told in guest.run("cat", f"/sys/devices/system/cpu/vulnerabilities/{name}").stdout
    if clears:
        assert cleared(guest) == (clears, pytest.approx(PAGE_COSTS, abs=4))


def cleared(guest: Guest) -> tuple[str, float]:
    """What clears a page in this guest, and the instructions that a page is counted as."""
    guest.count()
    assert guest.meter is not None
    before = guest.meter.executed()
    guest.run("sh", "-c", TAKES_MEMORY)
    found = read_symbols(guest, guest.build.image).functions(guest.meter.executed().since(before))
    name = max((name for name in found if name.startswith("clear_page_")), key=lambda name: found[name][0])
    instructions, calls = found[name]
    assert calls > 100
    return name, instructions / calls
