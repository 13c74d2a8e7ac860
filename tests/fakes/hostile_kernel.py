"""Kernels of an attacker's: a few instructions each, in a bzImage that QEMU boots as it boots any other build."""

from __future__ import annotations

import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

RELEASE = "6.1.0-hostile"

_START = """
.code32
.section .note.Xen, "a", @note
.long 4, 4, 18
.asciz "Xen"
.long start

.text
.globl start
start:
    mov $0x3f8, %edx
"""
_PRINT = """
    mov $text, %esi
    mov $length, %ecx
    cld
print:
    lodsb
    outb %al, %dx
    loop print
"""
_TEXT = """
.data
text: .incbin "text"
.set length, . - text
"""
HALT = "halt: cli; hlt; jmp halt"
RESET = "movb $0xfe, %al; outb %al, $0x64; wait: jmp wait"
"""Ends QEMU: the keyboard's controller resets the machine."""
TRIPLE_FAULT = "lidt nothing; int3; nothing: .long 0, 0"
FLOOD = "flood: mov $0x41, %al; outb %al, %dx; jmp flood"
"""Writes to the console for ever."""


def hostile_kernel(image: Path, *, says: bytes = b"", then: str = HALT) -> Path:
    """Make a kernel that writes some bytes to its console, and goes on with instructions of its own.

    Args:
        image: the bzImage to write.
        says: any bytes.
        then: 32-bit assembler; the console's port is in %edx.
    """
    assembler = _START + (_PRINT if says else "") + then + "\n" + (_TEXT if says else "")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "text").write_bytes(says)
        (folder / "kernel.s").write_text(assembler)
        linked = (
            "-nostdlib",
            "-static",
            "-no-pie",
            "-Wl,-Ttext=0x100000",
            "-Wl,-z,noseparate-code",
            "-Wl,--build-id=none,-e,start",
        )
        subprocess.run(("gcc", *linked, "-o", "kernel", "kernel.s"), cwd=folder, check=True)
        elf = (folder / "kernel").read_bytes()
    return bz_image(image, _gzip(elf))


def bz_image(image: Path, payload: bytes, release: str = RELEASE) -> Path:
    """Write a bzImage around a payload; of its own code there is none (Documentation/arch/x86/boot.rst)."""
    sectors = 4
    head = bytearray(512 * (sectors + 1))
    head[0x1F1] = sectors
    head[0x1FE:0x200] = b"\x55\xaa"
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x20F)
    struct.pack_into("<H", head, 0x20E, 0x400)
    head[0x600:] = f"{release} (hostile@kernel) #1 SMP".encode().ljust(len(head) - 0x600, b"\0")
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    image.write_bytes(bytes(head) + payload)
    return image


def _gzip(content: bytes) -> bytes:
    """With the size behind it, as the kernel's build puts it; of gzip it is a part of the format."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(content) + packer.flush()
