"""Small requests by TCP, each answered before the next one: how many, how long one takes, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import median
from typing import Self

from pdrgate.measurands.counted.cost import TOLERANCE_OF_COST
from pdrgate.measurands.description import Description, Tolerance
from pdrgate.measurands.measurand import Measurand
from pdrgate.measurands.transfers.tcp import TransferSetting, kernel_instructions, loaded_transfers
from pdrgate.measurands.unit_spelling import SECONDS, Unit
from pdrgate.observers.kernel_roles import GOES_IDLE, TICK
from pdrgate.record.trial import Trial


class _OfRequests(Measurand):
    """A measurand of transfers that are requests and their answers."""

    @classmethod
    def of(cls, setting: TransferSetting) -> Self | None:
        return cls() if setting.request else None


class RequestRate(_OfRequests):
    """Requests that are answered in a second, one after the other."""

    about = Description(
        "request rate", Unit("requests/s"), "higher", "requests that are answered in a second, one after the other",
        beside=True, tolerance=Tolerance(0.5, option=""),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = _answered(trials)
        return median(one.transfer.requests / one.seconds for one in found) if found else None


class RequestLatency(_OfRequests):
    """Seconds from a request to its answer, the median: who asks waits for a machine that others use as well.

    So a change of a fifth shows little. A timer that an answer waits for makes a hundred of it.
    """

    about = Description(
        "latency of a request", SECONDS, "lower", "from a request to its answer, the median",
        beside=True, tolerance=Tolerance(0.5, option=""),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        told = [one.transfer.senders.rtt for one in _answered(trials) if one.transfer.senders.rtt is not None]
        return min(told) if told else None


class RequestCost(_OfRequests):
    """Instructions that the SUT's kernel executes for each request, where they are counted; see `ByteCost`.

    What the kernel does because its peer keeps it waiting is taken away: it is the machine's doing, and no request's.
    No transfer is granted more waits a request than the most of its pair's other boots had: a kernel decides by itself
    how often it calls what goes idle.
    """

    about = Description(
        "cost of a request", Unit("instructions/request"), "lower", "instructions of the SUT's kernel for each request",
        beside=True, tolerance=TOLERANCE_OF_COST,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        beside = [one for one in trials if one.belonging.boot != trials[0].belonging.boot]
        most = max((_waits(one) for one in _answered(beside)), default=inf)
        costs = [cost for one in _answered(trials) if (cost := _cost(one, most)) is not None]
        return median(costs) if costs else None


_FOR_ONE = 7000.0
"""Instructions of each tick, and of each time without work. On guests of 6.1 a tick took 6 400 to 7 900 of them, an
idle time 5 700 to 8 700. Transfers with 0.35 to 1.8 ticks and 1.0 to 2.3 idle times a request were 6.6 % apart, and
without these 1.5 %."""


def _cost(trial: Trial, most: float) -> float | None:
    instructions = kernel_instructions(trial)
    if instructions is None:
        return None
    return instructions / trial.transfer.requests - _FOR_ONE * min(_waits(trial), most)


def _waits(trial: Trial) -> float:
    """Ticks and times without work for each request."""
    return sum(role.calls(trial.seen.functions) for role in (TICK, GOES_IDLE)) / trial.transfer.requests


def _answered(trials: Sequence[Trial]) -> list[Trial]:
    return [one for one in loaded_transfers(trials) if one.transfer.requests and one.seconds]
