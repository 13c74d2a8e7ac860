"""Makes run after run, each in a process of its own that is forked once all is imported: on a busy machine to import
takes seconds. Some tests start the command as a user does; what all others run is the same but for that.

Its pictures are blank: to draw them takes as long as all the rest of a simulated run. What is started as a user does
draws them.

It reads lines of JSON from standard input: an `Asked` it answers with the process id of its run, and such an id, once
that run has ended, with its exit code.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLANK = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Asked:
    """A run: what is given is what a process is started with."""

    arguments: Sequence[str]
    """Of pdrgate."""
    simulation: dict[str, Any] | None
    """What a simulated SUT is like; None: the SUT is a real one."""
    cwd: str
    environment: dict[str, str]
    stdout: str
    """Path of a file; the same for standard error."""
    stderr: str
    seconds: int
    """After which it is killed."""
    patience: float | None = None
    """Seconds for which an SSH server that went away is tried again; None: as many as always."""


def serve() -> None:
    """Make the runs that standard input asks for, until it ends."""
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fakes")]
    # What a run imports only when it needs it is imported here, too: else each fork would do it anew.
    import allure_robotframework  # noqa: F401
    import robot.run  # noqa: F401
    import scipy.special  # noqa: F401
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from simulation import simulate  # type: ignore[import-not-found]

    import PdrGate  # noqa: F401
    import pdrgate.history.database.importing
    import pdrgate.reports.plots  # noqa: F401
    from pdrgate.cli import main
    from pdrgate.hosts.ssh import SshConnection
    from pdrgate.reports.markup.html import templates
    from pdrgate.this_process.interruption import interruptible

    Figure.savefig = lambda self, file, **how: file.write(_BLANK)  # type: ignore[method-assign,assignment]
    ConstrainedLayoutEngine.execute = lambda self, figure: None  # type: ignore[method-assign]
    for name in templates().list_templates():
        templates().get_template(name)

    # Nor shall each fork look through, and so copy, all that is here.
    gc.collect()
    gc.freeze()

    for line in sys.stdin:
        told = json.loads(line)
        if isinstance(told, int):
            _, status = os.waitpid(told, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        asked = Asked(**told)
        pid = os.fork()
        if pid == 0:
            _become(asked)
            if asked.patience is not None:
                *others, _ = SshConnection.__init__.__defaults__ or ()
                SshConnection.__init__.__defaults__ = (*others, asked.patience)
            real = asked.simulation is None
            with interruptible():
                code = main(list(asked.arguments)) if real else simulate(asked.simulation, asked.arguments)
            sys.exit(code)
        print(pid, flush=True)


def _become(asked: Asked) -> None:
    signal.alarm(asked.seconds)
    os.setsid()  # what reaches the tests as a group reaches them alone
    os.chdir(asked.cwd)
    os.environ.clear()
    os.environ.update(asked.environment)
    for fd, path in ((0, os.devnull), (1, asked.stdout), (2, asked.stderr)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, fd)
        os.close(opened)


if __name__ == "__main__":
    serve()
