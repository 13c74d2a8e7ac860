"""A POSIX shell at the other end of byte streams, and the framing of its answers.

`Shell` frames the output of each command with a random token. It is independent of how the bytes travel: that is a
`ShellStreams`, such as the pipes of a process (`ProcessStreams`) or a channel of an SSH connection.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from pdrgate.this_process.child_environment import child_environment

MAX_OUTPUT = 64 << 20
"""Bytes of output after which a command is taken to have run wild."""

_EXIT_CODE = re.compile(rb" (\d{1,3})")
_CLOSE_TIMEOUT = 2.0
_CHUNK = 1 << 16
_NOTHING = 0.1
"""Seconds for which a machine may wait for a CPU without being starved."""


class ShellError(Exception):
    """Loss of a shell during a command. The message is a sentence without its subject."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Bytes of one `ShellStreams.exchange`; empty when its time was over."""

    sent: int = 0
    """Bytes that were taken."""
    out: bytes = b""
    err: bytes = b""
    ended: bool = False
    """Whether the shell has ended. All that it ever printed has then been returned."""


class ShellStreams(Protocol):
    """The way to a running shell and back."""

    @property
    def lost(self) -> bool:
        """Whether it is certain, without asking, that no command would reach the shell. It may then be replaced
        unseen."""

    def exchange(self, pending: bytes, timeout: float) -> Exchange:
        """Send a part of ``pending``. Wait at most ``timeout`` s until the shell prints, takes more or ends."""

    def end_in_words(self) -> str:
        """Words for how the shell ended: ``its shell was killed by SIGKILL``. Call it only after an exchange has
        ended."""

    def finish(self) -> None:
        """Give the shell a short time to end by itself; `kill` follows."""

    def kill(self) -> None:
        """End the shell and what runs in its process group at once. Harmless when that happened before."""


