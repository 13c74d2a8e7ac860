"""The types of a kernel build and of its modules, of those that carry them (CONFIG_DEBUG_INFO_BTF).

They are read in the files of the build, and never in a guest: nothing is asked of it, and it cannot answer.
"""

from __future__ import annotations

import io
from functools import lru_cache

from pdrgate.bpf.btf import Types
from pdrgate.builds.arm64_image import FlatImage, is_flat
from pdrgate.builds.boot_image import linked_image
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import select_modules
from pdrgate.values.errors import PdrGateError

_HEAD = 64


@lru_cache(maxsize=2)
def kernel_types(build: KernelBuild) -> Types | None:
    """The kernel's own types; None if it has none, or its image cannot be unpacked."""
    image = linked_image(build.image)
    if image is None:
        return None
    try:
        with image.open("rb") as file:
            flat = is_flat(file.read(_HEAD))
            return Types(FlatImage(file) if flat else ElfFile(file))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=16)
def module_types(build: KernelBuild, module: str) -> Types | None:
    """The types of a module, with those of the kernel; None if it has none."""
    base = kernel_types(build)
    try:
        found = next((one for one in select_modules(build, (), (module,)) if one.name == module), None)
        return None if found is None or base is None else Types(ElfFile(io.BytesIO(found.content)), base)
    except (PdrGateError, ValueError):
        return None
