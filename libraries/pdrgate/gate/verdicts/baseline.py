"""What a scenario's result may be compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pdrgate.gate.run.options import Options
from pdrgate.history.address import HISTORY_SCHEMES, Address
from pdrgate.history.results import RESULT_FILE, read_result, results_below
from pdrgate.measurands import PartialDropRate, Rule, described
from pdrgate.results.fingerprint import OF_THE_KERNEL, UNKNOWN, difference, differences_of, may_differ
from pdrgate.results.model import Findings, MeasurandResult, PdrResult, RunResult, ScenarioResult
from pdrgate.results.verdict import STABLE, Verdict
from pdrgate.values.errors import DataError, UsageError

if TYPE_CHECKING:
    from pdrgate.history.database.baselines import Measured

_IN_HISTORY = "history:"
_SQLITE = b"SQLite format 3\0"
_ALWAYS = ("scenario", "method")
"""Entries that are equal, or there is nothing to compare."""
_ANCHORS = frozenset({Verdict.NO_BASELINE})
"""Verdicts of a folder's runs that were compared with nothing. A run that passed against one of them is no baseline:
else each build could be a little slower than the one before it, and all of them pass."""

_LEAST, _MOST = 1e-18, float(2**64)
"""What can have been measured, in whatever unit: counts have 64 bits. Beyond, a change is no number either."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stored scenario to compare with, and where it lies."""

    source: str
    scenario: ScenarioResult
    boots: int = 1
    """How many boots its samples are of."""

    @property
    def samples(self) -> dict[str, tuple[float, ...]]:
        """The samples of the baseline by measurand."""
        return {one.name: one.samples for one in self.scenario.findings.measurands}


class BaselineSource(Protocol):
    """What a run was given to compare with, read when the run begins."""

    def find(self, fingerprint: Mapping[str, str]) -> tuple[Baseline | None, str]:
        """The baseline for a scenario with ``fingerprint``, or None and why there is none.

        Raises:
            DataError: one was named, and it cannot serve.
        """


def name_in_history(path: Path | None) -> str:
    """The NAME of ``history:NAME``; empty where a path is a path."""
    text = str(path or "")
    return text.removeprefix(_IN_HISTORY) if text.startswith(_IN_HISTORY) else ""


def is_history(path: Path | None) -> bool:
    """Whether a history itself was named: a SQLite file, or the URL of a database, of which a path is left."""
    if path is None:
        return False
    if str(path).partition(":/")[0] in HISTORY_SCHEMES:
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:  # whoever reads it says so
        return False


def baselines(options: Options, own: Path) -> BaselineSource | None:
    """What the options of a run name to compare with; None where they name nothing.

    Args:
        own: the folder of the run that asks, which is no baseline of its own.

    Raises:
        DataError, StorageError: it is not there, or cannot be read.
        UsageError: a baseline of a history, and no history.
    """
    if options.baseline is None:
        return None
    if not (name := name_in_history(options.baseline)):
        return Baselines(options.baseline, own)
    if options.history is None:
        raise UsageError(f"the baseline {options.baseline} is of a history; name that with --history FILE_OR_URL")
    return HistoryBaselines(options.history, name, own, any_fingerprint=options.any_fingerprint)


class Baselines:
    """What a run was given to compare with: one result, or a folder of runs. It is read when the run begins.

    A result.json, or the folder of one run, was *named*: a scenario that it cannot serve is an error. Of a folder of
    runs the newest serves that was itself compared with nothing (`_ANCHORS`). Either may be of another kernel, for that
    is what the gate is there to vary, see `may_differ`.

    Raises:
        DataError: ``path`` does not exist, or is no result that this version understands.
    """

    def __init__(self, path: Path, own: Path) -> None:
        self.path = path
        if not path.exists():
            raise DataError(f"the baseline {path} does not exist; name a result.json, the folder of a run or of runs")
        self.named = path.is_file() or (path / RESULT_FILE).exists()
        self._results: Sequence[tuple[Path, RunResult]]
        if self.named:
            source = path if path.is_file() else path / RESULT_FILE
            self._results = [(source, read_result(source))]
        else:
            # The run that asks, when it is resumed, is no baseline of its own.
            self._results = [
                (source, result) for source, result in results_below(path) if source.parent.resolve() != own.resolve()
            ]

    def find(self, fingerprint: Mapping[str, str]) -> tuple[Baseline | None, str]:
        """The baseline for a scenario with ``fingerprint``, or None and why there is none.

        Raises:
            DataError: one result was named, and it cannot serve.
        """
        refusals: list[tuple[int, str]] = []
        for source, result in self._results:
            found, refusal = _in_result(source, result, fingerprint, STABLE if self.named else _ANCHORS)
            if found is not None:
                return found, ""
            refusals.append(refusal)
        if self.named:
            raise DataError(f"the baseline cannot serve: {refusals[0][1]}")
        if not refusals:
            return None, f"there is no result in {self.path} yet"
        return None, f"no result in {self.path} can serve; the nearest, {min(refusals)[1]}"


