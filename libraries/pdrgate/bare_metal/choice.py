"""Choice of the boot loader that starts the builds on a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pdrgate.bare_metal.grub import Grub
from pdrgate.bare_metal.kexec import Kexec
from pdrgate.bare_metal.layout import Layout
from pdrgate.bare_metal.loader import BootLoader, LoaderError, LoaderName
from pdrgate.bare_metal.systemd_boot import SystemdBoot
from pdrgate.hosts.host import Host


def choose_loader(host: Host, layout: Layout, wanted: LoaderName = "auto") -> BootLoader:
    """The boot loader of a host: the wanted one, else the first that can start a kernel once.

    Kexec comes last: not every driver takes over a network card that another kernel has used.

    Raises:
        LoaderError: there is none; the message says why not for each.
    """
    known: Mapping[str, Callable[[], BootLoader]] = {
        "grub": lambda: Grub(host, layout),
        "systemd-boot": lambda: SystemdBoot(host),
        "kexec": lambda: Kexec(host),
    }
    problems = []
    for name, make in known.items():
        if wanted in ("auto", name):
            loader = make()
            problem = loader.problem()
            if problem is None:
                return loader
            problems.append(f"{name}: {problem}")
    raise LoaderError(f"{host.name} cannot start a kernel for once; {'; '.join(problems)}")
