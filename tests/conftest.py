"""What holds for all tests: how they are shared out to processes, and that Ctrl-C reaches what they start."""

from __future__ import annotations

import signal

import pytest

# Also where they were started in the background of a shell that ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For ``--dist loadgroup``: what needs the machine to itself runs in one process, a file of the rest in any other.

    A measurement waits for another one to end (`Lease`): two processes of them would only wait for each other.
    """
    for item in items:
        measures = any(item.get_closest_marker(name) for name in ("datapath", "guest"))
        item.add_marker(pytest.mark.xdist_group("the machine" if measures else str(item.path)))
