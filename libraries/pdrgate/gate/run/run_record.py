"""What a run has found so far, on disk: its trials, its result, and what made them."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pdrgate import __version__
from pdrgate.gate.run.pairs_file import PAIRS_FILE, PairsFile
from pdrgate.gate.run.resumed_run import EarlierTrials
from pdrgate.gate.run.selection_file import read_selection, write_selection
from pdrgate.history.address import Address
from pdrgate.history.results import RESULT_FILE, GrowingResult
from pdrgate.history.trials import TRIALS_FILE, TrialFile
from pdrgate.history.whole_file import write_whole
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.results.acknowledgement import Acknowledgement, day_of
from pdrgate.results.acknowledging import acknowledged, states
from pdrgate.results.merging import in_common
from pdrgate.results.model import SCHEMA, LeftOutPath, RunResult, ScenarioResult, TestbedResult
from pdrgate.results.verdict import ALL_ACKNOWLEDGED, Verdict, gravest_verdict
from pdrgate.stability import read_trials
from pdrgate.values.errors import DataError, PdrGateError, StorageError

SPIKE_IN_TRIALS = "spike-in.jsonl"
"""Trials with a slowdown that was planted: nothing that reads the run's own may take them for the build's."""
SPIKE_IN_PAIRS = "spike-in-pairs.jsonl"
"""The pairs of boots of these trials."""
SPIKE_IN_FILE = "spike-in.json"
"""What was planted, by test and scenario: a run that is resumed goes on with the same."""
STEPS_TRIALS = "steps.jsonl"
"""Trials of builds between the two that a bisection has compared."""
SEVERAL_CPUS_TRIALS = "several-cpus.jsonl"
"""Trials on guests of several CPUs."""
FINGERPRINTS_FILE = "fingerprints.json"
"""The fingerprints of a run's trials, by digest: what must be equal for a trial to stand for another."""
GOES_ON_FROM = (
    TRIALS_FILE, PAIRS_FILE, SPIKE_IN_TRIALS, SPIKE_IN_PAIRS, SPIKE_IN_FILE, STEPS_TRIALS, SEVERAL_CPUS_TRIALS,
    FINGERPRINTS_FILE,
)  # fmt: skip
"""All that a run measures, and what made it."""


