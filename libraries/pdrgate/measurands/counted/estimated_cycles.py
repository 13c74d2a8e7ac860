"""Estimated cycles: what the evidence of a packet would come to on a server's CPU, by weights that its hardware gave.

Each instruction, miss, atomic instruction, indirect branch and return has a price. A CPU that does several things at
once pays less for some, and for a branch that it did not foresee more than any price here. tests/bench/fidelity
measures how far estimates by some weights are off for it. An estimate shows how much a change may matter. It is
report-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from statistics import median
from typing import NamedTuple

import msgspec
import yaml

from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.results.model import MemoryResult
from pdrgate.values.errors import UsageError, without_value

PRICED_CPU = "amd-epyc-25-17"
"""The machine whose weights are used where no others are given."""
_PRICED = "x86_64"
"""Output of ``uname -m`` on the machines that prices were measured on."""
_JUDGED = 0.15
"""The largest median error of a change, relative, by which estimates could be judged."""
_LEAST_PART = 0.005
"""Relative: smaller parts of a change are not shown."""


class PricedEvents(NamedTuple):
    """What has a price: of a packet how often it happens, or what that takes; of a CPU the cycles of one."""

    instructions: float = 0.0
    missed_l1: float = 0.0
    """Lines of data or code that the first level does not have."""
    missed_l2: float = 0.0
    missed_last: float = 0.0
    atomics: float = 0.0
    indirect: float = 0.0
    returns: float = 0.0
    """Returns of functions, which are dear where a CPU may not foresee them, as by SRSO's mitigation."""

    @property
    def total(self) -> float:
        """All together: of cycles an estimate."""
        return sum(self)

    def of(self, other: PricedEvents) -> PricedEvents:
        """Each multiplied by another's."""
        return PricedEvents(*(own * more for own, more in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class WeightsWorth:
    """How well estimates by some weights agree with hardware, on programs that did not make them."""

    programs: int
    rank_correlation: float
    """Spearman's rank correlation of estimates and hardware."""
    error: float
    """The median of the relative errors of estimates."""
    error_of_change: float
    """Median of the relative errors of the ratio of two programs that do more or less of one thing."""

    def __str__(self) -> str:
        return (
            f"estimates of {self.programs} programs are within {self.error:.0%} of hardware in the median, "
            f"those of a change within {self.error_of_change:.0%}"
        )


@dataclass(frozen=True, slots=True)
class CycleWeights:
    """The prices of a machine, and what they are worth."""

    machine: str
    cycles: PricedEvents
    worth: WeightsWorth


def priced_events(counts: MemoryCounts, packets: float) -> PricedEvents:
    """How often what has a price happens for a packet.

    Args:
        packets: those that were counted.
    """
    events = (
        counts.instructions, counts.missed_l1 + counts.missed_l1_code, counts.missed_l2, counts.missed_last,
        counts.atomics, counts.indirect, counts.returns,
    )  # fmt: skip
    return PricedEvents(*(count / packets for count in events))


def priced_of(seen: Sequence[MemorySeen]) -> PricedEvents:
    """Events of a packet in all functions together: the median of some trials, of which there is one at least."""
    each = [
        priced_events(MemoryCounts(*map(sum, zip(*one.functions.values(), strict=True))), one.windows)
        for one in seen
    ]  # fmt: skip
    return PricedEvents(*map(median, zip(*each, strict=True)))


def estimated_cycles(events: PricedEvents, weights: CycleWeights) -> PricedEvents:
    """The cycles of a packet by what they are taken for; `PricedEvents.total` is the estimate."""
    return events.of(weights.cycles)


def cycles_in_words(before: PricedEvents, after: PricedEvents) -> str:
    """``about 2 150 cycles a packet, +9 %: 2 % instructions, 7 % misses``.

    Args:
        before: the cycles of the baseline, in parts.
        after: those of the candidate.
    """
    told = f"about {_rounded(after.total)} cycles a packet"
    if before.total <= 0.0:
        return told
    parts = _parts_of_change(before, after)
    change = (after.total - before.total) / before.total
    if abs(change) < _LEAST_PART:
        return f"{told}, as before"
    named = ", ".join(f"{100 * part:.0f} % {name}" for name, part in parts.items() if abs(part) >= _LEAST_PART)
    return f"{told}, {100 * change:+z.0f} %: {named}"


def estimate_in_words(
    before: MemoryResult | None, after: MemoryResult | None, machine: str | None, model: str = PRICED_CPU
) -> str:
    """What the evidence of two builds would come to on a server's CPU, and why that is not judged; empty without any.

    Args:
        machine: output of ``uname -m``; there are prices of x86 only.
        model: the CPU whose prices are taken.
    """
    if before is None or after is None or not (before.priced and after.priced):
        return ""
    if machine not in (None, _PRICED):
        return f"no estimate of cycles: there are prices of {_PRICED} alone, and the guest is {machine}"
    weights = cycle_weights(model)
    cycles = [estimated_cycles(PricedEvents(**one.priced), weights) for one in (before, after)]
    worth = (
        f"an estimate, which is not judged: in the median its change is off by "
        f"{100 * weights.worth.error_of_change:.0f} %, and judging takes {100 * _JUDGED:.0f} %"
    )
    return f"{cycles_in_words(cycles[0], cycles[1])} on {weights.machine.partition(' (')[0]} ({worth})"


def _parts_of_change(before: PricedEvents, after: PricedEvents) -> Mapping[str, float]:
    """What each kind of work adds to the change, the largest first."""

    grown = PricedEvents(*((new - old) / before.total for old, new in zip(before, after, strict=True)))
    parts = {
        "instructions": grown.instructions, "misses": grown.missed_l1 + grown.missed_l2 + grown.missed_last,
        "atomics": grown.atomics, "indirect branches": grown.indirect, "returns": grown.returns,
    }  # fmt: skip
    return dict(sorted(parts.items(), key=lambda one: -abs(one[1])))


def _rounded(cycles: float) -> str:
    """Three digits, thousands apart."""
    digits = max(0, len(str(round(cycles))) - 3)
    return f"{round(cycles, -digits):,.0f}".replace(",", " ")


@cache
def cycle_weights(machine: str = PRICED_CPU) -> CycleWeights:
    """The shipped weights of a machine. Raises UsageError where there are none."""
    known = sorted(one.name.removesuffix(".yaml") for one in _weights().iterdir() if one.name.endswith(".yaml"))
    if machine not in known:
        raise UsageError(f"no CPU with prices of cycles is called {machine!r}; there are {', '.join(known)}")
    return read_weights(_weights().joinpath(f"{machine}.yaml"))


def _weights() -> Traversable:
    return files("pdrgate.measurands").joinpath("weights")


def read_weights(file: Traversable) -> CycleWeights:
    """The weights in a file, as tests/bench/fidelity writes it. Raises UsageError."""
    try:
        return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), _File).weights
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; tests/bench/fidelity makes such a file") from error
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise UsageError(
            f"{file}: holds no weights ({without_value(error)}); tests/bench/fidelity makes some"
        ) from error


class _Prices(msgspec.Struct, forbid_unknown_fields=True):
    instructions: float
    missed_l1: float
    missed_l2: float
    missed_last: float
    atomics: float
    indirect: float
    returns: float


class _File(msgspec.Struct):
    machine: str
    cycles: _Prices
    worth: WeightsWorth

    @property
    def weights(self) -> CycleWeights:
        return CycleWeights(self.machine, PricedEvents(*msgspec.structs.astuple(self.cycles)), self.worth)
