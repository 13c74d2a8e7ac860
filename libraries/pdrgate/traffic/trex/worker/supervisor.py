"""A parent for the worker that may be killed with it.

trex-stl-lib sends SIGTERM to the process group named like its parent's process id. The worker's parent is therefore a
process of this program that leads a session of its own and has nobody in its group but the worker.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys

GRACE = 4.0
"""Seconds that the worker has to stop traffic and release its ports after those who asked for it are gone."""

_PR_SET_PDEATHSIG = 1


def supervised() -> None:
    """Returns in a child process; this process waits for it, ends with it, and ends it when stdin is closed.

    Raises:
        SystemExit: in the parent, with the child's exit code, or 128 and the signal that ended it.
    """
    if os.getpgid(0) != os.getpid():
        os.setsid()
    parent = os.getpid()
    alive, held = os.pipe()
    child = os.fork()
    if not child:
        os.close(alive)
        os.set_inheritable(held, False)
        _end_with(parent)
        return
    os.close(held)
    # Whoever reads the worker's answers is to see their end when the worker ends, not when we do.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    sys.exit(_watch(child, alive))


def _end_with(parent: int) -> None:
    """An orphan's parent would be process 1, and the group of that is not ours to end."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) or os.getppid() != parent:
        os._exit(1)


def _watch(child: int, alive: int) -> int:
    poll = select.poll()
    poll.register(alive, 0)  # POLLHUP is reported unasked: the child has ended
    poll.register(0, 0)  # POLLHUP: nobody will write to the child any more
    if alive not in dict(poll.poll()):
        poll.unregister(0)
        if not poll.poll(GRACE * 1000):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
