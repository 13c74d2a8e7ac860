"""The way of files to a host: a kernel with its modules is some 300 MB, too much for what `Host.write` is made for."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Protocol

from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.builds.kernel_modules import LARGEST_MODULE, in_tree, module_files
from pdrgate.hosts.host import Host
from pdrgate.this_process.child_environment import bounded, child_environment
from pdrgate.values.errors import StorageError, TestbedError

_HASH_TIMEOUT = 120.0
_STRIP_AT_ONCE = 200
"""Modules given to one ``strip``, so that its command line stays short."""


class FileSink(Protocol):
    """Puts files on a host."""

    def copy(self, local: Path, remote: str) -> None:
        """Copy a file, in place of one that is there. Raises TestbedError when it cannot be written whole."""


def put_checked(host: Host, files: FileSink, file: FileIO | BufferedReader, name: Path, remote: str) -> None:
    """Put an open file on the host and compare what arrived: a kernel that is torn would be found out by its panic.

    Args:
        name: what the file is called here.

    Raises:
        TestbedError: it cannot be put there, or arrives otherwise.
    """
    # By its descriptor: what was looked at is what is sent.
    files.copy(Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), remote)
    file.seek(0)
    wanted = hashlib.file_digest(file, "sha256").hexdigest()
    found = host.run("sha256sum", remote, timeout=_HASH_TIMEOUT).stdout.split()[0].lstrip("\\")
    if found != wanted:
        raise TestbedError(f"{remote} on {host.name} is not what was sent ({name}); is its disk full or failing?")


@contextmanager
def packed_modules(build: KernelBuild) -> Iterator[Path | None]:
    """A tar file of what belongs into ``lib/modules/RELEASE``, for as long as the context lasts; None without modules.

    Modules of a build tree are stripped of their debug information on the way, if this machine has strip.

    Raises:
        BuildError: a module of a build tree is listed and not there, or is a link that leaves the build.
        StorageError: there is no room for it here.
    """
    if build.modules is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pdrgate-modules-") as folder:
        archive = Path(folder) / "modules.tar"
        try:
            found = dict(module_files(build))
            _check_room(found.values(), Path(folder), build)
            copies = _stripped(build, found, Path(folder) / "stripped") if in_tree(build) else {}
            with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
                for name, path in sorted(found.items()):
                    with copies[name].open("rb") if name in copies else _taken(build, path) as file:
                        _add(tar, name, file)
        except OSError as error:
            raise StorageError(
                f"cannot pack the modules of {build.name} in {folder}: {error.strerror}; make room there, or set TMPDIR"
            ) from error
        yield archive


def _taken(build: KernelBuild, path: Path) -> FileIO:
    if not path.exists():
        raise BuildError(f"{build.name}: {path} is listed and not there; run make modules")
    return build.open(path, LARGEST_MODULE)


def _check_room(paths: Iterable[Path], folder: Path, build: KernelBuild) -> None:
    """Look at sizes first: files of nothing but holes would fill the disk. Raises StorageError."""
    needed, free = sum(path.stat().st_size for path in paths if path.exists()), shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(
            f"the modules of {build.name} have {needed >> 20} MiB, and {folder.parent} has room for {free >> 20} MiB; "
            "make room there, or set TMPDIR"
        )


def _add(tar: tarfile.TarFile, name: str, file: FileIO | BufferedReader) -> None:
    """Add an open file as a regular one of root's, whatever it is here."""
    member = tarfile.TarInfo(name)
    status = os.fstat(file.fileno())
    member.size, member.mtime, member.mode = status.st_size, int(status.st_mtime), 0o644
    member.uname = member.gname = "root"
    tar.addfile(member, file)


def _stripped(build: KernelBuild, found: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Copies of the modules without debug information; empty if this machine has no strip."""
    program = shutil.which("strip")
    if program is None:
        return {}
    copies = {name: folder / name for name in found if name.endswith(".ko")}
    for name, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with _taken(build, found[name]) as file, copy.open("xb") as target:
            shutil.copyfileobj(file, target)
    modules = [str(copy) for copy in copies.values()]
    for at in range(0, len(modules), _STRIP_AT_ONCE):
        # What strip does not understand it leaves as it is, and so do we.
        command = bounded(program, "--strip-debug", *modules[at : at + _STRIP_AT_ONCE], written=LARGEST_MODULE)
        subprocess.run(command, capture_output=True, check=False, env=child_environment())
    return copies
