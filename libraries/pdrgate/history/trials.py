"""The trial file of a run: every trial is on disk before the next one starts."""

from __future__ import annotations

from pdrgate.history.lines import LineFile
from pdrgate.record.trial import Trial

TRIALS_FILE = "trials.jsonl"


class TrialFile(LineFile):
    """Appends trials to ``trials.jsonl``, one line of JSON each."""

    def append(self, trial: Trial) -> None:
        """Write one trial; when this returns, it is on disk."""
        self.append_line(trial.to_json())
