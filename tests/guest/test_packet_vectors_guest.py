"""Two builds of programs on packets of a capture, in a guest that is counted: equal, slower, wrong and refused ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bpf_variants import bpf_variant, udp_packet, written_capture

from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.program_setup import Filling, ProgramSetup
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVectors
from pdrgate.gate.comparisons.packet_vectors.vectors_comparison import VectorsComparison
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.history.results import read_result
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

VM_FILE = Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml"
BENEATH = Scenario("ip-routing")
BLOCKED = ProgramSetup(maps=(Filling("blocked", (("10.0.0.1", "1"), ("10.0.0.2", "1"))),))
FLOWS = [udp_packet(f"10.0.0.{host}", "198.18.0.1", 1234, 53) for host in range(1, 9)]


class _Heard(RunObserver):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def said(self, sentence: str) -> None:
        self.lines.append(sentence)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("variants")
    variants = {"plain": (), "slower": ("LOOKUPS=2",), "wrong": ("WRONG",), "ttl": ("SHORTER_LIFE",),
                "refused": ("REFUSED",)}  # fmt: skip
    return {name: bpf_variant(folder, name, defines) for name, defines in variants.items()}


Compare = Callable[..., VectorsComparison]


@pytest.fixture(scope="module")
def compare(
    shared_testbed: Callable[..., VmTestbed], cloud: KernelBuild, objects: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Compare]:  # fmt: skip
    folder = tmp_path_factory.mktemp("run")
    testbed = shared_testbed(cloud, metered=True)
    session = Session(
        load_testbed(VM_FILE), Options(profile="smoke"), RunRecord(folder / "run", "smoke"), _Heard(),
        state=folder / "state", opener=lambda config, journal: testbed,
    )  # fmt: skip
    session.take()

    def compared(
        program: str, candidate: str, baseline: str = "plain", packets: list[bytes] = FLOWS
    ) -> VectorsComparison:
        builds = {
            "baseline": bpf_build(f"{objects[baseline]}:{program}", setup=BLOCKED, on_packets=True),
            "candidate": bpf_build(f"{objects[candidate]}:{program}", setup=BLOCKED, on_packets=True),
        }
        capture = PacketVectors.read(written_capture(folder / "flows.pcap", packets))
        comparison = VectorsComparison(session, BENEATH, builds, capture)  # type: ignore[arg-type]
        comparison.measure()
        comparison.finish()
        assert read_result(folder / "run").scenarios[-1].details.vectors == comparison.result().details.vectors
        return comparison

    yield compared
    session.close()


@pytest.mark.parametrize("program", ["balance", "police", "sample"])
def test_equal_programs_pass_and_a_lookup_more_is_named(compare: Compare, program: str) -> None:
    equal = compare(program, "plain")
    assert equal.judgement is not None
    assert equal.judgement.verdict is Verdict.PASS, equal.judgement
    assert "8 packets of flows.pcap are answered alike; a packet costs" in equal.judgement.reason
    found = equal.result()
    assert found.details.vectors is not None
    assert found.comparison is not None
    assert abs(found.comparison.change) < 5e-3  # interrupts cost some of a block anew, and a busy machine makes them
    assert all(one.cost is not None and one.cost[0] > 10 for one in found.details.vectors.vectors)

    slower = compare(program, "slower")
    assert slower.judgement is not None
    assert slower.judgement.verdict is Verdict.REGRESSION
    result = slower.result()
    assert result.comparison is not None
    assert result.details.vectors is not None
    changed = {one.function: one for one in result.comparison.functions if one.sure}
    assert {"__htab_map_lookup_elem", "jhash"} <= changed.keys()
    # Of balance it is looked up elsewhere as well.
    jhash = changed["jhash"]
    assert jhash.calls_before is not None
    assert jhash.calls_after is not None
    assert jhash.calls_after - jhash.calls_before == pytest.approx(1)
    assert "a packet costs" in slower.judgement.reason
    assert "jhash" in slower.judgement.reason
    assert all(one.worse for one in result.details.vectors.vectors)


def test_other_answers_are_a_regression_that_says_which(compare: Compare) -> None:
    wrong = compare("balance", "wrong").judgement
    assert wrong is not None
    assert wrong.verdict is Verdict.REGRESSION
    assert wrong.reason == (
        "vector 3: returns XDP_DROP, baseline XDP_TX; 6 of 8 vectors are answered otherwise"
    )  # fmt: skip
    other = compare("balance", "ttl")
    assert other.judgement is not None
    assert other.judgement.reason.startswith("vector 3: output differs from byte 22: 0x3f, baseline 0x40; 6 of 8")
    result = other.result()
    assert result.details.vectors is not None
    assert [one.number for one in result.details.vectors.vectors if one.difference] == [3, 4, 5, 6, 7, 8]
    assert result.details.vectors.vectors[0].outputs is not None


def test_equal_packets_are_run_once(compare: Compare) -> None:
    found = compare("police", "plain", packets=[FLOWS[0], FLOWS[5], FLOWS[0], FLOWS[0]]).result().details.vectors
    assert found is not None
    assert found.packets == 4
    assert {one.number: one.copies for one in found.vectors} == {1: 3, 2: 1}
    assert {one.number: one.candidate for one in found.vectors} == {1: "TC_ACT_SHOT", 2: "TC_ACT_OK"}


def test_what_no_longer_loads_is_a_regression_with_the_verifiers_words(compare: Compare) -> None:
    refused = compare("unsafe", "refused").judgement
    assert refused is not None
    assert refused.verdict is Verdict.REGRESSION
    assert refused.reason.startswith("the candidate's program does not load, and the baseline's does: ")
    assert "the verifier says: " in refused.reason


def test_what_nothing_can_be_told_of_is_an_error(compare: Compare) -> None:
    bare = compare("police", "plain", packets=[FLOWS[0][:14]]).judgement
    assert bare is not None
    assert bare.verdict is Verdict.ERROR
    assert bare.reason.startswith("BPF_PROG_RUN runs no packet of flows.pcap: vector 1 not run (Invalid argument)")


def test_a_program_that_goes_by_chance_is_not_compared(compare: Compare) -> None:
    found = compare("by_chance", "plain")
    assert found.judgement is not None
    assert "REGRESSION: vector" not in str(found.judgement)
    assert found.result().details.vectors is not None
    assert any("does not always return the same" in one for one in found.compared().remarks())
