"""Start of QEMU. All that a guest needs of this machine is handed over as descriptors, so that no file of it has a name
that could be left behind."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests import guest_console
from pdrgate.guests.emulator.confinement import SANDBOX, Confinement, sandboxes
from pdrgate.guests.emulator.qemu import Accelerator, NetworkPort, command_line, qemu_version
from pdrgate.guests.emulator.server_cpus import chosen_cpu
from pdrgate.guests.emulator.taps import open_tap
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.guest_console import GuestConsole
from pdrgate.guests.guest_memory import GuestMemory
from pdrgate.guests.guest_ports import GuestPorts
from pdrgate.guests.initramfs import CONTROL, ERRORS, SHELL
from pdrgate.guests.metering import MEMORY_TRIAL, SHARED_LINES, VCPU_METER, VcpuMeter, plugin
from pdrgate.guests.metering.memory import MemoryMeter
from pdrgate.guests.metering.sharing import SharingMeter
from pdrgate.hosts.cpus import format_cpu_list

_CMDLINE = "panic=-1 oops=panic cryptomgr.notests"
"""The cipher tests of a kernel are more than half of what its boot executes, and say nothing of its data path."""
_METERED = "nokaslr"
"""Functions lie where the build has them, in each boot alike: no boot has a luckier layout than another."""
_TICKING = "nohz=off"
"""Option that keeps the kernel's clock ticking in an idle CPU.

Work that a kernel does by itself is subtracted tick by tick, and the number of ticks in a trial depends on who else
runs on this machine. A tick of 7.3 executes 3 400 to 3 900 instructions. One that wakes a CPU whose tick had been
stopped executes 12 400, and a CPU without work has too few of them to be counted.
"""
_UNMERGED = "slab_nomerge"
"""Option that keeps slab caches apart on several CPUs, for which lines are counted that more than one touches.

A cache that others were merged into would give these its name, and objects of two kinds would share lines by chance.
"""
CHANNELS = {"control": CONTROL, "shell": SHELL, "errors": ERRORS}
"""The guest's virtio-serial ports by the names of their sockets, in the order in which `guest_bridge` takes these."""


_CREDENTIALS = struct.Struct("iII")
"""Process, user and group, see unix(7)."""


class Starting(Protocol):
    """Starter of programs that the next run knows of when this process is killed: a journal."""

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own; ``options`` are `subprocess.Popen`'s."""
        ...


@dataclass(frozen=True, slots=True)
class StartedQemu:
    """A QEMU that was started."""

    process: subprocess.Popen[bytes]
    """QEMU, or the sandbox that it runs in and that ends with it."""
    pid: int
    """QEMU's own process id."""


@dataclass(frozen=True, slots=True)
class QemuStart:
    """The parts of a guest that QEMU is started with."""

    build: KernelBuild
    image: Path | None
    """The kernel as it is entered, where that is not the build's image."""
    config: GuestConfig
    accelerator: Accelerator
    confinement: Confinement
    """Confinement of QEMU, with its user."""
    console: GuestConsole
    meter: VcpuMeter | None
    memory_meter: MemoryMeter | None
    sharing_meter: SharingMeter | None
    memory: GuestMemory | None
    """Memory of the guest; None: QEMU has it for itself."""
    ports: GuestPorts
    """The sockets of `CHANNELS`, which QEMU listens on."""

    @property
    def log(self) -> Path:
        """File with QEMU's own output."""
        return self.console.path.with_suffix(".qemu")

    def process(
        self, archive: bytes, journal: Starting, ports: Sequence[NetworkPort], namespace: str | None
    ) -> StartedQemu:
        """QEMU, started.

        Args:
            archive: the initramfs.
            journal: where QEMU is noted, for the case that this process is killed.
            namespace: the network namespace that QEMU runs and makes its TAPs in.
        """
        architecture = self.build.architecture
        with contextlib.ExitStack() as stack:
            inherited: list[int] = []

            def inherit(descriptor: int) -> int:
                inherited.append(descriptor)
                stack.callback(os.close, descriptor)
                return descriptor

            channels = [(port, inherit(self.ports.hand_over(word))) for word, port in CHANNELS.items()]
            initrd = inherit(_in_memory("pdrgate-initramfs", archive))
            taps = [(one, [inherit(each) for each in open_tap(one.tap, one.queues, namespace)]) for one in ports]
            metering = []
            plugins = (VCPU_METER, self.meter), (MEMORY_TRIAL, self.memory_meter), (SHARED_LINES, self.sharing_meter)
            for source, meter in plugins:
                if meter is not None:
                    inherited.append(meter.fd)
                    built = plugin(qemu_version(architecture), architecture, source)
                    code = inherit(_readable(stack.enter_context(built.open("rb", buffering=0))))
                    metering.append(f"/proc/self/fd/{code},memory=/proc/self/fd/{meter.fd}")
            if self.memory is not None:
                inherited.append(self.memory.fd)
            image = stack.enter_context(self.image.open("rb", buffering=0) if self.image else self.build.open_image())
            command = command_line(
                architecture,
                accelerator=self.accelerator, vcpus=self.config.vcpus, memory=self.config.memory,
                shared_memory=None if self.memory is None else self.memory.fd,
                image=f"/proc/self/fd/{inherit(_readable(image))}", initrd=f"/proc/self/fd/{initrd}",
                cmdline=" ".join(filter(None, self._words())), cpu=self.config.cpu,
                console=inherit(self.console.open()), channels=channels, ports=taps, plugins=metering,
                sandbox=SANDBOX if sandboxes(architecture) else "",
            )  # fmt: skip
            cpus = format_cpu_list(self.config.boot_cpus or self.config.cpus)
            before = ["setpriv", "--pdeathsig", "KILL", *guest_console.OUTPUT_BOUND, "taskset", "-c", cpus]
            if self.config.isolate and not self.config.metered:
                before += ["nice", "-n", "-20"]
            said = stack.enter_context(self.log.open("wb"))
            heard, speaks = socket.socketpair()
            stack.callback(heard.close)
            heard.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with speaks:
                started = journal.start(
                    [*before, *self.confinement.command(*command, namespace=namespace)],
                    stdout=speaks, stderr=said, pass_fds=tuple(inherited),
                )  # fmt: skip
            return StartedQemu(started, _writer(heard) or started.pid)

    def _words(self) -> Iterator[str]:
        """The words of the kernel's command line; those of the testbed file are last, and so hold."""
        architecture = self.build.architecture
        yield f"console={architecture.console} {_CMDLINE}"
        if self.meter is not None or self.sharing_meter is not None:
            yield _METERED
            yield architecture.metered_words
        if self.sharing_meter is not None:
            yield _UNMERGED
        if self.config.ticks:
            yield _TICKING
        if self.accelerator == "tcg":
            yield chosen_cpu(architecture, self.config.cpu)[1].words
        yield self.config.cmdline


def _writer(heard: socket.socket) -> int | None:
    """The process id, as this process sees it, of the first process that writes; None if all end without a word."""
    word, ancillary, _, _ = heard.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
    found = [data for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS]
    pid: int = _CREDENTIALS.unpack(found[0])[0] if word and found else 0
    return pid or None


def _in_memory(name: str, content: bytes) -> int:
    """A descriptor of a file that is nowhere and has this content."""
    descriptor = os.memfd_create(name)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor


def _readable(file: FileIO) -> int:
    """A descriptor of a file that whoever has it may open: the file itself, or its content where only root may."""
    if os.fstat(file.fileno()).st_mode & stat.S_IROTH:
        return os.dup(file.fileno())
    return _in_memory("pdrgate-copy", file.read())
