"""Sentences on the paths that a run left out because they run the same code in both builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import first_names, printable

_NAMED = 6
"""Names in a sentence."""
_COLUMNS = (Column("path", heads=True, wraps=True), Column("what its packets run that differs", wraps=True))


def selection_headline(result: RunResult) -> str:
    """``3 of 72 paths run code that changed, and cost what they did; 69 run the same code``; empty of another run."""
    chosen = result.selection
    if chosen is None or result.verdict is not Verdict.PASS or not chosen.because("same"):
        return ""
    changed = len(chosen.because("affected"))
    same = len(chosen.because("same", "audit"))
    if chosen.identical:
        return f"both builds are the same, byte by byte; {_paths(same)} {_run(same)} the same code"
    unknown = len(chosen.because("unknown"))
    more = f", {unknown} may" if unknown else ""
    told = f"{changed or 'none'} of {len(chosen.paths)} paths {_run(changed)} code that changed{more}"
    measured = changed + unknown
    cost = ", and costs what it did" if measured == 1 else ", and cost what they did" if measured else ""
    return f"{told}{cost}; {same} {_run(same)} the same code"


def selection_lines(result: RunResult) -> Iterator[str]:
    """Sentences that stand below the verdict of a run whose paths were selected."""
    chosen = result.selection
    if chosen is None or chosen.identical:
        return
    if chosen.everywhere:
        yield "the builds have another compiler, configuration or layout: no path was left out"
        return
    if chosen.missing:
        yield printable(f"no path was left out, for some code was not compared: {'; '.join(chosen.missing[:3])}")
        return
    yield printable(
        f"{len(chosen.differ)} of {chosen.functions} functions differ{_listed(chosen.differ)}; "
        f"{len(chosen.differ_variables)} of {chosen.variables} variables{_listed(chosen.differ_variables)}; "
        f"in the image and {chosen.modules} modules"
    )
    verdicts = {one.name: one.verdict for one in result.scenarios}
    if unknown := [one for one in chosen.because("unknown") if one.scenario in verdicts]:
        yield f"measured, for what they run was not known: {len(unknown)} path{'s' * (len(unknown) > 1)}"
    failed = chosen.failed_audits(verdicts)
    drawn = [one.path for one in chosen.because("audit") if one.scenario in verdicts]
    if failed:
        names = " and ".join(one.path for one in failed)
        left = len([one for one in chosen.because("same") if one.scenario not in verdicts])
        yield printable(
            f"the selection was wrong: {names} run{'s' * (len(failed) == 1)} the same code and got worse, so that all "
            f"others were measured{f' but {left}' if left else ''}"
        )
        return
    if drawn:
        yield printable(f"measured to check, though they run the same code: {' and '.join(drawn)}")
    left_out = [one for one in chosen.because("same") if one.scenario not in verdicts]
    if set_up := sorted({name for one in left_out for name in one.set_up}):
        yield printable(f"the set-up of paths that were left out runs code that differs{_listed(set_up)}")


def selection_table(result: RunResult) -> Table | None:
    """What of each affected path differs; None where no path is affected."""
    affected = () if result.selection is None else result.selection.because("affected")
    if not affected:
        return None
    by_much = sorted(affected, key=lambda one: -len(one.functions) - len(one.variables))
    rows = [[Cell(one.path), Cell(", ".join(one.functions + one.variables))] for one in by_much]
    return Table("What this change touches", _COLUMNS, rows)


def _listed(names: Sequence[str]) -> str:
    return f": {first_names(names, _NAMED)}" if names else ""


def _paths(number: int) -> str:
    return "1 path" if number == 1 else f"all {number} paths" if number > 1 else "no path"


def _run(number: int) -> str:
    return "runs" if number == 1 else "run"
