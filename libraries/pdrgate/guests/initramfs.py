"""The guest's user land: an initramfs of busybox, ip, ethtool, sh, programs of ours, and the modules of the build.

It is not compressed: under emulation the guest would inflate it far more slowly than QEMU copies it. The shell is
/bin/sh and not busybox's, whose builtin `ip` and `tc` come before programs and know no JSON.
"""

from __future__ import annotations

import functools
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import Module, select_modules
from pdrgate.builds.named_build import GUEST_MODULES
from pdrgate.guests.guest_programs import Programs, programs_for
from pdrgate.this_process.checkout import how_to_install
from pdrgate.values.errors import ToolError

MORE_MODULES = (
    "ipv6",
    "sch_ingress",
    "cls_bpf",
    "act_bpf",
    "act_mirred",
    "act_gact",
    "seg6_iptunnel",
    "sch_netem",
    "tcp_bbr",
    "8021q",
)
"""There for data paths; loaded when they are used first."""

_PROGRAMS = {"sh": "dash", "busybox": "busybox-static", "ip": "iproute2", "ethtool": "ethtool"}
_MORE_PROGRAMS = ("tc", "bpftool", "iperf3", "retis")

CONTROL, SHELL, ERRORS = "pdrgate.control", "pdrgate.shell", "pdrgate.values.errors"
"""Names of the guest's virtio-serial ports: who shall have a shell, the shell's input and output, its complaints."""

INIT = f"""\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
say() {{ echo "pdrgate: $*" >/dev/kmsg; }}
mount -t proc proc /proc
# A program that is mapped at the same addresses each time is not translated anew by the emulator: thrice as fast.
echo 0 >/proc/sys/kernel/randomize_va_space
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev || mount -t tmpfs tmpfs /dev
[ -c /dev/null ] || mknod -m 666 /dev/null c 1 3
[ -c /dev/kmsg ] || mknod -m 600 /dev/kmsg c 1 11
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
# One process for all of them, for each costs an emulated guest 20 ms; which one fails is asked only when one does.
modprobe -a $(cat /etc/modules) 2>/dev/null || for module in $(cat /etc/modules); do
    modprobe "$module" 2>/run/modprobe || say "cannot load $module: $(tail -n 1 /run/modprobe)"
done

# Waits for a virtio-serial port, by its name, and makes /run/NAME its device.
port() {{
    tries=0
    # Without this folder there is no driver, and to wait is in vain.
    while [ -d /sys/class/virtio-ports ] && [ "$tries" -lt 200 ]; do
        for folder in /sys/class/virtio-ports/*; do
            if read -r name <"$folder/name" && [ "$name" = "$1" ]; then
                read -r device <"$folder/dev"
                mknod -m 600 "/run/$1" c "${{device%:*}}" "${{device#*:}}"
                return
            fi
        done 2>/dev/null
        tries=$((tries + 1))
        sleep 0.02
    done
    say "no virtio-serial port $1; has this kernel virtio_pci and virtio_console?"
    reboot -f
}}
for wanted in {CONTROL} {SHELL} {ERRORS}; do port "$wanted"; done
ip link set lo up

# Whoever connects to the control port may say `hello ANYTHING`, to learn that all is up, or `open ANYTHING`, to get a
# new shell; the one before is ended.
exec 3<>/run/{CONTROL}
shell=
while :; do
    read -r word rest <&3 || {{
        sleep 0.05
        continue
    }}
    if [ "$word" = open ]; then
        if [ "$shell" ]; then
            kill -KILL "-$shell" "$shell" 2>/dev/null
            wait "$shell" 2>/dev/null
            # What it had started may go after it, and has the port until then; to sleep lets go of who is dead.
            while kill -0 "-$shell" 2>/dev/null; do sleep 0.01; done
        fi
        setsid /bin/sh -c 'exec 0<>/run/{SHELL} 1>&0 2>/run/{ERRORS} 3>&- && exec /bin/sh' &
        shell=$!
    fi
    echo "$word $rest" >&3
done
"""


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A file of the archive: its mode with the file type's bits, and what is in it, or which device it is."""

    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def initramfs(build: KernelBuild) -> bytes:
    """The initramfs for a build, as a cpio archive.

    Raises:
        BuildError: the build lacks a module that a guest needs, or has those of another kernel.
        ToolError: a program that the guest needs is not installed here.
    """
    files = files_from_start(build)
    files["init"] = ArchiveEntry(stat.S_IFREG | 0o755, INIT.encode())
    modules = {one.name for one in _modules_from_start(build)}
    files["etc/modules"] = _text("\n".join(name for name in GUEST_MODULES if name in modules))
    if (config := build.config_text()) is not None:
        files[f"boot/config-{build.release}"] = ArchiveEntry(stat.S_IFREG | 0o644, config.encode())
    for folder in ("proc", "sys", "dev", "run", "tmp", "root", "etc"):
        files[folder] = ArchiveEntry(stat.S_IFDIR | 0o755)
    files["dev/console"] = ArchiveEntry(stat.S_IFCHR | 0o600, device=(5, 1))
    files["dev/null"] = ArchiveEntry(stat.S_IFCHR | 0o666, device=(1, 3))
    return cpio(files)


