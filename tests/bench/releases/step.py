"""A release compared with the one before it: a run of the gate, kept where it is finished."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.results.model import RunResult
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNDECIDED

_PDRGATE = Path(sys.executable).parent / "pdrgate"
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?")
_FINISHED = (EXIT_PASS, EXIT_FAIL, EXIT_UNDECIDED)
"""Exit codes of a gate that judged the candidate, or came to no decision."""
_MEASURED = "measured"
"""A file that a run's folder has once its gate has ended by itself: an interrupted one leaves a result as well."""


@dataclass(frozen=True, slots=True)
class Step:
    """Two kernels, and the folder that runs of all steps are below."""

    results: Path
    baseline: str
    candidate: str

    @property
    def label(self) -> str:
        """Both releases: ``7.2.12 -> 7.3.4``."""
        return f"{release(self.baseline)} -> {release(self.candidate)}"

    @property
    def folder(self) -> Path:
        """The folder of this step's runs."""
        return self.results / f"{release(self.baseline)}-{release(self.candidate)}"

    def result(self) -> RunResult | None:
        """The result of the newest finished run; None where there is none."""
        runs = sorted(path.parent for path in self.folder.glob(f"2*/{_MEASURED}"))
        found = (read_result(run) for run in reversed(runs))
        return next((one for one in found if one.finished is not None and not one.held), None)

    def measured(self, options: Sequence[str]) -> str:
        """Measure the step where that has not been done, and return the first line of the answer."""
        known = self.result()
        if known is not None:
            return f"{known.verdict}: {known.reason} (kept)"
        begun = sorted(path.parent for path in self.folder.glob(f"2*/{TRIALS_FILE}"))
        command = [str(_PDRGATE), "gate", "--quiet"]
        if begun:
            command += ["--resume", str(begun[-1])]
        else:
            command += ["--wait", "1 h", "--output", str(self.folder), "--afresh"]
            command += ["--kernel", self.candidate, "--against", self.baseline, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        answer = lines[0] if lines else "no answer"
        if done.returncode not in _FINISHED:
            return f"exit {done.returncode}: {answer}"
        (max(self.folder.glob(f"2*/{RESULT_FILE}")).parent / _MEASURED).touch()
        return answer


def release(build: str) -> str:
    """The release that a build's name says, ``7.3.4``; the whole name where it says none."""
    found = _RELEASE.search(build.rstrip("/").rpartition("/")[2])
    return found[0] if found else build
