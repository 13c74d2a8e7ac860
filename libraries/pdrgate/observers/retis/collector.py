"""The collector on the SUT's host: is it there, does it run, and what has it written."""

from __future__ import annotations

import base64
import binascii
import contextlib
import gzip
import re
import time
from types import TracebackType
from typing import Self

from pdrgate.errors import TestbedError
from pdrgate.hosts.host import Host, HostError, Running

_INSTALL = "install it there (dnf install retis; elsewhere see https://retis.readthedocs.io/en/stable/install/)"
_PROBES = (
    "--collectors", "skb,skb-drop,dev,ns", "--probe", "tp:skb:kfree_skb/stack",
    # It looks at tracefs, and unmounts it again where it was not mounted.
    "--allow-system-changes",
)  # fmt: skip
_RUN = 'cd "$1" && echo $$ >pid && shift && exec "$@" >said 2>&1'
_LOOK = """[ -e "$1/pid" ] || exit 0
cat "$1/said"
read -r pid <"$1/pid"
grep -q "^State:.[^ZX]" "/proc/$pid/status" 2>/dev/null || echo ended"""
_LOADED = re.compile(r"^(?:\S+ +)?\d+ probe\(s\) loaded", re.MULTILINE)
_BUSY = """read -r pid <"$1/pid" && cut -d ' ' -f 14,15 "/proc/$pid/stat"; stat -c %s "$1/events" 2>/dev/null"""
"""Ticks of CPU time that it has used, and bytes that it has written."""
_IDLE, _QUIET = 1, 4
"""Of these, at most, between looks when it only waits; and so many such looks, for it looks at the kernel's events
now and then."""
_PAUSE, _LOOKS = 0.2, 300
"""Seconds between looks at whether it collects, and looks: it reads the kernel's types first, which takes an emulated
guest 5 s."""
_FETCH = 120.0


class Retis:
    """The collector of a host.

    Args:
        machine: the host's whole machine, for a network namespace has no tracefs of its own.

    Raises:
        TestbedError: it is not installed there.
    """

    def __init__(self, machine: Host) -> None:
        self._machine = machine
        told = machine.run("retis", "--version", check=False)
        if told.exit_code:
            raise TestbedError(
                f"{machine.name} has no retis that runs ({_last(told.stderr) or 'not found'}); {_INSTALL}; a guest "
                "gets the one on this machine's PATH"
            )
        self.version = told.stdout.strip().removeprefix("retis ").partition(" ")[0]

    def collecting(self) -> Collection:
        """Begin to collect what the machine drops. Raises TestbedError when its kernel cannot be looked at."""
        return Collection(self._machine)


class Collection:
    """What is dropped from `__init__` to `end`; a context manager that ends it."""

    def __init__(self, machine: Host) -> None:
        self._machine = machine
        self._running: Running | None = None
        self._folder = machine.run("mktemp", "-d", "/tmp/pdrgate-retis.XXXXXX").stdout.strip()
        try:
            collect = ("retis", "collect", "--out", "events", *_PROBES)
            self._running = machine.start("sh", "-c", _RUN, "sh", self._folder, *collect)
            self._await()
        except BaseException:
            self.close()
            raise

    def end(self) -> bytes:
        """Stop; what was collected, a file for Retis. Raises TestbedError when it ended before, or cannot be had."""
        self._settle()
        running, self._running = self._running, None
        assert running is not None
        if running.stop().exit_code:
            raise TestbedError(f"retis on {self._machine.name} ended by itself: {self._why()}")
        pack = 'gzip -c "$1/events" | base64'
        packed = self._machine.run("sh", "-c", pack, "sh", self._folder, timeout=_FETCH).stdout
        try:
            return gzip.decompress(base64.b64decode(packed))
        except (binascii.Error, OSError, EOFError) as error:
            raise TestbedError(
                f"what retis on {self._machine.name} has written did not arrive whole: {error}"
            ) from error

    def close(self) -> None:
        """End it and remove what it wrote there; may be called twice."""
        running, self._running = self._running, None
        with contextlib.suppress(HostError):  # it ended before, with the shell that it was started from
            if running is not None:
                running.stop()
        folder, self._folder = self._folder, ""
        if folder:
            with contextlib.suppress(HostError):
                self._machine.run("rm", "-rf", folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _await(self) -> None:
        for _ in range(_LOOKS):
            said = self._machine.run("sh", "-c", _LOOK, "sh", self._folder, check=False).stdout
            if _LOADED.search(said):
                return
            if said.endswith("ended\n"):
                raise TestbedError(f"retis on {self._machine.name} cannot look at this kernel: {self._why()}")
            time.sleep(_PAUSE)
        raise TestbedError(f"retis on {self._machine.name} does not begin to collect: {self._why()}")

    def _settle(self) -> None:
        """Wait until it has nothing left to do: what it has not taken from the kernel when it is stopped is lost."""
        before, quiet = 0, 0
        for _ in range(_LOOKS):
            told = self._machine.run("sh", "-c", _BUSY, "sh", self._folder, check=False).stdout
            done = sum(map(int, told.split()))
            quiet = quiet + 1 if 0 <= done - before <= _IDLE else 0
            if quiet == _QUIET:
                return
            before = done
            time.sleep(_PAUSE)

    def _why(self) -> str:
        said = self._machine.run("cat", f"{self._folder}/said", check=False).stdout
        errors = re.findall(r"^Error: (.+)$", said, re.MULTILINE)
        return str(errors[0]) if errors else _last(said) or "without a word"


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2]
