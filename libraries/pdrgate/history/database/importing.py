"""Puts runs into the history: folders of results, and files of trials, ours and PASTRAMI's. Twice is once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, and_, delete, func, or_, select, update

from pdrgate.history.database.inserting import insert_all, insert_new, insert_row
from pdrgate.history.database.tables import (
    BootRow,
    ChangeRow,
    EnvironmentRow,
    FingerprintRow,
    MeasurandRow,
    ResultRow,
    RunRow,
    SideRow,
    TrialRow,
)
from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.record.cause import causes_in_words
from pdrgate.record.parts import flattened
from pdrgate.record.trial import Trial
from pdrgate.results.fingerprint import build_digest, digest, series
from pdrgate.results.model import (
    BootResult,
    ComparisonResult,
    CostResult,
    MeasurandResult,
    RunResult,
    ScenarioResult,
)
from pdrgate.stability import read_trials
from pdrgate.stability.trial_files import is_published
from pdrgate.values.errors import DataError

_OF_A_FUNCTION = ("name", "instructions", "calls", "deviation")
_NOT_OF_THE_TABLE = frozenset({"counters_before", "counters_after", "functions", "stacks", "callers", "test"})
"""Fields of a trial that stay in the run's own file: they take kilobytes each, or are of use to that run alone. No
query asks for them."""
_OF_ONE_BOOT = frozenset({"boot_id"})
"""Entries of an environment that belong to one boot."""


@dataclass(frozen=True, slots=True)
class Import:
    """What became of one source."""

    source: Path
    name: str
    what: Literal["added", "replaced", "known"]
    results: int = 0
    trials: int = 0

    def __str__(self) -> str:
        """The import in one line, for a person."""
        said = {"added": "added", "replaced": "brought up to date", "known": "there already"}[self.what]
        holds = [(self.results, "result"), (self.trials, "trial")]  # transfers are no trials, and are not counted
        told = (f"{number} {what}{'s' * (number != 1)}" for number, what in holds if number)
        return f"{self.source}: {said} ({', '.join(told) or 'nothing measured'})"


@dataclass(frozen=True, slots=True)
class _Source:
    """What one folder or file holds."""

    path: Path
    name: str
    key: str
    content: str
    result: RunResult | None
    trials: Sequence[Trial]
    started: float


@dataclass(frozen=True, slots=True)
class _Measured:
    """A build in a scenario, wherever its result has it."""

    side: str
    label: str
    fingerprint: Mapping[str, str]
    environment: Mapping[str, Any]
    measurands: Sequence[MeasurandResult]
    boots: Sequence[BootResult]
    cost: CostResult | None


def sources(paths: Iterable[Path]) -> list[Path]:
    """What can be imported of paths: of a directory, the runs, the lone trials.jsonl and PASTRAMI's files below it.

    Raises:
        DataError: a path does not exist, or a directory holds nothing of that kind.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder; name the folder of a run, or a file of trials")
        if not path.is_dir():
            found.append(path)
            continue
        runs = {file.parent for file in path.rglob(RESULT_FILE)}
        lone = [file for file in path.rglob(TRIALS_FILE) if file.parent not in runs and file.stat().st_size]
        own = [*runs, *(file.parent for file in lone)]
        theirs = [
            file
            for file in path.rglob("*.txt")
            if not any(file.is_relative_to(folder) for folder in own) and is_published(file)
        ]
        if not runs and not lone and not theirs:
            raise DataError(f"{path}: no run and no file of trials below this directory; name the folder of a run")
        found += sorted([*runs, *lone, *theirs])
    return list(dict.fromkeys(found))


