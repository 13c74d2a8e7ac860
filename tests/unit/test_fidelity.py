"""The bench of the model against hardware: its programs compile, and its weights come from one half only."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench/fidelity"
sys.path.insert(0, str(BENCH))

from paths import SET_UPS  # noqa: E402
from programs import PROGRAMS, Program  # noqa: E402
from weighing import (  # noqa: E402
    Measured,
    changes,
    error_of_change,
    split,
    weights_of,
    worth_of,
)

from pdrgate.builds.bpf_build import bpf_build  # noqa: E402
from pdrgate.measurands.counted.estimated_cycles import PricedEvents  # noqa: E402

TRUE = PricedEvents(0.5, 10.0, 40.0, 200.0, 20.0, 0.0, 0.0)
EVENTS = [PricedEvents(100.0 * one, one % 3, one % 4, one % 5, one % 7, 0.0, 0.0) for one in range(1, 25)]


def measured(off: float = 0.0) -> list[Measured]:
    """Programs of two families, every other one of which takes that share more than its events tell."""
    return [
        Measured(
            Program(f"family {number % 2}", f"{number}", "none"),
            events.of(TRUE).total * (1.0 + off * (number % 2)), events,
        )
        for number, events in enumerate(EVENTS)
    ]  # fmt: skip


def test_weights_are_found_from_one_half_and_judged_on_the_other() -> None:
    exact = measured()
    made, held = split(exact)
    assert not {one.program.title for one in made} & {one.program.title for one in held}
    weights = weights_of(made)
    assert weights == pytest.approx(TRUE, abs=1e-6)
    worth = worth_of(held, weights)
    assert (worth.programs, worth.rank_correlation) == (12, 1.0)
    assert worth.error == pytest.approx(0.0, abs=1e-9)

    made, held = split(measured(off=0.25))
    assert weights_of(made) == pytest.approx(TRUE, abs=1e-6)
    worth = worth_of(held, weights)
    assert worth.error == pytest.approx(0.2)
    # All are off alike, and so no change is.
    assert worth.error_of_change == pytest.approx(0.0, abs=1e-9)


def test_no_price_is_below_zero() -> None:
    dear = [Measured(Program("one", "of", "many"), 100.0 - events.atomics * 30, events) for events in EVENTS]
    assert min(weights_of(dear)) == 0.0


def test_changes_are_of_one_family() -> None:
    found = changes(measured())
    assert len(found) == 22
    assert all(before.program.family == after.program.family for before, after in found)
    before, after = found[0]
    twice = Measured(after.program, 2 * after.cycles, after.events)
    assert error_of_change(before, twice, TRUE) == pytest.approx(-0.5)


def test_programs_differ_and_both_halves_have_each_family() -> None:
    assert len({one.title for one in PROGRAMS}) == len(PROGRAMS) >= 60
    for half in (PROGRAMS[::2], PROGRAMS[1::2]):
        assert {one.family for one in half} == {one.family for one in PROGRAMS}


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_each_source_is_a_program_of_tc(tmp_path: Path) -> None:
    firsts = {one.source: one for one in (*PROGRAMS, SET_UPS[0].program(0))}
    assert set(firsts) == {path.name.partition(".")[0] for path in (BENCH / "sources").glob("*.bpf.c")}
    for one in firsts.values():
        assert bpf_build(f"{one.compiled(tmp_path)}:run", on_packets=True).kind == "tc"


def test_each_set_up_of_a_path_is_a_change_of_one_with_the_same_packets() -> None:
    by_name = {one.name: one for one in SET_UPS}
    assert len(by_name) == len(SET_UPS)
    assert all(by_name[one.base].kind == one.kind for one in SET_UPS if one.name not in {each.base for each in SET_UPS})
