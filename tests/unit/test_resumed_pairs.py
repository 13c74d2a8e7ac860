"""What a comparison takes over from the run that it continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from flat_values import flat_trial

from pdrgate.gate.comparisons.pairs.comparison_task import Build
from pdrgate.gate.comparisons.pairs.resumed_pairs import resumed_pairs
from pdrgate.gate.run.pairs_file import StoredStep
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import BootResult, Side
from pdrgate.values.errors import DataError

SIDES: tuple[Side, Side] = ("baseline", "candidate")
BUILDS = {side: Build(side, side, lambda journal: None, identity=side) for side in SIDES}  # type: ignore[arg-type,return-value]
BOOTS = tuple(BootResult(side=side, pair=1, boot=f"boot of the {side}", kernel="6.1", values={}) for side in SIDES)
STEP = StoredStep(
    test="t", scenario="s", builds={side: side for side in BUILDS}, identities={side: side for side in BUILDS},
    elapsed=1.0, boots=BOOTS,
)  # fmt: skip


def trial(phase: Phase, boot: str) -> Trial:
    return flat_trial(1000.0, 1.0, 1000, 990, sending_time=1.0, scenario="s", boot=boot, test="t", phase=phase)


@pytest.mark.parametrize("phase", [one for one in Phase if one is not Phase.IDLE])
def test_a_boot_is_taken_over_whatever_was_measured_in_it(phase: Phase) -> None:
    """Paths whose rules are replaced once could not be resumed: their trials have a phase of their own."""
    known = [trial(phase, boot.boot) for boot in BOOTS]
    assert resumed_pairs(Path("run"), "t", "s", BUILDS, [STEP], known) == known


def test_a_boot_of_which_only_its_rest_is_known_is_refused() -> None:
    known = [trial(Phase.IDLE, boot.boot) for boot in BOOTS]
    with pytest.raises(DataError, match="what was measured in boot 1 of the baseline"):
        resumed_pairs(Path("run"), "t", "s", BUILDS, [STEP], known)
