"""Events in a file of Retis that show who dropped packets."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import TestbedError

_READER = Path(__file__).with_name("reader.py")
_TIMEOUT = 300.0
"""Seconds that reading may take; 17 000 events are read in one."""
MOST_EVENTS = 200_000
"""Dropped packets that are read of a file."""
_RAISED = re.compile(r"^\w[\w.]*(?:Error|Exception): (.+)$", re.MULTILINE)
_FREES = re.compile(r"kfree_skb|skb_reason_drop|skb_release|skb_free")
"""Functions that free a dropped packet, and are not what drops it."""
_TRACES = re.compile(r"bpf_|__bpf|__traceiter")
_FRAMES = 10
"""Innermost ones that may be the look itself, and what frees."""
_BELOW = frozenset(
    ("net_rx_action", "__do_softirq", "handle_softirqs", "do_softirq", "__softirqentry_text_start", "do_syscall_64")
)
"""Functions where a packet's way through the kernel begins."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A packet that the kernel dropped."""

    reason: str
    """The kernel's own, as NO_SOCKET; NOT_SPECIFIED where it has none."""
    stack: tuple[str, ...]
    """Functions with offsets, the innermost first; empty if the collector had no room for it."""
    netns: int | None
    """The network namespace's inode number."""
    packet: str
    """The packet's headers in a line."""
    device: str


def bindings_missing() -> str:
    """Advice on what to install to read events; empty if nothing is missing."""
    if importlib.util.find_spec("retis") is not None:
        return ""
    return "what Retis collects is read by its Python bindings, which are missing: pip install 'pdrgate[retis]'"


def read_events(path: Path, most: int = MOST_EVENTS) -> Iterator[Dropped]:
    """The first dropped packets of an events file, in its order, one by one. Raises TestbedError on the way there."""
    if missing := bindings_missing():
        raise TestbedError(missing)
    decoder = msgspec.json.Decoder(Dropped)
    command = (sys.executable, str(_READER), str(path), str(most))
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=child_environment()) as reader,
    ):
        patience = threading.Timer(_TIMEOUT, reader.kill)
        patience.start()
        try:
            assert reader.stdout is not None
            yield from map(decoder.decode, reader.stdout)
            code = reader.wait()
        finally:
            late = not patience.is_alive()
            patience.cancel()
            reader.kill()
        if late:
            raise TestbedError(f"{path}: Retis's Python bindings did not read it within {_TIMEOUT:g} s; is this "
                               "machine overloaded?")  # fmt: skip
        if code:
            errors.seek(0)
            output = errors.read().decode(errors="replace")
            # After it, where there is one, comes the bindings' own stack.
            said = found[1] if (found := _RAISED.search(output)) else output.strip().rpartition("\n")[2]
            raise TestbedError(
                f"{path}: Retis's Python bindings cannot read it: {said}; is the collector newer than they?"
            )


def way(stack: Sequence[str]) -> tuple[str, ...]:
    """The functions that a packet went through, from the outermost that has to do with packets to who dropped it."""
    names = [frame.partition("+")[0] for frame in stack]
    begin = 0
    for at, name in enumerate(names[:_FRAMES]):
        if _FREES.search(name) or _TRACES.match(name):
            begin = at + 1
    end = next((at for at, name in enumerate(names) if at >= begin and name in _BELOW), len(names))
    return tuple(reversed(names[begin:end]))
