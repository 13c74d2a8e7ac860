"""A build's files on a host, beside those of its own kernels and never in place of one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from pdrgate.bare_metal.host_files import FileSink, packed_modules, put_checked
from pdrgate.bare_metal.layout import InstalledKernel, Layout, has, running_release
from pdrgate.builds.architecture import X86_64
from pdrgate.builds.bz_image import LARGEST_IMAGE
from pdrgate.builds.image_config import LARGEST_CONFIG
from pdrgate.builds.kernel_build import LARGEST_SYMBOLS, KernelBuild
from pdrgate.builds.kernel_modules import modules_asked_for
from pdrgate.hosts.host import Host
from pdrgate.values.errors import PdrGateError, TestbedError

_UNPACK_TIMEOUT = 300.0
_DEPMOD_TIMEOUT = 300.0
_RAMDISK_TIMEOUT = 600.0
_SPARE = 100 << 20
"""Bytes that a file system keeps free beyond the files: for the initial RAM disk, and for the host itself."""


class InstallError(TestbedError):
    """A build cannot be put on a host. Its files are gone again, unless the message says that they are not."""


def install(host: Host, files: FileSink, build: KernelBuild, layout: Layout) -> InstalledKernel:
    """Put image, configuration, symbols and modules of a build on the host and make its initial RAM disk.

    An earlier installation of that release by pdrgate is replaced. The boot loader is not informed.

    Raises:
        InstallError: not root, a kernel of that release that is somebody else's, no room, or a tool failed.
    """
    release = build.release
    _check(host, build, layout)
    remove(host, layout, release)
    try:
        # First of all, so that the files of an installation that is killed are known as ours.
        host.run("mkdir", "-p", layout.modules(release), layout.boot_folder)
        host.write(layout.marker(release), json.dumps({"build": build.name, "installed": time.time()}) + "\n")
        _put_modules(host, files, build, layout)
        for path, largest, remote in _files(build, layout):
            with build.open(path, largest) as file:
                put_checked(host, files, file, path, remote)
        ramdisk = _make_ramdisk(host, layout, release)
    except BaseException as error:
        why = f"cannot install {build.name} on {host.name}: {error}"
        try:
            remove(host, layout, release)
        except PdrGateError as second:
            why += f"; and its files there could not be removed: {second}"
        if isinstance(error, PdrGateError):
            raise InstallError(why) from error
        raise
    return InstalledKernel(build.name, release, layout.image(release), ramdisk)


def remove(host: Host, layout: Layout, release: str) -> bool:
    """Remove the files of a release that pdrgate installed. Returns False if there are none.

    Raises:
        InstallError: that kernel runs right now, or is somebody else's.
    """
    if not host.exists(layout.marker(release)):
        return False
    if running_release(host) == release:
        raise InstallError(f"{host.name} runs {release} right now; restart it, then remove that kernel")
    host.run(
        "rm", "-f", layout.image(release), layout.config(release), layout.system_map(release),
        *layout.ramdisks(release), _archive(layout, release),
    )  # fmt: skip
    # Last, and the marker with it: a removal that is cut short can be taken up again.
    host.run("rm", "-rf", layout.modules(release), timeout=_UNPACK_TIMEOUT)
    return True


def _check(host: Host, build: KernelBuild, layout: Layout) -> None:
    release = build.release
    if host.run("id", "-u").stdout.strip() != "0":
        raise InstallError(f"installing a kernel on {host.name} takes root there; log in as root, or use sudo")
    machine = host.run("uname", "-m").stdout.strip()
    if build.architecture is not X86_64:
        raise InstallError(f"{build.name} is a kernel for {build.architecture.name}; those for x86_64 can be installed")
    if machine != X86_64.machine:
        raise InstallError(f"{build.name} is a kernel for x86_64, and {host.name} is {machine}")
    if build.modules is None and (wanted := modules_asked_for(build)):
        raise InstallError(
            f"{build.name} was handed over without modules, and its configuration has {wanted} of them: {host.name} "
            f"might not come back; name them too, as {build.source},modules=lib/modules/{release}, or run make modules"
        )
    if running_release(host) == release:
        raise InstallError(
            f"{host.name} runs a kernel {release} right now, and it would be overwritten; give the build a name of its "
            "own with CONFIG_LOCALVERSION"
        )
    if not host.exists(layout.marker(release)):
        for path in (layout.image(release), layout.modules(release)):
            if host.exists(path):
                raise InstallError(
                    f"{host.name} has {path} already, and not from pdrgate; give the build a name of its own with "
                    "CONFIG_LOCALVERSION, or remove that kernel"
                )
    for folder, needed in ((layout.boot_folder, _size(build.image)), (layout.at("/lib/modules"), 0)):
        _check_room(host, folder, needed + _SPARE)


def _check_room(host: Host, folder: str, needed: int) -> None:
    lines = host.run("df", "-PB1", folder).stdout.splitlines()
    free = int(lines[-1].split()[3])
    if free < needed:
        raise InstallError(
            f"{folder} on {host.name} has {free >> 20} MiB free, and the kernel needs {needed >> 20} MiB; remove "
            "kernels there that nobody needs"
        )


def _put_modules(host: Host, files: FileSink, build: KernelBuild, layout: Layout) -> None:
    with packed_modules(build) as archive:
        if archive is None:
            return
        # Twice, for a moment: as an archive and unpacked.
        _check_room(host, layout.at("/lib/modules"), 2 * _size(archive) + _SPARE)
        remote = _archive(layout, build.release)
        with archive.open("rb") as file:
            put_checked(host, files, file, archive, remote)
        host.run("tar", "-xf", remote, "-C", layout.modules(build.release), timeout=_UNPACK_TIMEOUT)
        host.run("rm", "-f", remote)
    root = ("-b", layout.root) if layout.root else ()
    host.run("depmod", *root, build.release, timeout=_DEPMOD_TIMEOUT)


def _archive(layout: Layout, release: str) -> str:
    return layout.at(f"/lib/modules/.pdrgate-{release}.tar")


def _files(build: KernelBuild, layout: Layout) -> Iterator[tuple[Path, int, str]]:
    """The image, and configuration and symbols where the build has them: each with the bytes that it may have and its
    place there. Initial RAM disks are made by the configuration."""
    yield build.image, LARGEST_IMAGE, layout.image(build.release)
    if build.config is not None:
        yield build.config, LARGEST_CONFIG, layout.config(build.release)
    if build.symbols is not None:
        yield build.symbols, LARGEST_SYMBOLS, layout.system_map(build.release)


def _make_ramdisk(host: Host, layout: Layout, release: str) -> str | None:
    """Make the initial RAM disk with what the host has for it: initramfs-tools, dracut or mkinitcpio."""
    debian, fedora = layout.ramdisks(release)
    if has(host, "update-initramfs"):
        host.run("update-initramfs", "-c", "-k", release, "-b", layout.boot_folder, timeout=_RAMDISK_TIMEOUT)
        path = debian
    elif has(host, "dracut"):
        host.run("dracut", "--force", "--kver", release, fedora, timeout=_RAMDISK_TIMEOUT)
        path = fedora
    elif has(host, "mkinitcpio"):
        host.run("mkinitcpio", "-k", release, "-g", fedora, timeout=_RAMDISK_TIMEOUT)
        path = fedora
    else:
        raise InstallError(
            f"{host.name} has no update-initramfs, dracut or mkinitcpio to make an initial RAM disk; install the one "
            "of its distribution"
        )
    if not host.exists(path):
        raise InstallError(f"{host.name} made no initial RAM disk {path}, and its tool reported no error")
    return path


def _size(path: Path) -> int:
    return path.stat().st_size
