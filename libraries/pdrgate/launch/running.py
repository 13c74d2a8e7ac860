"""Starts Robot on the gate's suites, prints the verdicts, and returns the exit code. Robot runs the tests."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from rich.text import Text

from pdrgate.gate.run.options import RunOptions
from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.launch.folders import give_history_to_caller, give_to_caller, mark_latest
from pdrgate.launch.shard import is_of_a_path, shard_of
from pdrgate.launch.stopping import FirstFailure, StoppedError, Stopping
from pdrgate.launch.suites import ALL, RUN_NAME, listed
from pdrgate.launch.variables import variable_file
from pdrgate.reports.words.durations import about
from pdrgate.results.model import RunResult
from pdrgate.this_process.interruption import interrupted_code
from pdrgate.this_process.own_files import PACKAGE, found
from pdrgate.this_process.streams import standard_output_to
from pdrgate.values.errors import (
    EXIT_FAULT,
    EXIT_PASS,
    EXIT_STOP,
    EXIT_UNTESTABLE,
    DataError,
    PdrGateError,
    StorageError,
)

_NO_TEST, _STOPPED = 252, 253
"""Robot's exit codes."""
_LITTLE_SPACE = 64 << 10
"""Bytes: with less, a full disk is why anything went wrong."""


@dataclass(frozen=True, slots=True)
class OutputForm:
    """What a run prints, and where."""

    form: Literal["text", "json"] = "text"
    """JSON makes standard output the result and nothing else; what people read goes to standard error."""
    quiet: bool = False
    """Whether verdict and evidence are all that people read."""
    verbose: bool = False
    """Whether the console shows all that happens on each of several paths."""


def run_gate(
    options: RunOptions, folder: Path, why: str = "", *, resume: bool = False, output: OutputForm | None = None
) -> int:
    """Run the suites into ``folder``, print the verdicts, and return the exit code of the contract.

    Args:
        why: what was chosen for the user and why, as a sentence.
        resume: whether the folder's trials are this run's.
        output: what is printed; text by default.
    """
    output = output or OutputForm()
    if output.form == "text":
        return _run(options, folder, why, resume, output)
    out = sys.stdout
    with standard_output_to(sys.stderr):
        code = _run(options, folder, why, resume, output)
    with contextlib.suppress(FileNotFoundError):  # without a result, the reason is already printed
        out.write((folder / RESULT_FILE).read_text(encoding="utf-8"))
        out.flush()
    return code


def _run(options: RunOptions, folder: Path, why: str, resume: bool, output: OutputForm) -> int:
    stopping = Stopping()
    try:
        with stopping.watching():
            return _run_and_told(options, folder, why, resume, output, stopping)
    except StoppedError:
        sys.stdout.write(f"interrupted; all trials are kept, continue with: --resume {folder}\n")
        return interrupted_code(stopping.heard.first)


def _run_and_told(
    options: RunOptions, folder: Path, why: str, resume: bool, output: OutputForm, stopping: Stopping
) -> int:
    from pdrgate.reports.console.ending import show_files, show_verdict
    from pdrgate.reports.console.screen import Screen, verdict_text
    from pdrgate.results.verdict import INTERRUPTED, Verdict

    (folder / RESULT_FILE).unlink(missing_ok=True)  # a resumed run writes its own
    screen, failure = Screen(sys.stdout), FirstFailure()
    with standard_output_to(None if output.quiet else sys.stdout):
        begun = Screen(sys.stdout)
        begun.line(f"pdrgate run {folder.name}: profile {options.profile}, tolerance {options.tolerance.text}")
        if why:
            begun.line(f"  {why}")
        if options.order is not None:
            begun.line(
                f"  paths are measured in an order that was drawn; the same once more: --set order={options.order}"
            )
        if sentence := expected_time(options):
            begun.line(f"  {sentence}")
        code = _measured(options, folder, resume, output.verbose, stopping, failure)
    try:
        result: RunResult | None = read_result(folder / RESULT_FILE)
    except DataError:
        result = None
    if not output.quiet:
        screen.line("")
    if result is None and stopping.heard.count:
        screen.line(f"interrupted before a verdict; all trials are kept, continue with: --resume {folder}")
        return interrupted_code(stopping.heard.first)
    if result is None:
        reason = "no test was run" if code == _NO_TEST else "Robot ended without a result"
        told = f": {reason}: {failure.sentence or 'see the messages above'}; all trials are kept in {folder}"
        screen.line(Text.assemble(verdict_text(Verdict.ERROR), told))
        return EXIT_UNTESTABLE if options.bisect else EXIT_FAULT
    show_verdict(result, screen)
    for sentence in _page(folder, result):
        screen.line(sentence)
    if not output.quiet:
        screen.line("")
        show_files(folder, screen)
    if stopping.heard.count or result.reason.startswith(INTERRUPTED):
        screen.line("")
        screen.line(f"interrupted; continue with: --resume {folder}")
        return interrupted_code(stopping.heard.first)
    if options.bisect:
        return EXIT_STOP if result.held else result.verdict.bisect_code
    exit_code = result.verdict.exit_code
    # A test can fail for a reason of its own, such as an assertion of the suite on the PDR.
    return exit_code if exit_code != EXIT_PASS or code == 0 else 1


