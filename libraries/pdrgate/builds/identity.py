"""Identity of a kernel build by its content: its name and its version need not be unique."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import module_files


def build_identity(build: KernelBuild) -> str:
    """A digest: builds that share it are one and the same.

    The image counts by its content. Modules may be gigabytes, and count by their places below ``lib/modules/RELEASE``,
    their sizes and when they were written: copied anew they are another build, and one that is written in place never
    passes for the old one. A package has these times in it, so it is the same wherever it is unpacked.

    Raises:
        BuildError: a file cannot be read.
    """
    try:
        with build.open_image() as image:
            digest = hashlib.file_digest(image, "sha256").hexdigest()
        parts = [build.release, build.version, build.config_sha256 or "", digest, *_modules(build)]
    except OSError as error:
        raise BuildError(f"{build.name}: cannot read {error.filename}: {error.strerror}") from error
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()


def _modules(build: KernelBuild) -> Iterator[str]:
    for place, path in module_files(build):
        yield f"{place} {_written(path)}"


def _written(path: Path) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return "not there"  # whoever needs it says so
    return f"{found.st_size} {found.st_mtime_ns}"
