"""Programs on packets by BPF_PROG_RUN, on this machine's kernel: each run begins alike, whatever the kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from bpf_variants import bpf_variant, udp_packet

from pdrgate.bpf.filling import SUT_NAMES
from pdrgate.bpf.prog_run import PacketRun, PacketRuns, verdict_name
from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.builds.program_setup import Filling, ProgramSetup
from pdrgate.hosts.host import Host, local_host

pytestmark = [pytest.mark.datapath, pytest.mark.usefixtures("machine")]

DNS = udp_packet("10.0.0.1", "198.18.0.1", 1234, 53)
OTHER = udp_packet("10.0.0.2", "198.18.0.1", 1234, 80)
TIMES = 20


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bpf_variant(tmp_path_factory.mktemp("variants"), "variants")


@pytest.fixture
def here() -> Iterator[Host]:
    host = local_host()
    yield host
    host.close()


def ran(host: Host, source: str, *packets: bytes, setup: ProgramSetup | None = None) -> list[PacketRun]:
    build = bpf_build(source, setup=setup, on_packets=True)
    with loaded(host, build, "", SUT_NAMES) as program:
        runs = PacketRuns(program, packets)
        try:
            assert runs.unkept == ()
            return [runs.run(number, TIMES) for number in range(len(packets))]
        finally:
            runs.close()
            program.leave()


def test_a_balancer_that_remembers_answers_the_same_each_time(here: Host, variants: Path) -> None:
    """Repeated by the kernel it is XDP_TX once and XDP_PASS ever after; here each packet is the first of its flow."""
    for one in ran(here, f"{variants}:balance", DNS, OTHER, DNS):
        assert (verdict_name("xdp", one.verdict), one.others, one.unsteady) == ("XDP_TX", 0, False)
        assert one.output == one.again
        assert len(one.nanoseconds) == TIMES
        # The flow, the one that is recent, two counts: a queue and a ring buffer are no elements.
        assert one.changed == 4


def test_maps_and_variables_are_filled_first(here: Host, variants: Path) -> None:
    blocked = ProgramSetup(maps=(Filling("blocked", (("10.0.0.1", "1"),)),))
    first, second = ran(here, f"{variants}:balance", DNS, OTHER, setup=blocked)
    assert [verdict_name("xdp", one.verdict) for one in (first, second)] == ["XDP_DROP", "XDP_TX"]
    (all_of_them,) = ran(here, f"{variants}:balance", OTHER, setup=ProgramSetup(variables=(("all_blocked", "1"),)))
    assert verdict_name("xdp", all_of_them.verdict) == "XDP_DROP"


@pytest.mark.parametrize(
    ("program", "kind", "verdicts"),
    [
        ("police", "tc", {DNS: "TC_ACT_OK"}),
        ("sample", "socket", {DNS: str(len(DNS) - 14)}),
        ("four", "cgroup_skb", {DNS: "pass (1)"}),
        ("to_dns", "sk_lookup", {DNS: "SK_DROP", OTHER: "SK_PASS"}),
        ("keys", "flow_dissector", {DNS: "BPF_OK"}),
    ],
)
def test_kinds_that_no_port_takes(
    here: Host, variants: Path, program: str, kind: str, verdicts: Mapping[bytes, str]
) -> None:
    build = bpf_build(f"{variants}:{program}", on_packets=True)
    assert build.kind == kind
    found = ran(here, f"{variants}:{program}", *verdicts)
    assert [verdict_name(build.kind, one.verdict) for one in found] == list(verdicts.values())
    assert [one.refused for one in found] == [0] * len(found)


def test_what_the_kernel_does_not_run_it_says(here: Host, variants: Path) -> None:
    bare, arp = DNS[:14], DNS[:12] + b"\x08\x06" + bytes(46)
    assert all(one.refused for one in ran(here, f"{variants}:police", bare))
    assert all(one.refused for one in ran(here, f"{variants}:to_dns", arp))
    with pytest.raises(
        BpfBuildError, match=r"connections in .*sockops is of no kind that BPF_PROG_RUN runs on packets"
    ):
        bpf_build(f"{variants}:connections", on_packets=True)


def test_chance_is_seen(here: Host, variants: Path) -> None:
    (found,) = ran(here, f"{variants}:by_chance", DNS)
    assert 0 < found.others < TIMES + 1
