"""The .config that a revision is built with: a person's own, or one with all that guests and data paths need.

A person's own was often made for other sources, on another machine: what of it cannot be had is looked for, before the
build and in what came of it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from pdrgate.builds.architecture import ARCHITECTURES, Architecture, this_machines
from pdrgate.builds.decompression import decompressed
from pdrgate.builds.handed_over import BuildError, content

_LARGEST = 4 << 20
_FOREIGN = re.compile(r"^CONFIG_(ARM|RISCV|PPC64|S390|LOONGARCH|MIPS|SPARC64|X86_32)=y$", re.MULTILINE)
_FILES = {
    "SYSTEM_TRUSTED_KEYS": "", "SYSTEM_REVOCATION_KEYS": "", "SYSTEM_BLACKLIST_HASH_LIST": "",
    "MODULE_SIG_KEY": "certs/signing_key.pem", "INITRAMFS_SOURCE": "", "EXTRA_FIRMWARE": "",
    "ACPI_CUSTOM_DSDT_FILE": "", "EFI_SBAT_FILE": "", "UNUSED_KSYMS_WHITELIST": "",
}  # fmt: skip
"""Options that name files a distribution has beside its sources, and what they are set to without these."""
_TOOLS: Mapping[str, tuple[str, str]] = {
    "DEBUG_INFO_BTF": ("pahole", "pahole"), "KERNEL_LZ4": ("lz4", "lz4"), "KERNEL_ZSTD": ("zstd", "zstd"),
    "KERNEL_XZ": ("xz", "xz-utils"), "KERNEL_LZMA": ("xz", "xz-utils"), "KERNEL_LZO": ("lzop", "lzop"),
    "KERNEL_BZIP2": ("bzip2", "bzip2"), "MODULE_COMPRESS_ZSTD": ("zstd", "zstd"),
    "MODULE_COMPRESS_XZ": ("xz", "xz-utils"), "IKHEADERS": ("cpio", "cpio"),
}  # fmt: skip
"""Programs that an option takes, with their packages: without them a build fails at its end, or leaves the option
out."""
_SEEN_BY_TOOLS = re.compile(
    r"(?:HAVE|ARCH_(?:HAS|HAVE|SUPPORTS|WANTS?|USES?)|CC_(?:HAS|CAN)|AS)_|\w+_VERSION(?:_TEXT)?$"
)
"""Options that nobody sets: they say what compiler, assembler and architecture can do."""
_UNSET = re.compile(r"^# CONFIG_(\w+) is not set$", re.MULTILINE)
_NAMED = 24
"""Options that a sentence names."""


@dataclass(frozen=True, slots=True)
class KernelConfiguration:
    """Options of a kernel that is to be built."""

    text: str
    whole: bool
    """Whether it is a whole .config, of which only new options are decided; else each other option has its default."""
    architecture: Architecture

    @property
    def target(self) -> str:
        """Make's target that fills in the rest."""
        return "olddefconfig" if self.whole else "alldefconfig"

    @property
    def packages(self) -> dict[str, str]:
        """Packages of programs that the options take, by the program."""
        on = _values(self.text)
        return {program: package for name, (program, package) in _TOOLS.items() if on.get(name) in ("y", "m")}

    def with_files_of(self, source: Path) -> tuple[KernelConfiguration, tuple[str, ...]]:
        """The options without those files that the sources lack; and a sentence of each that is left out."""
        text, told = self.text, []
        for name, without in _FILES.items():
            value = _values(text).get(name, "").strip('"')
            # Firmware lies below a folder that another option names, which may be outside of the sources.
            folder = Path(_values(text).get(f"{name}_DIR", "").strip('"'))
            lacking = [one for one in value.split() if value != without and not _is_below(source, folder / one)]
            if lacking:
                text = re.sub(rf"^CONFIG_{name}=.*$", f'CONFIG_{name}="{without}"', text, flags=re.MULTILINE)
                instead = without or "left empty"
                told.append(f"CONFIG_{name} names {' '.join(lacking)}, which the sources lack: it is {instead}")
        return replace(self, text=text), tuple(told)

    def not_in(self, made: str) -> str | None:
        """What was asked for and is not in the .config that a kernel was made of; None if all is."""
        if not self.whole:
            return None
        have = _values(made)
        lost = [
            f"{name}={value} ({have.get(name, 'not set')})"
            for name, value in (dict.fromkeys(_UNSET.findall(self.text), "n") | _values(self.text)).items()
            if have.get(name, "n") != value and name not in _FILES and not _SEEN_BY_TOOLS.match(name)
        ]
        if not lost:
            return None
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        clang = "; it was made for clang, and gcc compiles here" if "CC_IS_CLANG" in _values(self.text) else ""
        return (
            f"{len(lost)} options of the .config are otherwise in the kernel, by conditions or other options: "
            f"{', '.join(lost[:_NAMED])}{more}{clang}"
        )


def kernel_configuration(file: Path | None, asked: Architecture | None = None) -> KernelConfiguration:
    """The configuration in a file; without one, `guest.config` beside this module and that of the architecture.

    Args:
        asked: the architecture; None: that of the file, else this machine's.

    Raises:
        BuildError: the file cannot be read, is no .config, or is one of another architecture.
    """
    if file is None:
        one = asked or this_machines()
        parts = (resources.files(__package__).joinpath(name) for name in ("guest.config", f"guest-{one.name}.config"))
        return KernelConfiguration("".join(part.read_text() for part in parts), whole=False, architecture=one)
    text = _text_of(file)
    if not re.search(r"^CONFIG_\w+=", text, re.MULTILINE):
        raise BuildError(f"{file}: is no .config (no line CONFIG_…=); name one, or leave config= out")
    if (foreign := _FOREIGN.search(text)) is not None:
        known = " and ".join(one.name for one in ARCHITECTURES)
        raise BuildError(f"{file}: is a .config of another architecture ({foreign[0]}); trees are compiled for {known}")
    on = _values(text)
    found = next((one for one in ARCHITECTURES if on.get(one.config) == "y"), None)
    if None not in (found, asked) and found != asked:
        assert found is not None and asked is not None
        raise BuildError(f"{file}: is a .config for {found.name}, and {asked.name} was asked for; name one of the two")
    return KernelConfiguration(text, whole=True, architecture=asked or found or this_machines())


def _text_of(file: Path) -> str:
    """The text of a .config, which may be packed, as /proc/config.gz is. Raises BuildError."""
    try:
        return b"".join(decompressed(io.BytesIO(content(file, file.resolve(), _LARGEST)), _LARGEST)).decode(
            errors="replace"
        )
    except ValueError as error:
        raise BuildError(f"{file}: cannot be unpacked ({error}); name a .config, packed or not") from error


def _values(text: str) -> dict[str, str]:
    """The values of options that are set, by name without CONFIG_."""
    return dict(re.findall(r"^CONFIG_(\w+)=(.+)$", text, re.MULTILINE))


def _is_below(source: Path, name: Path) -> bool:
    return not name.is_absolute() and ".." not in name.parts and (source / name).exists()
