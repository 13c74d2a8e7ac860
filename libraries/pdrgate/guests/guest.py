"""Guests: a kernel build booted under QEMU, as a `Host` like any other.

A guest runs from an initramfs of our own, so that it needs no disk, no 9p and no network, and boots every kernel that
has virtio. (virtme-ng, the alternative, takes 13 s instead of 3 to 6 s to boot under emulation, and kernels with 9p.)
Its shell is reached by virtio-serial. All that a guest needs of the machine are descriptors that it inherits, so that a
guest whose owner was killed leaves no file: QEMU dies with its owner, and its TAPs with it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pdrgate.builds.boot_image import kernel_entry
from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.crashes.faults import Crash, gravest_crash
from pdrgate.crashes.source_lines import SourceLines
from pdrgate.guests import guest_bridge, guest_console
from pdrgate.guests.emulator.accelerator import AcceleratorChoice, choose_accelerator
from pdrgate.guests.emulator.confinement import confine
from pdrgate.guests.emulator.qemu import NetworkPort
from pdrgate.guests.emulator.qemu_threads import QemuThreads
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.guest_console import GuestConsole
from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.guest_ports import GuestPorts
from pdrgate.guests.initramfs import initramfs
from pdrgate.guests.metering import VcpuMeter
from pdrgate.guests.metering.memory import MemoryMeter
from pdrgate.guests.metering.sharing import SharingMeter
from pdrgate.guests.qemu_start import CHANNELS, QemuStart, Starting
from pdrgate.hosts.host import DEFAULT_TIMEOUT, Completed, HostError, NoJsonError, NoShellError, ShellHost

BOOT_PATIENCE = 60.0
"""Seconds for which a guest that is booting may say nothing on its console. Emulated ones are up after 3 to 6 s on a
quiet machine; on a busy one they are slow, but not silent."""

_LONGEST = 10
"""A boot may take this many times the patience with it, whatever the console says."""

_ENDS_IT = ("panic", "oops", "lockup")
"""Kinds of fault after which nothing that a guest measures means anything."""

_GRACE = 2.0
_LOOK = 0.25
"""Seconds between looks at the console's length."""

_COUNTED = 60.0
"""Seconds in which a guest that is up has nothing to do for a moment, however busy this machine is."""
_ANSWER, _MOST_HEARD = 4096, 1 << 16
"""Bytes that are read of a guest's control port at once, and in all before it has said hello."""
_FORCED_FLAG = "TCG doesn't support requested feature"
"""QEMU's warning about each flag that a CPU model forces on."""
_STARVED = 0.5
"""Share of the time that a guest waits for a CPU, above which its silence is this machine's fault."""
_NO_VIRTIO = "pdrgate: no virtio-serial port"


class GuestError(HostError):
    """A guest did not boot, died, or does not answer. ``crash`` is the fault on its console, if any.

    Args:
        starved: whether this machine had no CPU for it most of the time, so that silence is no fault of its kernel.
    """

    def __init__(self, message: str, console: Path, crash: Crash | None = None, *, starved: bool = False) -> None:
        self.console = console
        self.crash = crash
        self.starved = starved
        super().__init__(message)

    @property
    def brief(self) -> str:
        """The message without the end of the guest's console."""
        return str(self).partition(";")[0]


