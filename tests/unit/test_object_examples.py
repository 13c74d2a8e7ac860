"""Scenarios for eBPF objects that others wrote, which the documentation shows: each can be read and sent as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_frames import layers

from pdrgate.builds.program_setup import program_setup
from pdrgate.data_paths.contract import Port, directions
from pdrgate.gate.run.scenario_file import described_by
from pdrgate.traffic.chosen.frame_table import frame_table

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
SCENARIOS = sorted(one for one in EXAMPLES.glob("*.yaml") if not one.stem.endswith("-maps"))


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda one: one.stem)
def test_example_is_read_and_its_packets_can_be_sent(file: Path) -> None:
    scenario, options = described_by(file)
    assert scenario.data_path == "ip-routing"
    assert scenario.traffic is not None
    ports = [Port(name, f"02:00:00:00:00:0{number}", f"02:00:00:00:01:0{number}") for number, name in enumerate("io")]
    made = frame_table(scenario.traffic, directions(4, ("in", "out"), *ports), 64)
    kinds = {layer for frame in made.frames for layer in layers(frame)}
    assert {"ipv4", "ipv6"} & kinds
    setup = program_setup(options.get("attach", "auto"), options.get("maps"), options.get("rodata", ()))
    assert setup.maps or setup.variables or file.stem == "mixed"


def test_each_file_of_an_example_belongs_to_one() -> None:
    named = {file.name for file in SCENARIOS}
    for file in SCENARIOS:
        text = file.read_text()
        named |= {one.name for one in EXAMPLES.iterdir() if one.name in text}
    assert named == {one.name for one in EXAMPLES.iterdir()}
