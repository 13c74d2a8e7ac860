"""What holds for all tests: how they are shared out to processes, which of them may ask twice, and that Ctrl-C reaches
what they start."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

_HOLD_THE_MACHINE = ("machine", "nothing_left_by_runs")
"""Fixtures of tests of guests that take a lease of it, or start runs that do."""

_THE_MACHINE = "the machine"
"""Group of the tests that measure."""
_ASIDE = "aside"
"""Group of the tests that mostly wait, for time-outs and for what is paced, of those that only compute, and of the
largest file of those that boot guests, so that this process ends when that of the rest does."""
_ARE_ASIDE = (
    "tests/guest/test_portfolio_paths_guest.py", "tests/trex", "tests/guest/test_accelerator.py",
    "tests/ssh/test_ssh_host.py", "tests/unit",
)  # fmt: skip
_THE_REST = "the rest"
_GIVES_WAY = 10
"""Nice value of tests that only compute, beside one that measures. In the kernel's idle class guests starve."""
_AUTOGROUP = Path("/proc/self/autogroup")
"""Where the kernel shares CPUs out to sessions first, nice values count within one: this is the session's own."""

_WAITED_FOR_EVER = r"Timeout \(>"
"""Begins what pytest-timeout says of a test."""

_CLONE_NEWNS = 0x00020000

_OF_A_PERSON = (
    "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "GIT_DIR", "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
)  # fmt: skip
"""Variables that change what programs print or touch: a desktop, a CI or a git hook has some of them."""
_GIT = {
    "commit.gpgsign": "false", "tag.gpgsign": "false", "core.autocrlf": "false", "core.hooksPath": os.devnull,
    "init.defaultBranch": "main", "color.ui": "false",
}  # fmt: skip
"""Of a person's own settings, those that make another commit, or none; `safe.directory` stays."""
for _name in _OF_A_PERSON:
    os.environ.pop(_name, None)
os.environ["GIT_CONFIG_COUNT"] = str(len(_GIT))
for _number, (_name, _value) in enumerate(_GIT.items()):
    os.environ |= {f"GIT_CONFIG_KEY_{_number}": _name, f"GIT_CONFIG_VALUE_{_number}": _value}

# Also where they were started in the background of a shell that ignores Ctrl-C, or by nohup.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``ci/test --all`` hands it on."""
    parser.addoption("--all", action="store_true", help="run the tests that take long, too")


def pytest_configure(config: pytest.Config) -> None:
    """Of several processes each has a /run/netns of its own: none takes another's namespaces for something left."""
    if hasattr(config, "workerinput"):
        _begin_a_session()
        if os.geteuid() == 0:
            _unshare_namespaces()


def _begin_a_session() -> None:
    """So that one of several processes can give way to another. A terminal's Ctrl-C does not reach it then: it comes to
    it from the process that shares the tests out, and goes from here to what the tests have started."""
    os.setsid()
    signal.signal(signal.SIGINT, _interrupt_all)


def _interrupt_all(number: int, frame: object) -> None:
    signal.signal(number, signal.default_int_handler)
    os.killpg(0, number)


def _unshare_namespaces() -> None:
    """Only where this may be: else the processes see each other's, as other runs on this machine do."""
    if ctypes.CDLL(None).unshare(_CLONE_NEWNS) == 0:
        names = Path("/run/netns")
        names.mkdir(exist_ok=True)
        subprocess.run(("mount", "--make-rprivate", "/"), check=True)
        subprocess.run(("mount", "-t", "tmpfs", "none", names), check=True)


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For ``--dist loadgroup``: what needs the machine to itself runs in one process, what waits or only computes in
    another, and the rest, most of which boots guests, in a third.

    A measurement waits for another one to end (`Lease`): two processes of them would only wait for each other. Guests
    that are only booted wait for nobody.

    What runs on real kernels, sockets and guests may ask the machine again, twice, and a moment later: others use it as
    well. pytest's summary counts such reruns and names them, and a fault that stays fails. What computes is asked once,
    and so is what waited for as long as any test may.
    """
    for item in items:
        if item.get_closest_marker("long") and not item.config.getoption("all"):
            item.add_marker(pytest.mark.skip(reason="takes long; ci/test --all runs it"))
        if "unit" not in item.path.parts:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1, rerun_except=[_WAITED_FOR_EVER]))
        held = any(name in _HOLD_THE_MACHINE for name in getattr(item, "fixturenames", ()))
        measures = item.get_closest_marker("datapath") or (item.get_closest_marker("guest") and held)
        aside = item.path.relative_to(item.config.rootpath).as_posix().startswith(_ARE_ASIDE)
        item.add_marker(pytest.mark.xdist_group(_THE_MACHINE if measures else _ASIDE if aside else _THE_REST))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What only computes gives way to what measures in the other process, where this one may take that back."""
    if hasattr(item.config, "workerinput") and os.geteuid() == 0:
        group = item.get_closest_marker("xdist_group")
        _be_nice(0 if group and group.args == (_THE_MACHINE,) else _GIVES_WAY)
    return (yield)


def _be_nice(value: int) -> None:
    if os.getpriority(os.PRIO_PROCESS, 0) != value:
        os.setpriority(os.PRIO_PROCESS, 0, value)
        with contextlib.suppress(OSError):  # kernels need not have that
            _AUTOGROUP.write_text(str(value))


def pytest_collection_finish() -> None:
    """What the tests are made of stays to the end: nobody needs to look, again and again, whether it is garbage."""
    gc.collect()
    gc.freeze()
