"""Starts Robot on the gate's suites: what ``pdrgate gate`` does. Robot does the rest."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pdrgate.errors import EXIT_FAULT, EXIT_PASS, EXIT_UNTESTABLE, DataError, PdrGateError, StorageError, UsageError
from pdrgate.gate.options import RunOptions
from pdrgate.results.model import RunResult

_PACKAGE = Path(__file__).parent
"""Where suites and testbed files are looked for when the working directory has none: ``robot/``, ``resources/``."""
_NOT_FOR_SUITES = ("suites", "scenarios", "bisect")
"""Options that are done with when suites run."""
_ALL = "all"
"""The scenario that is every test."""
_INTERRUPTED = 130
_ROBOT_INTERRUPTED = 253
_LITTLE_SPACE = 64 << 10
"""Bytes: with less, a full disk is why anything went wrong."""


def new_folder(output: Path) -> Path:
    """A folder for a new run below ``output``, named by time; a second run in the same second gets a suffix."""
    name = time.strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        folder = output / f"{name}{suffix}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise StorageError(f"cannot make {folder}: {error.strerror}; choose another with --output") from error
        return folder
    raise StorageError(f"cannot make a new folder in {output}; choose another with --output")


def default_testbed(builds: bool) -> tuple[Path, str]:
    """The testbed of a run that names none, and why it is that one.

    Args:
        builds: whether kernel builds are handed over.
    """
    from pdrgate.guests.qemu import PROGRAM

    folder = Path("resources/testbeds")
    if builds:
        return folder / "local-vm.yaml", "testbed local-vm: the builds are booted in guests; --testbed names another"
    if platform.machine() != "x86_64":
        lacking = f"guests are x86, and this machine is {platform.machine()}"
    elif shutil.which(PROGRAM) is None:
        lacking = f"{PROGRAM} is not installed: ./ci/bootstrap --vm"
    else:
        return folder / "steady-guest.yaml", (
            "testbed steady-guest: a guest of constant speed gives an answer that repeats on a machine that others use "
            "too; for the running kernel itself, on a quiet machine: --testbed resources/testbeds/local-netns.yaml"
        )
    return folder / "local-netns.yaml", (
        f"testbed local-netns: no guest of constant speed can be had ({lacking}); on a machine that others use too the "
        "answer may not repeat"
    )


def found(path: Path) -> Path:
    """The path as given, or, when there is nothing, the same path among the files that come with pdrgate."""
    own = _PACKAGE / path
    return own if not path.exists() and own.exists() else path


def check(options: RunOptions) -> None:
    """Tell at once, and not from within a suite, what cannot work. Raises TestbedError, UsageError, DataError."""
    from pdrgate.testbeds import load_testbed

    config = load_testbed(found(options.testbed))
    if options.kernel and not config.boots_builds:
        raise UsageError(
            f"testbed {config.name} boots no kernels; leave out --testbed, or name one of kind local-vm such as "
            "resources/testbeds/local-vm.yaml, or a rack whose SUT is a machine reached by SSH"
        )
    if options.bpf:
        from pdrgate.builds.bpf_build import bpf_build

        kind = bpf_build(options.bpf).kind
        bpf_build(options.against, kind)
        if config.waits_for_build:
            raise UsageError(
                f"eBPF objects are compared on one kernel; name it as sut.kernel in {config.source}, such as "
                "linux-image-amd64"
            )
    for suite in options.suites:
        if not found(suite).exists():
            raise UsageError(f"there is no suite {suite}; name one with --suite, such as robot/gate")
    _check_scenarios(options)
    if options.baseline is not None:
        from pdrgate.gate.baseline import baselines

        baselines(options, options.baseline / "of no run")


def _check_scenarios(options: RunOptions) -> None:
    """Raises UsageError at a pattern that no test of the suites matches, which Robot would pass over in silence."""
    from robot.api import TestSuite
    from robot.errors import DataError as NoSuite  # type: ignore[import-untyped]
    from robot.model import TagPatterns  # type: ignore[import-untyped]

    try:
        tests = list(TestSuite.from_file_system(*(found(suite) for suite in options.suites)).all_tests)
    except NoSuite as error:
        raise UsageError(f"{' and '.join(map(str, options.suites))}: {error}; name a suite with --suite") from error
    for pattern in options.scenarios:
        if pattern != _ALL and not any(TagPatterns([pattern]).match(test.tags) for test in tests):
            tags = sorted({tag for test in tests for tag in test.tags})
            near = difflib.get_close_matches(pattern, tags, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"no test has the tag {pattern}; {meant}there are {', '.join(tags)}, and {_ALL}")


class _UnreadIsLost(io.FileIO):
    """An output whose reader may leave (``| head``): what nobody reads any more is no fault of the run's."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            # From here on for programs that we start, too.
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
                os.dup2(nowhere.fileno(), self.fileno())
            return len(data)


