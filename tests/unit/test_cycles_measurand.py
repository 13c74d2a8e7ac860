"""Cycles of a packet, as the processor's observer brings them home by place and name."""

from __future__ import annotations

import pytest
from flat_values import changed, flat_trial
from made_results import result, scenario

from pdrgate.measurands import described
from pdrgate.measurands.counted.cycles import Cycles
from pdrgate.observers.processor import ProcessorCounts, ProcessorObserver
from pdrgate.observers.reading import Place, nested
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.exports.benchstat import go_benchmarks
from pdrgate.reports.ci.exports.openmetrics import open_metrics
from pdrgate.results.model import MeasurandResult

CYCLES = Cycles(0.005)


class SimulatedCounts(ProcessorCounts):
    """Stands for a processor: what it has counted is given."""

    def __init__(self, cycles: int) -> None:
        self.place, self.profiles, self._cycles = Place("cpu", "1"), False, cycles

    def begin(self) -> None:
        """It counts from 0 each time."""

    def end(self) -> dict[str, int]:
        return {
            "kernel_instructions": 4_000_000, "user_instructions": 7, "kernel_cycles": self._cycles,
            "counted_ns": 250_000_000,
        }  # fmt: skip


def observed(cycles: int, **more: object) -> Trial:
    """A trial at saturation as it is kept, with what the processor's observer tells."""
    observer = ProcessorObserver(SimulatedCounts(cycles))
    observer.begin()
    found = observer.end()
    trial = flat_trial(
        4e4, 0.25, 2000, 1000, phase=Phase.SATURATION, functions=found.functions, counted=found.counted,
        counters_before=nested(found.before), counters_after=nested(found.after),
    )  # fmt: skip
    return changed(trial, **more)


def test_a_packet_costs_the_median_of_the_cycles_at_saturation() -> None:
    trials = [observed(cycles) for cycles in (2_900_000, 3_000_000, 3_400_000)]
    assert CYCLES.value(trials) == pytest.approx(3000)
    assert CYCLES.value([*trials, *(observed(9, phase=Phase.COST) for _ in range(9))]) == pytest.approx(3000)


def test_where_no_processor_counts_there_are_none() -> None:
    assert CYCLES.value([observed(5, counters_before={}, counters_after={})]) is None
    assert CYCLES.value([]) is None


def test_exports_spell_it_and_nothing_else_knows_it() -> None:
    one = MeasurandResult(name="cycles", unit=described("cycles").unit, better="lower", value=3000.0)
    told = result(changed(scenario(), measurands=(one,)))
    assert "pdrgate_cycles_cycles_per_packet{" in open_metrics(told)
    assert "3000 cycles-cycles/packet" in go_benchmarks(told)