class RunRecord:
    """A run's folder, which all sessions of the run share.

    What the folder holds already belongs to this run only when it is resumed: it is read before anything is added, and
    answers for the test that it was measured for, once. Else it is another run's, and its files are put aside under
    other names: nothing that was measured is lost, and no old trial stands in for a new one.

    Raises:
        StorageError: the folder cannot be written.
        DataError: the run is to be resumed, and its trials cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        profile: str,
        *,
        resume: bool = False,
        command: str = "",
        commit: str = "",
        acknowledgements: Sequence[Acknowledgement] = (),
    ) -> None:
        self.folder = folder
        self.resumed = resume
        self.profile = profile
        self._command = command
        self._commit = commit
        self._acknowledgements = tuple(acknowledgements)
        self._started = time.time()
        self._scenarios: list[ScenarioResult] = []
        self._failures: list[str] = []
        self._left_out: list[LeftOutPath] = []
        self._held = False
        self._result = GrowingResult(folder / RESULT_FILE)
        self._testbed: TestbedResult | None = None
        self.put_aside = None if resume else _put_aside(folder)
        """Folder into which another run's trials, or what else it left, were put; None where there was nothing."""
        self._pairs: PairsFile | None = None
        self._measure_into(TRIALS_FILE, PAIRS_FILE)
        self._fingerprints: dict[str, dict[str, str]] = read_fingerprints(folder) if resume else {}
        self._noting = threading.Lock()
        self.selection = read_selection(folder)
        """The paths that are measured because their code differs; None: all that were asked for."""

    def leaves_out(self, scenario: str) -> bool:
        """Whether the scenario's path runs the same code in both builds, and nothing shows that the selection erred."""
        chosen = None if self.selection is None else self.selection.of(scenario)
        return chosen is not None and not chosen.is_measured and not self.audit_failed

    def note_affected(self, scenario: str, variables: tuple[str, ...] | None) -> None:
        """Note that a path is to be measured after all: variables have other values, or nobody knows (None)."""
        if self.selection is not None:
            self.selection = self.selection.with_affected(scenario, variables)
            write_selection(self.folder, self.selection)

    @property
    def audit_failed(self) -> bool:
        """Whether a path is worse that was measured though it runs the same code in both builds."""
        return self.selection is not None and bool(self.selection.failed_audits(self._verdicts()))

    def _verdicts(self) -> dict[str, Verdict]:
        return {one.name: one.verdict for one in self._scenarios}

    @functools.cached_property
    def spike_in(self) -> Self:
        """Record of what is measured with a planted slowdown: its trials and pairs have files of their own.

        Raises as the record itself does, when it is first asked for.
        """
        other = copy.copy(self)
        other._measure_into(SPIKE_IN_TRIALS, SPIKE_IN_PAIRS)
        return other

    @functools.cached_property
    def steps(self) -> Self:
        """Record of builds that are measured beside those that the run is about. Raises as the record itself does."""
        return self._beside(STEPS_TRIALS)

    @functools.cached_property
    def several_cpus(self) -> Self:
        """Record of guests of several CPUs that are measured once beside the pairs.

        Raises as the record itself does.
        """
        return self._beside(SEVERAL_CPUS_TRIALS)

    def _beside(self, trials: str) -> Self:
        """A record that has a file of trials of its own, and goes on with no earlier ones."""
        other = copy.copy(self)
        other.trials = TrialFile(self.folder / trials)
        other.earlier = EarlierTrials()
        return other

    @property
    def run(self) -> str:
        """Name of the run that no other run has, not even one that lay in its folder before."""
        number = _free_number(self.folder)
        return f"{self.folder.resolve()}{f' ({number})' if number > 1 else ''}"

    @property
    def pairs(self) -> PairsFile:
        """The file of the pairs of boots, with those of the run that is resumed; the first comparison makes it.

        Raises:
            StorageError: it cannot be written.
            DataError: the run is to be resumed, and it is damaged.
        """
        if self._pairs is None:
            self._pairs = PairsFile(self._pairs_file, resumed=self.resumed)
        return self._pairs

    @property
    def scenarios(self) -> tuple[ScenarioResult, ...]:
        """The scenarios that have ended, in the order in which they did."""
        return tuple(self._scenarios)

    def introduce(self, testbed: TestbedResult) -> None:
        """Note the first testbed, and what it says of itself once it is open."""
        if self._testbed is None or not self._testbed.sentence:
            self._testbed = testbed

    def note_fingerprint(self, digest: str, fingerprint: Mapping[str, str]) -> None:
        """Put a fingerprint on disk before the first trial that it made. Raises StorageError.

        SUTs that are measured side by side may ask at once.
        """
        with self._noting:
            if digest in self._fingerprints:
                return
            self._fingerprints[digest] = dict(fingerprint)
            write_whole(self.folder / FINGERPRINTS_FILE, f"{json.dumps(self._fingerprints, indent=1)}\n".encode())

    def fingerprint(self, digest: str) -> Mapping[str, str]:
        """The fingerprint of that digest; empty when it was never noted."""
        return self._fingerprints.get(digest, {})

    def add(self, scenario: ScenarioResult) -> None:
        """Add what a scenario came to, and write result.json."""
        self._scenarios.append(acknowledged(scenario, self._acknowledgements, day_of(self._started)))
        self.write()

    def fail(self, reason: str, *, path: str | None = None, held: bool = False) -> None:
        """Note that something failed before a scenario could be measured: the run is an ERROR, or worse.

        Args:
            path: the name of the test that was not measured for it; None where it is no single test.
            held: whether it was that others had what the run needs.
        """
        self._failures.append(reason)
        self._held |= held
        if path is not None:
            self._left_out.append(LeftOutPath(path=path, reason=reason, is_fault=True))
        self.write()

    def leave_out(self, path: str, reason: str) -> None:
        """Note that a path cannot be measured with either build."""
        self._left_out.append(LeftOutPath(path=path, reason=reason))
        self.write()

    def result(self, finished: bool = False) -> RunResult:
        """What is known by now."""
        counting = [one for one in self._scenarios if not one.details.acknowledged]
        found = [(one.verdict, one.reason) for one in counting]
        if self._scenarios and not counting:
            found.append((Verdict.PASS, ALL_ACKNOWLEDGED))
        found += [(Verdict.ERROR, reason) for reason in self._failures]
        chosen = self.selection
        if chosen is not None and not found and finished and not any(one.is_measured for one in chosen.paths):
            found = [(Verdict.PASS, f"all {len(chosen.paths)} paths run the same code in both builds")]
        verdict = gravest_verdict(each for each, _ in found)
        decisive = decisive_scenario(self._scenarios)
        first = [decisive.reason] if decisive is not None and decisive.verdict is verdict else []
        reasons = [*first, *(reason for each, reason in found if each is verdict)]
        return RunResult(
            schema=SCHEMA,
            pdrgate=__version__,
            run=self.folder.name,
            started=self._started,
            finished=time.time() if finished else None,
            profile=self.profile,
            testbed=self._testbed or TestbedResult(name="", kind=""),
            environment=in_common(self._scenarios),
            verdict=verdict,
            reason=reasons[0] if reasons else "nothing was measured",
            left_out=tuple(self._left_out),
            acknowledged=states(self._acknowledgements, self._scenarios, day_of(self._started)),
            scenarios=self.scenarios,
            command=self._command,
            commit=self._commit,
            held=self._held,
            selection=chosen,
        )

    def write(self, finished: bool = False) -> None:
        """Write result.json. Raises StorageError."""
        self._result.write(self.result(finished))

    def close(self) -> None:
        """End writing trials; may be called twice."""
        beside = (self.__dict__.get(name) for name in ("spike_in", "steps", "several_cpus"))
        for part in (self, *(one for one in beside if one is not None)):
            for file in (part.trials, part._pairs):
                if file is not None:
                    file.close()

    def _measure_into(self, trials: str, pairs: str) -> None:
        """Let trials and pairs of boots go into files of these names, after those that are there already."""
        path = self.folder / trials
        self.trials = TrialFile(path)
        self.earlier = EarlierTrials(read_trials(path) if self.resumed and path.stat().st_size else ())
        """Trials of the run that is resumed; none in a new run."""
        self._pairs_file = self.folder / pairs
        self._pairs = None


