"""The .config that a revision is built with: a person's own, or one with all that guests and data paths need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pdrgate.builds.handed_over import BuildError, content

_LARGEST = 4 << 20
_FOREIGN = re.compile(r"^CONFIG_(ARM64|ARM|RISCV|PPC64|S390|LOONGARCH|MIPS|SPARC64|X86_32)=y$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelConfiguration:
    """Options of a kernel that is to be built."""

    text: str
    whole: bool
    """Whether it is a whole .config, of which only new options are decided; else each other option has its default."""

    @property
    def target(self) -> str:
        """Make's target that fills in the rest."""
        return "olddefconfig" if self.whole else "alldefconfig"


def kernel_configuration(file: Path | None) -> KernelConfiguration:
    """The configuration in a file; without one, `guest.config` beside this module.

    Raises:
        BuildError: the file cannot be read, is no .config, or is one of another architecture.
    """
    if file is None:
        text = resources.files(__package__).joinpath("guest.config").read_text()
        return KernelConfiguration(text, whole=False)
    text = content(file, file.resolve(), _LARGEST).decode(errors="replace")
    if not re.search(r"^CONFIG_\w+=", text, re.MULTILINE):
        raise BuildError(f"{file}: is no .config (no line CONFIG_…=); name one, or leave config= out")
    if (foreign := _FOREIGN.search(text)) is not None:
        raise BuildError(f"{file}: is a .config of another architecture ({foreign[0]}); trees are compiled for x86-64")
    return KernelConfiguration(text, whole=True)
