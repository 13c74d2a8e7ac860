"""What a run has found so far, on disk: its trials, its result, and what made them."""

from __future__ import annotations

import copy
import functools
import json
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pdrgate import __version__
from pdrgate.errors import DataError, PdrGateError, StorageError
from pdrgate.gate.stored import Stored
from pdrgate.history.address import Address
from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.history.transfers import TransferFile
from pdrgate.history.trials import TRIALS_FILE, TrialFile
from pdrgate.results.environment import in_common
from pdrgate.results.model import SCHEMA, RunResult, ScenarioResult, TestbedResult
from pdrgate.results.verdict import Verdict, gravest
from pdrgate.stability import read_trials
from pdrgate.stability.transfer_files import TRANSFERS_FILE, read_transfers
from pdrgate.transfer import Transfer
from pdrgate.trial import Trial

SPIKE_IN_TRIALS = "spike-in.jsonl"
"""Trials with a slowdown that was planted: nothing that reads the run's own may take them for the build's."""
STEPS_TRIALS = "steps.jsonl"
"""Trials of builds between the two that a bisection has compared."""
FINGERPRINTS_FILE = "fingerprints.json"
"""By digest, the fingerprints of a run's trials: what must be equal for a trial to stand for another."""


class RunRecord:
    """One run's folder; all sessions of a run share it.

    Trials that the folder holds already belong to this run only when it is resumed: each answers for the test that it
    was measured for, once. Else they are another run's, and their file is put aside under another name: nothing that
    was measured is lost, and no old trial stands in for a new one.

    Raises:
        StorageError: the folder cannot be written.
        DataError: the run is to be resumed, and its trials cannot be read.
    """

    def __init__(self, folder: Path, profile: str, *, resume: bool = False, command: str = "") -> None:
        self.folder = folder
        self.resumed = resume
        self._profile = profile
        self._command = command
        self._started = time.time()
        self._scenarios: list[ScenarioResult] = []
        self._failures: list[str] = []
        self._testbed: TestbedResult | None = None
        path = folder / TRIALS_FILE
        self.put_aside = None if resume else _put_aside(path)
        """Where another run's trials were put; None where there were none."""
        self.trials = TrialFile(path)
        self.earlier = Stored[Trial](read_trials(path) if resume and path.stat().st_size else ())
        """The trials of the run that is resumed."""
        path = folder / TRANSFERS_FILE
        if not resume:
            _put_aside(path)
        self._transfers = TransferFile(path) if path.exists() else None
        self.earlier_transfers = Stored[Transfer](read_transfers(path))
        """The same of transfers."""
        self._fingerprints: dict[str, dict[str, str]] = read_fingerprints(folder) if resume else {}
        self._spike_in: Self | None = None

    @property
    def spike_in(self) -> Self:
        """The same for what is measured with a planted slowdown: its trials have a file of their own.

        Raises as the record itself does, when it is first asked for.
        """
        if self._spike_in is None:
            other = copy.copy(self)
            path = self.folder / SPIKE_IN_TRIALS
            other.put_aside = None if self.resumed else _put_aside(path)
            other.trials = TrialFile(path)
            other.earlier = Stored[Trial](read_trials(path) if self.resumed and path.stat().st_size else ())
            self._spike_in = other
        return self._spike_in

    @functools.cached_property
    def steps(self) -> Self:
        """The same for builds that are measured beside those that the run is about. Raises as the record itself."""
        other = copy.copy(self)
        other.trials = TrialFile(self.folder / STEPS_TRIALS)
        other.earlier = Stored[Trial]()
        return other

    @property
    def transfers(self) -> TransferFile:
        """Where transfers go; made with the first of them. Raises StorageError."""
        if self._transfers is None:
            self._transfers = TransferFile(self.folder / TRANSFERS_FILE)
        return self._transfers

    @property
    def scenarios(self) -> tuple[ScenarioResult, ...]:
        """Those that have ended, in the order in which they did."""
        return tuple(self._scenarios)

    def introduce(self, testbed: TestbedResult) -> None:
        """Note the first testbed, and what it says of itself once it is open."""
        if self._testbed is None or not self._testbed.sentence:
            self._testbed = testbed

    def note_fingerprint(self, digest: str, fingerprint: Mapping[str, str]) -> None:
        """Put a fingerprint on disk before the first trial that it made. Raises StorageError."""
        if digest in self._fingerprints:
            return
        self._fingerprints[digest] = dict(fingerprint)
        path = self.folder / FINGERPRINTS_FILE
        try:
            path.write_text(json.dumps(self._fingerprints, indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}; make room there and run again") from error

    def fingerprint(self, digest: str) -> Mapping[str, str]:
        """The fingerprint of that digest; empty when it was never noted."""
        return self._fingerprints.get(digest, {})

    def add(self, scenario: ScenarioResult) -> None:
        """Add what a scenario came to, and write result.json."""
        self._scenarios.append(scenario)
        self.write()

    def fail(self, reason: str) -> None:
        """Note that something failed before a scenario could be measured: the run is an ERROR, or worse."""
        self._failures.append(reason)
        self.write()

    def result(self, finished: bool = False) -> RunResult:
        """What is known by now."""
        found = [(one.verdict, one.reason) for one in self._scenarios]
        found += [(Verdict.ERROR, reason) for reason in self._failures]
        verdict = gravest(each for each, _ in found)
        reasons = [reason for each, reason in found if each is verdict]
        return RunResult(
            schema=SCHEMA,
            pdrgate=__version__,
            run=self.folder.name,
            started=self._started,
            finished=time.time() if finished else None,
            profile=self._profile,
            testbed=self._testbed or TestbedResult(name="", kind=""),
            environment=in_common(self._scenarios),
            verdict=verdict,
            reason=reasons[0] if reasons else "nothing was measured",
            scenarios=self.scenarios,
            command=self._command,
        )

    def write(self, finished: bool = False) -> None:
        """Write result.json. Raises StorageError."""
        write_result(self.folder / RESULT_FILE, self.result(finished))

    def close(self) -> None:
        """End writing trials; may be called twice."""
        self.trials.close()
        if self._transfers is not None:
            self._transfers.close()
        if self._spike_in is not None:
            self._spike_in.trials.close()
        if "steps" in self.__dict__:
            self.steps.trials.close()


def not_in_history(where: Address, folder: Path, patience: float = 30.0) -> str:
    """Put the run in ``folder`` into the history, in one transaction; why it is not there, empty when it is.

    It was measured, judged and stored before: a history that cannot take it changes nothing of that.

    Args:
        patience: seconds to wait for another program that writes to it.
    """
    from pdrgate.history.database.connection import Database  # SQLAlchemy: most runs do without
    from pdrgate.history.database.importing import add

    try:
        with Database.open(where, create=True, patience=patience) as history, history.writing() as connection:
            add(connection, folder)
    except PdrGateError as error:
        again = f"pdrgate history import {shlex.quote(str(folder))} --history {shlex.quote(where.text)}"
        return f"the run is complete in its folder and not in the history; put it in later: {again} ({error})"
    return ""


def _put_aside(path: Path) -> Path | None:
    try:
        if not path.stat().st_size:
            return None
        number = 1
        while (aside := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
            number += 1
        path.rename(aside)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot put {path} aside: {error.strerror}; choose another folder with --output") from error
    return aside


def read_fingerprints(folder: Path) -> dict[str, dict[str, str]]:
    """By digest, the fingerprints of the trials of the run in ``folder``; nothing where there are none.

    Raises:
        DataError: they cannot be read.
    """
    path = folder / FINGERPRINTS_FILE
    try:
        found = json.loads(path.read_text())
        return {str(digest): dict(fingerprint) for digest, fingerprint in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise DataError(f"cannot go on from {folder}: {path} cannot be read ({error}); start a new run") from error
