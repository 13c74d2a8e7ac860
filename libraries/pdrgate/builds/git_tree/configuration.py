"""The .config that a revision is built with: a person's own, or one with all that guests and data paths need."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from pdrgate.builds.handed_over import BuildError, content

_LARGEST = 4 << 20
_FOREIGN = re.compile(r"^CONFIG_(ARM64|ARM|RISCV|PPC64|S390|LOONGARCH|MIPS|SPARC64|X86_32)=y$", re.MULTILINE)


_KEY = '"certs/signing_key.pem"'
_MADE = (_KEY,)
"""Files that a build makes where they are missing."""
_FILES = {
    "CONFIG_SYSTEM_TRUSTED_KEYS": '""', "CONFIG_SYSTEM_REVOCATION_KEYS": '""', "CONFIG_MODULE_SIG_KEY": _KEY,
    "CONFIG_SYSTEM_BLACKLIST_HASH_LIST": '""', "CONFIG_EXTRA_FIRMWARE": '""', "CONFIG_INITRAMFS_SOURCE": '""',
    "CONFIG_BOOT_CONFIG_EMBED_FILE": '""', "CONFIG_UNUSED_KSYMS_WHITELIST": '""', "CONFIG_EFI_SBAT_FILE": '""',
    "CONFIG_CFG80211_EXTRA_REGDB_KEYDIR": '""', "CONFIG_ACPI_CUSTOM_DSDT_FILE": '""',
}  # fmt: skip
"""Options that name files which a build reads, with the value of one that names none."""
_OF_TOOLS = re.compile(
    r"CONFIG_(?:(?:CC|GCC|CLANG|LLD|LD|AS|PAHOLE|RUSTC|BINDGEN|HAVE|ARCH|TOOLCHAIN|TOOLS|GENERIC)_(?!IS_CLANG\b|OPTIMIZE)"
    r"|G?CC\d*_NO_|RUST_IS_AVAILABLE|LOCALVERSION\b)"
)
"""Options that nobody chooses: they say what compilers and architectures can."""


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

    @property
    def asked(self) -> dict[str, str]:
        """The options that are switched on, with their values."""
        return _options(self.text)

    def without_lost_files(self, there: Callable[[str], bool]) -> tuple[KernelConfiguration, tuple[str, ...]]:
        """The configuration without files that its distribution has and the tree has not; and these options.

        Args:
            there: whether the tree has a file, by its path in it.
        """
        lost = {
            name: value
            for name in _FILES
            if (value := self.asked.get(name, '""')).strip('"')
            and value not in _MADE
            and not all(there(file) for file in value.strip('"').split())
        }
        text = self.text
        for name in lost:
            text = re.sub(rf"^{name}=.*$", f"{name}={_FILES[name]}", text, flags=re.MULTILINE)
        return replace(self, text=text), tuple(f"{name}={value}" for name, value in lost.items())

    def dropped(self, made: str) -> tuple[str, ...]:
        """The options that were asked for and that a .config, which make filled in, has otherwise or not at all."""
        has = _options(made)
        return tuple(
            f"{name}={value}" for name, value in self.asked.items()
            if has.get(name) != value and not _OF_TOOLS.match(name)
        )  # fmt: skip


def _options(text: str) -> dict[str, str]:
    return {one[1]: one[2].strip() for one in re.finditer(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE) if one[2] != "n"}


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
        raise BuildError(f"{file}: is a .config of another architecture ({foreign[0]}); guests run x86-64 kernels")
    return KernelConfiguration(text, whole=True)
