"""What a verdict on eBPF programs says of what ran: no comparison of other code is green without a word on it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest
from flat_values import changed, flat_trial
from made_results import compared, result

from pdrgate.builds.bpf_build import BpfBuild, bpf_build
from pdrgate.gate.verdicts.program_remarks import program_remarks
from pdrgate.record.trial import Trial
from pdrgate.reports.words.headline import headline
from pdrgate.results.model import CostResult, Findings, FunctionResult, Side, SideResult

SAME = "the programs differ, and a packet runs the same 12 instructions of both: does it reach what differs?"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[Side, BpfBuild]:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed: run ci/bootstrap")
    folder, made = tmp_path_factory.mktemp("programs"), {}
    sides: tuple[Side, ...] = ("baseline", "candidate")
    for side, verdict in zip(sides, (1, 2), strict=True):
        source, output = folder / f"{side}.c", folder / f"{side}.o"
        source.write_text(f'__attribute__((section("xdp"), used)) int one(void *ctx) {{ return {verdict}; }}\n')
        subprocess.run(("clang", "-O2", "-target", "bpf", "-c", str(source), "-o", str(output)), check=True)
        made[side] = bpf_build(output)
    return made


def sides(baseline: float, candidate: float, name: str = "bpf:one") -> dict[Side, SideResult]:
    found: dict[Side, SideResult] = {}
    for side, many in (("baseline", baseline), ("candidate", candidate)):
        functions = tuple(FunctionResult(name=each, instructions=many, calls=1.0) for each in (name, "ip6_rcv"))
        cost = CostResult(instructions=900.0, batch=None, trials=2, functions=functions)
        found[side] = SideResult(side=side, build=side, findings=Findings(cost=cost))  # type: ignore[index, arg-type]
    return found


def trial(fate: str = "handled", **values: object) -> Trial:
    places = {"hop1/ip6": {"InDelivers": 0, "OutForwDatagrams": 0}}
    whole: dict[str, object] = {"counters_before": places, "counters_after": places} | values
    made = flat_trial(1000.0, 1.0, offered=1000, forwarded=1000, sending_time=1.0, **whole)
    return changed(replace(made, belonging=replace(made.belonging, side="candidate")), fate=fate)


def test_other_code_of_which_packets_run_nothing_is_said(builds: dict[Side, BpfBuild]) -> None:
    assert program_remarks(builds, sides(12.0, 12.0), []) == [SAME]
    assert not program_remarks(builds, sides(12.0, 18.0), [])
    assert not program_remarks({**builds, "candidate": builds["baseline"]}, sides(12.0, 12.0), [])
    assert not program_remarks({"baseline": None, "candidate": None}, sides(12.0, 12.0), [])


def test_a_verdict_says_what_became_of_packets_that_are_counted_inside(builds: dict[Side, BpfBuild]) -> None:
    many = sides(12.0, 18.0)
    assert program_remarks(builds, many, [trial()]) == ["of 1000 packets: 1000 dropped"]
    assert program_remarks(builds, many, [trial(left=300, returned=100)]) == [
        "of 1000 packets: 700 dropped, 200 sent on, 100 sent back"
    ]
    routed = trial(left=1000, counters_after={"hop1/ip6": {"InDelivers": 0, "OutForwDatagrams": 1000}})
    assert program_remarks(builds, many, [routed]) == ["of 1000 packets: 1000 passed"]
    assert not program_remarks(builds, many, [trial("forwarded")])


def test_a_green_headline_has_it() -> None:
    one = replace(compared(), reason=f"not slower; of 1000 packets: 1000 passed; {SAME}")
    assert headline(result(one, reason=one.reason)) == f"PASS: not slower; {SAME}"
