"""Starts Robot on the gate's suites: what ``pdrgate gate`` does. Robot does the rest."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pdrgate.errors import EXIT_FAULT, EXIT_PASS, EXIT_UNTESTABLE, DataError, StorageError, UsageError

_LIBRARIES = Path(__file__).parents[1]
CHECKOUT = _LIBRARIES.parent
"""Where suites and testbed files are looked for when the working directory has none."""
_OPTIONS_FILE = "run.json"
_INTERRUPTED = 130
_ROBOT_INTERRUPTED = 253
_LITTLE_SPACE = 64 << 10
"""Bytes: with less, a full disk is why anything went wrong."""


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What a gate run is asked for; kept in ``run.json`` of its folder, so that it can be resumed."""

    suites: tuple[str, ...]
    testbed: str
    scenarios: tuple[str, ...]
    """Robot tag patterns; ``all`` takes every test."""
    profile: str
    tolerance: str
    baseline: str | None
    reading: str
    wait: str = "0 s"
    kernel: str = ""
    against: str = ""
    bpf: str = ""
    boots: int = 48
    budget: str = "9 min"
    bisect: bool = False
    """Whether the exit code is for ``git bisect run``."""

    @classmethod
    def of_run(cls, folder: Path) -> GateOptions:
        """The options of an earlier run. Raises DataError when the folder holds none."""
        file = folder / _OPTIONS_FILE
        try:
            record = json.loads(file.read_text())
            return cls(**{**record, "suites": tuple(record["suites"]), "scenarios": tuple(record["scenarios"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"cannot resume {folder}: {file} is missing or damaged ({error}); start a new run"
            ) from error

    def keep(self, folder: Path) -> None:
        """Write the options into the folder of the run."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _OPTIONS_FILE).write_text(json.dumps(asdict(self), indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write to {folder}: {error.strerror}; choose another with --output") from error


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


def found(path: str) -> Path:
    """The path as given, or, when there is nothing, the same path in the checkout."""
    given, own = Path(path), CHECKOUT / path
    return own if not given.exists() and own.exists() else given


def check(options: GateOptions) -> None:
    """Tell at once, and not from within a suite, what cannot work. Raises TestbedError, UsageError, DataError."""
    from pdrgate.testbeds import load_testbed
    from pdrgate.testbeds.rack_build import boots_builds

    config = load_testbed(found(options.testbed))
    if options.kernel and config.sut.vm is None and not boots_builds(config):
        raise UsageError(
            f"testbed {config.name} boots no kernels; leave out --testbed, or name one of kind local-vm such as "
            "resources/testbeds/local-vm.yaml, or a rack whose SUT is a machine reached by SSH"
        )
    if options.bpf:
        from pdrgate.builds.bpf_build import bpf_build

        kind = bpf_build(options.bpf).kind
        bpf_build(options.against, kind)
        if config.sut.vm is not None and config.sut.vm.kernel is None:
            raise UsageError(
                f"eBPF objects are compared on one kernel; name it as sut.kernel in {config.source}, such as "
                "linux-image-amd64"
            )
    for suite in options.suites:
        if not found(suite).exists():
            raise UsageError(f"there is no suite {suite}; name one with --suite, such as robot/gate")
    if options.baseline is not None and not Path(options.baseline).exists():
        raise DataError(f"the baseline {options.baseline} does not exist; name a result.json, or the folder of a run")


def run_gate(options: GateOptions, folder: Path) -> int:
    """Run the suites into ``folder``, print the verdicts, and return the exit code of the contract."""
    from pdrgate.history.results import RESULT_FILE, read_result
    from pdrgate.reports.console import paths, verdict_table
    from pdrgate.results.model import RunResult
    from pdrgate.results.verdict import INTERRUPTED

    (folder / RESULT_FILE).unlink(missing_ok=True)  # a resumed run writes its own
    print(f"pdrgate run {folder.name}: profile {options.profile}, tolerance {options.tolerance}", flush=True)
    try:
        code = _robot(options, folder)
    except Exception:
        # Robot's own output is on the same disk as ours.
        if shutil.disk_usage(folder).free < _LITTLE_SPACE:
            raise StorageError(
                f"No space left on device for {folder}; all trials are kept: make room, then --resume {folder}"
            ) from None
        raise
    finally:
        _give_to_caller(folder)
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


def _give_to_caller(folder: Path) -> None:
    """What root measured for somebody who used sudo is theirs, with the folder of runs if it was made just now."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    runs = folder.parent
    made = runs.stat().st_uid == 0 and runs.absolute().parent.stat().st_uid == int(uid)
    for path in (*((runs,) if made else ()), folder, *folder.rglob("*")):
        with contextlib.suppress(OSError):
            os.chown(path, int(uid), int(gid), follow_symlinks=False)


def _robot(options: GateOptions, folder: Path) -> int:
    """Robot's own exit code."""
    from robot.run import run  # type: ignore[import-untyped]  # only robot.api is typed

    from pdrgate.builds.kernel_build import absolute

    variables = {
        "TESTBED": str(found(options.testbed).resolve()),
        "PROFILE": options.profile,
        "TOLERANCE": options.tolerance,
        "READING": options.reading,
        "WAIT": options.wait,
        "KERNEL": absolute(options.kernel),
        "AGAINST": absolute(options.against),
        "BPF": absolute(options.bpf),
        "BOOTS": str(options.boots),
        "BUDGET": options.budget,
        "BASELINE": str(Path(options.baseline).resolve()) if options.baseline else "",
    }
    include = [] if "all" in options.scenarios else list(options.scenarios)
    code: int = run(
        *(str(found(suite)) for suite in options.suites),
        include=include,
        name="pdrgate",
        pythonpath=[str(_LIBRARIES)],
        variable=[f"{name}:{value}" for name, value in variables.items()],
        listener=[f"allure_robotframework:{folder / 'allure-results'}"],
        outputdir=str(folder),
        xunit="xunit.xml",
        console="none",
        stdout=None,
    )
    return code
