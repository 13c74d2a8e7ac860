"""Access to a machine: run a command, read and write a file.

Everything pdrgate does to a SUT goes through a `Host`, so that the same code drives this machine, a network namespace,
a VM or a machine reached by SSH. `ShellHost` keeps one POSIX shell open per host, see `pdrgate.hosts.shell`: a command
then costs one fork and exec on the host, and no new session, namespace switch or connection.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shlex
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from pdrgate.hosts.shell import ProcessStreams, Shell, ShellError, ShellStreams, last_line
from pdrgate.values.errors import SutError, TestbedError

DEFAULT_TIMEOUT = 10.0
"""Seconds a command may take unless the caller says otherwise."""
NOT_FOUND = 127
"""Exit code of a command whose program is not there."""

_OPEN_TIMEOUT = 10.0
_PUT_TIMEOUT = 120.0
_GRACE = 2
"""Seconds that a program has to end by itself."""
_NETNS = "netns:"
_END_TOGETHER = """\
read -r _ _ _ _ group _ </proc/$$/stat
end=
case $group in "$$" | "$PPID") [ "$group" = 1 ] || end='; kill -KILL 0' ;; esac
trap "rm -rf \\$left$end" EXIT HUP PIPE
forget() { kept=; for one in $left; do [ "$one" = "$1" ] || kept="$kept $one"; done; left=$kept; }
"""
"""A shell ends with all that it started, and removes the folders that were made for it (``$left``), also where this
program can no longer see to it: killed by SIGKILL, or on the other side of a connection that broke. Others are ended
only in a process group that was made for it, or for a sudo before it. Not by SIGTERM: some shells' subshells, which
`_Job.stop` ends by it, would then hear it only when what they wait for ends."""
_GOES = 'left="$left $f"'


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended. An ``exit_code`` of 128 + n means signal n, as shells say it."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


class HostError(SutError):
    """The host could not carry out a command: no shell, a shell that died, a command that did not end in time."""


class NoShellError(HostError):
    """The host does not even answer a hello."""


class NoJsonError(HostError):
    """A program on the host printed no valid JSON. The host itself still answers."""


class CommandError(TestbedError):
    """A command ran and failed. ``completed`` holds all of its output."""

    def __init__(self, host: str, what: str, completed: Completed) -> None:
        self.host = host
        self.completed = completed
        why = last_line(completed.stderr)
        hint = "; is it installed there?" if completed.exit_code == NOT_FOUND else ""
        super().__init__(f"{what} on {host} failed with exit code {completed.exit_code}{why and f': {why}'}{hint}")


class Running(Protocol):
    """Program that runs on a host until it is stopped; a context manager that stops it."""

    def stop(self) -> Completed:
        """End the program, by SIGTERM and soon after by SIGKILL, and return all that it printed.

        A program that has ended by itself is only read. A second call returns the same result.

        Raises:
            HostError: it was ended before, with the shell that it was started from, or the way to the host broke.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None: ...


class Host(Protocol):
    """Machine, or a part of one with a network of its own. `open_host` opens it by its ``name``."""

    @property
    def name(self) -> str: ...

    def run(self, *argv: str, timeout: float = DEFAULT_TIMEOUT, check: bool = True) -> Completed:
        """Run a program with an empty standard input and wait for it, at most ``timeout`` seconds.

        Raises:
            CommandError: ``check`` is true and the exit code is not 0.
            HostError: it did not end in time, or the way to the host broke; the next command starts anew.
        """

    def start(self, *argv: str) -> Running:
        """Start a program with an empty standard input and let it run; other commands may run beside it.

        Its output is kept on the host, so that nothing passes over the way there while it runs. It ends with the host's
        shell at the latest: when that is closed, killed or lost. A program that cannot be run at all ends with exit
        code 127, which `Running.stop` returns.

        Raises:
            HostError: the way to the host broke, or there is no place for its output.
        """

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        """Run a program that prints JSON (``ip -j``, ``ethtool --json``, ``bpftool -j``); `[]` if it prints nothing."""

    def script(self, text: str, timeout: float = DEFAULT_TIMEOUT) -> Completed:
        """Run a script in a copy of the host's own shell. The exit code is returned and not checked.

        Starting another shell would take an emulated guest 10 ms.

        Raises:
            HostError: it did not end in time, or the way to the host broke.
        """

    def read(self, path: str) -> str:
        """The whole text of a file, its last newline included. Raises CommandError when it cannot be read."""

    def write(self, path: str, text: str) -> None:
        """Write a file, in one system call when it is short. Raises CommandError when the kernel refuses the text."""

    def put(self, path: str, content: bytes, mode: int = 0o600) -> None:
        """Make a file of these bytes with the permissions ``mode``. Raises CommandError when that cannot be."""

    def exists(self, path: str) -> bool: ...

    def folder(self, what: str) -> str:
        """Create an empty folder /tmp/pdrgate-WHAT.XXXXXX, which is removed with the host's shell at the latest.

        Raises:
            CommandError: there is no place for it.
        """

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None: ...


