"""What differs between two kernels: functions and variables, of the image and of the modules that paths load."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar

from pdrgate.builds.boot_image import linked_image
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import OF_THE_NETWORK, module_content, module_places
from pdrgate.differences.kept_code import code_digest, kept
from pdrgate.differences.kernel_image import CodePlace, KernelImage, linked_kernel
from pdrgate.differences.module_objects import ModuleObjects, module_objects
from pdrgate.differences.same_bytes import SameBytes
from pdrgate.observers.function_names import function_name

ObjectKind = Literal["function", "variable"]
How = Literal["changed", "gone", "new"]
_Found = TypeVar("_Found")
_Key = tuple[str, int]

_MOST = 0.5
"""The share of all functions that differ where builds have another compiler, configuration or layout."""


@dataclass(frozen=True, slots=True, order=True)
class CodeDifference:
    """A function or variable that is not the same in both builds."""

    kind: ObjectKind
    module: str
    """The module that has it; empty of the kernel's image."""
    name: str
    how: How

    @property
    def label(self) -> str:
        """The name for people: ``module: name`` of what a module has."""
        return f"{self.module}: {self.name}" if self.module else self.name


@dataclass(frozen=True, slots=True)
class CodeDifferences:
    """All that differs, with how much was compared."""

    functions: int
    """Functions that both builds have."""
    variables: int
    modules: int
    """Modules that both builds have."""
    differ: tuple[CodeDifference, ...]
    missing: tuple[str, ...] = field(default=())
    """Modules that could not be read, and why: whatever they have counts as different."""
    of_changed_modules: frozenset[str] = frozenset()
    """Variables of the modules in which anything differs: what their first code leaves there is not looked at."""
    identical: bool = False
    """Whether image and modules are the same, byte by byte."""

    @property
    def everywhere(self) -> bool:
        """Whether so much differs that the builds differ by more than a change of sources."""
        changed = sum(one.kind == "function" and one.how == "changed" for one in self.differ)
        return changed > _MOST * self.functions

    def functions_that_differ(self) -> frozenset[str]:
        """Their names as reports have them: without what a compiler adds to the parts of a function."""
        return frozenset(function_name(one.name) for one in self.differ if one.kind == "function")

    def variables_that_differ(self) -> frozenset[str]:
        """The names of variables whose initial values differ, or are set by a module that differs."""
        return frozenset(one.name for one in self.differ if one.kind == "variable") | self.of_changed_modules


def code_differences(before: KernelBuild, after: KernelBuild) -> CodeDifferences:
    """Compare two kernels, without booting either; two that were compared before are remembered.

    Raises:
        BuildError: an image cannot be unpacked, or has no symbols (CONFIG_KALLSYMS).
    """
    digests = code_digest(before, compared_modules(before)), code_digest(after, compared_modules(after))
    try:
        found = kept("pair", digests, CodeDifferences, partial(_compared, before, after, digests))
    except (ValueError, IndexError, OverflowError) as error:
        raise BuildError(f"{before.name} and {after.name}: an image is damaged ({error})") from error
    return replace(found, identical=digests[0] == digests[1])


def _compared(before: KernelBuild, after: KernelBuild, digests: tuple[str, str]) -> CodeDifferences:
    images = _image(before), _image(after)
    differ = [*_of_images(*images, "function"), *_of_images(*images, "variable")]
    functions = len(images[0].functions.keys() & images[1].functions.keys())
    variables = len(images[0].variables.keys() & images[1].variables.keys())
    missing: list[str] = []
    modules = module_code(before, digests[0]), module_code(after, digests[1])
    for name in sorted(modules[0].keys() | modules[1].keys()):
        old, new = (one.get(name, ModuleObjects({}, {})) for one in modules)
        if unread := old.unread or new.unread:
            missing.append(f"module {name}: {unread}")
            continue
        differ += _of_modules(name, old, new)
        functions += len(old.functions.keys() & new.functions.keys())
        variables += len(old.variables.keys() & new.variables.keys())
    in_both = len(modules[0].keys() & modules[1].keys())
    changed = {one.module for one in differ if one.module}
    theirs = frozenset(name for one in modules for module in changed & one.keys() for name, _ in one[module].variables)
    return CodeDifferences(functions, variables, in_both, tuple(sorted(set(differ))), tuple(missing), theirs)


def _image(build: KernelBuild) -> KernelImage:
    if build.architecture.has_flat_image:
        raise BuildError(
            f"{build.name}: code is compared of images that have sections, and those for {build.architecture.name} "
            "have none; measure all paths"
        )
    image = linked_image(build.image)
    kernel = linked_kernel(image) if image is not None else None
    if kernel is None:
        raise BuildError(
            f"{build.name}: its image cannot be unpacked, or has no symbols; build it with CONFIG_KALLSYMS_ALL"
        )
    return kernel


def _of_images(before: KernelImage, after: KernelImage, kind: ObjectKind) -> Iterator[CodeDifference]:
    code = kind == "function"
    old, new = ((one.functions if code else one.variables) for one in (before, after))
    both = [key for key in old if key in new]
    pairs: Sequence[tuple[CodePlace, CodePlace]] = [(old[key], new[key]) for key in both]
    for number in SameBytes(before, after, code=code).differing(pairs):
        yield CodeDifference(kind, "", both[number][0], "changed")
    yield from _of_one(kind, "", old, new)


def _of_modules(module: str, before: ModuleObjects, after: ModuleObjects) -> Iterator[CodeDifference]:
    kinds: tuple[tuple[ObjectKind, Mapping[_Key, bytes], Mapping[_Key, bytes]], ...] = (
        ("function", before.functions, after.functions), ("variable", before.variables, after.variables),
    )  # fmt: skip
    for kind, old, new in kinds:
        for key in old.keys() & new.keys():
            if old[key] != new[key]:
                yield CodeDifference(kind, module, key[0], "changed")
        yield from _of_one(kind, module, old, new)


def _of_one(
    kind: ObjectKind, module: str, old: Mapping[_Key, _Found], new: Mapping[_Key, _Found]
) -> Iterator[CodeDifference]:
    for key in old.keys() - new.keys():
        yield CodeDifference(kind, module, key[0], "gone")
    for key in new.keys() - old.keys():
        yield CodeDifference(kind, module, key[0], "new")


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
