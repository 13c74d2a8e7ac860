"""What every host does, however it is reached."""

from __future__ import annotations

import signal

from pdrgate.hosts.host import ShellHost


def check_a_program_runs_beside_others(host: ShellHost) -> None:
    """It runs while commands do, until it is stopped, and tells then what it said."""
    script = "trap 'echo bye; exit 3' TERM; echo out; echo err >&2; while :; do sleep 0.01; done"
    running = host.start("sh", "-c", script)
    assert host.run("echo", "beside").stdout == "beside\n"
    while host.read(f"{running._folder}/err") == "":
        pass
    completed = running.stop()
    assert (completed.exit_code, completed.stdout, completed.stderr) == (3, "out\nbye\n", "err\n")
    assert running.stop() == completed
    assert host.start("sleep", "600").stop().exit_code == 128 + signal.SIGTERM
    assert host.start("pdrgate-nope").stop().exit_code in (127, 128 + signal.SIGTERM)
