"""Memory trials in a real kernel: programs with known accesses have just these counts, and a trial leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from guest_trials import guest_trials
from touching_routers import FAR, MAPS, NEAR, OF_EACH_CPU, SHARED, Touching, router_of_maps, walk

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.measurands.counted.cost import packet_cost
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.record.trial import Trial
from pdrgate.stability.trial_files import read_trials
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

PROGRAM = "bpf:xdp_router"
KINDS = ("stack", "cpu", "symbol", "direct", "vmalloc", "page", "program")


@pytest.fixture
def metered(shared_testbed, cloud: KernelBuild) -> VmTestbed:
    return shared_testbed(cloud, metered=True)


@pytest.fixture
def trials(metered: VmTestbed, tmp_path: Path) -> Callable[..., list[Trial]]:
    """Trials of a path's packets at saturation, in these phases."""
    return partial(guest_trials, metered, tmp_path / "trials.jsonl")


@pytest.fixture
def touched(trials: Callable[..., list[Trial]], tmp_path: Path) -> Callable[[Touching, str], dict[str, float]]:
    """What the program of a router touches for each packet, by what is counted."""

    def of(touching: Touching, name: str) -> dict[str, float]:
        program = touching.built(tmp_path, name)
        *_, last = trials("xdp-ipv6-routing", Phase.SATURATION, Phase.MEMORY, program=program)
        return per_packet(last)

    return of


def per_packet(trial: Trial, name: str = PROGRAM) -> dict[str, float]:
    seen = trial.seen.memory
    assert seen is not None
    assert seen.windows > 100
    return {field: count / seen.windows for field, count in seen.functions[name]._asdict().items()}


def test_a_program_touches_what_it_was_written_to_touch(touched: Callable[[Touching, str], dict[str, float]]) -> None:
    one, nine = touched(walk(1), "one"), touched(walk(9), "nine")
    assert nine["lines"] - one["lines"] == pytest.approx(8, abs=0.3)
    assert nine["stores"] - one["stores"] >= 8
    assert one["atomics"] == nine["atomics"] == 0
    # Few lines stay in the first level.
    assert nine["missed_last"] == pytest.approx(0, abs=0.02)

    near, far = touched(NEAR, "near"), touched(FAR, "far")
    assert far["lines"] == pytest.approx(near["lines"], abs=0.1)
    assert far["instructions"] == pytest.approx(near["instructions"], abs=1)
    assert near["missed_last"] == pytest.approx(0, abs=0.02)
    assert far["missed_last"] == pytest.approx(1, abs=0.05)
    assert far["missed_l2"] - near["missed_l2"] == pytest.approx(1, abs=0.1)

    own, shared = touched(OF_EACH_CPU, "own"), touched(SHARED, "shared")
    assert shared["atomics"] - own["atomics"] == pytest.approx(1, abs=0.01)

    # What its lines are: 64 MiB are made by vmalloc, and an element of each CPU is that CPU's own.
    assert far["vmalloc_lines"] - near["vmalloc_lines"] == pytest.approx(1, abs=0.05)
    assert near["direct_lines"] - far["direct_lines"] == pytest.approx(1, abs=0.05)
    assert own["cpu_lines"] - shared["cpu_lines"] == pytest.approx(1, abs=0.05)
    for one in (near, far, own, shared):
        assert one["stack_lines"] > 0.5
        assert sum(one[f"{kind}_lines"] for kind in KINDS) == pytest.approx(one["lines"], abs=0.02)


def test_a_trial_repeats_and_leaves_no_trace(trials: Callable[..., list[Trial]]) -> None:
    before, *seen, after = trials(
        "ipv6-routing", Phase.SATURATION, Phase.MEMORY, Phase.MEMORY, Phase.MEMORY, Phase.SATURATION
    )
    for name, lines in (("ip6_forward", 1.0), ("ip6_rcv_core", 1.0), ("dev_gro_receive", 5.0)):
        found = [per_packet(trial, name) for trial in seen]
        assert max(one["lines"] for one in found) - min(one["lines"] for one in found) < 1.0, name
        assert found[0]["lines"] > lines
        assert found[0]["code_lines"] > 1
        assert found[0]["missed_last"] < 0.05
        cost = packet_cost([before])
        assert cost is not None
        instructions, calls = cost.functions[name]
        # A string instruction is one here, and costs the meter what it moves: in ip6_forward 20 of 171.
        assert found[0]["instructions"] == pytest.approx(instructions / calls, rel=0.15), name
    # Code that is not instrumented any more is as fast as it was; counts are those of before.
    first, last = (packet_cost([one]) for one in (before, after))
    assert first is not None
    assert last is not None
    each = [one.functions["ip6_forward"] for one in (first, last)]
    assert each[1][0] / each[1][1] == pytest.approx(each[0][0] / each[0][1], abs=0.5)
    assert after.seen.memory is None


