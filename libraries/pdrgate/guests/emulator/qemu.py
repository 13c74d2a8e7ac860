"""QEMU: whether this machine has it, and the command line of a guest."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pdrgate.builds.architecture import Architecture
from pdrgate.guests.emulator.server_cpus import ServerCpu, chosen_cpu, known_flags
from pdrgate.this_process.checkout import how_to_install
from pdrgate.this_process.child_environment import run_program
from pdrgate.values.errors import TestbedError

Accelerator = Literal["kvm", "tcg"]

RINGS = (256, 512, 1024)
"""Receive ring sizes that virtio-net takes."""

TX_RING = 256
"""Packets in each port's ring for what the guest sends."""


@dataclass(frozen=True, slots=True)
class NetworkPort:
    """A virtio-net port of a guest, on a TAP."""

    tap: str
    mac: str
    ring: int = 256
    """Packets that its receive ring holds; one of `RINGS`."""
    queues: int = 1
    """Pairs of queues, each with interrupts of its own."""
    spread: bool = False
    """Whether packets for the guest are spread over its queues, by RSS if the kernel has it.

    Otherwise all packets take the first queue, and the kernel has the others for XDP.
    """
    gathers: float = 0.0
    """Seconds for which QEMU waits for more before it sends what the guest has for it; 0: it sends as soon as it runs,
    and how often it interrupts the guest for that, who else runs on this machine decides."""


def find_qemu(architecture: Architecture) -> str:
    """The path of the QEMU for guests of an architecture. Raises TestbedError when it is not installed."""
    found = shutil.which(architecture.qemu)
    if found is None:
        raise TestbedError(
            f"{architecture.qemu} is not installed, and kernels are booted in it; "
            f"{how_to_install(architecture.qemu_package)}"
        )
    return found


@functools.cache
def qemu_version(architecture: Architecture) -> str:
    """QEMU's version, such as 7.2.22; empty if it prints none."""
    match = re.search(r"version (\S+)", run_program(find_qemu(architecture), "--version").stdout)
    return match[1] if match else ""


def command_line(
    architecture: Architecture, *,
    accelerator: Accelerator, vcpus: int, memory: int, image: str, initrd: str, cmdline: str, console: int,
    channels: Sequence[tuple[str, int]], ports: Sequence[tuple[NetworkPort, Sequence[int]]],
    plugins: Sequence[str] = (), cpu: ServerCpu = "server", sandbox: str = "", shared_memory: int | None = None,
) -> list[str]:  # fmt: skip
    """QEMU's command line for a guest. All that it names are files of QEMU's own, and descriptors.

    Args:
        memory: MiB.
        image: a file that QEMU boots: a bzImage, an ELF image that can be entered by PVH, or a flat image.
        console: descriptor that gets what the guest writes to its serial console.
        channels: virtio-serial ports: the name in the guest, and a listening Unix socket's descriptor.
        ports: each with a TAP's descriptors, one for each pair of queues.
        plugins: of the emulation, each with its options.
        cpu: model of an emulated CPU.
        sandbox: which system calls QEMU denies itself.
        shared_memory: descriptor of a file of as many MiB, which the guest has as its memory.
    """
    words = [
        find_qemu(architecture), "-name", "pdrgate,debug-threads=on", "-nodefaults", "-no-user-config",
        "-display", "none", "-no-reboot", "-machine", architecture.board, "-accel", accelerator,
        "-cpu", cpu_model(architecture, accelerator, cpu),
        "-smp", str(vcpus), "-m", str(memory), "-kernel", image, "-initrd", initrd, "-append", cmdline,
        "-add-fd", f"fd={console},set=1", "-chardev", "file,id=console,path=/dev/fdset/1", "-serial", "chardev:console",
        "-device", "virtio-serial-pci",
    ]  # fmt: skip
    if sandbox:
        words += ["-sandbox", sandbox]
    if shared_memory is not None:
        words += [
            "-object",
            f"memory-backend-file,id=ram,size={memory}M,mem-path=/proc/self/fd/{shared_memory},share=on",
        ]
        words += ["-machine", "memory-backend=ram"]
    for plugin in plugins:
        words += ["-plugin", plugin]
    for number, (name, descriptor) in enumerate(channels):
        words += ["-chardev", f"socket,id=channel{number},fd={descriptor},server=on,wait=off"]
        words += ["-device", f"virtserialport,chardev=channel{number},name={name}"]
    for number, (port, descriptors) in enumerate(ports):
        several = port.queues > 1
        queues = "fds" if several else "fd"
        words += ["-netdev", f"tap,id=net{number},{queues}={':'.join(map(str, descriptors))},vhost=off"]
        # An interrupt for each direction of a queue, one for the device and one for the control queue.
        multi = f",mq=on,vectors={2 * port.queues + 2}" if several else ""
        multi += ",rss=on,hash=on" if port.spread else ""
        sends = f",tx=timer,x-txtimer={round(port.gathers * 1e9)}" if port.gathers else ""
        words += [
            "-device",
            f"virtio-net-pci,netdev=net{number},mac={port.mac},rx_queue_size={port.ring},tx_queue_size={TX_RING},romfile="
            f"{multi}{sends}",
        ]
    return words


def cpu_model(architecture: Architecture, accelerator: Accelerator, cpu: ServerCpu) -> str:
    """Value of ``-cpu``: this machine's own CPU by KVM. Raises TestbedError if it is none of the architecture's."""
    if accelerator == "kvm":
        return "host"
    model = chosen_cpu(architecture, cpu)[1]
    return model.text(known_flags(find_qemu(architecture)), qemu_version(architecture))


def cpu_in_words(architecture: Architecture, accelerator: Accelerator, cpu: ServerCpu) -> str:
    """The CPU by its name, with what this QEMU cannot offer of it."""
    if accelerator == "kvm":
        return "host"
    name, model = chosen_cpu(architecture, cpu)
    lacking = model.lacking(known_flags(find_qemu(architecture)))
    return name + (f" without {', '.join(lacking)}" if lacking else "")