class HistoryBaselines:
    """A name in a history: the build that it is pinned to, by all boots of it that were stable.

    A pinned build stays the same whatever passes against it, so that no sum of small losses passes. The name
    `LATEST_GREEN`, for those who want that, is the newest build that passed. What was measured under another
    fingerprint serves only with ``any_fingerprint``.

    Raises:
        StorageError: the history is not there, or cannot be read.
        DataError: it has no baseline of that name.
    """

    def __init__(self, where: Address, name: str, own: Path, *, any_fingerprint: bool = False) -> None:
        from pdrgate.history.database.baselines import measured
        from pdrgate.history.database.connection import Database
        from pdrgate.history.database.queries import side_cost

        self.name = name
        self._any = any_fingerprint
        with Database.open(where) as history, history.reading() as connection:
            found = measured(connection, name)
            self._found = [one for one in found if one.source != str(own.resolve())]
            # Of each build in each series the newest; the history may be gone when it is asked for.
            newest = {(one.series, one.build): one.side for one in reversed(self._found)}
            self._costs = {key: side_cost(connection, side) for key, side in newest.items()}

    def find(self, fingerprint: Mapping[str, str]) -> tuple[Baseline | None, str]:
        """See `BaselineSource`: nothing is an answer of `LATEST_GREEN`, and none of a build that somebody pinned."""
        from pdrgate.history.database.baselines import LATEST_GREEN

        asked = f"{_IN_HISTORY}{self.name}"
        same = [one for one in self._found if all(one.fingerprint.get(key) == fingerprint.get(key) for key in _ALWAYS)]
        fitting = [one for one in same if not _differing(one.fingerprint, fingerprint)]
        if not fitting and self._any:
            nearest = sorted(same, key=lambda one: len(_differing(one.fingerprint, fingerprint)))
            fitting = [one for one in same if one.series == nearest[0].series] if nearest else []
        if self.name == LATEST_GREEN:
            green = next((one for one in fitting if one.green), None)
            fitting = [one for one in fitting if green is not None and one.build == green.build]
        if fitting:
            wrong = next((f"{asked} (run {one.run}) {why}" for one in fitting if (why := _wrong_in(one))), "")
            if not wrong:
                found = self._pooled(fitting, asked, fingerprint)
                if not (few := _too_few(found.scenario.findings.measurands)):
                    return found, ""
                wrong = f"{found.source} {few}"
            if self.name != LATEST_GREEN:
                raise DataError(f"the baseline cannot serve: {wrong}")
            return None, wrong
        if self.name == LATEST_GREEN:
            return None, f"no comparable result in the history has passed yet ({asked})"
        if not same:
            names = "; ".join(sorted({one.title for one in self._found})) or "none"
            raise DataError(
                f"the baseline cannot serve: {asked} has no stable result of this scenario (but of: {names}); "
                "measure it there first, or name another baseline"
            )
        near = min(same, key=lambda one: len(_differing(one.fingerprint, fingerprint)))
        differing = "; ".join(_differing(near.fingerprint, fingerprint))
        raise DataError(
            f"the baseline cannot serve: {asked} is not comparable: {differing} (run {near.run}); measure it anew, or "
            "compare in spite of that with --set any_fingerprint=true"
        )

    def _pooled(self, fitting: Sequence[Measured], asked: str, fingerprint: Mapping[str, str]) -> Baseline:
        from pdrgate.history.database.baselines import pooled_boots

        newest = fitting[0]
        measurands, boots = pooled_boots(fitting)
        forced = "; of another fingerprint, as was asked" if _differing(newest.fingerprint, fingerprint) else ""
        pdr = next((one for one in measurands if one.name == PartialDropRate.name), None)
        scenario = ScenarioResult(
            name=newest.fingerprint["scenario"], title="", verdict=Verdict.NO_BASELINE, reason="",
            pdr=PdrResult(load=pdr.value, lower=pdr.lower, upper=pdr.upper) if pdr else None,
            findings=Findings(
                fingerprint=newest.fingerprint, measurands=measurands, cost=self._costs[newest.series, newest.build]
            ),
        )  # fmt: skip
        runs = len({(one.source, one.run) for one in fitting})
        source = f"{asked} ({newest.label}, {boots} boot{'s' * (boots != 1)} in {runs} runs{forced})"
        return Baseline(source, scenario, boots)