class Shell:
    """One running shell. ``in_step`` is false from the start of a command until all of its output was seen.

    Args:
        starved: seconds since a command was last given in which the shell's machine could not run. The command has
            that much longer.
    """

    def __init__(self, streams: ShellStreams, starved: Callable[[], float] = lambda: 0.0) -> None:
        self.in_step = True
        self._starved = starved
        self.streams = streams
        self._token = secrets.token_hex(16)
        self._count = 0

    @property
    def lost(self) -> bool:
        """Whether the way to the shell is known to be gone."""
        return self.streams.lost

    def execute(self, script: str, timeout: float, fed: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run ``script``, and return its exit code and what it printed on stdout and stderr.

        Args:
            fed: what the script reads from its standard input, to the last byte. The shell takes its commands from
                there too, so the bytes are sent once the script runs, and no command is sent behind them.

        Raises:
            ShellError: it did not end within ``timeout`` seconds, printed too much, or the shell was lost.
        """
        self.in_step = False
        self._count += 1
        mark = f"{self._token}{self._count}"
        text = f"{script}\nprintf '\\n{mark} %d\\n' $?; printf '\\n{mark}\\n' >&2\n"
        if fed:
            # In braces: the shell has read all of it before it runs the first of it.
            text = f"{{ printf '{mark}\\n'\n{text}}}\n"
        out, err = self._converse(text.encode(errors="surrogateescape"), f"\n{mark}".encode(), timeout, fed)
        code = _EXIT_CODE.fullmatch(out.after)
        if code is None:
            raise ShellError("got an answer without an exit code and was killed; something else writes to its shell")
        self.in_step = True
        return int(code[1]), bytes(out.text), bytes(err.text)

    def _converse(self, pending: bytes, mark: bytes, timeout: float, fed: bytes) -> tuple[_Framed, _Framed]:
        deadline, granted = time.monotonic() + timeout, 0.0
        out, err = _Framed(mark), _Framed(mark)
        runs = mark[1:] + b"\n"
        while not (out.ended and err.ended):
            left = deadline - time.monotonic()
            heard = self.streams.exchange(pending, left) if left > 0 else Exchange()
            if heard == Exchange():
                if (starved := self._starved()) > granted + _NOTHING:
                    deadline += starved - granted
                    granted = starved
                    continue
                raise ShellError(f"did not end within {timeout:g} s and was killed; is the host overloaded or stuck?")
            pending = pending[heard.sent :]
            out.add(heard.out)
            err.add(heard.err)
            if fed and out.text.startswith(runs):
                del out.text[: len(runs)]
                pending, fed = fed, b""
            if len(out.text) + len(err.text) > MAX_OUTPUT:
                raise ShellError(f"printed more than {MAX_OUTPUT >> 20} MiB and was killed; send its output to a file")
            if heard.ended and not (out.ended and err.ended):
                why = last_line(err.text.decode(errors="replace"))
                raise ShellError(f"got no answer: {self.streams.end_in_words()}{why and f': {why}'}")
        return out, err

    def kill(self) -> None:
        """End the shell and its process group at once. Harmless when that happened before."""
        self.streams.kill()

    def end(self) -> None:
        """Let the shell end by itself (a remote one must see the end of its input), then make sure."""
        self.streams.finish()
        self.streams.kill()


class ProcessStreams:
    """The pipes of a shell that is a process of this machine, in a session of its own.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._closed = False
        self._deaf = False
        """Whether nobody reads what is sent, because the shell is about to end. Its pidfd then reports the end."""
        self._watching = False
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, env=child_environment(),
        )  # fmt: skip
        self._pidfd = os.pidfd_open(self._process.pid)
        self._stdin, self._stdout, self._stderr = (
            _descriptor(stream) for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._selector = selectors.DefaultSelector()
        for fd in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(fd, False)
        for fd in (self._stdout, self._stderr, self._pidfd):
            self._selector.register(fd, selectors.EVENT_READ)

    @property
    def lost(self) -> bool:
        # A shell of this machine that is gone was killed by somebody: that is reported, and not passed over.
        return False

    def exchange(self, pending: bytes, timeout: float) -> Exchange:
        try:
            return self._exchange(pending, timeout)
        except (OSError, ValueError, KeyError):
            if not self._closed:
                raise
            # An interruption had another thread end the shell meanwhile, and its descriptors are gone.
            return Exchange(ended=True)

    def _exchange(self, pending: bytes, timeout: float) -> Exchange:
        deadline = time.monotonic() + timeout
        heard = Exchange()
        # Streams that have ended say so once and wake nobody again: the shell's own end then does.
        while heard == Exchange() and (left := deadline - time.monotonic()) > 0:
            sent = self._send(pending)
            self._watch_for_room(sent < len(pending) and not self._deaf)
            ready = {key.fd for key, _ in self._selector.select(left)}
            if self._stdin in ready and not sent:
                sent = self._send(pending)
            out, err = (self._receive(fd) if fd in ready else b"" for fd in (self._stdout, self._stderr))
            if ended := self._pidfd in ready:
                # It may have printed more before it ended than was there a moment ago.
                out, err = out + _receive_all(self._stdout), err + _receive_all(self._stderr)
            heard = Exchange(sent, out, err, ended)
        return heard

    def _receive(self, fd: int) -> bytes:
        chunk = _receive(fd)
        if not chunk:
            self._selector.unregister(fd)
        return chunk

    def end_in_words(self) -> str:
        self.kill()
        code = self._process.returncode
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return f"its shell {how}"

    def finish(self) -> None:
        if not self._closed and self._process.stdin is not None:
            # Another thread may end the shell meanwhile.
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.close()
                # Wait without reaping: the process group's number then stays taken.
                exited = select.poll()
                exited.register(self._pidfd, select.POLLIN)
                exited.poll(_CLOSE_TIMEOUT * 1000)

    def kill(self) -> None:
        if not self._closed:
            self._closed = True
            # Before the shell is reaped, so that its process group's number cannot have passed to another.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSE_TIMEOUT)
            self._selector.close()
            os.close(self._pidfd)
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()

    def _send(self, text: bytes) -> int:
        """Send what the pipe takes, return how much that was."""
        if not text or self._deaf:
            return 0
        try:
            return os.write(self._stdin, text)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self._deaf = True
            self._watch_for_room(False)
            return 0

    def _watch_for_room(self, wanted: bool) -> None:
        if wanted and not self._watching:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        elif self._watching and not wanted:
            self._selector.unregister(self._stdin)
        self._watching = wanted


class _Framed:
    """One stream of one command: its text up to the mark, and what stands on the line after the mark."""

    def __init__(self, mark: bytes) -> None:
        self.text = bytearray()
        self.after = b""
        self.ended = False
        self._mark = mark

    def add(self, chunk: bytes) -> None:
        if self.ended:
            return
        start = max(0, len(self.text) - len(self._mark) - 16)
        self.text += chunk
        at = self.text.find(self._mark, start)
        if at >= 0 and (end := self.text.find(b"\n", at + 1)) >= 0:
            self.after = bytes(self.text[at + len(self._mark) : end])
            del self.text[at:]
            self.ended = True


def last_line(text: str) -> str:
    """The last line of what a shell or a program said on stderr, without the shell's own name and line number."""
    lines = text.strip().splitlines()
    return re.sub(r"^sh: (line )?\d+: ", "", lines[-1].strip()) if lines else ""


def _receive(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""


def _receive_all(fd: int) -> bytes:
    chunks = []
    while chunk := _receive(fd):
        chunks.append(chunk)
    return b"".join(chunks)


def _descriptor(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