def add(connection: Connection, path: Path) -> Import:
    """Put one run or one file of trials into the history, in the transaction that is open.

    A run that is there already stays as it is; one that was resumed since is replaced.

    Args:
        path: one of `sources`.

    Raises:
        DataError: it is none of them.
    """
    source = _read(path)
    known = _known(connection, source)
    if known is None and not insert_new(connection, RunRow, "key", _run_row(source)):
        known = _known(connection, source)  # another writer's, of this very moment
    what: Literal["added", "replaced", "known"] = "added"
    if known is not None:
        fewer = len(source.trials) < known.trials
        what = "known" if fewer or known.content == source.content else "replaced"
    if what == "replaced" and known is not None:
        _renew(connection, source, known.id)
    if what != "known":
        run_id = connection.execute(select(RunRow.id).where(RunRow.key == source.key)).scalar_one()
        _fill(connection, source, run_id)
    results = len(source.result.scenarios) if source.result else len(_groups(source.trials))
    return Import(path, source.name, what, results, len(source.trials))


# --- Reading ---


def _read(path: Path) -> _Source:
    if path.is_dir() or path.suffix == ".json":
        return _read_run(path)
    trials = _with_loads(read_trials(path))
    if not trials:
        raise DataError(f"{path}: holds transfers, which nobody judged; name the folder of their run")
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    ours = path.name == TRIALS_FILE
    times = [trial.occasion.started for trial in trials if trial.occasion.started]
    return _Source(
        path, path.resolve().parent.name if ours else path.stem, _key(trials) or digest({"file": path.name + content}),
        content, None, trials, min(times, default=path.stat().st_mtime),
    )  # fmt: skip


def _read_run(path: Path) -> _Source:
    file = path / RESULT_FILE if path.is_dir() else path
    result = read_result(file)
    beside = file.with_name(TRIALS_FILE)
    trials = read_trials(beside) if beside.is_file() and beside.stat().st_size else []
    read = [file, *([beside] if trials else [])]
    content = hashlib.sha256(b"".join(one.read_bytes() for one in read)).hexdigest()
    counted = _with_loads(trials)
    key = _key(counted) or _key(trials) or digest({"run": result.run, "started": repr(result.started)})
    return _Source(path, result.run, key, content, result, counted, result.started)