def files_from_start(build: KernelBuild) -> dict[str, ArchiveEntry]:
    """The programs and modules that a guest has before anybody asks for more. Raises as `initramfs`."""
    return _programs(programs_for(build.architecture)) | installed_modules(build, _modules_from_start(build))


def _modules_from_start(build: KernelBuild) -> tuple[Module, ...]:
    return select_modules(build, GUEST_MODULES, MORE_MODULES)


def cpio(files: Mapping[str, ArchiveEntry]) -> bytes:
    """A cpio archive in the format "newc" (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    parts: list[bytes] = []
    for number, (name, entry) in enumerate([*sorted(_with_parents(files).items()), ("TRAILER!!!", ArchiveEntry(0))], 1):
        path = name.encode() + b"\0"
        fields = (
            number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, *entry.device, len(path), 0
        )  # fmt: skip
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
        parts += (head, b"\0" * (-len(head) % 4), entry.content, b"\0" * (-len(entry.content) % 4))
    return b"".join(parts)


def _with_parents(files: Mapping[str, ArchiveEntry]) -> dict[str, ArchiveEntry]:
    """Add every parent folder; sorting puts a folder before what is in it."""
    full = dict(files)
    for name in files:
        for parent in PurePosixPath(name).parents:
            if str(parent) != ".":
                full.setdefault(str(parent), ArchiveEntry(stat.S_IFDIR | 0o755))
    return full


def _text(text: str) -> ArchiveEntry:
    return ArchiveEntry(stat.S_IFREG | 0o644, text.encode() + b"\n")


def installed_modules(build: KernelBuild, modules: Iterable[Module]) -> dict[str, ArchiveEntry]:
    """Modules and what modprobe(8) wants to know of them, so that the kernel finds them by itself too."""
    folder = f"lib/modules/{build.release}"
    files, dependencies, aliases = {}, [], []
    needs: dict[str, set[str]] = {}
    earlier: list[str] = []
    for module in modules:
        needs[module.name] = {name for one in module.depends if one in needs for name in (one, *needs[one])}
        files[f"{folder}/{module.name}.ko"] = ArchiveEntry(stat.S_IFREG | 0o644, module.content)
        # They are loaded from the last to the first.
        before = [f"{name}.ko" for name in reversed(earlier) if name in needs[module.name]]
        dependencies.append(" ".join((f"{module.name}.ko:", *before)))
        aliases += [f"alias {alias} {module.name}" for alias in module.aliases]
        earlier.append(module.name)
    files[f"{folder}/modules.dep"] = _text("\n".join(dependencies))
    files[f"{folder}/modules.alias"] = _text("\n".join(aliases))
    files[f"{folder}/modules.symbols"] = _text("")
    return files


def _programs(programs: Programs) -> dict[str, ArchiveEntry]:
    files: dict[str, ArchiveEntry] = {}
    for name, package in _PROGRAMS.items():
        found = programs.find(name)
        if found is None:
            raise ToolError(f"a guest needs {name}, which is not installed; {how_to_install(package)}")
        files |= program_files(programs, name, found)
    for name in _MORE_PROGRAMS:
        if (found := programs.find(name)) is not None:
            files |= program_files(programs, name, found)
    for place, own in programs.own().items():
        files[str(place).lstrip("/")] = ArchiveEntry(stat.S_IFREG | 0o755, own.read_bytes())
    for applet in programs.applets():
        files.setdefault(f"bin/{applet}", _link("busybox"))
    files.setdefault("sbin/modprobe", _link("../bin/busybox"))
    return files


def program_files(programs: Programs, name: str, path: Path) -> Mapping[str, ArchiveEntry]:
    """A program as bin/NAME, and its shared libraries where its loader looks for them."""
    return _program_since(programs, name, path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _program_since(programs: Programs, name: str, path: Path, changed: int) -> Mapping[str, ArchiveEntry]:
    libraries = {place.lstrip("/"): file for place, file in programs.libraries(path).items()}
    return {
        one: ArchiveEntry(stat.S_IFREG | 0o755, file.read_bytes())
        for one, file in ({f"bin/{name}": path} | libraries).items()
    }


def _link(target: str) -> ArchiveEntry:
    return ArchiveEntry(stat.S_IFLNK | 0o777, target.encode())
