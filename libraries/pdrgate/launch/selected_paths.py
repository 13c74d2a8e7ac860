"""Which paths a run has to measure: those that run code that differs between both builds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.identity import build_identity
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import named_build
from pdrgate.differences.affected_paths import PathDifference, affected_paths
from pdrgate.differences.code_differences import code_differences
from pdrgate.gate.run.options import RunOptions
from pdrgate.gate.run.scenario_keys import with_changes
from pdrgate.gate.run.selection_file import code_key
from pdrgate.history.address import Address
from pdrgate.launch.described import described_tests
from pdrgate.launch.shard import shard_of
from pdrgate.record.path_code import PathCode
from pdrgate.results.selection import Reason, SelectedPath, Selection
from pdrgate.testbeds import TestbedConfig, load_testbed
from pdrgate.this_process.own_files import found as found_file
from pdrgate.values.errors import PdrGateError

_AUDITED = 2
"""Paths of the same code that a run measures all the same."""
_FEW = 10
"""Paths of the same code that are few: those whose set-up differs are all measured, or some are drawn."""
_BY_CHANCE = random.SystemRandom()
DrawPaths = Callable[[Sequence[PathDifference], int], Sequence[PathDifference]]


def selected_paths(
    options: RunOptions, report: Callable[[str], None], draw: DrawPaths = _BY_CHANCE.sample
) -> Selection | None:
    """Compare the kernels, and choose the paths; None where all that was asked for is to be measured.

    Args:
        report: gets sentences of how far it is.
        draw: draws so many paths out of some.
    """
    if options.paths != "affected":
        return None
    before, after = (named_build(one, report=report) for one in (options.against, options.kernel))
    try:
        found = code_differences(before, after)
    except BuildError as error:
        report(f"all paths are measured, for what differs is not known: {error}")
        return None
    asked, mine = described_tests(options.suites, options.patterns), shard_of(options)
    tests = {
        one.name: with_changes(one.scenario, options.changes)[0].name for one in asked if one.longname in mine
    }  # fmt: skip
    known = {} if found.identical else known_codes(options.history, before, load_testbed(found_file(options.testbed)))
    paths = affected_paths(found, {name: PathCode() if found.identical else known.get(name) for name in tests.values()})
    by_scenario = {one.path: one for one in paths}
    drawn = [] if found.identical else [one.path for one in _drawn(paths, draw)]
    return Selection(
        differ=tuple(one.label for one in found.differ if one.kind == "function"),
        differ_variables=tuple(one.label for one in found.differ if one.kind == "variable"),
        functions=found.functions, variables=found.variables, modules=found.modules, everywhere=found.everywhere,
        missing=found.missing, identical=found.identical, builds=(build_identity(before), build_identity(after)),
        paths=tuple(_selected(test, by_scenario[name], name in drawn) for test, name in tests.items()),
    )  # fmt: skip


def measured_first(selection: Selection) -> Mapping[str, int]:
    """The place of each path, by the name of its test: first what differs most, last what is left out."""
    return {
        one.path: number for number, one in enumerate(sorted(selection.paths, key=lambda one: (
            _ORDER.index(one.reason), -len(one.functions) - len(one.variables)
        )))
    }  # fmt: skip


_ORDER: tuple[Reason, ...] = ("affected", "unknown", "audit", "same")


def known_codes(history: Address | None, build: KernelBuild, config: TestbedConfig) -> Mapping[str, PathCode]:
    """What the build's kernel runs on each path on a testbed, as far as an earlier run has seen it."""
    if history is None:
        return {}
    from pdrgate.history.database.experience import Experience  # SQLAlchemy: most runs do without

    try:
        return Experience(history).path_codes(code_key(build_identity(build), config))
    except PdrGateError:
        return {}  # the run itself reports that its history cannot be read


def _drawn(paths: Sequence[PathDifference], draw: DrawPaths) -> Iterator[PathDifference]:
    """Paths of the same code that are measured all the same, first of those whose set-up differs."""
    same = [one for one in paths if not one.is_affected]
    by_doubt = [one for one in same if one.set_up], [one for one in same if not one.set_up]
    if len(same) <= _FEW:
        yield from by_doubt[0] or draw(same, min(_AUDITED, len(same)))
        return
    left = _AUDITED
    for some in by_doubt:
        drawn = draw(some, min(left, len(some)))
        left -= len(drawn)
        yield from drawn


def _selected(test: str, path: PathDifference, drawn: bool) -> SelectedPath:
    differs = bool(path.functions or path.variables)
    reason: Reason = "affected" if differs else "unknown" if path.is_affected else "audit" if drawn else "same"
    return SelectedPath(test, path.path, reason, path.functions, path.variables, path.set_up)