@contextlib.contextmanager
def _outlives_its_reader(name: str) -> Iterator[None]:
    """Let standard output or error, ours and Robot's, go on when its reader has left.

    Otherwise the first line after that would fail the keyword that writes it, and be part of the verdict.
    """
    stream = getattr(sys, name)
    if stream is not getattr(sys, f"__{name}__") or not isinstance(stream, io.TextIOWrapper):
        yield  # somebody's own, or none at all
        return
    raw = io.BufferedWriter(_UnreadIsLost(stream.fileno(), "wb", closefd=False))
    own = io.TextIOWrapper(raw, encoding=stream.encoding, errors=stream.errors, line_buffering=True)
    stream.flush()
    setattr(sys, name, own)
    setattr(sys, f"__{name}__", own)
    try:
        yield
    finally:
        own.flush()
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


@_outlives_its_reader("stdout")
@_outlives_its_reader("stderr")
def run_gate(options: RunOptions, folder: Path, why: str = "", *, resume: bool = False) -> int:
    """Run the suites into ``folder``, print the verdicts, and return the exit code of the contract.

    Args:
        why: what was chosen for the user and why, as a sentence.
        resume: whether the folder's trials are this run's.
    """
    from pdrgate.history.results import RESULT_FILE, read_result
    from pdrgate.reports.console import paths, verdict_table
    from pdrgate.results.verdict import INTERRUPTED

    (folder / RESULT_FILE).unlink(missing_ok=True)  # a resumed run writes its own
    print(f"pdrgate run {folder.name}: profile {options.profile}, tolerance {options.tolerance.text}", flush=True)
    if why:
        print(f"  {why}", flush=True)
    try:
        code = _robot(options, folder, resume)
    except Exception:
        # Robot's own output is on the same disk as ours.
        if shutil.disk_usage(folder).free < _LITTLE_SPACE:
            raise StorageError(
                f"No space left on device for {folder}; all trials are kept: make room, then --resume {folder}"
            ) from None
        raise
    finally:
        give_to_caller(folder)
        if options.history is not None and options.history.file is not None:
            give_file_to_caller(options.history.file)
        if options.noise is not None:
            give_file_to_caller(options.noise)
    try:
        result: RunResult | None = read_result(folder / RESULT_FILE)
    except DataError:
        result = None
    if result is None:
        reason = "no test was run" if code == 252 else "Robot ended without a result"
        print(f"\nERROR: {reason}; see the messages above and {folder / 'log.html'}")
        if code == _ROBOT_INTERRUPTED:
            return _INTERRUPTED
        return EXIT_UNTESTABLE if options.bisect else EXIT_FAULT
    print(f"\n{result.verdict}: {result.reason}\n")
    for line in verdict_table(result):
        print(line)
    _page(folder, result)
    print("\nresults:")
    for line in paths(folder):
        print(line)
    if code == _ROBOT_INTERRUPTED or result.reason == INTERRUPTED:
        print(f"\ninterrupted; continue with: --resume {folder}")
        return _INTERRUPTED
    if options.bisect:
        return result.verdict.bisect_code
    exit_code = result.verdict.exit_code
    # A test can fail for a reason of its own, such as an assertion of the suite on the PDR.
    return exit_code if exit_code != EXIT_PASS or code == 0 else 1


