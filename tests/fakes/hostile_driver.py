"""A kernel of the distribution with a driver of an attacker's: as a folder that is handed over like any other build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.this_process.cache import cache_folder

SOURCES = Path(__file__).with_name("hostile_drivers")
_OURS, _ITS = "net_watching", "net_failover"
"""The module that is added, and the one that virtio_net depends on: names of one length."""
_SIGNED = b"~Module signature appended~\n"
"""Where this stands at its end, a module's signature must be right; without it, a kernel takes the module unsigned."""


class NoHeadersError(Exception):
    """What a module of this kernel is compiled with cannot be had here."""


def hostile_driver(folder: Path, build: KernelBuild, source: str) -> Path:
    """Copy a kernel, and add a module that virtio_net depends on.

    Args:
        folder: where the copy is made.
        source: a file of ``hostile_drivers``, without its ending.

    Raises:
        NoHeadersError: no package of the kernel's headers can be had.
    """
    assert build.modules is not None
    top = folder / source
    modules = top / "lib/modules" / build.release
    shutil.copytree(build.modules, modules, copy_function=_linked, ignore=shutil.ignore_patterns("build", "source"))
    (top / "boot").mkdir()
    _linked(build.image, top / "boot" / f"vmlinuz-{build.release}")
    if build.config is not None:
        _linked(build.config, top / "boot" / f"config-{build.release}")
    (driver,) = modules.rglob("virtio_net.ko")
    content, times = re.subn(rb"(\0depends=[^\0]*)" + _ITS.encode(), rb"\1" + _OURS.encode(), driver.read_bytes())
    assert times == 1, "virtio_net depends on other modules than it did"
    driver.unlink()
    driver.write_bytes(content.removesuffix(_SIGNED))
    shutil.copy(_compiled(folder / f"{source}.build", build.release, source), driver.with_name(f"{_OURS}.ko"))
    return top


def _compiled(folder: Path, release: str, source: str) -> Path:
    folder.mkdir()
    for path in SOURCES.glob("*.h"):
        shutil.copy(path, folder)
    shutil.copy(SOURCES / f"{source}.c", folder / f"{_OURS}.c")
    (folder / "Makefile").write_text(f"obj-m := {_OURS}.o\nccflags-y := -std=gnu11\n")
    words = ("make", "-s", "-C", str(_headers(release)), f"M={folder}", "modules")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / f"{_OURS}.ko"


def _headers(release: str) -> Path:
    """The folder to compile modules of a kernel in, from the distribution's packages, unpacked and not installed."""
    name = f"linux-headers-{release}"
    top = cache_folder() / "headers" / release
    found = top / "usr/src" / name
    if found.exists():
        return found
    part = top.with_name(f"{release}.{os.getpid()}")
    part.mkdir(parents=True)
    depends = subprocess.run(("apt-cache", "depends", name), capture_output=True, text=True, check=False).stdout
    needed = re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", depends)
    done = subprocess.run(
        ("apt-get", "download", name, *needed), cwd=part, capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode or not needed:
        shutil.rmtree(part)
        raise NoHeadersError(f"{name} cannot be had: {done.stderr.strip()[-200:]}")
    for package in part.glob("*.deb"):
        subprocess.run(("dpkg-deb", "-x", package.name, "."), cwd=part, check=True)
    makefile = part / "usr/src" / name / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src", str(top / "usr/src")))
    try:
        part.rename(top)
    except OSError:  # another process was faster
        shutil.rmtree(part)
    return found


def _linked(source: str | Path, target: str | Path) -> str:
    """A file once more, without its bytes where that can be."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
    return str(target)
