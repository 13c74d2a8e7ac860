"""Trials from files: our ``trials.jsonl`` and the two formats of PASTRAMI's published results.

Ours has one Trial per line and may end in a line that a killed run did not finish. Theirs has one line per load:
``[[load, rx_discards], [tx, rx, …], [tx, rx, …], …]``, one ``[tx, rx, …]`` per run; what follows tx and rx is not read.
They record no intended count, so a generator's shortfall cannot be seen in their files: tx is the offered count. The
first character of a file shows its format.
"""

from __future__ import annotations

import codecs
import functools
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pdrgate.record.phase import OF_CURVE, Phase
from pdrgate.record.stretch import Belonging, Occasion
from pdrgate.record.trial import GENERATOR_TOLERANCE, Trial
from pdrgate.stability.experiments import experiments
from pdrgate.this_process.no_follow import regular_no_follow
from pdrgate.values.errors import DataError

_OURS = "trials.jsonl"
_DEFAULT_SECONDS = 10.0
_SHOWN = 40
_LARGEST_COUNT = 2**64


_LARGEST = 1 << 30
"""Bytes of a file of trials."""


@dataclass(frozen=True, slots=True)
class TrialsRead:
    """Trials of a file, in measured order."""

    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = ()
    """Notes for a reader of the trials."""
    published: bool = False
    """Whether the file is one of PASTRAMI's. They name no scenario, which is guessed from the file's name."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """The trials of one scenario and boot, or of one side of a comparison of builds over its boots, in measured order,
    and what a reader should know about them."""

    source: str
    trials: tuple[Trial, ...]
    scenario: str = ""
    boot: str = ""
    notes: tuple[str, ...] = ()

    @property
    def closed_loop(self) -> bool:
        """The kind of its trials, see `Trial.closed_loop`."""
        return self.trials[0].closed_loop


def expand(paths: Iterable[Path], report: Callable[[str], None] = lambda sentence: None) -> list[Path]:
    """Replace each directory by the files of trials below it, sorted: ours, and PASTRAMI's ``*.txt``.

    An empty file is left out if there are others: a run leaves one that was killed before its first trial had ended.

    Args:
        report: gets a sentence on each file that is left out.

    Raises:
        DataError: a directory has no such file or cannot be read, or no file holds anything.
    """
    named = [below for path in paths for below in (_below(path) if path.is_dir() else [path])]
    full = [file for file in named if not _holds_nothing(file)]
    if not full and (folder := next((path for path in paths if path.is_dir()), None)) is not None:
        raise DataError(f"{folder}: every file of trials in this directory is empty; name one that is not")
    for file in named:
        if full and file not in full:
            report(f"{file} is empty; left out")
    return full or named


def _below(folder: Path) -> list[Path]:
    """A directory may have texts of others, such as the console of a run."""
    found = [file for file in folder.rglob("*") if file.name == _OURS or (file.suffix == ".txt" and is_published(file))]
    if not found:
        raise DataError(f"{folder}: no {_OURS} or *.txt of PASTRAMI's in this directory; name a file of trials")
    return sorted(found)


def is_published(file: Path) -> bool:
    """Whether a text file may be one of PASTRAMI's: lists, from its first character on."""
    try:
        with _opened(file) as stream:
            return stream.read(64).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[[")
    except OSError:
        return file.is_file()  # whoever reads it says why it cannot be read


def _holds_nothing(file: Path) -> bool:
    """Whether there is no whole line in it; False of one that cannot be read, for whoever reads it says so."""
    try:
        with _opened(file) as stream:
            first = next((line for line in stream if line.strip()), b"")
    except OSError:
        return False
    if not first or first.endswith(b"\n"):
        return not first
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return file.name == _OURS  # the write that a kill interrupted
    return False


def read_experiments(path: Path) -> list[Experiment]:
    """Every experiment in one file, in order of appearance.

    Of our trials, those of the curve (phases ``repeat`` and ``past``) are taken where an experiment has any, else all
    of them. Trials of two builds, or of two comparisons of builds, are two experiments, and so are those of two boots,
    unless builds were compared over boots: see `experiments`.

    Raises:
        DataError: the file cannot be read or is not trials; the message names file, line and what belongs there.
    """
    read = read_file(path)
    found = [(name, members, curve) for name, members in experiments(read.trials) if (curve := _of_the_curve(members))]
    if not found:
        raise DataError(f"{path}: in none of its trials was anything sent; name a file of others")
    return [
        Experiment(
            f"{path} ({name})" if len(found) > 1 and name else str(path),
            curve, members[0].belonging.scenario, members[0].belonging.boot, read.notes,
        )
        for name, members, curve in found
    ]  # fmt: skip


def _of_the_curve(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials that an experiment is assessed by: of a closed loop all."""
    repeats = tuple(trial for trial in trials if trial.occasion.phase in OF_CURVE)
    if repeats and not repeats[0].closed_loop:
        return repeats
    return tuple(trial for trial in trials if trial.occasion.phase != Phase.IDLE)


def read_trials(path: Path) -> list[Trial]:
    """Every trial in one file, of all experiments and phases, in order of appearance.

    Raises:
        DataError: as ``read_experiments``.
    """
    return list(read_file(path).trials)


def read_file(path: Path) -> TrialsRead:
    """All of one file.

    Raises:
        DataError: as ``read_experiments``.
    """
    text = _text(path)
    return _published(path, text) if text.lstrip().startswith("[") else _ours(path, text)


def _text(path: Path) -> str:
    try:
        with _opened(path) as stream:
            content = stream.read()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; name a file of trials, or a directory of such files") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory; name a file of trials in it") from None
    except PermissionError:
        raise DataError(f"{path}: no permission to read it; a file of trials belongs there") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    content = content.removeprefix(codecs.BOM_UTF8)  # some editors begin a file with it
    if not content.strip():
        raise DataError(f"{path}: is empty; it should hold one line of JSON per trial or per load")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        _binary(path, content, error.start)
    if "\0" in text:
        _binary(path, content, content.index(0))
    return text


def _binary(path: Path, content: bytes, position: int) -> NoReturn:
    line = content.count(b"\n", 0, position) + 1
    raise DataError(f"{path}, line {line}: binary data; it should hold one line of JSON per trial or per load")


def _ours(path: Path, text: str) -> TrialsRead:
    trials: list[Trial] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fail = _failer(path, number)
        try:
            record = _json(line)
        except ValueError as error:
            # Only the write that a kill interrupted leaves a line without its newline.
            if number == len(lines) and trials:
                note = f"{path}, line {number}: torn by a kill while it was written; left out"
                return TrialsRead(tuple(trials), (note,))
            fail(f"it is not JSON ({_reason(error)}); a trial object {{…}} belongs there")
        if not isinstance(record, dict):
            fail(f"{_shown(record)}: a trial object {{…}} belongs there")
        try:
            trial = Trial.from_mapping(record)
        except (ValueError, OverflowError) as error:
            fail(f"{error}; a trial belongs there")
        if max(trial.offered, trial.forwarded, trial.unsent) > _LARGEST_COUNT:
            fail("a count is beyond 64 bits; a trial belongs there")
        rested = trial.occasion.phase == Phase.IDLE
        if not 0 < trial.intended_load <= _LARGEST_COUNT and not rested and not trial.closed_loop:
            fail(f"intended_load is {trial.intended_load!r}: a load above 0 packets/s belongs there")
        if trial.intended_duration <= 0:
            fail(f"intended_duration is {trial.intended_duration!r}: a time above 0 s belongs there")
        if trial.offered == 0 and not trial.generator_limited and not rested and not trial.closed_loop:
            fail("offered is 0 and so is unsent: a count above 0 belongs in one of them")
        trials.append(trial)
    return TrialsRead(tuple(trials))


def _published(path: Path, text: str) -> TrialsRead:
    seconds = _seconds(path.name)
    scenario = _scenario(path.name)
    trials: list[Trial] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        fail = _failer(path, number)
        try:
            row = _json(line)
        except ValueError as error:
            fail(f"it is not JSON ({_reason(error)}); [[load, discards], [tx, rx, …], …] belongs there")
        load, runs = _row(row, fail)
        for run, counts in enumerate(runs, 1):
            offered, forwarded = _counts(counts, run, fail)
            trials.append(
                Trial(
                    intended_load=load,
                    intended_duration=seconds,
                    offered=offered,
                    forwarded=forwarded,
                    sending_time=seconds,
                    belonging=Belonging(scenario=scenario, boot=path.stem),
                    occasion=Occasion(phase=Phase.REPEAT),
                )
            )
    return TrialsRead(tuple(trials), _shortfall(trials), published=True)


def _row(row: Any, fail: Callable[[str], NoReturn]) -> tuple[float, list[Any]]:
    if not (isinstance(row, list) and row and isinstance(row[0], list) and row[0]):
        fail(f"{_shown(row)}: [[load, discards], [tx, rx, …], …] belongs there")
    load = row[0][0]
    if not _is_number(load) or not 0 < load <= _LARGEST_COUNT:
        fail(f"the load is {_shown(load)}: a number of packets/s above 0 belongs there")
    if len(row) == 1:
        fail(f"no runs at load {_shown(load)}: at least one [tx, rx, …] belongs after it")
    return float(load), row[1:]


def _counts(counts: Any, run: int, fail: Callable[[str], NoReturn]) -> tuple[int, int]:
    if not (isinstance(counts, list) and len(counts) >= 2):
        fail(f"run {run} is {_shown(counts)}: [tx, rx, …] belongs there")
    offered, forwarded = counts[:2]
    if not _is_count(offered) or offered <= 0:
        fail(f"tx of run {run} is {_shown(offered)}: a packet count above 0 belongs there")
    if not _is_count(forwarded) or forwarded < 0:
        fail(f"rx of run {run} is {_shown(forwarded)}: a packet count of 0 or more belongs there")
    return int(offered), int(forwarded)


def _shortfall(trials: Sequence[Trial]) -> tuple[str, ...]:
    off = [
        trial
        for trial in trials
        if abs(trial.offered / (trial.intended_load * trial.intended_duration) - 1) > GENERATOR_TOLERANCE
    ]
    if not off:
        return ()
    first = off[0]
    return (
        f"{len(off)} of {len(trials)} runs sent other than load x {first.intended_duration:g} s (the first: "
        f"{first.offered} packets at {first.intended_load:g} pps); loss is counted on what was sent",
    )


def _seconds(name: str) -> float:
    match = re.search(r"exp_t_(\d+(?:\.\d+)?)", name)
    return float(match[1]) if match and float(match[1]) > 0 else _DEFAULT_SECONDS


def _scenario(name: str) -> str:
    """Data path, environment, pinning and ring size that a published file's name carries."""
    environment = re.search(r"_(bare-metal|vm|ns)_", name)
    if environment is None:
        return ""
    path = "ebpf" if "class_ebpf" in name else "ipv6"
    ports = re.search(r"irq_[pv]f0-(\d+)_[pv]f1-(\d+)", name)
    pinning = "unpinned" if ports is None else "pin-1cpu" if ports[1] == ports[2] else "pin-2cpu"
    ring = re.search(r"nic_buf_(\d+)", name)
    return f"{path} {environment[1]} {pinning} ring {ring[1] if ring else '512'}"


def _json(line: str) -> Any:
    try:
        return json.loads(line, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _reason(error: ValueError) -> str:
    return f"column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_count(value: Any) -> bool:
    return _is_number(value) and abs(value) <= _LARGEST_COUNT and value == int(value)


def _shown(value: Any) -> str:
    """A value by its kind, and a number by itself: root reads files that others only name, and a CI's log is kept."""
    match value:
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            text = repr(value)
            return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        case str():
            return "a text"
    return "an object" if isinstance(value, dict) else f"a list of {len(value)}"


def _failer(path: Path, number: int) -> Callable[[str], NoReturn]:
    def fail(problem: str) -> NoReturn:
        raise DataError(f"{path}, line {number}: {problem}") from None

    return fail


def _opened(path: Path) -> BinaryIO:
    """A file, from its beginning each time; a pipe (``/dev/stdin``, ``<(zcat trials.jsonl.gz)``) is read once.

    Raises OSError.
    """
    return io.BytesIO(_of_pipe(path)) if path.is_relative_to("/dev") else regular_no_follow(path, _LARGEST)


@functools.cache
def _of_pipe(path: Path) -> bytes:
    return path.read_bytes()