def test_what_was_seen_is_on_disk_and_comes_back(trials: Callable[..., list[Trial]], tmp_path: Path) -> None:
    *_, seen = trials("ipv6-routing", Phase.SATURATION, Phase.MEMORY)
    (read,) = [one for one in read_trials(tmp_path / "trials.jsonl") if one.occasion.phase == Phase.MEMORY]
    assert isinstance(read.seen.memory, MemorySeen)
    assert read.seen.memory == seen.seen.memory
    assert all(isinstance(one, MemoryCounts) for one in read.seen.memory.functions.values())


def test_lines_of_the_direct_map_are_told_by_their_slab_cache(trials: Callable[..., list[Trial]]) -> None:
    *_, last = trials("ipv6-routing", Phase.SATURATION, Phase.MEMORY)
    seen = last.seen.memory
    assert seen is not None
    direct = sum(one.direct_lines for one in seen.functions.values())
    owners = {function: kinds["direct_lines"] for function, kinds in seen.named.items() if "direct_lines" in kinds}
    assert sum(sum(own.values()) for own in owners.values()) == pytest.approx(direct, rel=0.01)
    # A packet's sk_buff has four lines; what it is received into, and what is cleared, are whole pages.
    assert owners["napi_gro_receive"]["skbuff_head_cache"] / seen.windows == pytest.approx(4, abs=1.1)
    (cleared,) = [own for name, own in owners.items() if name.startswith("clear_page")]
    assert not any(owner.startswith(("skb", "kmalloc")) for owner in cleared)
    assert sum(own.get("pages", 0) for own in owners.values()) / seen.windows > 1


def test_lines_of_a_map_have_its_name(trials: Callable[..., list[Trial]], tmp_path: Path) -> None:
    *_, last = trials("xdp-ipv6-routing", Phase.SATURATION, Phase.MEMORY, program=router_of_maps(tmp_path))
    seen = last.seen.memory
    assert seen is not None
    own = {name: count / seen.windows for kind in seen.named[PROGRAM].values() for name, count in kind.items()}
    for name in MAPS:
        told = own.get(f"per-CPU map {name}" if name.startswith("each") else f"map {name}", 0)
        assert told == pytest.approx(1, abs=0.02), (name, own)


def test_fields_of_structs_are_told_those_of_a_module_by_its_own_types(
    metered: VmTestbed, trials: Callable[..., list[Trial]]
) -> None:
    tracked = set_up_of(
        ("nft 'add table ip gate; add chain ip gate passing { type filter hook forward priority filter; }'",
         "nft add rule ip gate passing ct state invalid drop")
    )  # fmt: skip
    metered.furnish(tracked.programs, tracked.words)
    *_, last = trials("ip-routing", Phase.SATURATION, Phase.MEMORY, set_up=tracked)
    seen = last.seen.memory
    assert seen is not None
    # A connection is looked for by its addresses; whether it is still valid says when it ends.
    fields = seen.fields["__nf_conntrack_find_get"]["nf_conntrack"]
    assert fields.startswith("nf_conn.")
    assert {".tuplehash", ".timeout"} <= set(fields.removeprefix("nf_conn").split(", "))
    # What a packet is received into is of the kernel's own types.
    assert seen.fields["__netif_receive_skb_core"]["skbuff_head_cache"].startswith("sk_buff.")
    # So are variables that each CPU has.
    assert seen.fields["__napi_alloc_skb"]["per-CPU napi_alloc_cache"].startswith("napi_alloc_cache.")