class ShellHost:
    """A `Host` behind one POSIX shell that is opened at first use and again after it was lost.

    ``opener`` is the command that starts the shell: ``sh``, ``ip netns exec NAME sh``, ``ssh HOST sh``. Programs left
    running in the shell's process group end with it. One command runs at a time; threads may share a host. A subclass
    whose shell is no process of this machine has a `_start` of its own. ``starved`` is as `Shell` has it.
    """

    def __init__(self, name: str, opener: Sequence[str], starved: Callable[[], float] = lambda: 0.0) -> None:
        self._name = name
        self._opener = tuple(opener)
        self._starved = starved
        self._shell: Shell | None = None
        self._turn = threading.Lock()
        self._folders: set[str] = set()
        """Folders that were made there by `folder` or for programs, and are not removed yet."""

    @property
    def name(self) -> str:
        return self._name

    def run(self, *argv: str, timeout: float = DEFAULT_TIMEOUT, check: bool = True) -> Completed:
        # exec runs programs only: no argv can be a builtin that ends or alters the shell itself.
        completed = self._script(argv, f"(exec {shlex.join(argv)} </dev/null)", timeout)
        if check and completed.exit_code != 0:
            raise CommandError(self._name, f"`{_shown(argv)}`", completed)
        return completed

    def start(self, *argv: str) -> Running:
        # In a variable of the shell's own: a shell that took its place would not know the number, and end nobody.
        job = f"job_{secrets.token_hex(8)}"
        run = f'(exec {shlex.join(argv)} </dev/null >"$f/out" 2>"$f/err") & {job}=$!; echo "$f"'
        completed = self._script(
            argv,
            f'f=$(mktemp -d /tmp/pdrgate.XXXXXX) && {_GOES} && : >"$f/out" >"$f/err" && {{ {run}; }}',
            DEFAULT_TIMEOUT,
        )
        if completed.exit_code != 0:
            raise CommandError(self._name, f"starting `{_shown(argv)}`", completed)
        self._folders.add(folder := completed.stdout.strip())
        return _Job(self, argv, job, folder)

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        text = self.run(*argv, timeout=timeout).stdout
        try:
            return json.loads(text) if text.strip() else []
        except (ValueError, RecursionError) as error:
            raise NoJsonError(
                f"`{_shown(argv)}` on {self._name} printed no JSON ({error}); is that program too old there?"
            ) from error

    def script(self, text: str, timeout: float = DEFAULT_TIMEOUT) -> Completed:
        return self._script(("sh", "-c", text), f"(\n{text}\n) </dev/null", timeout)

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

    def put(self, path: str, content: bytes, mode: int = 0o600) -> None:
        target = shlex.quote(path)
        # Whatever becomes of the file, all bytes are taken: the shell would read what is left as commands.
        kept = f"(umask 077; cat >{target}) && chmod {mode:o} {target}"
        script = f"head -c {len(content)} | {{ {{ {kept}; }} || {{ cat >/dev/null; false; }}; }}"
        completed = self._script(("put", path), script if content else f": | {kept}", _PUT_TIMEOUT, content)
        if completed.exit_code != 0:
            raise CommandError(self._name, f"making {path} of {len(content)} bytes", completed)

    def exists(self, path: str) -> bool:
        return self._script(("test", "-e", path), f"[ -e {shlex.quote(path)} ]", DEFAULT_TIMEOUT).exit_code == 0

    def folder(self, what: str) -> str:
        argv = ("mktemp", "-d", f"/tmp/pdrgate-{what}.XXXXXX")
        completed = self._script(argv, f'f=$({shlex.join(argv)}) && {_GOES} && echo "$f"', DEFAULT_TIMEOUT)
        if completed.exit_code != 0:
            raise CommandError(self._name, f"`{_shown(argv)}`", completed)
        self._folders.add(made := completed.stdout.strip())
        return made

    def close(self) -> None:
        with self._turn:
            if self._shell is not None:
                if self._folders and not self._shell.lost:
                    with contextlib.suppress(ShellError):
                        self._shell.execute(f"rm -rf {shlex.join(self._folders)}", _OPEN_TIMEOUT)
                self._folders.clear()
                self._shell.end()
                self._shell = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _script(self, argv: tuple[str, ...], script: str, timeout: float, fed: bytes = b"") -> Completed:
        if not argv or not argv[0] or "\0" in script:
            raise ValueError(f"{argv!r} is no command: it is empty or holds a NUL")
        with self._turn:
            if self._shell is not None and self._shell.lost:
                self._shell.kill()
                self._shell = None
            if self._shell is None:
                self._shell = self._open()
            try:
                code, out, err = self._shell.execute(script, timeout, fed)
            except ShellError as lost:
                raise HostError(f"`{_shown(argv)}` on {self._name} {lost}") from None
            finally:
                if not self._shell.in_step:
                    self._shell.kill()
                    self._shell = None
            return Completed(argv, code, out.decode(errors="replace"), err.decode(errors="replace"))

    def _start(self) -> ShellStreams:
        """Start the shell. Raises HostError when it cannot be started."""
        try:
            return ProcessStreams(self._opener)
        except OSError as error:
            raise HostError(
                f"cannot start a shell on {self._name} with `{_shown(self._opener)}`: {error.strerror}; "
                f"install {self._opener[0]} and put it on the PATH"
            ) from error

    def _open(self) -> Shell:
        shell = Shell(self._start(), self._starved)
        try:
            self._prepare(shell)
        except ShellError as lost:
            raise NoShellError(f"cannot open a shell on {self._name}: `{_shown(self._opener)}` {lost}") from None
        finally:
            if not shell.in_step:
                shell.kill()
        return shell

    def _prepare(self, shell: Shell) -> None:
        """Set up a new shell before its first command. Raises ShellError when it does not answer."""
        # Messages in English, and the tools that a plain user's PATH leaves out.
        path = "export LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
        shell.execute(f"{path}\n{_END_TOGETHER}", _OPEN_TIMEOUT)


