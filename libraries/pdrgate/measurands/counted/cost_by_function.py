"""The change of a packet's cost by the functions that it is in, which repeats better than its whole does.

A whole has in it what some trials do and others do not: a pool of pages is filled, a CPU's free pages go back to all
CPUs. Each such burst is of a few functions, and is in no median of theirs where fewer than half of all trials have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pdrgate.measurands.counted.cost import Cost, change_by_function
from pdrgate.results.model import ChangeResult, FunctionChange
from pdrgate.results.verdict import Verdict


def decided_by_functions(
    changes: Sequence[ChangeResult], functions: Sequence[FunctionChange]
) -> tuple[ChangeResult, ...]:
    """The changes, where functions decide a REGRESSION of the cost whose interval spans the tolerance.

    It is a PASS where the functions' sum lies within the tolerance. It must lie in the interval as well: what is in
    another function in each trial is in no function's median, and stays in the whole.
    """
    return tuple(
        replace(one, verdict=Verdict.PASS)
        if one.measurand == Cost.name
        and one.verdict is Verdict.REGRESSION
        and functions
        and one.lower <= change_by_function(one, functions) <= one.tolerance
        else one
        for one in changes
    )
