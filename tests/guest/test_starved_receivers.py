"""A real kernel whose receivers starve past the PDR is told by just that, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from configurations import NAMESPACES, as_it_is, compared, fair
from machine_noise import UNDECIDED

from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import PartialDropRate
from pdrgate.measurands.rates.starvation import LeastDelivered
from pdrgate.results.verdict import Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs")]

GUEST = NAMESPACES.with_name("steady-guest.yaml")


@pytest.mark.long
def test_a_kernel_that_starves_its_receivers_is_a_regression_of_what_they_get(tmp_path: Path) -> None:
    """Packets are taken in by interrupts, which go before receivers, where a thread of their priority did it before.

    The PDR is as before, and so is saturation: there ksoftirqd has the thread's part. Where others use the machine as
    well, eight pairs may leave open whether all of the change is past the tolerance; none rules out that it is half.
    """
    found = compared(
        tmp_path, Scenario("udp-delivery"), as_it_is, baseline=fair, pairs=8, tolerance=0.1, testbed=GUEST,
        profile="quick",
    )  # fmt: skip
    assert found.judgement is not None
    if found.judgement.verdict.value in UNDECIDED - {"INCONCLUSIVE"}:
        pytest.skip(f"the machine did not let the curves be trusted: {found.judgement.reason}")
    result = found.result()
    assert result.comparison is not None, found.judgement
    changes = {one.measurand: one for one in result.comparison.changes}
    starved = changes[LeastDelivered.name]
    assert starved.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE), found.judgement
    assert starved.tolerance == 0.25
    assert starved.lower < -0.4
    assert abs(changes[PartialDropRate.name].change) < 0.1
    begin = "slower" if starved.verdict is Verdict.REGRESSION else "the pairs do not decide"
    assert found.judgement.reason.startswith(f"{begin}: {LeastDelivered.name} "), found.judgement
