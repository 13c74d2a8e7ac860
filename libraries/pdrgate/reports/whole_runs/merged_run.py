"""Runs of several machines as one: merged.json, and of it a page, the Markdown, and an xunit.xml of all their tests."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pdrgate.builds.architecture import PEOPLES_NAMES
from pdrgate.gate.run.options import OPTIONS_FILE
from pdrgate.history.results import RESULT_FILE, read_result, write_result
from pdrgate.history.whole_file import write_whole
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.junit import LARGEST_XUNIT, XUNIT_FILE, failed_besides, junit, retold, suites_side_by_side
from pdrgate.reports.whole_runs.remake import make_summaries, own_trials
from pdrgate.results.consistency import contradictions
from pdrgate.results.file_name import as_text
from pdrgate.results.merging import LostPart, RunPart, merged, shards_nobody_measured
from pdrgate.results.model import RunResult
from pdrgate.this_process.no_follow import first_link, folder_no_follow, read_no_follow
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNDECIDED, DataError, StorageError

MERGED_FILE = "merged.json"
"""Not called as a run's result is: whoever reads a folder of runs would count them twice."""
_VERDICT_FILE = "verdict.txt"
"""What `ci/gate-from-env` leaves beside its run, or in place of one."""
_LARGEST_VERDICT = 64 << 10
"""Largest verdict file that is read, bytes."""
_KINDS = ("testbed fault: ", "undecided: ", "wrong parameters: ")
"""Begins of what ci/gate-from-env says of a gate that passed and failed nothing."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What runs came to together."""

    result: RunResult
    failed_besides: tuple[str, ...]
    """Tests that failed though their scenario's verdict passes, such as by an assertion of the suite's own."""

    @property
    def exit_code(self) -> int:
        """The exit code that one gate of all of it would have."""
        code = self.result.verdict.exit_code
        return EXIT_FAIL if code in (EXIT_PASS, EXIT_UNDECIDED) and self.failed_besides else code


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What results must be of, to be taken for those that were to be left."""

    commit: str = ""
    """Empty: of any."""
    builds: frozenset[str] = frozenset()
    """Digests, of which each build that is compared must be one; empty: any."""
    gates: str = ""
    """What the CI itself says of those who measured: ``success``, or anything else; empty where it says nothing. A
    result that came from somewhere else passes then for none of theirs."""

    def refused(self, result: RunResult) -> str:
        """Why a result is none of those, in words; empty where it may be one."""
        if self.commit and result.commit != self.commit:
            return f"it is of {f'commit {result.commit}' if result.commit else 'no commit'}, and not of {self.commit}"
        sides = [side for scenario in result.scenarios for side in scenario.builds.sides]
        if self.builds and (others := [side for side in sides if side.digest not in self.builds]):
            return f"its {others[0].side} {others[0].build} is another build ({others[0].digest or 'no digest'})"
        if self.builds and not sides:
            return "it compares no builds"
        return next(contradictions(result), "")


def merge(places: Sequence[Path], into: Path, expected: Expected | None = None) -> Merged:
    """Merge the runs in ``places`` and write what people and pipelines read of them into the folder ``into``.

    Each place owes a result: it is the folder of a run, or has such folders somewhere in it. A place that is not there,
    or whose runs left nothing that can be read, is reported as an ERROR of its own. So is one whose verdict contradicts
    its own numbers, or that is not what is expected.

    Raises:
        DataError: a result contradicts itself.
        StorageError: a file cannot be written.
    """
    asked = expected or Expected()
    found = _once([told for place in places for told in _parts(place, into, asked)])
    runs = [part.result for _, part in found if isinstance(part, RunPart)]
    if len(runs) == len(found):  # else who was to measure it is among those that left nothing
        for shard in shards_nobody_measured(runs):
            why = "no run measured this part of the paths, and other parts were measured; name its run, too"
            found.append((into / shard, _lost(Path(f"--shard {shard}"), why)))
    result = merged(as_text(into.resolve().name), [part for _, part in found], PEOPLES_NAMES)
    if result.verdict.passes and asked.gates not in ("", "success"):
        ended = " ".join(as_text(asked.gates).split())
        why = f"the CI says that measuring ended in {ended!r}, and all results pass: they are not of it; see its log"
        found.append((into / "of the CI", _lost(Path("the gates"), why)))
        result = merged(as_text(into.resolve().name), [part for _, part in found], PEOPLES_NAMES)
    try:
        with folder_no_follow(into, make=True):
            pass
    except OSError as error:
        raise StorageError(f"cannot make the folder {into}: {error.strerror}; name another with --into") from error
    write_result(into / MERGED_FILE, result)
    trials = {part.link: _trials(folder, part.result) for folder, part in found if isinstance(part, RunPart)}
    for _ in make_summaries(into, result, trials):
        pass
    tests = _tests(found, result)
    write_whole(into / XUNIT_FILE, suites_side_by_side(tests, result), durable=False)
    return Merged(result, tuple(f"{name}: {told}" for name, one in tests.items() for told in failed_besides(one)))


def _once(found: Sequence[tuple[Path, RunPart | LostPart]]) -> list[tuple[Path, RunPart | LostPart]]:
    """The parts, of which none stands for two places: a copy of another run's result is none of its own."""
    told: list[tuple[Path, RunPart | LostPart]] = []
    known: list[RunPart] = []
    for folder, part in found:
        if isinstance(part, RunPart):
            same = [one.place for one in known if one.result == part.result]
            if same:
                told.append((folder, _lost(folder, f"its result is that of {same[0]}; measure it again")))
                continue
            known.append(part)
        told.append((folder, part))
    return told


