"""The architectures of kernels that guests can run: one record each, with all that depends on it and is no code.

What is code for an architecture is in files of its name: the decoders of QEMU's plugins (`decoder`, `traits`) and the
readers of images. The records lie here, and not beside the guests, because an image's reader needs them too.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageRule:
    """Bits of an entry of page tables that have 4 KiB pages and 64-bit entries."""

    present: int
    large: int
    """Bits that show whether an entry above the last level maps a page itself."""
    large_is: int
    """Value of these bits where it does."""
    address: int
    """The bits of the physical address."""
    five_levels: range = range(0)
    """Addresses of the array of pages of a kernel whose tables have five levels."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One architecture of guests."""

    name: str
    """The architecture for people, and as kernel developers call it."""
    machine: str
    """Output of ``uname -m``."""
    debian: str
    """The architecture of Debian's packages."""
    triplet: str
    """Debian's name for the folder of libraries; compilers and tools for it begin with it."""
    config: str
    """The option of a .config that says it is for this architecture, without CONFIG_."""
    tree_image: str
    """Place of the image in a kernel's build tree."""
    image_mark: tuple[int, bytes]
    """Bytes that each such image holds, and the place of the first of them."""
    kernel_package: str
    """Debian's small kernel for guests."""
    qemu: str
    """The program of QEMU."""
    qemu_package: str
    compiler: str
    """The C compiler whose programs run there."""
    compiler_package: str
    board: str
    """Value of ``-machine``, without the devices that a guest has no need of and that can be left out."""
    cpus: tuple[str, ...]
    """Names of the CPU models that an emulated guest can have, the default first."""
    console: str
    """The serial console's device."""
    metered_words: str
    """Words for the kernel's command line where what it executes is counted."""
    decoder: str
    """Header of the plugins that decodes instructions."""
    traits: str
    """Header of the plugins that knows what instructions are beside what they do to memory."""
    pages: PageRule
    page_tables: str
    """The symbol of the kernel's page tables."""
    ram: int
    """The physical address at which memory begins."""
    image_at: int
    """The physical address of the first byte of `image_area`."""
    image_area: tuple[int, int] | None
    """First and last address of image and modules; None: the kernel shows where its image lies."""
    modules_and_image: range = range(0)
    """Addresses in which modules lie, and behind them an image that the kernel shows, where page tables have four
    levels."""
    linked_at: tuple[int, ...] = ()
    """Addresses at which kernels are linked whose image is flat, and so does not say it."""

    @property
    def has_flat_image(self) -> bool:
        """Whether its kernels are no ELF files inside: bytes as they lie in memory."""
        return bool(self.linked_at)

    @property
    def cross(self) -> str:
        """Begin of the names of tools that make programs for it; empty where they are this machine's own."""
        return "" if self.is_this_machines else f"{self.triplet}-"

    @property
    def is_this_machines(self) -> bool:
        """Whether programs of this machine run in such a guest."""
        return self.machine == platform.machine()


X86_64 = Architecture(
    name="x86_64",
    machine="x86_64",
    debian="amd64",
    triplet="x86_64-linux-gnu",
    config="X86_64",
    tree_image="arch/x86/boot/bzImage",
    image_mark=(0x202, b"HdrS"),
    kernel_package="linux-image-cloud-amd64",
    qemu="qemu-system-x86_64",
    qemu_package="qemu-system-x86",
    compiler="x86_64-linux-gnu-gcc",
    compiler_package="gcc-x86-64-linux-gnu",
    board="pc,usb=off,vmport=off,smbus=off,dump-guest-core=off,mem-merge=off",
    cpus=("server", "amd-milan", "amd-genoa", "intel-skylake", "intel-sapphire-rapids"),
    console="ttyS0",
    # A CPU that is held looks to the kernel's watchdog like a clock that has stopped: in one of some fifty boots it
    # took the HPET from then on, which costs more to read than many a packet does to route. An emulator that this
    # machine keeps waiting brings no timer's interrupt while the kernel counts for one, which then ends in "IO-APIC +
    # timer doesn't work!"; guests of KVM, Hyper-V and VMware leave that test out by themselves.
    metered_words="tsc=reliable no_timer_check",
    decoder="x86_code.h",
    traits="x86_traits.h",
    pages=PageRule(
        present=1,
        large=1 << 7,
        large_is=1 << 7,
        address=0x000F_FFFF_FFFF_F000,
        five_levels=range(0xFF00_0000_0000_0000, 0xFFFF_8000_0000_0000),
    ),
    page_tables="init_top_pgt",
    ram=0,
    image_at=0,
    image_area=(0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_FEFF_FFFF),
)
"""A kernel that is not moved has physical address 0 at the begin of `image_area` (Intel SDM, volume 3, for pages)."""

ARM64 = Architecture(
    name="arm64",
    machine="aarch64",
    debian="arm64",
    triplet="aarch64-linux-gnu",
    config="ARM64",
    tree_image="arch/arm64/boot/Image",
    image_mark=(0x38, b"ARMd"),
    kernel_package="linux-image-cloud-arm64",
    qemu="qemu-system-aarch64",
    qemu_package="qemu-system-arm",
    compiler="aarch64-linux-gnu-gcc",
    compiler_package="gcc-aarch64-linux-gnu",
    board="virt,gic-version=3,dump-guest-core=off,mem-merge=off",
    cpus=("neoverse-n1", "cortex-a76"),
    console="ttyAMA0",
    metered_words="",
    decoder="arm64_code.h",
    traits="arm64_traits.h",
    pages=PageRule(present=1, large=1 << 1, large_is=0, address=0x0000_FFFF_FFFF_F000),
    page_tables="swapper_pg_dir",
    ram=0x4000_0000,
    image_at=0x4020_0000,
    image_area=None,
    modules_and_image=range(0xFFFF_8000_0000_0000, 0xFFFF_8001_0000_0000),
    linked_at=tuple(
        (1 << 64) - (1 << bits - 1) + begin for bits in (48, 47, 39, 42, 36) for begin in (2 << 30, 128 << 20)
    ),
)
"""QEMU puts an image that names no offset 2 MiB behind the begin of memory (Arm ARM, D8.3, for pages).

Kernels are linked behind the area of modules, which has 2 GiB since Linux 6.6 and 128 MiB before. That area begins in
the middle of the kernel's addresses (arch/arm64/include/asm/memory.h), which have so many bits: 48 in Debian's kernels
with pages of 4 KiB, 47 in its kernel with pages of 16 KiB, 39 in Android's, and any of these by Kconfig.
"""

ARCHITECTURES = (X86_64, ARM64)
PEOPLES_NAMES = {one.machine: one.debian for one in ARCHITECTURES}
"""Short names of architectures by what ``uname -m`` prints."""


def this_machines() -> Architecture:
    """The architecture of this machine; x86_64 where guests of its own cannot be had."""
    return next((one for one in ARCHITECTURES if one.is_this_machines), X86_64)


def named_architecture(name: str) -> Architecture | None:
    """The architecture of a name that people use, such as arm64, aarch64 or a tree's x86; None of any other."""
    names = ((one, (one.name, one.debian, one.machine, one.tree_image.split("/")[1])) for one in ARCHITECTURES)
    return next((one for one, known in names if name in known), None)


def of_package(name: str) -> Architecture:
    """The architecture that a distribution's package has in its name; this machine's where it does not say."""
    words = re.split(r"[-*?\[\]]", name.partition("=")[0])
    return next((one for one in ARCHITECTURES if one.debian in words), this_machines())
