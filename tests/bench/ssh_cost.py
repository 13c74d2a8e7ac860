"""What a command costs on a host: by this machine's own shell, by one shell over SSH, and by a channel for each.

    .venv/bin/python tests/bench/ssh_cost.py [--commands 200]

A real sshd on the loopback, so without a network's round trips. Prints medians and 90th percentiles in milliseconds,
what logging in takes, and the CPU time that an idle connection costs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from ssh_server import SshServer

from pdrgate.hosts.host import local_host
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.safety.locks import Lease, whole_machine

_IDLE = 5.0


def main() -> None:
    """Measure each way in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=200)
    arguments = parser.parse_args()
    with (
        Lease.acquire(whole_machine(), wait=900),
        tempfile.TemporaryDirectory() as place,
        SshServer(Path(place)) as server,
    ):
        connection = SshConnection(server.target)
        local, remote = local_host(), SshHost(connection)

        def by_channel() -> None:
            channel = connection.channel("true")
            channel.recv_exit_status()
            channel.close()

        def log_in() -> None:
            with SshHost(SshConnection(server.target), owns=True) as host:
                host.run("true")

        ways: list[tuple[str, Callable[[], object], int]] = [
            ("this machine's shell", lambda: local.run("true"), arguments.commands),
            ("one shell over SSH", lambda: remote.run("true"), arguments.commands),
            ("a channel each", by_channel, arguments.commands),
            ("a login each", log_in, max(5, arguments.commands // 20)),
        ]
        print(f"{'way':24}{'median ms':>12}{'90 % ms':>12}")
        for words, way, count in ways:
            way()
            times = sorted(_timed(way) for _ in range(count))
            print(f"{words:24}{1e3 * times[count // 2]:12.2f}{1e3 * times[count * 9 // 10]:12.2f}")
        before = time.process_time()
        time.sleep(_IDLE)
        print(f"idle: {1e3 * (time.process_time() - before) / _IDLE:.2f} ms of CPU time per second")
        remote.close()
        connection.close()
        local.close()


def _timed(way: Callable[[], object]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
