"""What a run is asked for, looked at before Robot starts: testbed, suites, scenarios."""

from __future__ import annotations

import difflib
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.gate.run.measures import MEASURES, MeasureName, measure_of
from pdrgate.gate.run.options import RunOptions
from pdrgate.this_process.checkout import FROM_CHECKOUT
from pdrgate.this_process.own_files import found
from pdrgate.values.errors import DataError, UsageError

ALL = "all"
"""The scenario that is every test."""
CLOSED_LOOP = "closed-loop"
"""The tag of tests whose path is a closed loop."""
RUN_NAME = "pdrgate"
"""Robot's name of the suite above all suites of a run."""


def default_testbed(builds: bool) -> tuple[Path, str]:
    """The testbed of a run that names none, and why it is that one.

    Args:
        builds: whether kernel builds are handed over.
    """
    from pdrgate.builds.architecture import this_machines

    guests = this_machines()
    folder = Path("resources/testbeds")
    if builds:
        return folder / "local-vm.yaml", "testbed local-vm: the builds are booted in guests; --testbed names another"
    if not guests.is_this_machines:
        lacking = f"guests are {guests.name}, and this machine is {platform.machine()}"
    elif shutil.which(guests.qemu) is None:
        lacking = f"{guests.qemu} is not installed: " + (
            "./ci/bootstrap --vm" if FROM_CHECKOUT else f"apt-get install {guests.qemu_package} busybox-static lz4 zstd"
        )
    else:
        return folder / "steady-guest.yaml", (
            "testbed steady-guest: a guest of constant speed gives an answer that repeats on a machine that others use "
            "too; for the running kernel itself, on a quiet machine: --testbed resources/testbeds/local-netns.yaml"
        )
    return folder / "local-netns.yaml", (
        f"testbed local-netns: no guest of constant speed can be had ({lacking}); on a machine that others use too the "
        "answer may not repeat"
    )


def check(options: RunOptions, report: Callable[[str], None] | None = None) -> None:
    """Refuse at once, and not from within a suite, what cannot work. Raises TestbedError, UsageError, DataError.

    Files and addresses that the options name are opened here. Revisions of a git tree are compiled here. Nobody waits
    for another run's testbed only to be refused then.

    Args:
        report: gets sentences on how far the compilation of a build is.
    """
    from pdrgate.testbeds import load_testbed

    config = load_testbed(found(options.testbed))
    if options.kernel and not config.boots_builds:
        raise UsageError(
            f"testbed {config.name} boots no kernels; leave out --testbed, or name one of kind local-vm such as "
            "resources/testbeds/local-vm.yaml, or a rack whose SUT is a machine reached by SSH"
        )
    if options.kernel:
        _look_at_kernels(options, report)
    if options.bpf:
        from pdrgate.bpf.filling import check_setup
        from pdrgate.builds.bpf_build import bpf_build
        from pdrgate.builds.program_setup import program_setup

        setup = program_setup(options.attach, options.maps, options.rodata, options.replaces)
        on_packets = options.packets is not None
        by_steps = _steps_load(options)
        kind = check_setup(bpf_build(options.bpf, setup=setup, on_packets=on_packets, by_steps=by_steps)).kind
        if options.against:
            check_setup(
                bpf_build(options.against, None if by_steps else kind, setup, on_packets=on_packets, by_steps=by_steps)
            )
        if config.waits_for_build and not options.kernel:
            raise UsageError(
                f"eBPF objects are measured on one kernel; name it with --kernel, or as sut.kernel in "
                f"{config.source}, such as linux-image-amd64"
            )
    tests = listed(options.suites, options.patterns)
    check_paths(options.measure, tests)
    if options.changes:
        _check_changes(options)
    if options.shard:
        from pdrgate.launch.shard import Shard

        Shard.parse(options.shard).tests(tests)
    if options.baseline is not None:
        from pdrgate.gate.verdicts.baseline import baselines

        baselines(options, options.baseline / "of no run")


def _steps_load(options: RunOptions) -> bool:
    """Whether steps of the scenario's file load the object under test. Raises UsageError."""
    from pdrgate.gate.run.scenario_file import scenario_of

    set_up = None if options.scenario_file is None else scenario_of(options.scenario_file).set_up
    return set_up is not None and set_up.loads_program