def _with_loads(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of open loops: a row of a trial has its load."""
    return [trial for trial in trials if not trial.closed_loop]


def _key(trials: Sequence[Trial]) -> str:
    """Stable key of a run: the hash of its first trial, which stays when the run is resumed.

    Empty where there is no trial, or where the first has no start time.
    """
    if not trials or not trials[0].occasion.started:
        return ""
    first = trials[0]
    moved = first.transfer
    counted = (
        (moved.window, moved.delivered, moved.seconds) if first.closed_loop
        else (first.intended_load, first.offered, first.forwarded)
    )  # fmt: skip
    identity = (first.belonging.scenario, first.belonging.boot, first.occasion.started, *counted)
    return hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass")).hexdigest()


# --- Runs that are known ---


@dataclass(frozen=True, slots=True)
class _Known:
    """The run of a source, as it is in the history."""

    id: int
    content: str
    trials: int


def _known(connection: Connection, source: _Source) -> _Known | None:
    """The run by its key, or, when its trials did not lie beside its result.json once, by name and time."""
    same = RunRow.key == source.key
    if source.result is not None:
        same = or_(same, and_(RunRow.name == source.name, RunRow.started == source.started))
    found = connection.execute(select(RunRow.id, RunRow.content).where(same).order_by(RunRow.id)).first()
    if found is None:
        return None
    trials = select(func.count()).where(TrialRow.run_id == found.id)
    return _Known(found.id, found.content, connection.execute(trials).scalar_one())


def _renew(connection: Connection, source: _Source, run_id: int) -> None:
    """Empty a run that was resumed, so that its longer content is imported anew.

    The row of the run stays: a baseline may name it.
    """
    connection.execute(delete(ResultRow).where(ResultRow.run_id == run_id))
    connection.execute(delete(TrialRow).where(TrialRow.run_id == run_id))
    connection.execute(update(RunRow).where(RunRow.id == run_id).values(_run_row(source)))


# --- Rows ---


def _run_row(source: _Source) -> dict[str, Any]:
    result = source.result
    told: dict[str, Any] = {
        "finished": None, "pdrgate": "", "profile": "", "testbed": "", "testbed_kind": "", "verdict": None,
        "reason": "", "command": "",
    }  # fmt: skip
    if result is not None:
        told = {
            "finished": result.finished, "pdrgate": result.pdrgate, "profile": result.profile,
            "testbed": result.testbed.name, "testbed_kind": result.testbed.kind, "verdict": result.verdict.value,
            "reason": result.reason, "command": result.command,
        }  # fmt: skip
    where = {"key": source.key, "content": source.content, "name": source.name, "source": str(source.path.resolve())}
    return {**where, "started": source.started, **told}


def _fill(connection: Connection, source: _Source, run_id: int) -> None:
    if source.result is not None:
        scenarios = [(_scenario_row(one), _measured(one), one.comparison) for one in source.result.scenarios]
    else:
        scenarios = [(row, sides, None) for row, sides in _of_trials(source.trials)]
    measured = [one for _, sides, _ in scenarios for one in sides]
    _insert_digests(connection, FingerprintRow, [one.fingerprint for one in measured])
    _insert_digests(connection, EnvironmentRow, [_lasting(one.environment) for one in measured])
    common = {"run_id": run_id, "started": source.started}
    for row, sides, comparison in scenarios:
        result_id = insert_row(connection, ResultRow, row | common)
        for one in sides:
            _insert_side(connection, one, {"result_id": result_id, "started": source.started})
        if comparison is not None:
            insert_all(connection, ChangeRow, _change_rows(comparison, result_id))
    insert_all(connection, TrialRow, (_trial_row(trial, run_id) for trial in source.trials))


def _scenario_row(scenario: ScenarioResult) -> dict[str, Any]:
    return {
        "scenario": scenario.name, "title": scenario.label, "verdict": scenario.verdict.value,
        "reason": scenario.reason, "trials": scenario.trials,
    }  # fmt: skip


def _measured(scenario: ScenarioResult) -> list[_Measured]:
    if scenario.builds.sides:
        return [
            _Measured(
                one.side, one.build, one.findings.fingerprint, one.findings.environment, one.findings.measurands,
                [boot for boot in scenario.builds.boots if boot.side == one.side], one.findings.cost,
            )
            for one in scenario.builds.sides
        ]  # fmt: skip
    found = scenario.findings
    boot = BootResult(
        side="candidate", pair=0, boot=scenario.origin.boot, kernel=found.fingerprint.get("kernel", ""),
        values={one.name: one.value for one in found.measurands}, complaints=found.complaints,
    )  # fmt: skip
    boots = [boot] if scenario.origin.boot else []
    return [_Measured("", "", found.fingerprint, found.environment, found.measurands, boots, found.cost)]


def _of_trials(trials: Sequence[Trial]) -> Iterator[tuple[dict[str, Any], list[_Measured]]]:
    """Trials that nobody judged, by scenario and side."""
    for scenario, sides in _groups(trials).items():
        row = {
            "scenario": scenario,
            "title": "",
            "verdict": None,
            "reason": "",
            "trials": sum(map(len, sides.values())),
        }
        measured = []
        for side, own in sides.items():
            boots = dict.fromkeys((trial.belonging.pair, trial.belonging.boot) for trial in own if trial.belonging.boot)
            found = [BootResult(side="candidate", pair=pair, boot=boot, kernel="") for pair, boot in boots]
            measured.append(_Measured(side, own[0].belonging.build or own[0].belonging.boot, {}, {}, (), found, None))
        yield row, measured


def _groups(trials: Sequence[Trial]) -> dict[str, dict[str, list[Trial]]]:
    groups: dict[str, dict[str, list[Trial]]] = {}
    for trial in trials:
        groups.setdefault(trial.belonging.scenario, {}).setdefault(trial.belonging.side, []).append(trial)
    return groups


def _insert_side(connection: Connection, one: _Measured, common: Mapping[str, Any]) -> None:
    fingerprint, environment = one.fingerprint, _lasting(one.environment)
    kernel = fingerprint.get("kernel") or environment.get("kernel_release")
    side_id = insert_row(connection, SideRow, {
        **common, "side": one.side, "label": one.label,
        "kernel": kernel or next((boot.kernel for boot in one.boots), ""),
        "build": build_digest(fingerprint, one.label) if fingerprint else "",
        "series": series(fingerprint) if fingerprint else "",
        "fingerprint": digest(fingerprint) if fingerprint else None,
        "environment": _digest(environment) if environment else None,
        "cost": None if one.cost is None else _cost(one.cost),
    })  # fmt: skip
    insert_all(connection, MeasurandRow, (
        {
            "side_id": side_id, "name": each.name, "unit": each.unit, "better": each.better, "value": each.value,
            "lower": each.lower, "upper": each.upper, "samples": list(each.samples),
        }
        for each in one.measurands
    ))  # fmt: skip
    insert_all(connection, BootRow, (
        {
            "side_id": side_id, "pair": boot.pair, "boot": boot.boot, "kernel": boot.kernel,
            "values": dict(boot.values), "failure": boot.failure, "complaints": list(boot.complaints),
        }
        for boot in one.boots
    ))  # fmt: skip


def _cost(cost: CostResult) -> dict[str, Any]:
    """What is kept of a cost. Its scenario says what it is of; callers and call trees stay in the run's own file."""
    kept = dataclasses.asdict(cost)
    for name in ("alone", "each", "path", "callers"):
        del kept[name]
    found: dict[str, dict[str, Any]] = {}
    for one in kept["functions"]:  # two modules may have one of the same name, and together they cost what both do
        if one["name"] in found:
            found[one["name"]]["instructions"] += one["instructions"]
            found[one["name"]]["calls"] += one["calls"]
        else:
            found[one["name"]] = {name: one[name] for name in _OF_A_FUNCTION}
    return kept | {"functions": list(found.values())}


def _change_rows(comparison: ComparisonResult, result_id: int) -> Iterator[dict[str, Any]]:
    for one in comparison.changes:
        evidence = one.evidence
        yield {
            "result_id": result_id, "measurand": one.measurand, "against": comparison.baseline,
            "accepted": comparison.accepted, "verdict": one.verdict.value, "change": one.change, "lower": one.lower,
            "upper": one.upper, "confidence": one.confidence, "tolerance": one.tolerance, "pairs": comparison.pairs,
            "deviation": evidence and evidence.deviation, "resolves": evidence and evidence.resolves,
            "slower": evidence and evidence.slower, "faster": evidence and evidence.faster,
        }  # fmt: skip


def _trial_row(trial: Trial, run_id: int) -> dict[str, Any]:
    row = {name: value for name, value in flattened(trial).items() if name not in _NOT_OF_THE_TABLE}
    latency = trial.seen.latency and dataclasses.asdict(trial.seen.latency)
    disturbed = causes_in_words(trial.seen.disturbed)
    return row | {"run_id": run_id, "under_way": list(trial.under_way), "latency": latency, "disturbed": disturbed}


def _lasting(environment: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in environment.items() if key not in _OF_ONE_BOOT}


def _digest(entries: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:12]


def _insert_digests(connection: Connection, table: type[Any], entries: Iterable[Mapping[str, Any]]) -> None:
    """Insert digests in one order for all writers, so that no two wait for each other."""
    of = digest if table is FingerprintRow else _digest
    for key, one in sorted({of(one): one for one in entries if one}.items()):
        insert_new(connection, table, "digest", {"digest": key, "entries": dict(one)})
