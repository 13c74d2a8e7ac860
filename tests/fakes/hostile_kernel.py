"""Kernels of an attacker's: a few instructions each, in a bzImage that QEMU boots as it boots any other build."""

from __future__ import annotations

import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

RELEASE = "6.1.0-hostile"

_START = r"""
.code32
.data
.ascii "\0virtio_pci\0virtio_console\0virtio_net\0"    /* as a kernel with these drivers has them */
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
WORKS_WHERE_PROGRAMS_ARE = """
    lgdt gdt_told
    ljmp $8, $flat
flat:
    mov $16, %ax
    mov %ax, %ds; mov %ax, %es; mov %ax, %ss
    mov $stack, %esp
    mov $tss, %eax
    mov %ax, gdt + 42; shr $16, %eax; mov %al, gdt + 44; mov %ah, gdt + 47
    mov $40, %ax; ltr %ax
    mov $tick, %eax; mov %ax, idt + 8 * 32; shr $16, %eax; mov %ax, idt + 8 * 32 + 6
    mov $back, %eax; mov %ax, idt + 8 * 128; shr $16, %eax; mov %ax, idt + 8 * 128 + 6
    lidt idt_told
    mov $0x11, %al; out %al, $0x20; out %al, $0xa0
    mov $32, %al; out %al, $0x21; mov $40, %al; out %al, $0xa1
    mov $4, %al; out %al, $0x21; mov $2, %al; out %al, $0xa1
    mov $1, %al; out %al, $0x21; out %al, $0xa1
    mov $0xfe, %al; out %al, $0x21; mov $0xff, %al; out %al, $0xa1
    mov $0x34, %al; out %al, $0x43; mov $0x9c, %al; out %al, $0x40; mov $0x2e, %al; out %al, $0x40
again:
    mov $stack, %esp
    sti; hlt; cli
    mov $20000, %ecx        /* in the kernel, by what it reads and writes */
1:  mov number, %eax; add %ecx, %eax; mov %eax, number; loop 1b
    pushf; push $8; push $2f
    iret                    /* which leads to the kernel itself */
2:  mov $20000, %ecx        /* in the kernel, in registers alone */
3:  add %ecx, %eax; rol $5, %eax; xor %ecx, %eax; loop 3b
    pushl $0x23; push $user_stack; pushl $0x2; pushl $0x1b; push $program
    iret
program:
    mov $10000, %ecx
4:  mov number, %eax; add %ecx, %eax; mov %eax, number; loop 4b
    int $128
back: jmp again
tick: push %eax; mov $0x20, %al; out %al, $0x20; pop %eax; iret
.data
.align 16
number: .long 0
gdt: .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff, 0x00cffa000000ffff, 0x00cff2000000ffff, 0x0000890000000067
gdt_told: .word . - gdt - 1; .long gdt
.align 16
tss: .long 0, stack, 16; .fill 23, 4, 0
idt: .fill 32, 8, 0; .quad 0x00008e0000080000; .fill 95, 8, 0; .quad 0x0000ee0000080000
idt_told: .word . - idt - 1; .long idt
.bss
.align 16
.skip 4096
stack: .skip 4096
user_stack: .long 0
.text
"""
"""Works at each tick below where kernels are, and has a program that works a quarter as much."""
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
    struct.pack_into("<H", head, 0x236, 1)  # of 64 bits
    struct.pack_into("<H", head, 0x20E, 0x400)
    head[0x600:] = f"{release} (hostile@kernel) #1 SMP".encode().ljust(len(head) - 0x600, b"\0")
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    image.write_bytes(bytes(head) + payload)
    return image


def _gzip(content: bytes) -> bytes:
    """With the size behind it, as the kernel's build puts it; of gzip it is a part of the format."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(content) + packer.flush()
