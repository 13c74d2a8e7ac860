"""A real PostgreSQL of the distribution's, for tests alone: a cluster in a folder of its own, with its socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_PLACES = "/usr/lib/postgresql"
"""Where Debian and Ubuntu have the programs, by version; none of them is in PATH there."""
_USERS = ("postgres", "nobody")


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; None where there is no server."""
    found = sorted(Path(_PLACES).glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]), reverse=True)
    one = str(found[0]) if found else shutil.which("initdb")
    return Path(one).resolve().parent if one else None


class PostgresqlServer:
    """From `start` to `stop`. It does not run as root, which it refuses."""

    def __init__(self) -> None:
        bin_folder = programs()
        assert bin_folder is not None
        self._programs = bin_folder
        # Not pytest's: its folders are root's alone, and their names too long for a socket.
        self.folder = Path(tempfile.mkdtemp(prefix="pdrgate-pg-"))
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            known = {one.pw_name for one in pwd.getpwall()}
            owner = pwd.getpwnam(next(name for name in _USERS if name in known))
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self._user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._do("initdb", "--auth=trust", "--username=pdrgate", "--no-sync", "--encoding=UTF8", "--locale=C")

    def start(self) -> None:
        """Until it takes connections."""
        options = f"-c listen_addresses='' -c fsync=off -k {self.folder}"
        self._do("pg_ctl", "--wait", "--silent", f"--log={self.folder}/log", f"--options={options}", "start")

    def stop(self) -> None:
        """At once, whatever is under way; may be called twice."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self._do("pg_ctl", "--wait", "--silent", "--mode=immediate", "stop")

    def remove(self) -> None:
        """Stop it, and leave nothing."""
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, database: str) -> str:
        """As `--history` takes it."""
        return f"postgresql://pdrgate@/{database}?host={self.folder}"

    def _do(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, f"--pgdata={self.folder}/data", *arguments], cwd=self.folder, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **self._user,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
