"""The code of all modules of a build that a path may load."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import OF_THE_NETWORK, module_content, module_places
from pdrgate.differences.kept_code import kept
from pdrgate.differences.module_objects import ModuleObjects, module_objects

_OF_GUESTS = re.compile(r"(^|/)(lib|drivers/virtio)/")
"""Folders of modules that guests load besides those of the network."""
_OUTSIDE = re.compile(r"^(extra|updates)/")
"""Folders of modules from outside the kernel's tree. They are loaded in preference to the kernel's own."""
_TOGETHER = 16
"""Modules that a process reads before it is asked again."""


def module_code(build: KernelBuild, digest: str) -> Mapping[str, ModuleObjects]:
    """Read the modules of a build: what each function and variable says, by the name of the module.

    Args:
        digest: of the build, see `pdrgate.differences.kept_code.code_digest`.
    """
    return kept("modules", (digest,), dict[str, ModuleObjects], partial(_read_all, build))


def _read_all(build: KernelBuild) -> dict[str, ModuleObjects]:
    names = compared_modules(build)
    try:
        with ProcessPoolExecutor(os.cpu_count()) as readers:
            return dict(zip(names, readers.map(partial(_read, build), names, chunksize=_TOGETHER), strict=True))
    except BrokenProcessPool as error:
        raise BuildError(f"{build.name}: its modules could not be read, for a reader has died; run again") from error


def compared_modules(build: KernelBuild) -> list[str]:
    """The names of the modules that a path may load, in order."""
    places = module_places(build).items()
    return sorted(name for name, at in places if any(one.search(at) for one in (OF_THE_NETWORK, _OF_GUESTS, _OUTSIDE)))


def _read(build: KernelBuild, name: str) -> ModuleObjects:
    try:
        return module_objects(module_content(build, name))
    except (BuildError, MissingToolError, ValueError) as error:
        return ModuleObjects({}, {}, str(error))