def _in_result(
    source: Path, result: RunResult, fingerprint: Mapping[str, str], accepted: frozenset[Verdict]
) -> tuple[Baseline | None, tuple[int, str]]:
    """The baseline in a result; else how far it is from serving, in entries that differ, and why it does not."""
    name = fingerprint.get("scenario")
    entries = [entry for entry in result.scenarios if entry.name == name]
    if not entries:
        names = "; ".join(dict.fromkeys(entry.label for entry in result.scenarios)) or "none"
        return None, (1000, f"{source} has no result of this scenario (it has: {names})")
    # What a run measured twice, as the suite of TCP does with its window curve, serves by the last that can.
    tried = [_in_entry(source, entry, fingerprint, accepted) for entry in reversed(entries)]
    return next((one for one in tried if one[0] is not None), tried[0])


def _in_entry(
    source: Path, entry: ScenarioResult, fingerprint: Mapping[str, str], accepted: frozenset[Verdict]
) -> tuple[Baseline | None, tuple[int, str]]:
    """The baseline in one scenario of a result, which is the one that is asked for; else how far it is from serving,
    and why."""
    theirs = entry.findings.fingerprint
    if theirs.get("method") != fingerprint.get("method"):
        return None, (999, f"{source} was measured by an older pdrgate, which counted rates otherwise; measure it anew")
    if differing := _differing(theirs, fingerprint):
        return None, (len(differing), f"{source} is not comparable: {'; '.join(differing)}")
    was_compared = accepted is _ANCHORS and entry.comparison is not None
    has_value = entry.pdr is not None or entry.details.transfers is not None  # a closed loop has no PDR
    if entry.verdict not in accepted or not has_value or was_compared:
        stable = "stable " if entry.verdict not in STABLE else ""
        result_of = "result" if entry.details.transfers is not None else "PDR"
        what = f"holds no {stable}{result_of} of this scenario" if stable or not has_value else "was compared itself"
        return None, (0, f"{source} {what} (it was {entry.verdict})")
    # They are offered again, see `pdrgate.gate.verdicts.build_latency`.
    loads = [(f"load at {one.share:.0%} of the PDR", one.load) for one in entry.findings.latency]
    pdr = [(PartialDropRate.name, entry.pdr.load)] if entry.pdr is not None else []
    if unfit := _wrong(entry.findings.measurands, (*pdr, *loads)) or _too_few(entry.findings.measurands):
        return None, (0, f"{source} {unfit}")
    # Of a comparison, its measurands are the candidate's, a sample for each boot.
    whole = [boot for boot in entry.builds.boots if boot.side == "candidate" and not boot.failure]
    return Baseline(str(source), entry, len(whole) or 1), (0, "")


def _too_few(measurands: Sequence[MeasurandResult]) -> str:
    """Words that say that what a run is about was not repeated; empty where it was.

    Measurands that are judged beside it may be missing.
    """
    counts = [len(one.samples) for one in measurands if not described(one.name).beside]
    few = min(counts, default=0)
    return "" if few > 1 else f"has {few} repeats; a comparison needs two or more"


def _wrong(measurands: Sequence[MeasurandResult], more: Iterable[tuple[str, float]] = ()) -> str:
    """What of a result nobody can have measured, so that nothing can be compared with it, in words; empty for nothing.

    A result may come from anywhere. That something was 0 once may be true, of a SUT that livelocks; where it always was
    there is no change of it.

    Args:
        more: numbers besides that are not 0, by what they are called.
    """
    compared = [one for one in measurands if described(one.name).rule is Rule.PAIRS]
    values = [(one.name, value) for one in compared for value in (*one.samples, one.value)]
    found = [(name, value) for name, value in values if not 0 <= value <= _MOST]
    found += [(name, value) for name, value in more if not _LEAST <= value <= _MOST]
    found += [(one.name, 0.0) for one in compared if len(one.samples) > 1 and max(one.samples) < _LEAST]
    if not found:
        return ""
    name, value = found[0]
    return f"has a {name} of {value:g}, which nobody can have measured; measure it anew"


def _wrong_in(one: Measured) -> str:
    """Words for a value of a build in a history that nobody can have measured; empty where there is none."""
    return _wrong(one.measurands, [told for boot in one.boots for told in boot.items() if told[1]])


def _differing(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """What keeps two results from being compared, in words."""
    return differences_of(theirs, ours, UNKNOWN, may_differ(theirs, ours))


def differing_entries(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Fingerprint entries that are not equal, the baseline's value first."""
    keys = [*theirs, *(key for key in ours if key not in theirs)]
    return {key: (theirs.get(key), ours.get(key)) for key in keys if theirs.get(key) != ours.get(key)}


def besides_the_kernel(differs: Mapping[str, tuple[str | None, str | None]]) -> str:
    """A sentence on what else than the kernel is not equal, empty when nothing is: a change may come of that."""
    clauses = []
    for key, (theirs, ours) in differs.items():
        if key not in OF_THE_KERNEL:
            there, here = difference(theirs or "not said", ours or "not said")
            clauses.append(f"{key} {there} in the baseline, {here} here")
    return f"besides the kernel these differ: {'; '.join(clauses)}" if clauses else ""
