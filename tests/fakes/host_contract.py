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


def check_a_folder_goes_with_the_shell(host: ShellHost) -> None:
    """At the latest, as do those of programs; whoever removes it before is in nobody's way."""
    made, removed = host.folder("made"), host.folder("removed")
    assert made.startswith("/tmp/pdrgate-made.")
    assert host.run("ls", "-a", made).stdout.split() == [".", ".."]
    host.write(f"{made}/file", "text")
    host.run("rm", "-r", removed)
    running = host.start("sleep", "600")
    host.start("true").stop()
    host.close()
    for path in (made, removed, running._folder):
        assert not host.exists(path)
