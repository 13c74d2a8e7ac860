"""The way of files to a host: a kernel with its modules is some 300 MB, too much for what `Host.write` is made for."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.builds.kernel_modules import module_files
from pdrgate.child_environment import child_environment
from pdrgate.errors import StorageError, TestbedError
from pdrgate.hosts.host import Host

_HASH_TIMEOUT = 120.0
_STRIP_AT_ONCE = 200
"""Modules given to one ``strip``, so that its command line stays short."""


class FileSink(Protocol):
    """Puts files on a host."""

    def put(self, local: Path, remote: str) -> None:
        """Copy a file, in place of one that is there. Raises TestbedError when it cannot be written whole."""


def put_checked(host: Host, files: FileSink, local: Path, remote: str) -> None:
    """Put a file on the host and compare what arrived: a kernel that is torn would be found out only by its panic.

    Raises:
        TestbedError: it cannot be put there, or arrives otherwise.
    """
    files.put(local, remote)
    with local.open("rb") as file:
        wanted = hashlib.file_digest(file, "sha256").hexdigest()
    found = host.run("sha256sum", remote, timeout=_HASH_TIMEOUT).stdout.split()[0].lstrip("\\")
    if found != wanted:
        raise TestbedError(f"{remote} on {host.name} is not what was sent ({local}); is its disk full or failing?")


@contextmanager
def packed_modules(build: KernelBuild) -> Iterator[Path | None]:
    """A tar file of what belongs into ``lib/modules/RELEASE``, for as long as the context lasts; None without modules.

    Modules of a build tree are stripped of their debug information on the way, where this machine has strip.

    Raises:
        BuildError: a module is listed and not there.
        StorageError: there is no room for it here.
    """
    if build.modules is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pdrgate-modules-") as folder:
        archive = Path(folder) / "modules.tar"
        try:
            found = dict(module_files(build))
            if (build.modules / "Makefile").exists():
                found = _stripped(found, Path(folder) / "stripped")
            with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
                for name, path in sorted(found.items()):
                    tar.add(path, name, recursive=False, filter=_owned_by_root)
        except FileNotFoundError as error:
            raise BuildError(f"{build.name}: {error.filename} is listed and not there; run make modules") from error
        except OSError as error:
            raise StorageError(
                f"cannot pack the modules of {build.name} in {folder}: {error.strerror}; make room there, or set TMPDIR"
            ) from error
        yield archive


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o644
    return member


def _stripped(found: dict[str, Path], folder: Path) -> dict[str, Path]:
    program = shutil.which("strip")
    if program is None:
        return found
    copies = {name: folder / name for name in found}
    for name, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found[name], copy)
    modules = [str(copy) for name, copy in copies.items() if name.endswith(".ko")]
    for at in range(0, len(modules), _STRIP_AT_ONCE):
        # What strip does not understand it leaves as it is, and so do we.
        command = (program, "--strip-debug", *modules[at : at + _STRIP_AT_ONCE])
        subprocess.run(command, capture_output=True, check=False, env=child_environment())
    return copies