def _parts(place: Path, into: Path, expected: Expected) -> Iterator[tuple[Path, RunPart | LostPart]]:
    """What is in a place, each with the folder that it lies in."""
    if (link := first_link(place)) is not None:
        yield place, _lost(place, f"no result: {link} is a link, and links are not followed; name the folder itself")
        return
    found = list(_ends(place, into))
    for folder, is_run in found:
        if not is_run:
            yield folder, _lost(folder, _why_lost(folder))
            continue
        try:
            result = read_result(folder)
            if why := expected.refused(result):
                yield folder, _lost(folder, f"its result is refused: {why}; measure it again")
                continue
            yield folder, RunPart(as_text(str(folder)), as_text(os.path.relpath(folder, into)), result)
        except DataError as error:
            told = str(error) if (folder / RESULT_FILE).exists() else "it was killed before a scenario had ended"
            yield folder, _lost(folder, f"no result: {told}; measure it again")
    if not found:
        yield place, _lost(place, _why_lost(place))


def _lost(place: Path, reason: str) -> LostPart:
    return LostPart(as_text(str(place)), as_text(reason))


def _ends(place: Path, into: Path) -> Iterator[tuple[Path, bool]]:
    """The folders of runs (True) at and below a place, and those where a gate ended before it had one (False)."""
    for name, below, files in os.walk(place):
        folder = Path(name)
        below[:] = sorted(one for one in below if (folder / one).resolve() != into.resolve())
        if _is_run(folder):
            below.clear()
            yield folder, True
        elif _VERDICT_FILE in files and not any(_is_run(folder / one) for one in below):
            yield folder, False


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (RESULT_FILE, OPTIONS_FILE)) and not folder.is_symlink()


def _why_lost(place: Path) -> str:
    try:
        told = read_no_follow(place / _VERDICT_FILE, _LARGEST_VERDICT).decode(errors="replace").strip()
    except OSError:
        told = ""
    for kind in _KINDS:  # an ERROR is one anyway
        told = told.removeprefix(kind)
    return told or f"no result: no run lies in {place}: whoever was to measure died, or sent nothing; see its log"


def _trials(folder: Path, result: RunResult) -> Sequence[Trial]:
    try:
        return own_trials(folder, result)
    except DataError:
        return ()  # only they are not drawn then


def _tests(found: Sequence[tuple[Path, RunPart | LostPart]], result: RunResult) -> Mapping[str, bytes]:
    """Tests of each run by its place; what was lost is a test of its own."""
    tests = {part.place: _own_tests(folder, part.result) for folder, part in found if isinstance(part, RunPart)}
    places = {part.place for _, part in found}
    if lost := tuple(one for one in result.scenarios if one.name in places):
        tests["without a result"] = junit(replace(result, scenarios=lost, left_out=()))
    return tests


def _own_tests(folder: Path, result: RunResult) -> bytes:
    with contextlib.suppress(OSError, ValueError):
        return retold(read_no_follow(folder / XUNIT_FILE, LARGEST_XUNIT), result)
    return junit(result)
