"""Operations of the kernel's that an eBPF object registers (struct_ops): which they are, and their name there."""

from __future__ import annotations

import io
from dataclasses import dataclass

from pdrgate.bpf.btf import Types
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError
from pdrgate.builds.elf_file import ElfFile

_SECTIONS = (".struct_ops", ".struct_ops.link")
_NAMED = ("name", "id")
"""Members that have the name: of struct tcp_congestion_ops, and of struct Qdisc_ops."""
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class RegisteredOps:
    """Operations that an object registers."""

    structure: str
    """The kernel's struct of them, ``tcp_congestion_ops``."""
    name: str
    """The name that the kernel knows them by."""


def registered_ops(build: BpfBuild) -> RegisteredOps:
    """The first operations that a build's object registers. Raises BpfBuildError where it has none with a name."""
    try:
        elf = ElfFile(io.BytesIO(build.read()))
        types = Types(elf)
        for section in filter(None, map(elf.section, _SECTIONS)):
            content = elf.content(section, _LARGEST)
            for at, number in types.placed(section.name).items():
                kind = types.kind(number)
                for member in kind.members:
                    if member.name in _NAMED:
                        begin = at + member.at // 8
                        text = content[begin : begin + types.size(member.type)].partition(b"\0")[0]
                        return RegisteredOps(kind.name, text.decode("ascii"))
    except ValueError as error:
        raise BpfBuildError(f"{build.path}: its operations (struct_ops) cannot be read: {error}") from error
    raise BpfBuildError(
        f"{build.path}: registers no operations with a name; what is measured are congestion controls of TCP "
        "(struct tcp_congestion_ops) and qdiscs (struct Qdisc_ops)"
    )


def without_links(content: bytes) -> bytes:
    """An object that registers operations by no link, which versions of libbpf before 1.2 do not know.

    The names in its tables of strings keep their length, so that nothing in the file moves.
    """
    return content.replace(b".struct_ops.link\0", b".struct_ops\0link\0")
