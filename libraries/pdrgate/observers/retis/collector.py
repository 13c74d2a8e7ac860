"""The collector on the SUT's host: is it there, does it run, and what has it written."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pdrgate.hosts.host import Host, HostError, Running
from pdrgate.values.errors import TestbedError

LARGEST_COLLECTION = 32 << 20
"""Bytes of events at most, some 35 000 of them: a guest has them in memory, and so has who reads them."""

_INSTALL = "install it there (dnf install retis; elsewhere see https://retis.readthedocs.io/en/stable/install/)"
_PROBES = (
    "--collectors", "skb,skb-drop,dev,ns", "--probe", "tp:skb:kfree_skb/stack",
    # It looks at tracefs, and unmounts it again where it was not mounted.
    "--allow-system-changes",
)  # fmt: skip
_BLOCK = 512
_RUN = """cd "$1" && echo $$ >pid || exit
trap '' XFSZ
ulimit -f "$2"
shift 2
unshare -m true 2>/dev/null && set -- unshare -m "$@"
exec "$@" >said 2>&1"""
"""Script that runs the collector. A full file fails the next write, by which Retis ends. Its mounts are gone with it,
also when it is killed."""
_LOOK = """[ -s "$1/pid" ] || exit 0
read -r pid <"$1/pid"
grep -q "^State:.[^ZX]" "/proc/$pid/status" 2>/dev/null || ended=ended
cat "$1/said"
[ -z "$ended" ] || echo ended"""
"""Script that prints the output of a collection, and whether it has ended.

The file of its process id exists before the id is in it. The output is read last: it is complete if the collection has
ended.
"""
_LOADED = re.compile(r"^(?:\S+ +)?\d+ probe\(s\) loaded", re.MULTILINE)
_MISSED = re.compile(r"\btotal events lost: (\d+)")
_BUSY = """read -r pid <"$1/pid" && cut -d ' ' -f 14,15 "/proc/$pid/stat"; stat -c %s "$1/events" 2>/dev/null"""
"""Ticks of CPU time that it has used, and bytes that it has written."""
_IDLE, _QUIET = 1, 4
"""Largest number of ticks between two looks at which it only waits, and number of such looks: now and then it looks at
the kernel's events."""
_PAUSE, _LOOKS = 0.2, 300
"""Seconds between looks at whether it collects, and looks: it reads the kernel's types first, which takes an emulated
guest 5 s."""
_SIZE = """stat -c %s "$1/events" 2>/dev/null || echo 0"""
_PACK = {
    False: 'gzip -c "$1/events" | base64',
    # The last line has no end.
    True: """head -c "$2" "$1/events" | sed '$d' | gzip -c | base64""",
}
"""Commands that pack the events, by whether the file was full."""
_FETCH = 120.0
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Collected:
    """State of a collection besides its file."""

    full: bool = False
    """Whether the file was full, and the collector ended then: what was dropped afterwards, nobody looked at."""
    missed: int = 0
    """Dropped packets, of the whole machine, that the collector was too slow for; unknown if the file was full."""


def version_of(machine: Host) -> str:
    """The version of the collector on a host. Raises TestbedError if none is installed."""
    version = machine.run("retis", "--version", check=False)
    if version.exit_code:
        raise TestbedError(
            f"{machine.name} has no retis that runs ({_last(version.stderr) or 'not found'}); {_INSTALL}; a guest "
            "gets the one on this machine's PATH"
        )
    return version.stdout.strip().removeprefix("retis ").partition(" ")[0]


class Collection:
    """Collection of a machine's drops from `__init__` to `end`; a context manager that ends it.

    Args:
        machine: the whole machine, for a network namespace has no tracefs of its own.

    Raises:
        TestbedError: its kernel cannot be looked at.
    """

    def __init__(self, machine: Host) -> None:
        self._machine = machine
        self._running: Running | None = None
        self._folder = machine.folder("retis")
        try:
            collect = ("retis", "collect", "--out", "events", *_PROBES)
            self._running = machine.start(
                "sh", "-c", _RUN, "sh", self._folder, str(LARGEST_COLLECTION // _BLOCK), *collect
            )
            self._await()
        except BaseException:
            self.close()
            raise

    def end(self, into: Path) -> Collected:
        """Stop, and write the first `LARGEST_COLLECTION` bytes of whole events to a file for Retis.

        Raises:
            TestbedError: it ended before, or what it has written cannot be had.
            OSError: the file cannot be written.
        """
        self._settle()
        running, self._running = self._running, None
        assert running is not None
        code = running.stop().exit_code
        full = int(self._ask(_SIZE)) >= LARGEST_COLLECTION
        if code and not full:
            raise TestbedError(f"retis on {self._machine.name} ended by itself: {self._why()}")
        self._fetch(into, full)
        missed = _MISSED.search(self._said())
        return Collected(full, int(missed[1]) if missed and not full else 0)

    def close(self) -> None:
        """End it and remove what it wrote there. Calling it twice is harmless."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self) -> None:
        for _ in range(_LOOKS):
            said = self._ask(_LOOK)
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
            done = sum(map(int, self._ask(_BUSY).split()))
            quiet = quiet + 1 if 0 <= done - before <= _IDLE else 0
            if quiet == _QUIET:
                return
            before = done
            time.sleep(_PAUSE)

    def _fetch(self, into: Path, full: bool) -> None:
        script = ("sh", "-c", _PACK[full], "sh", self._folder, str(LARGEST_COLLECTION))
        packed = self._machine.run(*script, timeout=_FETCH).stdout
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # as gzip does
        with into.open("xb") as file:
            try:
                left = base64.b64decode(packed)
                while left and not unpack.eof:
                    file.write(unpack.decompress(left, _CHUNK))
                    left = unpack.unconsumed_tail
            except (binascii.Error, zlib.error):
                pass  # nor is it whole
            if not unpack.eof:
                into.unlink()
                raise TestbedError(f"what retis on {self._machine.name} has written did not arrive whole; try again")

    def _ask(self, script: str) -> str:
        return self._machine.run("sh", "-c", script, "sh", self._folder, check=False).stdout

    def _said(self) -> str:
        return self._machine.run("cat", f"{self._folder}/said", check=False).stdout

    def _why(self) -> str:
        said = self._said()
        errors = re.findall(r"^Error: (.+)$", said, re.MULTILINE)
        return str(errors[0]) if errors else _last(said) or "without a word"


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2]
