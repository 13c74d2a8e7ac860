"""What packets ran of eBPF programs stands beside the verdict, and programs that no packet ran are not compared."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import made_results
import pytest
from flat_values import flat_side, flat_trial

from pdrgate.bpf.prog_run import PacketOutcome
from pdrgate.gate.sut import open_loop_traffic
from pdrgate.guests.metering.function_counts import code_reached
from pdrgate.measurands.counted.program_run import CodeReached, program_run, ran_none
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports.words.build_words import lines_beside
from pdrgate.results.model import CostResult, FunctionResult, MeasurandResult, ScenarioResult, Side
from pdrgate.results.vectors import VectorsResult
from pdrgate.traffic.frame_fields import packet_in_words
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.headers import ethernet
from pdrgate.values.errors import SutError


def function(name: str, instructions: float) -> FunctionResult:
    return FunctionResult(name=name, instructions=instructions, calls=1.0)


def side(
    name: Side, instructions: float, digest: str, answer: str = "XDP_PASS is returned for UDP", reached: float = 0.0
) -> Any:
    cost = CostResult(
        instructions=1000.0, batch=None, trials=4,
        functions=(function("bpf:filter", instructions), function("virtnet_poll", 900.0)),
    )  # fmt: skip
    size = MeasurandResult(name="program size", unit="bytes", better="lower", value=1400.0)
    share = MeasurandResult(name="code reached", unit="", better="higher", value=reached)
    return flat_side(
        side=name, build=f"{name}.o", digest=digest, cost=cost, measurands=(size, share) if reached else (size,),
        environment={"program": answer},
    )  # fmt: skip


def compared(*sides: Any) -> ScenarioResult:
    made = made_results.compared()
    return replace(made, builds=replace(made.builds, sides=tuple(sides)))


def test_answer_and_little_code_that_ran_stand_beside_the_verdict() -> None:
    lines = lines_beside(compared(side("baseline", 35.0, "a"), side("candidate", 35.0, "b")))
    assert lines[0] == "both programs: XDP_PASS is returned for UDP"
    assert "a packet executes 35 instructions of the candidate's program, 10% at most of its 1400 bytes" in lines[2]


def test_answers_of_both_programs_are_shown_where_they_differ() -> None:
    other = side("candidate", 300.0, "b", "XDP_DROP is returned for UDP")
    lines = lines_beside(compared(side("baseline", 200.0, "a"), other))
    assert lines == [
        "the baseline's program: XDP_PASS is returned for UDP", "the candidate's program: XDP_DROP is returned for UDP"
    ]  # fmt: skip


def test_equal_programs_and_kernels_have_no_such_lines() -> None:
    same = [replace(one, digest="a") for one in (side("baseline", 300.0, "a"), side("candidate", 300.0, "a"))]
    assert lines_beside(compared(*same)) == ["both programs: XDP_PASS is returned for UDP"]
    kernels = [side(name, 300.0, name, answer="") for name in ("baseline", "candidate")]
    assert lines_beside(compared(*kernels)) == []


def test_share_of_code_that_ran_stands_beside_the_verdict() -> None:
    lines = lines_beside(
        compared(side("baseline", 900.0, "a", reached=0.71), side("candidate", 900.0, "b", reached=0.5))
    )
    assert lines[1:] == ["packets reach 71% of the baseline's program, 50% of the candidate's program"]
    little = lines_beside(
        compared(side("baseline", 900.0, "a", reached=0.7), side("candidate", 900.0, "b", reached=0.09))
    )
    assert little[1].startswith(
        "packets reach 9% of the candidate's program, which has 1400 bytes of machine code; send"
    )


def test_own_programs_that_run_beside_it_are_no_part_of_the_code_that_ran() -> None:
    before, after = code_reached({"bpf:filter": 100, "bpf:parse": 20, "bpf:pdrgate_drops": 161, "bpf:drop_reasons": 9})
    assert (list(before.values()), list(after.values())) == ([0], [120])
    assert code_reached({"bpf:pdrgate_drops": 161}) == ({}, {})


def test_code_that_packets_of_a_capture_do_not_reach_stands_beside_the_verdict() -> None:
    vectors = VectorsResult(capture="a.pcap", sha256="", packets=3, kind="xdp", loads=2, runs=16, vectors=())
    sides = (side("baseline", 900.0, "a", "", reached=0.7), side("candidate", 900.0, "b", "", reached=0.09))
    made = compared(*sides)
    found = lines_beside(replace(made, details=replace(made.details, vectors=vectors)))
    assert found[0].startswith("packets reach 9% of the candidate's program")
    assert "send other packets (--set packets)" in found[0]


def trial_with(gained: dict[str, int], phase: Phase = Phase.SATURATION) -> Trial:
    return flat_trial(
        1e4,
        0.1,
        1000,
        1000,
        phase=phase,
        counters_before={"program": dict.fromkeys(gained, 0)},
        counters_after={"program": gained},
    )


def test_code_reached_is_the_most_of_all_trials_that_packets_came_in() -> None:
    trials = [trial_with({"jited": 400, "reached": 100}), trial_with({"jited": 400, "reached": 300})]
    assert CodeReached().value([*trials, trial_with({"jited": 400, "reached": 390}, Phase.IDLE)]) == 0.75
    assert CodeReached().value([trial_with({"jited": 400})]) is None
    assert CodeReached().value([trial_with({"reached": 100})]) is None, "an interpreted program has no machine code"


def test_share_of_code_is_bounded_by_what_a_packet_executes() -> None:
    found = program_run(side("candidate", 700.0, "b").findings)
    assert found is not None
    assert (found.instructions, found.size, found.most) == (700.0, 1400.0, 1.0)
    assert program_run(made_results.scenario().findings) is None


def test_packets_ran_none_where_functions_were_counted_and_no_program_is_among_them() -> None:
    assert ran_none([function("udp_rcv", 100.0)])
    assert not ran_none([function("udp_rcv", 100.0), function("bpf:prog", 1.0)])
    assert not ran_none([function("___bpf_prog_run", 100.0)]), "a kernel without a JIT compiler interprets"
    assert not ran_none([]), "nobody counted"


@pytest.mark.parametrize(
    ("verdict", "remedy"),
    [
        ("XDP_PASS", "--scenario path-ipv4-routing"), ("XDP_DROP", "--set fate=dropped"),
        ("XDP_TX", "--set fate=returned"), ("TC_ACT_SHOT", "--set fate=dropped"), ("TC_ACT_OK", "--set fate=passed"),
    ],
)  # fmt: skip
def test_remedy_names_options_by_what_the_program_returns(verdict: str, remedy: str) -> None:
    assert remedy in PacketOutcome(verdict, b"", ()).remedy(4)


@pytest.mark.parametrize(
    ("failure", "verdict", "said"),
    [
        ("let pass: --set fate=passed", "XDP_PASS", "let pass: --set fate=passed; given UDP over IPv4"),
        ("who knows", "XDP_DROP", "to count what it drops add --set fate=dropped"),
        ("ended in it: --set fate=dropped?", "XDP_ABORTED", "look at what it does with such a packet"),
    ],
)
def test_what_the_program_returned_for_which_packet_is_said_and_one_remedy(
    failure: str, verdict: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise SutError(failure)

    class Shows:
        def sample(self, _: Frames) -> bytes:
            return ethernet(b"a" * 6, b"b" * 6, (), 0x0800, UDP4)

    monkeypatch.setattr(open_loop_traffic, "probe_path", fails)
    path: Any = SimpleNamespace(family=4, explain=lambda _: PacketOutcome(verdict, b"", ("rules",)))
    asked: Any = SimpleNamespace(frames=Frames(4), counts="forwarded")
    generator: Any = Shows()
    with pytest.raises(SutError) as error:
        open_loop_traffic.OpenLoopTraffic(generator, Frames(4)).see_it_pass(asked, path, path, lambda: None)
    message = str(error.value)
    assert said in message
    assert f"given UDP over IPv4 to 198.18.0.0, port 53, the program returns {verdict}; empty maps, which" in message
    assert message.count("--set fate=") == 1


def test_a_verdict_without_options_has_no_remedy() -> None:
    assert PacketOutcome("XDP_REDIRECT", b"", ()).remedy(6) == ""


UDP4 = bytes.fromhex("4500001c0000000040110000c6130001c612000000090035 00080000")
ICMP6 = bytes.fromhex("6000000000003a40") + bytes(15) + b"\1" + bytes(15) + b"\2"


@pytest.mark.parametrize(
    ("tag", "kind", "packet", "words"),
    [
        (None, 0x0800, UDP4, "UDP over IPv4 to 198.18.0.0, port 53"),
        (5, 0x86DD, ICMP6, "ICMPv6 over IPv6 to ::2"),
        (None, 0x0806, bytes(28), "a frame of EtherType 0x0806"),
    ],
)
def test_a_packet_in_words_has_its_protocols_and_destination(
    tag: int | None, kind: int, packet: bytes, words: str
) -> None:
    assert packet_in_words(ethernet(b"a" * 6, b"b" * 6, () if tag is None else (tag,), kind, packet)) == words
