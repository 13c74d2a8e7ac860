#!/usr/bin/env python3
"""Stored runs judged again, without a testbed: each judged value, interval and verdict with all its digits.

    PYTHONPATH=libraries .venv/bin/python tests/bench/replayed_runs.py RUN…

RUN is the folder of a finished run, or a folder of such. The code of the tree that this file lies in reads the result,
writes it again, looks for contradictions, compares both sides of each scenario from the stored trials and transfers,
assesses them, and renders the reports for programs. Two trees judge alike where `diff` finds no difference between
what they print. It takes seconds for a run of a few paths.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "libraries"))

from click.testing import CliRunner  # noqa: E402

from pdrgate.cli import cli  # noqa: E402
from pdrgate.gate.run.run_record import FINGERPRINTS_FILE  # noqa: E402
from pdrgate.history.results import RESULT_FILE, encoded, read_result  # noqa: E402
from pdrgate.results.consistency import contradictions  # noqa: E402

MEASURED = ("trials.jsonl",)

EXPORTS = ("markdown", "benchstat", "openmetrics", "sentence")


class Belonging(msgspec.Struct):
    """What a line of a file of trials or transfers belongs to."""

    scenario: str = ""
    test: str = ""


def leaves(value: Any, place: str) -> Iterator[str]:
    """Each number and text of a decoded JSON value, one a line, with its place."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key], f"{place}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{number}]")
    else:
        yield f"{place} = {value!r}"


def command(*words: str) -> Iterator[str]:
    """What a command of pdrgate prints, as leaves where it is JSON, and its exit code."""
    ended = CliRunner().invoke(cli, words)
    said = f"pdrgate {' '.join(words)}"
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        yield f"{said}: {type(ended.exception).__name__}: {ended.exception}"
        return
    yield f"{said}: exit code {ended.exit_code}"
    try:
        yield from leaves(msgspec.json.decode(ended.stdout), "  ")
    except msgspec.DecodeError:
        yield from (f"  {line}" for line in ended.stdout.splitlines())


def measurements(file: Path) -> Iterator[list[bytes]]:
    """The lines of a file of trials or transfers, by the scenario and the test that they belong to."""
    found: dict[tuple[str, str], list[bytes]] = {}
    for line in file.read_bytes().splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            record = msgspec.json.decode(line, type=Belonging)
            found.setdefault((record.scenario, record.test), []).append(line)
    yield from found.values()


def judged_again(run: Path, lines: Sequence[bytes], name: str) -> Iterator[str]:
    """One measurement in a folder of its own, assessed, and compared with itself, side by side."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(name).write_bytes(b"\n".join([*lines, b""]))
        if (run / FINGERPRINTS_FILE).is_file():
            Path(FINGERPRINTS_FILE).write_bytes((run / FINGERPRINTS_FILE).read_bytes())
        yield from command("assess", name, "--format", "json")
        yield from command("compare", name, name, "--format", "json")


def replayed(run: Path) -> Iterator[str]:
    """Everything that the code of this tree makes of a stored run."""
    result = read_result(run)
    yield f"result.json read and written again: sha256 {hashlib.sha256(encoded(result)).hexdigest()}"
    yield from (f"contradiction: {one}" for one in contradictions(result))
    for scenario in msgspec.json.decode(encoded(result))["scenarios"]:
        judged = {key: scenario.get(key) for key in ("verdict", "reason", "pdr", "comparison", "measurands")}
        yield from leaves(judged, scenario["name"])
    for form in EXPORTS:
        yield from command("report", str(run), "--format", form)
    for file in (run / name for name in MEASURED):
        if not file.is_file() or not file.stat().st_size:
            continue
        for lines in measurements(file):
            yield from judged_again(run, lines, file.name)


def runs(places: Sequence[str]) -> Iterator[Path]:
    """The folders of runs at or below the places, each once."""
    found = (one.parent for place in places for one in sorted(Path(place).rglob(RESULT_FILE)))
    yield from dict.fromkeys(one.resolve() for one in found)


def main() -> int:
    count = 0
    for run in runs(sys.argv[1:]):
        count += 1
        sys.stdout.write(f"=== {run.name}\n")
        sys.stdout.writelines(f"{line}\n" for line in replayed(run))
    if not count:
        sys.stderr.write("replayed_runs.py: no result.json at or below these places; name the folder of a run\n")
    return 0 if count else 64


if __name__ == "__main__":
    sys.exit(main())