class Guest(ShellHost):
    """One boot of a kernel build; a `Host`. QEMU runs from `__init__` to `close`.

    A lost shell is turned into the error that says what has become of the guest. QEMU is ended by the kernel when the
    *thread* that made the guest ends: make guests where they are used.

    Args:
        journal: where QEMU is noted, for the case that this process is killed.
        folder: where the console log goes, ``console-BOOT.log``.
        namespace: the network namespace that QEMU runs and makes its TAPs in.
        accelerator: what it runs by, where that is known better than by ``config``.

    Raises:
        BuildError: the build lacks what a guest needs.
        TestbedError: QEMU or another tool is missing.
        StorageError: the console log cannot be written.
    """

    def __init__(
        self,
        build: KernelBuild,
        config: GuestConfig,
        journal: Starting,
        folder: Path,
        *,
        ports: Sequence[NetworkPort] = (),
        namespace: str | None = None,
        accelerator: AcceleratorChoice | None = None,
    ) -> None:
        self.build = build
        self.config = config
        self.accelerator = accelerator or choose_accelerator(build.architecture, config.accelerator)
        entry = kernel_entry(build, pvh=config.pvh)
        self.protocol = entry.protocol
        """Entry into the kernel."""
        self.boot_id = secrets.token_hex(4)
        """Identity of this boot among all others."""
        self._console = GuestConsole(folder, self.boot_id)
        self.console = self._console.path
        self.meter = VcpuMeter(config.vcpus) if config.metered and self.accelerator.name == "tcg" else None
        """Meter of a metered guest: what it executes, and how fast."""
        self.memory_meter = MemoryMeter() if self.meter is not None and config.vcpus == 1 else None
        """Meter of the memory that a metered guest of one CPU touches, while a memory trial lasts."""
        self.sharing_meter = SharingMeter(config.vcpus) if config.shares and self.accelerator.name == "tcg" else None
        """Meter of the lines that the CPUs take from each other, while a trial of that lasts; only if it is asked
        for."""
        looked_into = self.memory_meter is not None or self.sharing_meter is not None
        self.memory = GuestMemory(config.memory, build.architecture, build.page_size) if looked_into else None
        """Memory of the guest, if it is read to name what such trials touch."""
        self.boot_time: float | None = None
        """Seconds from QEMU's start to a shell; None until `wait` has returned."""
        self._ports = GuestPorts(CHANNELS)
        bridge = (sys.executable, "-I", "-S", str(Path(guest_bridge.__file__)), *map(self._ports.address, CHANNELS))
        super().__init__(f"guest:{build.name}", bridge, self._waited)
        self._lines = SourceLines(build.vmlinux)
        self._seen = 0
        """Number of faults on the console that `check` has returned."""
        self._silent = ""
        """Why no shell could be had from it any more."""
        self.stands_back = False
        """Whether others go before it, and it may run where it boots, see `stand_back`."""
        self._closed = False
        self.confinement = confine(build.architecture, self.accelerator.name)
        """Confinement of QEMU, with its user."""
        start = QemuStart(
            build,
            entry.image,
            config,
            self.accelerator.name,
            self.confinement,
            self._console,
            self.meter,
            self.memory_meter,
            self.sharing_meter,
            self.memory,
            self._ports,
        )
        self._qemu_log = start.log
        try:
            started = start.process(initramfs(build), journal, tuple(ports), namespace)
        except BaseException:
            self._ports.close()
            raise
        self._process, self.pid = started.process, started.pid
        """Process that ends with QEMU, and QEMU's own process id."""
        self._started = time.monotonic()
        self._threads = QemuThreads(self.pid, config.cpus, isolate=config.isolate, metered=config.metered)
        self._asked: tuple[float, Mapping[str, float]] = self._started, {}
        """When it was last asked for something, and what its threads had waited by then, seconds."""
        if not config.metered:
            self._threads.hurry()

    # --- Its end ---

    def close(self) -> None:
        """End the guest at once. Calling it twice is harmless. Nothing in it is worth a shutdown."""
        if self._closed:
            return
        try:
            # Not by SIGTERM: a QEMU that was stopped would not hear it, and ends no sooner for it.
            self._end()
        finally:
            # An interruption while we wait may be of any class, and must neither be lost nor leave QEMU running.
            self._end()
            self._closed = True
            self._threads.let_sleep()
            super().close()
            self._ports.close()
            for shared in (self.meter, self.memory_meter, self.sharing_meter, self.memory):
                if shared is not None:
                    shared.close()

    # --- A guest ---

    @property
    def running(self) -> bool:
        """Whether QEMU runs; a kernel that panics ends it."""
        return self._process.poll() is None

    def wait(self, patience: float = BOOT_PATIENCE) -> None:
        """Wait until the guest has a shell, for as long as it is not silent: how long a boot takes is no fault of it.

        Args:
            patience: seconds without a word on its console, from its start or from its last word.

        Raises:
            GuestError: it does not come up; the message says how far it came.
            BuildError: the kernel has no virtio, or is another one than its image says.
        """
        if not self._answers(patience):
            if time.monotonic() - self._started < _LONGEST * patience:
                self._fail(f"gave no sign of life within {patience:g} s of its {self._last_sign}")
            self._fail(f"was not up {_LONGEST * patience:g} s after its start, though its console went on,")
        self.boot_time = time.monotonic() - self._started
        if not self.stands_back:
            self._threads.settle()
        release = self.run("uname", "-r").stdout.strip()
        if release != self.build.release:
            raise BuildError(f"{self.build.name} was booted and says that it is {release}, not {self.build.release}")

    def count(self) -> None:
        """Count from here on what a metered guest executes. Uncounted work is a fifth faster.

        Raises:
            GuestError: the plugin does not begin.
        """
        if self.meter is None:
            return
        self.meter.begin()
        deadline = time.monotonic() + _COUNTED
        while not self.meter.counting:
            if time.monotonic() > deadline:
                self._fail(f"is up, and QEMU's plugin could not begin to count within {_COUNTED:g} s")
            self.run("true", timeout=_COUNTED)  # after which it has nothing to do

    def stand_back(self) -> None:
        """Let a guest that is metered stay behind others until `hurry`, and where it boots until `take_place`."""
        self.stands_back = self.config.metered

    def hurry(self) -> None:
        """Let QEMU go before other processes from now on, also while the guest boots."""
        self._threads.hurry()

    def take_place(self) -> None:
        """Make a guest that stood back run on its own CPUs."""
        if self.stands_back:
            self.stands_back = False
            self._threads.settle()

    def go_first(self, first: bool) -> None:
        """Let the virtual CPU run as soon as it has something to do, or, unless ``first``, take turns with others.

        Only of a guest that took its place, while it is held: one at full speed would leave nobody else any time.
        """
        self._threads.go_first(first)

    def crashes(self) -> tuple[Crash, ...]:
        """The faults on the console so far, with source lines when the build has a vmlinux."""
        return self._lines.decode(self._console.faults())

    def check(self) -> tuple[Crash, ...]:
        """New faults since the last call that the guest survived, warnings for one. Call it after each trial.

        Raises:
            GuestError: it has died, or reported a fault after which nothing it measures means anything.
        """
        running = self.running
        if running and not self._console.new and self._console.seen == self._seen:
            return ()
        found = self._console.faults()
        if len(found) > self._seen:
            found = self._console.whole_faults(lambda: self.running)
        new, self._seen = found[self._seen :], len(found)
        if not running or self._console.full or any(crash.kind in _ENDS_IT for crash in new):
            self._fail("has ended")
        return self._lines.decode(new)

    def interfaces(self) -> dict[str, str]:
        """The guest's interfaces by MAC address."""
        addresses = self.run("sh", "-c", "grep -H . /sys/class/net/*/address").stdout
        return {line.partition(":")[2].lower(): line.split("/")[4] for line in addresses.splitlines()}

    def cpu_ticks(self) -> int:
        """Ticks of CPU time that QEMU has had; 0 when it has ended."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return 0
        return int(fields[11]) + int(fields[12])

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        with self._explained():
            return super().run_json(*argv, timeout=timeout)

    # --- How ---

    def _script(self, argv: tuple[str, ...], script: str, timeout: float, fed: bytes = b"") -> Completed:
        with self._explained():
            return super()._script(argv, script, timeout, fed)

    def _end(self) -> None:
        """Kill QEMU, if it runs, and wait a little for its end."""
        group = (os.killpg, self._process.pid)
        # A sandbox ends after QEMU: QEMU first, as the TAPs are free once it has ended.
        for kill, pid in (group,) if self.pid == self._process.pid else ((os.kill, self.pid), group):
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_GRACE)

    def _answers(self, patience: float) -> bool:
        """Say hello and wait for the answer, until it falls silent or QEMU ends."""
        with contextlib.ExitStack() as stack:
            control = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                control.connect(self._ports.address("control"))
                control.sendall(f"hello {self.boot_id}\n".encode())
                pidfd = os.pidfd_open(self._process.pid)
            except OSError:
                return False
            stack.callback(os.close, pidfd)
            answer, heard, said, last = b"", 0, 0, self._started
            while (now := time.monotonic()) < min(last + patience, self._started + _LONGEST * patience):
                if self._console.full:
                    return False
                if (length := self._console.length) > said:
                    said, last = length, now
                ready = select.select([control.fileno(), pidfd], [], [], _LOOK)[0]
                if control.fileno() in ready:
                    try:
                        chunk = control.recv(_ANSWER)
                    except ConnectionError:
                        chunk = b""
                    answer, heard = (answer + chunk)[-2 * _ANSWER :], heard + len(chunk)
                    if f"hello {self.boot_id}\n".encode() in answer:
                        return True
                    if heard > _MOST_HEARD:
                        self._fail("says all but hello on its control port")
                    if not chunk:
                        # QEMU is about to end: its exit is what to report.
                        select.select([pidfd], [], [], _GRACE)
                        return False
                if pidfd in ready:
                    return False
        return False

    @property
    def _last_sign(self) -> str:
        return "last word" if self._console.length else "start"

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a lost shell into what has become of the guest."""
        if self._closed:
            self._fail("was asked")
        if self._silent:
            # To be found silent takes seconds: once, and not for each setting that is to be put back.
            self._fail(self._silent)
        self._asked = time.monotonic(), self._threads.waits()
        try:
            yield
        except GuestError:
            raise
        except HostError as error:
            if self.running and isinstance(error, NoJsonError):
                raise
            if isinstance(error, NoShellError):
                self._silent = str(error)
            self._fail(str(error), error)

    def _waited(self) -> float:
        """Seconds for which this machine had no CPU for it since it was last asked for something: those of the thread
        that waited longest."""
        before = self._asked[1]
        return max((now - before.get(thread, 0.0) for thread, now in self._threads.waits().items()), default=0.0)

    def _fail(self, what: str, cause: Exception | None = None) -> None:
        """Raise the GuestError, or BuildError, that says best why the guest is lost."""
        if self._console.full:
            self._end()
        found = self._console.whole_faults(lambda: self.running)
        crash = gravest_crash(crash for crash in found if crash.kind != "taint-warning")
        if crash is not None and crash.kind in _ENDS_IT:
            # A panic resets the machine, which a loaded machine takes its time for; what does not do so is ended.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
            self._end()
        where = f"console: {self.console}"
        if self._closed:
            raise GuestError(f"{self.build.name}: this boot of it has been ended already", self.console) from cause
        if crash is not None:
            (crash,) = self._lines.decode((crash,))
            state = "crashed" if self.boot_time is not None else "does not boot"
            raise GuestError(f"{self.build.name} {state}: {crash.sentence()}; {where}", self.console, crash) from cause
        if self._console.find(_NO_VIRTIO):
            lacking = self._console.find("pdrgate: cannot load")
            why = lacking.partition("pdrgate: ")[2] or "it has no virtio_pci or no virtio_console"
            raise BuildError(f"{self.build.name} boots, but offers no way in: {why}; {where}") from cause
        last = f"its console ends with: {self._console.last_lines()}; {where}"
        if self._console.full:
            most = f"{guest_console.MOST_OUTPUT >> 20} MiB"
            raise GuestError(
                f"{self.build.name} wrote more than {most} to its console; {last}", self.console
            ) from cause
        if not self.running:
            said = self._qemu_says()
            code = self.confinement.exit_code(self._process.returncode)
            why = f"QEMU ended with exit code {code}" + (f": {said}" if said else "")
            if code == 0:
                why += ", for the kernel reset the machine or powered it off"
            raise GuestError(f"{self.build.name}: {why}; {last}", self.console) from cause
        elapsed, waited = time.monotonic() - self._asked[0], self._waited()
        starved = waited > _STARVED * elapsed
        why = f", while this machine had no CPU for it during {waited:.0f} of {elapsed:.0f} s" if starved else ""
        raise GuestError(
            f"{self.build.name} {what} and does not answer{why}; {last}", self.console, starved=starved
        ) from cause

    def _qemu_says(self) -> str:
        try:
            output = self._qemu_log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        lines = [line for line in output if _FORCED_FLAG not in line]
        return lines[-1].removeprefix(f"{self.build.architecture.qemu}: ") if lines else ""