def _measured(
    options: RunOptions, folder: Path, resume: bool, verbose: bool, stopping: Stopping, failure: FirstFailure
) -> int:
    """What Robot ends with; whatever becomes of it, the files are the caller's."""
    try:
        return _robot(options, folder, resume, verbose, stopping, failure)
    except StoppedError:
        return _STOPPED
    except Exception:
        # Robot's own output is on the same disk as ours.
        if shutil.disk_usage(folder).free < _LITTLE_SPACE:
            raise StorageError(
                f"No space left on device for {folder}; all trials are kept: make room, then --resume {folder}"
            ) from None
        raise
    finally:
        give_to_caller(folder)
        mark_latest(folder)
        if options.history is not None:
            give_history_to_caller(options.history)


def _page(folder: Path, result: RunResult) -> Iterator[str]:
    """Write summary.html and the pictures.

    A file that cannot be written is reported as a sentence and changes no verdict.
    """
    from pdrgate.reports.whole_runs.remake import UnmadeReport, make_page, retell_robots_own

    try:
        retell_robots_own(folder, result)
        for made in make_page(folder, result):
            if isinstance(made, UnmadeReport):
                yield made.sentence
    except PdrGateError as error:
        yield f"summary.html is not written: {error}"
    give_to_caller(folder)


def _robot(options: RunOptions, folder: Path, resume: bool, verbose: bool, *listeners: object) -> int:
    """Robot's own exit code."""
    from robot.run import run  # type: ignore[import-untyped]  # only robot.api is typed

    from pdrgate.gate.run.selection_file import read_selection
    from pdrgate.launch.selected_paths import measured_first
    from pdrgate.launch.shard import DrawnOrder, OnlyTests, shard_of
    from pdrgate.reports.pages.overview import STATISTICS

    include = [] if ALL in options.patterns else list(options.patterns)
    selection = read_selection(folder)
    first = None if selection is None else measured_first(selection)
    part = [OnlyTests(shard_of(options))] if options.shard else []
    code: int = run(
        *(str(found(suite)) for suite in options.suites),
        include=include,
        name=RUN_NAME,
        pythonpath=[str(PACKAGE.parent)],
        prerunmodifier=[*part, *([] if options.order is None else [DrawnOrder(options.order, first)])],
        variablefile=[variable_file(folder)],
        variable=[f"RESUME:{resume}", f"VERBOSE:{verbose}"],
        listener=[*listeners, f"allure_robotframework:{folder / 'allure-results'}"],
        outputdir=str(folder),
        xunit="xunit.xml",
        console="none",
        stdout=None,
        **STATISTICS,
    )
    return code


def expected_time(options: RunOptions) -> str:
    """``72 paths, about 40 min by the last 3 runs``; empty for a single path."""
    if options.scenario_file is not None or not options.against:
        return ""
    mine = shard_of(options)
    number = sum(is_of_a_path(one) and one.longname in mine for one in listed(options.suites, options.patterns))
    if number < 2:
        return ""
    seconds = _seconds_a_path(options)
    if not seconds:
        return f"{number} paths; how long they take is known once the first one has ended"
    runs = f"the last {len(seconds)} runs" if len(seconds) > 1 else "the last run"
    return f"{number} paths, {about(number * median(seconds))} by {runs}"


def _seconds_a_path(options: RunOptions) -> list[float]:
    """What a path took in each of the last runs of several paths on this testbed; empty where nobody knows."""
    if options.history is None or (options.history.file is not None and not options.history.file.exists()):
        return []
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.queries import seconds_a_path

    try:
        with Database.open(options.history) as history, history.reading() as connection:
            return seconds_a_path(connection, options.testbed.stem, options.profile)
    except PdrGateError:
        return []  # the run itself reports what is wrong with it