def not_in_history(where: Address, folder: Path, patience: float = 30.0) -> str:
    """Put the run in ``folder`` into the history, in one transaction; why it is not there, empty when it is.

    It was measured, judged and stored before: a history that cannot take it changes nothing of that.

    Args:
        patience: seconds to wait for another program that writes to it.
    """
    if not (folder / RESULT_FILE).exists():
        return ""  # that there is no result, and why, is reported elsewhere
    from pdrgate.history.database.connection import Database  # SQLAlchemy: most runs do without
    from pdrgate.history.database.importing import add

    try:
        with Database.open(where, create=True, patience=patience) as history, history.writing() as connection:
            add(connection, folder)
    except PdrGateError as error:
        again = f"pdrgate history import {shlex.quote(str(folder))} --history {shlex.quote(where.text)}"
        return f"the run is complete in its folder and not in the history; put it in later: {again} ({error})"
    return ""


def _put_aside(folder: Path) -> Path | None:
    """Give what another run measured names of their own, all with one number; the first of them, if there is any."""
    number, found = _free_number(folder), []
    for path in (folder / name for name in GOES_ON_FROM):
        try:
            if path.stat().st_size:
                found.append(path.rename(_aside(path, number)))
        except FileNotFoundError:
            continue
        except OSError as error:
            why = f"cannot put {path} aside: {error.strerror}; choose another folder with --output"
            raise StorageError(why) from error
    return found[0] if found else None


def _free_number(folder: Path) -> int:
    """The first that nothing was put aside with."""
    names = [folder / name for name in GOES_ON_FROM]
    return next(number for number in itertools.count(1) if not any(_aside(one, number).exists() for one in names))


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def read_fingerprints(folder: Path) -> dict[str, dict[str, str]]:
    """The fingerprints of the run in ``folder``, by digest; nothing where it has none.

    Raises:
        DataError: they cannot be read.
    """
    path = folder / FINGERPRINTS_FILE
    try:
        found = json.loads(path.read_text())
        return {str(digest): dict(fingerprint) for digest, fingerprint in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise DataError(f"cannot go on from {folder}: {path} cannot be read ({error}); start a new run") from error
