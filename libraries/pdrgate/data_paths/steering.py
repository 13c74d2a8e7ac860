"""Steering of native XDP on veth: the work is handed to the SUT's CPUs by a cpumap.

What native XDP on a veth costs is paid by the CPU of whoever sends, here the generator's, and receive packet steering
acts only on what XDP has let pass. So at the SUT's edges a program of ours does no more than put each frame into the
queue of a CPU (a cpumap entry), where a kernel thread runs the program under test. That queue is the receive buffer.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from pdrgate.bpf.programs import LoadedProgram, attach_xdp, detach_xdp, loaded
from pdrgate.bpf.syscall import map_delete, map_fd, map_update, program_fd
from pdrgate.builds.bpf_build import own_build
from pdrgate.hosts.host import Host
from pdrgate.values.errors import TestbedError

MOST_PACKETS = 16384
"""What the kernel allows the queue of a cpumap entry to hold."""

_MOST_CPUS = 64


class CpuMapSteering:
    """Steering at one port of a namespace of this machine.

    Args:
        cpus: those that shall run the program.
        packets: how many wait for each of them before they are dropped.
        isolate: whether the kernel threads go before other processes.
    """

    def __init__(self, cpus: Sequence[int], packets: int, isolate: bool = True) -> None:
        self._cpus = tuple(cpus)
        self._packets = packets
        self._isolate = isolate
        self._at: tuple[Host, str] | None = None
        self._map = self._choice = self._program = -1
        self.number = 0
        """Id of the cpumap, which the names of its threads contain; of the last one where none is active."""
        self._set: dict[int, int] = {}
        """Queue length by CPU, as the kernel has it."""

    @property
    def active(self) -> bool:
        """Whether packets are steered now."""
        return self._at is not None

    def steer(self, cpus: Sequence[int]) -> None:
        """Choose the CPUs. Raises TestbedError when a cpumap has no such CPU."""
        if beyond := [cpu for cpu in cpus if cpu >= _MOST_CPUS]:
            raise TestbedError(
                f"native XDP is steered to CPUs below {_MOST_CPUS}, not to CPU {beyond[0]}; choose others with sut.cpus"
            )
        self._cpus = tuple(cpus)
        self._tell()

    def hold(self, packets: int) -> None:
        """Choose how many packets wait per CPU. Raises TestbedError when steering is on and they are too many."""
        if self.active and packets > MOST_PACKETS:
            raise TestbedError(
                f"native XDP has receive buffers of up to {MOST_PACKETS} packets here, not {packets}; use fewer"
            )
        self._packets = packets
        self._tell()

    def begin(self, program: LoadedProgram, interface: str) -> None:
        host = program.host
        if self.active:
            raise TestbedError(f"{interface} on {host.name} is steered already; end that first")
        # Programs of one cpumap are of one sort, and it is the one that hands packets over which says of which.
        frags = ("FRAGS",) if program.build.port_section.removeprefix("?").startswith("xdp.frags") else ()
        with loaded(host, own_build("xdp_steer", frags), "") as steer:
            self._packets = min(self._packets, MOST_PACKETS)  # an earlier scenario may have had more
            try:
                self.number = steer.maps["cpus"].number
                self._map, self._choice = map_fd(self.number), map_fd(steer.maps["choice"].number)
                self._program = program_fd(program.number)
                self._at = (host, interface)
                self._tell()
                attach_xdp(steer, interface, "native")
            except BaseException:
                self._at = None  # nothing is attached
                self.end()
                raise

    def end(self) -> None:
        at, self._at = self._at, None
        self._set.clear()
        for fd in (self._map, self._choice, self._program):
            if fd >= 0:
                os.close(fd)
        self._map = self._choice = self._program = -1
        if at is not None:
            detach_xdp(*at, "native")

    def ticks(self) -> dict[int, int]:
        """Ticks of CPU time by CPU that the threads had: it is the SUT's work, and counts as a process's."""
        found: dict[int, int] = {}
        for cpu in self._set:
            for thread in self._threads(cpu):
                with contextlib.suppress(OSError):
                    fields = (thread / "stat").read_text(errors="replace").rpartition(")")[2].split()
                    found[cpu] = found.get(cpu, 0) + int(fields[11]) + int(fields[12])
        return found

    def _tell(self) -> None:
        """Make the kernel's entries those that are wanted: new ones first, then the choice, then none that is left."""
        if not self.active:
            return
        wanted = dict.fromkeys(self._cpus, self._packets)
        for cpu, packets in wanted.items():
            if self._set.get(cpu) != packets:
                map_update(self._map, struct.pack("=I", cpu), struct.pack("=Ii", packets, self._program))
                self._put_first(cpu)
        places = (*self._cpus, *[0] * (_MOST_CPUS - len(self._cpus)))
        map_update(self._choice, struct.pack("=I", 0), struct.pack(f"={_MOST_CPUS + 1}I", len(self._cpus), *places))
        for cpu in self._set.keys() - wanted.keys():
            map_delete(self._map, struct.pack("=I", cpu))
        self._set = wanted

    def _put_first(self, cpu: int) -> None:
        if not self._isolate:
            return
        # No journal: the thread ends with the map, and the map with the namespace.
        for thread in self._threads(cpu):
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), -20)

    def _threads(self, cpu: int) -> list[Path]:
        """Threads of a CPU, as /proc calls them: the one that works, and for a moment one that it has replaced."""
        wanted = f"cpumap/{cpu}/map:{self.number}"
        found = []
        for path in Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                # Kernels before 5.17 show only the first 15 letters.
                if (name := path.read_text().strip()) == wanted or (len(name) == 15 and wanted.startswith(name)):
                    found.append(path.parent)
        return found
