"""Judges a known change by the gate, asks what it touches, and keeps both."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from known_change import KnownChange
from outcome import Kept, kept_file
from planting import planted

from pdrgate.history.address import Address
from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNDECIDED

PDRGATE = Path(sys.executable).parent / "pdrgate"
_ANSWERS = (EXIT_PASS, EXIT_FAIL, EXIT_UNDECIDED)
"""Exit codes of a gate that judged the builds, or came to no decision. Others are the machine's fault, or an
interruption, and say nothing of the change."""


def judged(
    change: KnownChange,
    tree: Path,
    base: str,
    results: Path,
    more: Sequence[str],
    *,
    again: bool,
    program: Path = PDRGATE,
) -> str:
    """Judge a change where that is not done yet, and keep it; what came of it, in a line. Raises PlantingError."""
    commit = planted(tree, base, change)
    candidate, baseline = (base, commit) if change.side == "baseline" else (commit, base)
    known = Kept.read(kept_file(results, change))
    if known is not None and (known.candidate, known.baseline) == (candidate, baseline) and not again:
        return "is kept"
    folder = results / change.name
    before = _runs(folder)
    builds = (f"{tree}@{candidate}", f"{tree}@{baseline}")
    begun = time.monotonic()
    command = (
        str(program), "gate", "--quiet", "--wait", "1 h", "--output", str(folder), "--kernel", builds[0],
        "--against", builds[1], *more,
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    runs = _runs(folder)
    told = next((line for line in (done.stdout + done.stderr).splitlines() if line.strip()), "nothing told")
    if not runs or done.returncode not in _ANSWERS:
        return f"exit {done.returncode}: {told}"
    touched = touched_paths(builds[1], builds[0], folder, program)
    if touched is not None and done.returncode == EXIT_FAIL and not all(touched.values()):
        touched = {**touched, **touched_at_boot(builds[1], builds[0], folder, more, program)}
    Kept(candidate, baseline, seconds, runs[-1], touched).write(kept_file(results, change))
    return f"{told} ({seconds:.0f} s{', the same run' if runs[-1] in before else ''})"


def touched_paths(baseline: str, candidate: str, runs: Path, program: Path = PDRGATE) -> Mapping[str, list[str]] | None:
    """What differs of the code of each path that ran on the baseline, by `pdrgate affected`; None where it fails.

    Args:
        runs: the folder of runs, whose history says what the baseline runs on a path.
    """
    command = (
        str(program),
        "affected",
        baseline,
        candidate,
        "--history",
        Address.beside(runs).text,
        "--format",
        "json",
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != EXIT_PASS:
        return None
    paths = json.loads(done.stdout)["paths"]
    return {one["path"]: [*one["functions"], *one["variables"]] for one in paths if one["known"]}


def touched_at_boot(
    baseline: str, candidate: str, runs: Path, more: Sequence[str], program: Path = PDRGATE
) -> Mapping[str, list[str]]:
    """What differs of each path that `--paths affected` selects, which looks at values after boot, too.

    Args:
        runs: the folder of runs, whose history says what the baseline runs on a path.
        more: options of the gate, which say which paths are asked for.
    """
    folder = runs / f"boot-{candidate[-12:]}"
    command = (
        str(program), "gate", "--quiet", "--wait", "1 h", "--paths", "affected", "--history", Address.beside(runs).text,
        "--output", str(folder), "--kernel", candidate, "--against", baseline, *more,
    )  # fmt: skip
    subprocess.run(command, capture_output=True, text=True, check=False)
    selection = read_result(folder / _runs(folder)[-1]).selection if _runs(folder) else None
    paths = selection.paths if selection is not None else ()
    return {one.path: [*one.functions, *one.variables] for one in paths if one.reason == "affected"}


def _runs(folder: Path) -> list[str]:
    """The names of the runs there, the last one last; a link to a run is none."""
    return sorted(path.parent.name for path in folder.glob(f"*/{RESULT_FILE}") if not path.parent.is_symlink())
