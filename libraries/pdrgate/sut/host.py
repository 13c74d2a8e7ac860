"""Access to a machine: run a command, read and write a file.

Everything pdrgate does to a SUT goes through a `Host`, so that the same code drives this machine, a network namespace,
a VM or a machine reached by SSH. `ShellHost` keeps one POSIX shell open per host and frames each command's output with
a random token: a command then costs one fork and exec on the host, and no new session, namespace switch or connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import select
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Protocol, Self

from pdrgate.errors import TestbedError

DEFAULT_TIMEOUT = 10.0
"""Seconds a command may take unless the caller says otherwise."""

MAX_OUTPUT = 64 << 20
"""Bytes of output after which a command is taken to have run wild."""

_OPEN_TIMEOUT = 10.0
_CLOSE_TIMEOUT = 2.0
_CHUNK = 1 << 16
_NETNS = "netns:"


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended. An ``exit_code`` of 128 + n means signal n, as shells say it."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


class HostError(TestbedError):
    """The host could not carry out a command: no shell, a shell that died, a command that did not end in time."""


class CommandError(TestbedError):
    """A command ran and failed. ``completed`` holds all of its output."""

    def __init__(self, host: str, what: str, completed: Completed) -> None:
        self.host = host
        self.completed = completed
        why = _last_line(completed.stderr)
        hint = "; is it installed there?" if completed.exit_code == 127 else ""
        super().__init__(f"{what} on {host} failed with exit code {completed.exit_code}{why and f': {why}'}{hint}")


class Host(Protocol):
    """A machine, or a part of one with a network of its own. Its ``name`` is what `open_host` opens it by."""

    @property
    def name(self) -> str: ...

    def run(self, *argv: str, timeout: float = DEFAULT_TIMEOUT, check: bool = True) -> Completed:
        """Run a program with an empty standard input and wait for it, at most ``timeout`` seconds.

        Raises:
            CommandError: ``check`` is true and the exit code is not 0.
            HostError: it did not end in time, or the way to the host broke; the next command starts anew.
        """

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        """Run a program that prints JSON (``ip -j``, ``ethtool --json``, ``bpftool -j``); `[]` if it prints nothing."""

    def read(self, path: str) -> str:
        """The whole text of a file, its last newline included. Raises CommandError when it cannot be read."""

    def write(self, path: str, text: str) -> None:
        """Write a file, in one system call when it is short. Raises CommandError when the kernel refuses the text."""

    def exists(self, path: str) -> bool: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class ShellHost:
    """A `Host` behind one POSIX shell that is opened at first use and again after it was lost.

    ``opener`` is the command that starts the shell: ``sh``, ``ip netns exec NAME sh``, ``ssh HOST sh``. Programs left
    running in the shell's process group end with it. One command runs at a time; threads may share a host.
    """

    def __init__(self, name: str, opener: Sequence[str]) -> None:
        self._name = name
        self._opener = tuple(opener)
        self._shell: _Shell | None = None
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    def run(self, *argv: str, timeout: float = DEFAULT_TIMEOUT, check: bool = True) -> Completed:
        # exec runs programs only: no argv can be a builtin that ends or alters the shell itself.
        completed = self._script(argv, f"(exec {shlex.join(argv)} </dev/null)", timeout)
        if check and completed.exit_code != 0:
            raise CommandError(self._name, f"`{_shown(argv)}`", completed)
        return completed

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        text = self.run(*argv, timeout=timeout).stdout
        try:
            return json.loads(text) if text.strip() else []
        except ValueError as error:
            raise HostError(
                f"`{_shown(argv)}` on {self._name} printed no JSON ({error}); is that program too old there?"
            ) from error

    def read(self, path: str) -> str:
        # Not the shell's own `read`: it reads byte by byte, and /proc/sys gives nothing beyond the first byte then.
        completed = self._script(("cat", path), f"cat < {shlex.quote(path)}", DEFAULT_TIMEOUT)
        if completed.exit_code != 0:
            raise CommandError(self._name, f"reading {path}", completed)
        return completed.stdout

    def write(self, path: str, text: str) -> None:
        put, target = f"printf %s {shlex.quote(text)}", shlex.quote(path)
        # The builtin costs no fork but some shells do not say why a write failed: on failure cat says it.
        script = f"{put} 2>/dev/null >{target} || {put} | cat >{target}"
        completed = self._script(("write", path), script, DEFAULT_TIMEOUT)
        if completed.exit_code != 0:
            raise CommandError(self._name, f"writing {_shown((text.strip(),))} to {path}", completed)

    def exists(self, path: str) -> bool:
        return self._script(("test", "-e", path), f"[ -e {shlex.quote(path)} ]", DEFAULT_TIMEOUT).exit_code == 0

    def close(self) -> None:
        with self._turn:
            if self._shell is not None:
                self._shell.end()
                self._shell = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _script(self, argv: tuple[str, ...], script: str, timeout: float) -> Completed:
        if not argv or not argv[0] or "\0" in script:
            raise ValueError(f"{argv!r} is no command: it is empty or holds a NUL")
        with self._turn:
            if self._shell is None:
                self._shell = self._open()
            try:
                code, out, err = self._shell.execute(script, timeout)
            except _ShellError as lost:
                raise HostError(f"`{_shown(argv)}` on {self._name} {lost}") from None
            finally:
                if not self._shell.in_step:
                    self._shell.kill()
                    self._shell = None
            return Completed(argv, code, out.decode(errors="replace"), err.decode(errors="replace"))

    def _open(self) -> _Shell:
        try:
            shell = _Shell(self._opener)
        except OSError as error:
            raise HostError(
                f"cannot start a shell on {self._name} with `{_shown(self._opener)}`: {error.strerror}; "
                f"install {self._opener[0]} and put it on the PATH"
            ) from error
        try:
            # Messages in English, and the tools that a plain user's PATH leaves out.
            shell.execute("export LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin", _OPEN_TIMEOUT)
        except _ShellError as lost:
            raise HostError(f"cannot open a shell on {self._name}: `{_shown(self._opener)}` {lost}") from None
        finally:
            if not shell.in_step:
                shell.kill()
        return shell


def local_host() -> ShellHost:
    """This machine, named ``local``."""
    return ShellHost("local", ("sh",))


def netns_host(namespace: str) -> ShellHost:
    """A network namespace of this machine, named ``netns:NAMESPACE``.

    Its /proc/sys/net and /sys/class/net are the namespace's own; all other files are the machine's.
    """
    return ShellHost(_NETNS + namespace, ("ip", "netns", "exec", namespace, "sh"))


def open_host(name: str) -> ShellHost:
    """The host of that name, as `Host.name` gives it. Raises HostError when the name is of no known kind."""
    if name == "local":
        return local_host()
    if name.startswith(_NETNS):
        return netns_host(name.removeprefix(_NETNS))
    raise HostError(f"unknown host {name!r}; known are local and {_NETNS}NAME")


def read_files(host: Host, paths: Iterable[str]) -> dict[str, str]:
    """The texts of several files with one command, by path; those that cannot be read are left out."""
    wanted = tuple(paths)
    if len(wanted) == 1:
        # tail heads its output only when it is given several files.
        wanted = (*wanted, "/dev/null")
    texts = split_files(host.run("tail", "-n", "+1", *wanted, check=False).stdout)
    return {path: texts[path] for path in wanted if path in texts and path != "/dev/null"}


def split_files(text: str) -> dict[str, str]:
    """Take apart what ``tail -n +1 FILE…`` prints: `==> PATH <==`, the text, an empty line before the next head."""
    parts = re.split(r"(?:\A|\n)==> (.+) <==\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class _ShellError(Exception):
    """What became of a command whose shell can no longer be used; a sentence without its subject."""


class _Shell:
    """One shell process. ``in_step`` is false from the start of a command until all of its output was seen."""

    def __init__(self, opener: Sequence[str]) -> None:
        self.in_step = True
        self._closed = False
        self._token = secrets.token_hex(16)
        self._count = 0
        self._process = subprocess.Popen(
            opener, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True,
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

    def execute(self, script: str, timeout: float) -> tuple[int, bytes, bytes]:
        """Run ``script``; return its exit code and what it printed on stdout and stderr."""
        self.in_step = False
        self._count += 1
        mark = f"{self._token}{self._count}"
        text = f"{script}\nprintf '\\n{mark} %d\\n' $?; printf '\\n{mark}\\n' >&2\n"
        out, err = self._converse(text.encode(errors="surrogateescape"), f"\n{mark}".encode(), timeout)
        self.in_step = True
        return int(out.after), bytes(out.text), bytes(err.text)

    def _converse(self, pending: bytes, mark: bytes, timeout: float) -> tuple[_Framed, _Framed]:
        deadline = time.monotonic() + timeout
        framed = {self._stdout: _Framed(mark), self._stderr: _Framed(mark)}
        pending = self._send(pending)
        if pending:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        while not all(one.ended for one in framed.values()):
            left = deadline - time.monotonic()
            ready = {key.fd for key, _ in self._selector.select(left)} if left > 0 else set()
            if not ready:
                raise _ShellError(f"did not end within {timeout:g} s and was killed; is the host overloaded or stuck?")
            for fd in ready & framed.keys():
                framed[fd].add(_receive(fd))
            if sum(len(one.text) for one in framed.values()) > MAX_OUTPUT:
                raise _ShellError(f"printed more than {MAX_OUTPUT >> 20} MiB and was killed; send its output to a file")
            if self._pidfd in ready:
                for fd, one in framed.items():
                    one.add(_receive(fd))
                raise _ShellError(self._end_in_words(framed[self._stderr]))
            if self._stdin in ready:
                pending = self._send(pending)
                if not pending:
                    self._selector.unregister(self._stdin)
        return framed[self._stdout], framed[self._stderr]

    def _send(self, text: bytes) -> bytes:
        """Send what the pipe takes, return the rest; a dead shell is left for its pidfd to tell."""
        try:
            return text[os.write(self._stdin, text) :]
        except (BlockingIOError, BrokenPipeError):
            return text

    def _end_in_words(self, stderr: _Framed) -> str:
        self.kill()
        code = self._process.returncode
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        why = _last_line(stderr.text.decode(errors="replace"))
        return f"got no answer: its shell {how}{why and f': {why}'}"

    def kill(self) -> None:
        """End the shell and its process group at once. Harmless when that happened before."""
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

    def end(self) -> None:
        """Let the shell end by itself (a remote one must see the end of its input), then make sure."""
        if not self._closed and self._process.stdin is not None:
            self._process.stdin.close()
            # Wait without reaping: the process group's number then stays taken.
            exited = select.poll()
            exited.register(self._pidfd, select.POLLIN)
            exited.poll(_CLOSE_TIMEOUT * 1000)
        self.kill()


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


def _receive(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""


def _descriptor(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(shlex.join(argv).split())
    return text if len(text) <= 160 else f"{text[:150]}…"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return re.sub(r"^sh: (line )?\d+: ", "", lines[-1].strip()) if lines else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
