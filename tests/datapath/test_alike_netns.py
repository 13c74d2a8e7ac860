"""Two builds on real packets in namespaces: whether these leave alike, whatever becomes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_bpf_paths import compiled

from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.alike_packets import ALIKE_LOOKS, LOOK_DURATION
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_frames
from pdrgate.gate.sut.probe import PROBE_LOAD
from pdrgate.record.fate import Fate
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.datapath

REFLECTOR = """
SEC("xdp") int some(struct xdp_md *ctx)
{{
	unsigned char *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (at + 60 > end || at[12] != 0x86 || at[13] != 0xdd || at[20] != 17)
		return XDP_PASS;
	{0}
	return {1};
}}
"""
NOTHING, LIMIT, ONE_FLOW = "", "at[21]--;", "if ((at[55] & 7) == 3) at[21] = 7;"


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=1)


def judged(testbed: NetnsTestbed, folder: Path, fate: Fate, *builds: tuple[str, str], flows: int = 256) -> str:
    """What the packets of two programs say, as a comparison looks at them before anything is measured."""
    seen: dict[Side, FramesSeen] = {}
    counted = {"returned": "returned", "handled": "taken"}.get(fate, "forwarded")
    for side, (code, verdict) in zip(("baseline", "candidate"), builds, strict=True):
        (folder / side).mkdir(parents=True)
        path = data_path("ipv6-routing", compiled(folder / side, REFLECTOR.format(code, verdict)), fate=fate)
        found = FramesSeen(fate=fate, alike=True)
        try:
            path.apply(testbed.hops)
            generator = testbed.generator(6)
            try:
                for _ in range(ALIKE_LOOKS):
                    sent = generator.trial(PROBE_LOAD, LOOK_DURATION, Frames(6, flows=flows, counted=counted))  # type: ignore[arg-type]
                    found.take(replaced(sent, fate), path)
            finally:
                generator.close()
        finally:
            assert path.restore() == []
        seen[side] = found  # type: ignore[index]
    verdict: Judgement | None = judged_frames(seen)
    return "" if verdict is None else verdict.reason


def replaced(trial: Trial, fate: Fate) -> Trial:
    return replace(trial, aside=replace(trial.aside, fate=fate, returned=0))


@pytest.mark.parametrize(
    ("fate", "before", "after", "told"),
    [
        ("returned", (NOTHING, "XDP_TX"), (NOTHING, "XDP_TX"), ""),
        ("returned", (NOTHING, "XDP_TX"), (LIMIT, "XDP_TX"), "hop limit 63, the baseline's 64"),
        ("returned", (NOTHING, "XDP_TX"), (ONE_FLOW, "XDP_TX"), "hop limit 7, the baseline's 64 (of a packet with sou"),
        ("forwarded", (LIMIT, "XDP_PASS"), (LIMIT, "XDP_PASS"), ""),
        ("forwarded", (LIMIT, "XDP_PASS"), (NOTHING, "XDP_PASS"), "hop limit 63, the baseline's 62"),
        ("handled", (NOTHING, "XDP_TX"), (NOTHING, "XDP_TX"), ""),
        ("handled", (NOTHING, "XDP_TX"), (NOTHING, "XDP_PASS"), "port the other one, the baseline's the one that"),
        ("handled", (NOTHING, "XDP_TX"), (LIMIT, "XDP_TX"), "hop limit 63, the baseline's 64"),
    ],
)
def test_what_leaves_otherwise_is_told_with_its_field(
    testbed: NetnsTestbed, tmp_path: Path, fate: Fate, before: tuple[str, str], after: tuple[str, str], told: str
) -> None:
    found = judged(testbed, tmp_path, fate, before, after)
    assert told in found
    assert bool(found) == bool(told), found


def test_of_many_flows_enough_packets_are_seen_twice(testbed: NetnsTestbed, tmp_path: Path) -> None:
    same = (LIMIT, "XDP_TX")
    assert judged(testbed, tmp_path / "alike", "returned", same, same, flows=16384) == ""
    assert "hop limit" in judged(testbed, tmp_path / "unlike", "returned", same, (ONE_FLOW, "XDP_TX"), flows=16384)