def _page(folder: Path, result: RunResult) -> None:
    """Write summary.html and the pictures; that they cannot be written changes no verdict."""
    from pdrgate.reports.remake import Told, make_page

    try:
        for made in make_page(folder, result):
            if isinstance(made, Told):
                print(made.sentence)
    except PdrGateError as error:
        print(f"summary.html is not written: {error}")
    give_to_caller(folder)


def give_to_caller(folder: Path) -> None:
    """What root measured for somebody who used sudo is theirs, with the folder of runs if it was made just now."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    runs = folder.parent
    made = runs.stat().st_uid == 0 and runs.absolute().parent.stat().st_uid == int(uid)
    for path in (*((runs,) if made else ()), folder, *folder.rglob("*")):
        with contextlib.suppress(OSError):
            os.chown(path, int(uid), int(gid), follow_symlinks=False)


def give_file_to_caller(file: Path) -> None:
    """A file beside the runs that root made in somebody's folder is theirs: a history, to import into without sudo."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    with contextlib.suppress(OSError):
        if file.stat().st_uid == 0 and file.absolute().parent.stat().st_uid == int(uid):
            os.chown(file, int(uid), int(gid))


def variables(options: RunOptions, *, resume: bool) -> dict[str, str]:
    """The Robot variables of a run, which resources/gate.resource declares: one per option, of the same name.

    Robot's own ``--variable`` has texts, so these are texts too; the types of the keywords' arguments read both. Paths
    are absolute: a suite may lie anywhere.
    """
    from pdrgate.builds.kernel_build import absolute

    anywhere = dataclasses.replace(
        options,
        testbed=found(options.testbed).resolve(),
        baseline=_anywhere(options.baseline),
        noise=options.noise.resolve() if options.noise else None,
        kernel=absolute(options.kernel),
        bpf=absolute(options.bpf),
        against=absolute(options.against),
        history=options.history.absolute() if options.history else None,
    )
    texts = {name.upper(): str(value) for name, value in anywhere.written().items() if name not in _NOT_FOR_SUITES}
    # Empty where there is none, so that a suite can say `Skip If    not $BASELINE`.
    texts["HISTORY"] = "" if anywhere.history is None else anywhere.history.url or anywhere.history.text
    paths = {"BASELINE": str(anywhere.baseline or ""), "NOISE": str(anywhere.noise or "")}
    return texts | paths | {"RESUME": str(resume)}


def _anywhere(baseline: Path | None) -> Path | None:
    from pdrgate.gate.baseline import name_in_history

    return baseline if baseline is None or name_in_history(baseline) else baseline.resolve()


def _robot(options: RunOptions, folder: Path, resume: bool) -> int:
    """Robot's own exit code."""
    # MLRsearch looks at the whole stack and at all modules ten times when it is imported: half a second within Robot.
    import pdrgate.search.mlr  # noqa: F401, I001
    from robot.run import run  # type: ignore[import-untyped]  # only robot.api is typed

    include = [] if _ALL in options.scenarios else list(options.scenarios)
    code: int = run(
        *(str(found(suite)) for suite in options.suites),
        include=include,
        name="pdrgate",
        pythonpath=[str(_PACKAGE.parent)],
        variable=[f"{name}:{value}" for name, value in variables(options, resume=resume).items()],
        listener=[f"allure_robotframework:{folder / 'allure-results'}"],
        outputdir=str(folder),
        xunit="xunit.xml",
        console="none",
        stdout=None,
    )
    return code