def _check_changes(options: RunOptions) -> None:
    """Raises UsageError where no path that is chosen can have a change, or can then be measured as is asked."""
    from pdrgate.gate.run.scenario_file import scenario_of
    from pdrgate.gate.run.scenario_keys import changed
    from pdrgate.launch.described import described_tests

    if options.scenario_file is not None:
        paths = [scenario_of(options.scenario_file)]
    else:
        paths = [one.scenario for one in described_tests(options.suites, options.patterns)]
    found = changed(paths, options.changes)
    if found and all(why := [measure_of(options.measure, path).misfit(path) for path in found]):
        raise UsageError(f"--set {options.changes[0]}: {why[0]}")
    if any(path.alike for path in found) and not options.against:
        raise UsageError("alike compares the packets of two builds; name them: --bpf OBJECT --against OBJECT")


def _look_at_kernels(options: RunOptions, report: Callable[[str], None] | None) -> None:
    """Look at the builds that are booted; what is compiled for that comes last, and of it the baseline first.

    A candidate descends from its baseline as a rule, and a build goes on from what an ancestor's left.

    Raises:
        BuildError, UsageError: one of them is none, or they are for two architectures.
    """
    from pdrgate.builds.git_tree.revision import named_revision
    from pdrgate.builds.kernel_build import BuildError, KernelBuild
    from pdrgate.builds.named_build import check_one_architecture, look_at

    names = [options.kernel] if options.bpf else [options.against, options.kernel]
    names.sort(key=lambda name: named_revision(name.partition(",")[0]) is not None)
    named: list[KernelBuild] = []
    for name in names:
        try:
            build = look_at(name, report)
        except BuildError as error:
            if name == options.kernel:
                raise
            raise UsageError(f"--against: {error}") from error
        if build is not None:
            named.append(build)
    try:
        check_one_architecture(named)
    except BuildError as error:
        raise UsageError(f"--against: {error}") from error


@dataclass(frozen=True, slots=True)
class Listed:
    """A test that a run may choose."""

    suite: str
    about: str
    """What the suite is for."""
    test: str
    longname: str
    """The test's name behind those of its suites, in a run of these suites."""
    tags: tuple[str, ...]


def chooses(pattern: str, tags: Sequence[str]) -> bool:
    """Whether a tag pattern of Robot matches these tags."""
    from robot.model import TagPatterns  # type: ignore[import-untyped]

    return bool(TagPatterns([pattern]).match(tags))


def listed(suites: Sequence[Path], patterns: Sequence[str] = (ALL,)) -> list[Listed]:
    """The tests of these suites that the patterns choose, in order.

    Raises:
        DataError: a suite is not there.
        UsageError: it cannot be read, or a pattern chooses none, which Robot would pass over in silence.
    """
    for suite in suites:
        if not found(suite).exists():
            raise DataError(f"there is no suite {suite}; name one with --suite, such as robot/gate")
    from robot.api import TestSuite
    from robot.errors import DataError as NoSuite  # type: ignore[import-untyped]

    try:
        whole = TestSuite.from_file_system(*(found(suite) for suite in suites))
    except NoSuite as error:
        raise UsageError(f"{' and '.join(map(str, suites))}: {error}; name a suite with --suite") from error
    whole.name = RUN_NAME
    tests = list(whole.all_tests)
    for pattern in patterns:
        if pattern != ALL and not any(chooses(pattern, tuple(test.tags)) for test in tests):
            tags = sorted({tag for test in tests for tag in test.tags})
            # Paths are called without their path-, too.
            named = f"path-{pattern.lower()}"
            near = [named] if named in tags else difflib.get_close_matches(pattern, tags, 3)
            meant = f"did you mean {' or '.join(near)}? " if near else ""
            raise UsageError(
                f"no test has the tag {pattern}; {meant}--list-scenarios lists the {len(tags)} that there are"
            )
    return [
        Listed(test.parent.name, test.parent.doc, test.name, test.full_name, tuple(test.tags))
        for test in tests
        if ALL in patterns or any(chooses(pattern, tuple(test.tags)) for pattern in patterns)
    ]


def check_paths(measure: MeasureName | None, tests: Sequence[Listed]) -> None:
    """Raises UsageError where no path that is chosen has what is measured; of several, some may be left out."""
    if measure is None or MEASURES[measure].loops == "both":
        return
    closed = [CLOSED_LOOP in test.tags for test in tests]
    wanted = MEASURES[measure].loops == "closed"
    if wanted not in closed:
        others = "pdr" if wanted else "transfer"
        kind = "a closed loop" if wanted else "offered a load"
        raise UsageError(f"--measure {measure}: none of the chosen paths is {kind}; ask for --measure {others}")
