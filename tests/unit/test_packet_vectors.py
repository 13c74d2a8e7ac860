"""What runs of two programs on packets come to: answers, cost, verdict, words."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bpf_variants import udp_packet, written_capture

from pdrgate.bpf.packet_contexts import lookup_context
from pdrgate.bpf.prog_run import PacketRun
from pdrgate.bpf.programs import LoadCost
from pdrgate.gate.comparisons.packet_vectors.compared_vectors import MOST_LOADS, ComparedVectors
from pdrgate.gate.comparisons.packet_vectors.loaded_runs import LoadedRuns
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVectors
from pdrgate.gate.comparisons.packet_vectors.program_answer import ProgramAnswer, answers_differ
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.guests.metering.meter import Executed, Followed
from pdrgate.guests.metering.program_calls import program_calls
from pdrgate.guests.metering.symbols import KernelSymbol, KernelSymbols
from pdrgate.reports.console.ending import part_lines
from pdrgate.reports.words.vector_words import vectors_part
from pdrgate.results.model import Details, ScenarioResult
from pdrgate.results.vectors import VectorsResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import DataError

FLOWS = [udp_packet(f"10.0.0.{host}", "198.18.0.1", 1234, 53) for host in (1, 2)]
PASSED = PacketRun(2, b"abc", b"abc")


@pytest.fixture
def capture(tmp_path: Path) -> PacketVectors:
    """Three packets, of which two are equal."""
    return PacketVectors.read(written_capture(tmp_path / "flows.pcap", [*FLOWS, FLOWS[0]]))


def load(costs: Sequence[float], answers: Sequence[PacketRun] = (PASSED, PASSED)) -> LoadedRuns:
    """A load in which the program has 30 instructions and a helper the rest."""
    paths = tuple({"bpf:filter": (30.0, 1.0), "jhash": (cost - 30.0, 1.0)} for cost in costs)
    return LoadedRuns(tuple(answers), paths, (None, None), LoadCost(), ())


def compared(
    capture: PacketVectors, baseline: Sequence[LoadedRuns], candidate: Sequence[LoadedRuns], tolerance: float = 0.01
) -> ComparedVectors:
    return ComparedVectors(capture, "xdp", {"baseline": baseline, "candidate": candidate}, tolerance)


def with_loads(capture: PacketVectors, before: LoadCost, after: LoadCost, asked: float | None) -> ComparedVectors:
    one = load([100, 130])
    loads = {side: [replace(one, load_cost=cost)] * 2 for side, cost in zip(SIDES, (before, after), strict=True)}
    return ComparedVectors(capture, "xdp", loads, 0.01, asked)


def test_what_a_load_costs_is_judged_where_that_is_asked(capture: PacketVectors) -> None:
    before, after = LoadCost(800, 40, 812, 4096), LoadCost(1200, 40, 812, 4096)
    assert with_loads(capture, before, after, None).judgement().verdict is Verdict.PASS
    assert with_loads(capture, before, after, 0.5).judgement().verdict is Verdict.PASS
    grown = with_loads(capture, before, after, 0.1)
    judgement = grown.judgement()
    assert judgement.verdict is Verdict.REGRESSION
    assert judgement.reason.startswith("the verifier looks at 1200 instructions, baseline 800 (+50.0 %), tolerance 10")
    assert "3 packets of flows.pcap are answered alike" in judgement.reason
    assert grown.load_costs("candidate")["verified instructions"] == (1200.0, 1200.0)
    assert "verifier states" not in with_loads(capture, LoadCost(800), after, 0.1).load_costs("baseline")


def test_equal_counts_need_two_loads_and_pass(capture: PacketVectors) -> None:
    one = [load([100, 130])]
    assert not compared(capture, one, one).known
    two = compared(capture, one * 2, one * 2)
    assert two.known
    judgement = two.judgement()
    assert judgement.verdict is Verdict.PASS
    # Of three packets two cost 100.
    assert judgement.reason == (
        "3 packets of flows.pcap are answered alike; a packet costs 110.0 instructions, baseline 110.0 (+0.0 %), "
        "tolerance 1.0%"
    )


def test_a_change_needs_more_loads_and_names_the_helper(capture: PacketVectors) -> None:
    before, after = [load([100, 130])], [load([150, 180])]
    assert not compared(capture, before * 2, after * 2).known
    whole = compared(capture, before * MOST_LOADS, after * MOST_LOADS)
    assert whole.known
    judgement = whole.judgement()
    assert judgement.verdict is Verdict.REGRESSION
    assert judgement.reason == (
        "a packet costs 45.5 % more instructions (+45.5 to +45.5 %), most of it in jhash (+50); vector 1 costs 150 "
        "instructions, baseline 100 (+50.0 %)"
    )
    assert compared(capture, after * MOST_LOADS, before * MOST_LOADS).judgement().verdict is Verdict.IMPROVEMENT


def test_one_packet_that_costs_more_is_enough(capture: PacketVectors) -> None:
    found = compared(capture, [load([1000, 100])] * MOST_LOADS, [load([1000, 115])] * MOST_LOADS).judgement()
    assert found.verdict is Verdict.REGRESSION
    assert found.reason == "vector 2 costs 115 instructions, baseline 100 (+15.0 %), most of it in jhash (+15)"
    # But not where loads of one build lie as far apart.
    wide = [load([1000, cost]) for cost in (100, 112) * (MOST_LOADS // 2)]
    later = [load([1000, cost]) for cost in (115, 103) * (MOST_LOADS // 2)]
    assert compared(capture, wide, later).judgement().verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        (PASSED, ""),
        (PacketRun(1, b"abc", b"abc"), "returns XDP_DROP, baseline XDP_PASS"),
        (PacketRun(2, b"abx", b"abx"), "output differs from byte 2: 0x78, baseline 0x63"),
        (PacketRun(2, b"ab", b"ab"), "output has 2 bytes, baseline 3"),
        (PacketRun(2, b"abc", b"abx"), "output differs from byte 2: 0x78, baseline 0x63"),
        (PacketRun(refused=22), "not run (Invalid argument), baseline XDP_PASS"),
        (PacketRun(2, b"abc", b"abc", others=3), "returns XDP_PASS or another, baseline XDP_PASS"),
    ],
)
def test_answers_differ_in_words(candidate: PacketRun, told: str) -> None:
    assert answers_differ(ProgramAnswer("xdp", (PASSED,) * 2), ProgramAnswer("xdp", (candidate,) * 2)) == told


def test_what_the_baseline_does_not_do_alike_is_not_compared() -> None:
    clock = ProgramAnswer("xdp", (PacketRun(2, b"a1c", b"a2c"),))
    assert answers_differ(clock, ProgramAnswer("xdp", (PacketRun(2, b"a7c", b"a8c"),))) == ""
    assert "byte 2" in answers_differ(clock, ProgramAnswer("xdp", (PacketRun(2, b"a1d", b"a1d"),)))
    chance = ProgramAnswer("xdp", (PacketRun(2, others=3),))
    assert answers_differ(chance, ProgramAnswer("xdp", (PacketRun(1),))) == ""


def test_share_of_the_code_that_packets_reach_is_known_where_it_was_counted(capture: PacketVectors) -> None:
    one = replace(load([100, 130]), load_cost=LoadCost(jited=400))
    found = compared(capture, [replace(one, reached=100)] * 2, [replace(one, reached=440), one])
    assert found.reached("baseline") == (0.25, 0.25)
    assert found.reached("candidate") == (1.0,)


def test_other_answers_come_before_cost_and_need_no_further_load(capture: PacketVectors) -> None:
    dropped = PacketRun(1, b"abc", b"abc")
    found = compared(capture, [load([100, 100])] * 2, [load([90, 500], [PASSED, dropped])] * 2)
    assert found.known
    assert str(found.judgement()) == "REGRESSION: vector 2: returns XDP_DROP, baseline XDP_PASS"
    assert [one.number for one in found.vectors()] == [2, 1]


def test_what_nobody_runs_is_told_in_a_line(capture: PacketVectors) -> None:
    refused = PacketRun(refused=22)
    both = compared(capture, [LoadedRuns((PASSED, refused), (), (7.0, None), LoadCost(), ("bloom",))] * 2,
                    [LoadedRuns((PASSED, refused), (), (9.0, None), LoadCost(), ())] * 2)  # fmt: skip
    assert both.remarks() == (
        "vector 2 of both builds: not run (Invalid argument)",
        "maps that keep what a run leaves in them: bloom",
    )
    judgement = both.judgement()
    assert str(judgement) == "PASS: 3 packets of flows.pcap are answered alike; what they cost is not judged"
    vectors = VectorsResult(
        capture="flows.pcap", sha256="", packets=3, kind="xdp", loads=2, runs=202, vectors=both.vectors(),
        remarks=both.remarks(),
    )  # fmt: skip
    shown = ScenarioResult(
        name="", title="", verdict=judgement.verdict, reason=judgement.reason, details=Details(vectors=vectors)
    )
    lines = list(part_lines(vectors_part(shown)))
    assert lines[0] == (
        "3 packets of flows.pcap, 2 unlike, run 202 times in each of 2 loads; the candidate returns XDP_PASS 2, "
        "not run (Invalid argument) 1"
    )
    assert any(line.split()[:7] == ["1", "60", "2", "XDP_PASS", "9.0", "7.0", "+28.6"] for line in lines)
    nothing = compared(capture, [load([0, 0], [refused] * 2)] * 2, [load([0, 0], [refused] * 2)] * 2).judgement()
    assert nothing.verdict is Verdict.ERROR
    assert "vector 1 not run (Invalid argument)" in nothing.reason


def test_a_capture_that_is_none_is_a_fault_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"packets: .*none\.pcap"):
        PacketVectors.read(tmp_path / "none.pcap")
    with pytest.raises(DataError, match="packet 1 has 13 bytes; use 14 to 9216"):
        PacketVectors.read(written_capture(tmp_path / "short.pcap", [FLOWS[0][:13]]))


def test_a_socket_lookup_is_told_both_ends() -> None:
    told = struct.unpack("<QII4s16sHH4s16sII", lookup_context(FLOWS[0]))
    assert told == (
        0, 2, 17, bytes([10, 0, 0, 1]), bytes(16), struct.unpack("<H", struct.pack("!H", 1234))[0], 0,
        bytes([198, 18, 0, 1]), bytes(16), 53, 0,
    )  # fmt: skip


def test_programs_and_what_they_call_are_counted_and_interrupts_are_not() -> None:
    names = {100: "bpf_test_run", 200: "bpf_prog_0123456789abcdef_filter", 300: "jhash", 400: "asm_sysvec_timer",
             500: "tick", 600: "kfree"}  # fmt: skip
    symbols = KernelSymbols(KernelSymbol(at, name) for at, name in names.items())
    blocks = Executed(*(np.array(one, dtype=np.uint64) for one in ([100, 200, 300, 400, 500, 600], [9] * 6, [1] * 6)))
    # Chains: nobody, the runner, the program, its helper, what an interrupt calls, and one beside the program.
    followed = Followed(
        np.array([0, 100, 200, 300, 500, 600], dtype=np.uint64), np.array([0, 0, 1, 2, 2, 1]),
        np.array([0, 0, 0, 1, 3, 0]), np.array([1, 2, 3, 2, 4, 5]), np.array([0, 1, 2, 3, 4, 5]),
        np.array([4, 4, 8, 1, 1, 4], dtype=np.uint64), blocks,
    )  # fmt: skip
    assert program_calls(followed, symbols) == {"bpf:filter": (36, 4), "jhash": (72, 8)}


def test_the_thunk_by_which_a_program_returns_counts_in_no_chain() -> None:
    """Where code was loaded before, the plugin takes the jump to a program for the return of another thread."""
    names = {100: "bpf_test_run", 200: "bpf_prog_0123456789abcdef_filter", 300: "jhash", 400: "srso_return_thunk"}
    symbols = KernelSymbols(KernelSymbol(at, name) for at, name in names.items())
    blocks = Executed(*(np.array(one, dtype=np.uint64) for one in ([100, 200, 300, 400], [9] * 4, [1] * 4)))

    def counted(chains: list[int], callers: list[int], called_from: list[int], steps: list[tuple[int, int]]) -> object:
        followed = Followed(
            np.array(chains, dtype=np.uint64), np.array(callers), np.array(called_from),
            np.array([chain for chain, _ in steps]), np.array([block for _, block in steps]),
            np.array([4] * len(steps), dtype=np.uint64), blocks,
        )  # fmt: skip
        return program_calls(followed, symbols)

    in_the_runner = counted([0, 100, 300], [0, 0, 1], [0, 0, 1], [(1, 0), (1, 1), (2, 2), (2, 3), (1, 3)])
    of_its_own = counted([0, 200, 300], [0, 0, 1], [0, 0, 1], [(1, 1), (2, 2), (2, 3), (1, 3)])
    assert in_the_runner == of_its_own == {"bpf:filter": (36, 4), "jhash": (36, 4), "srso_return_thunk": (36, 4)}
