"""What the keywords of gate.resource say of a path that steps set up: read from the resource file itself."""

from __future__ import annotations

from pathlib import Path

from robot.running import ResourceFile

from pdrgate.data_paths.catalogue import UNDER_STEPS
from pdrgate.data_paths.set_up import SetUp, set_up_of
from pdrgate.traffic.chosen.chosen_traffic import ChosenTraffic
from pdrgate.traffic.chosen.traffic_words import chosen_traffic

RESOURCE = Path(__file__).parents[2] / "resources/gate.resource"


def path_of(keyword: str) -> tuple[str, SetUp, ChosenTraffic | None]:
    """The data path that a keyword's steps stand on, the steps, and the traffic; None where that is the path's own."""
    found = next(one for one in ResourceFile.from_file_system(RESOURCE).keywords if one.name == keyword)
    calls = {call.name: [str(word) for word in call.args] for call in found.body}
    bare = "The SUT Is Set Up With Nothing But"
    steps = calls[bare] if bare in calls else calls["The SUT Is Set Up With"]
    shell = [step.replace("${IN}", "$IN").replace("${OUT}", "$OUT") for step in steps]
    words = calls.get("Packets Are Sent Like")
    return (
        "bare-ipv4" if bare in calls else UNDER_STEPS,
        set_up_of(shell),
        None if words is None else chosen_traffic(["  ".join(words)]),
    )
