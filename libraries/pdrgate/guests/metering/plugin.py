"""Builds plugins for the QEMU of this machine, with this machine's compiler, and maps the memory that one shares."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.builds.architecture import Architecture
from pdrgate.guests.shared_memory import SharedMemory
from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.compiled import compile_to, compiling

_APIS = {(11, 1): 7, (11, 0): 6, (9, 1): 3, (9, 0): 2}
"""Version of the plugins' interface by the version of QEMU from which on plugins declare it; before it 1.

For this plugin, 3 has another way to hand out an instruction's bytes, and 7 others to report a translation and a halt.
"""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """The source of a plugin."""

    name: str
    main: Path
    """File that is compiled."""
    headers: tuple[Path, ...]
    """Files that it includes."""

    @property
    def digest(self) -> str:
        """Digest that distinguishes it from other versions of itself."""
        content = [one.read_bytes() for one in (self.main, *self.headers)]
        return hashlib.sha256(b"\0".join(content)).hexdigest()


_HERE = Path(__file__).parent
_COMMON = tuple(sorted(_HERE.glob("*.h")))
VCPU_METER = PluginSource("vcpu-meter", _HERE / "vcpu_meter.c", _COMMON)
_OF_MEMORY = (*_COMMON, *sorted((_HERE / "memory").glob("*.h")))
MEMORY_TRIAL = PluginSource("memory-trial", _HERE / "memory" / "memory_trial.c", _OF_MEMORY)
SHARED_LINES = PluginSource(
    "shared-lines", _HERE / "sharing" / "shared_lines.c", (*_OF_MEMORY, *sorted((_HERE / "sharing").glob("*.h")))
)


def guest_code(architecture: Architecture) -> tuple[str, ...]:
    """The compiler's words that choose the decoder of guests of an architecture."""
    chosen = {"GUEST_CODE": architecture.decoder, "GUEST_TRAITS": architecture.traits}
    folders = (f"-I{folder}" for folder in (_HERE, _HERE / "memory"))
    return (*(f'-D{name}="{header}"' for name, header in chosen.items()), *folders)


def plugin(
    qemu_version: str, architecture: Architecture, source: PluginSource = VCPU_METER, cache: Path | None = None
) -> Path:
    """A plugin for that version of QEMU and guests of an architecture, compiled unless it is already.

    Raises:
        TestbedError: there is no compiler, or compiling failed.
    """
    version = _numbers(qemu_version)
    api = next((api for since, api in _APIS.items() if version >= since), 1)
    folder = cache or cache_folder()
    made = folder / f"{source.name}-{architecture.name}-{source.digest}-{api}.so"
    if made.exists():
        return made
    command = (
        "gcc", "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", f"-DPLUGIN_API={api}",
        *guest_code(architecture), str(source.main),
    )  # fmt: skip
    with compiling("the plugin for QEMU", folder, {"gcc": "gcc libc6-dev"}, "apt-get install libc6-dev"):
        compile_to(made, command)
    return made


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


class PluginMemory(SharedMemory):
    """The memory of one guest's plugin: a head of numbers, and tables behind it."""

    head: ClassVar[np.dtype[np.void]]
    """Head of the memory."""

    def _get(self, name: str) -> int:
        """A number of the head."""
        at = offset(self.head, name)
        return int.from_bytes(self._memory[at : at + 8], "little")

    def _put(self, name: str, value: int) -> None:
        self._write(name, np.array([value], "<u8"))

    def _write(self, name: str, values: npt.NDArray[np.generic]) -> None:
        at, content = offset(self.head, name), values.tobytes()
        self._memory[at : at + len(content)] = content

    def _table(self, at: int, kind: np.dtype[np.void], count: int) -> npt.NDArray[np.void]:
        """A copy of so many records from byte ``at`` on."""
        return np.frombuffer(self._memory, kind, count, at).copy()


def offset(kind: np.dtype[np.void], name: str) -> int:
    """At which byte of a record a field begins."""
    fields = kind.fields
    assert fields is not None
    return fields[name][1]