class _Job:
    """`Running` that is a child of the host's shell. Its output lies in a folder there."""

    def __init__(self, host: ShellHost, argv: tuple[str, ...], job: str, folder: str) -> None:
        self._host = host
        self._argv = argv
        self._job = job
        self._folder = folder
        self._shell = host._shell
        self._ended: Completed | None = None

    def stop(self) -> Completed:
        if self._ended is None:
            if self._shell is None or self._host._shell is not self._shell or self._shell.lost:
                with contextlib.suppress(TestbedError):
                    self._host.run("rm", "-rf", self._folder)
                    self._host._folders.discard(self._folder)
                raise HostError(
                    f"`{_shown(self._argv)}` on {self._host.name} was ended before it was stopped: its shell was lost"
                )
            # Shells may have reaped it already and know how it ended: its number is then no longer a child's.
            self._ended = self._host._script(
                self._argv,
                f'p=${self._job}; end() {{ grep -qx "PPid:.$$" /proc/$p/status && kill -$1 $p; }} 2>/dev/null\n'
                f"end TERM; (sleep {_GRACE}; end KILL) >/dev/null 2>&1 &\n"
                f"w=$!; wait $p 2>/dev/null; c=$?; {{ kill $w && wait $w; }} 2>/dev/null\n"
                f"cat {self._folder}/out; cat {self._folder}/err >&2; rm -r {self._folder}; forget {self._folder}; "
                "(exit $c)",
                DEFAULT_TIMEOUT,
            )
            self._host._folders.discard(self._folder)
        return self._ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self.stop()
        except TestbedError:
            if error is None:
                raise


def local_host() -> ShellHost:
    """Host of this machine, named ``local``."""
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
    """The texts of several files with one command, by path. Unreadable files are left out."""
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


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(shlex.join(argv).split())
    return text if len(text) <= 160 else f"{text[:150]}…"
