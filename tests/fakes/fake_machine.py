"""A machine that can be restarted without one: a /boot, boot loader tools that are scripts, and what they were told.

No program but those linked or written into its own ``bin`` can be run on it: the real restart of the real machine is
out of reach whatever is tested.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pdrgate.hosts.host import CommandError, Completed, HostError
from pdrgate.values.errors import TestbedError

DEFAULT = "6.1.0-9-amd64"
_REAL = (
    "sh", "cat", "rm", "mkdir", "tar", "gzip", "sha256sum", "ls", "sort", "sed", "grep", "touch", "basename", "cp",
    "printf", "mv",
)  # fmt: skip
_OF_THE_KERNEL = ("/proc", "/sys")

_SCRIPTS = {
    "uname": 'case "$1" in -r) cat "$ROOT/state/running";; -m) cat "$ROOT/state/machine";; esac',
    "id": 'cat "$ROOT/state/uid"',
    "df": 'echo "Filesystem 1-blocks Used Available Capacity Mounted"; echo "x 0 0 $(cat "$ROOT/state/free") 0% $2"',
    "depmod": ': >"$2/lib/modules/$3/modules.dep"',
    "update-initramfs": 'echo ramdisk >"$ROOT/boot/initrd.img-$3"',
    "findmnt": 'cat "$ROOT/state/mount"',
    "reboot": 'echo reboot >"$ROOT/state/restart"',
    "systemctl": 'echo "$1" >"$ROOT/state/restart"',
    "kexec": """
case "$1" in
    -u) echo 0 >"$ROOT/sys/kernel/kexec_loaded";;
    -e) echo kexec >"$ROOT/state/restart";;
    *) basename "$3" | sed s/vmlinuz-// >"$ROOT/state/kexec"; cat "$ROOT/state/loads" >"$ROOT/sys/kernel/kexec_loaded";;
esac""",
    "update-grub": r"""
for file in "$ROOT"/etc/default/grub "$ROOT"/etc/default/grub.d/*.cfg; do [ ! -e "$file" ] || . "$file"; done
[ "$GRUB_DEFAULT" != saved ] || GRUB_DEFAULT='${saved_entry}'
exec >"$ROOT/boot/grub/grub.cfg"
echo 'if [ "${next_entry}" ] ; then'; echo '   set default="${next_entry}"'; echo '   set next_entry='
echo '   save_env next_entry'; echo 'else'; echo "   set default=\"${GRUB_DEFAULT-0}\""; echo 'fi'
echo 'function load_video {'; echo '  insmod all_video'; echo '}'
kernels() { ls "$ROOT/boot" | sed -n s/^vmlinuz-//p | grep -vxF "$(cat "$ROOT/state/left-out")" | sort -V; }
newest=$(kernels | sed -n '$p')
entry() {
    echo "$1menuentry '$3' --class os \$menuentry_id_option '$4' {"
    echo "$1	linux	/boot/vmlinuz-$2 root=UUID=12-34 ro"
    echo "$1	initrd	/boot/initrd.img-$2"
    echo "$1}"
}
entry '' "$newest" 'Debian GNU/Linux' gnulinux-simple-12
echo "submenu 'Advanced options for Debian GNU/Linux' \$menuentry_id_option 'gnulinux-advanced-12' {"
for release in $(kernels); do
    entry '	' "$release" "Debian GNU/Linux, with Linux $release" "gnulinux-$release-advanced-12"
    entry '	' "$release" "Debian GNU/Linux, with Linux $release (recovery mode)" "gnulinux-$release-recovery-12"
done
echo '}'
echo "menuentry 'UEFI Firmware Settings' \$menuentry_id_option 'uefi-firmware' {"; echo '	fwsetup'; echo '}'
""",
    "grub-reboot": 'echo "next_entry=$2" >>"$ROOT/boot/grub/grubenv"',
    "grub-editenv": """
case "$2" in
    list) cat "$1";;
    unset) sed "/^$3=/d" "$1" >"$1.new"; mv "$1.new" "$1";;
esac""",
    "bootctl": """
entries() { ls "$ROOT/efi/loader/entries" | sort -V; }
case "$1" in
    is-installed) echo yes;;
    status)
        default=$(cat "$ROOT/state/efi-default"); [ "$default" = newest ] && default=$(entries | sed -n '$p')
        echo 'System:'; echo '  Firmware: UEFI'; echo
        echo 'Default Boot Loader Entry:'; echo '         type: Boot Loader Specification Type #1'
        echo '        title: Linux'; echo "           id: $default";;
    list) for id in $(entries); do echo '        title: Linux'; echo "           id: $id"; done;;
    set-oneshot)
        var="$ROOT/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
        if [ "$2" ]; then echo "$2" >"$var"; else rm -f "$var"; fi;;
esac""",
    "kernel-install": """
file="$ROOT/efi/loader/entries/0123abcd-$2.conf"
case "$1" in add) echo "linux $3" >"$file";; remove) rm -f "$file";; esac""",
}
_OF_LOADER: dict[str, tuple[str, ...]] = {
    "grub": ("update-grub", "grub-reboot", "grub-editenv"),
    "systemd-boot": ("bootctl", "kernel-install"),
    "kexec": ("kexec",),
}
_EVERYWHERE = ("uname", "id", "df", "depmod", "update-initramfs", "findmnt", "systemctl", "reboot")
_ONE_SHOT = "sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
Fate = Literal["runs", "panics", "hangs", "never restarts"]


class FakeMachine:
    """Satisfies ``Host`` and ``FileSink``.

    Args:
        loaders: whose tools it has.
        fates: by release, what becomes of a start of it; of all others that it runs.
    """

    def __init__(self, root: Path, *loaders: str) -> None:
        self.name = "ssh:sut"
        self.root = root
        self.fates: dict[str, Fate] = {}
        self.starts = [DEFAULT]
        """The kernels that were started, the first one included."""
        self.told: list[tuple[str, ...]] = []
        """The commands it was given that change something, in order."""
        self.away = False
        self._boots = itertools.count(1)
        for folder in (
            "bin", "state", f"lib/modules/{DEFAULT}", "boot/grub", "etc/default", "proc/sys/kernel/random",
            "sys/kernel", "sys/firmware/efi/efivars", "efi/loader/entries",
        ):  # fmt: skip
            (root / folder).mkdir(parents=True)
        for path, text in {
            "state/running": DEFAULT, "state/machine": "x86_64", "state/uid": "0", "state/free": str(10 << 30),
            "state/mount": "ext4 /dev/sda1", "state/left-out": "", "state/loads": "1", "state/log": "",
            "state/efi-default": f"0123abcd-{DEFAULT}.conf", f"efi/loader/entries/0123abcd-{DEFAULT}.conf": "",
            f"boot/vmlinuz-{DEFAULT}": "the default kernel", "proc/cmdline": "BOOT_IMAGE=/x root=/dev/sda2 ro panic=5",
            "sys/kernel/kexec_loaded": "0", "proc/sys/kernel/kexec_load_disabled": "0",
            "etc/default/grub": 'GRUB_TIMEOUT=5\nGRUB_DEFAULT="saved"',
            "boot/grub/grubenv": f"saved_entry=gnulinux-advanced-12>gnulinux-{DEFAULT}-advanced-12",
        }.items():  # fmt: skip
            (root / path).write_text(f"{text}\n")
        self._new_boot()
        for tool in _REAL:
            found = shutil.which(tool)
            assert found, tool
            (root / "bin" / tool).symlink_to(found)
        for tool in (*_EVERYWHERE, *itertools.chain.from_iterable(_OF_LOADER[loader] for loader in loaders)):
            self.script(tool, _SCRIPTS[tool])
        if "grub" in loaders:
            self.run("update-grub")
            self.told.clear()

    def script(self, tool: str, text: str) -> None:
        """Give the machine a program of that name."""
        path = self.root / "bin" / tool
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def fails(self, tool: str, message: str) -> None:
        """Let a program of the machine fail from now on."""
        self.script(tool, f"echo '{message}' >&2; exit 1")

    def remove(self, tool: str) -> None:
        (self.root / "bin" / tool).unlink()

    def state(self, name: str, text: str) -> None:
        (self.root / "state" / name).write_text(f"{text}\n")

    @property
    def running(self) -> str:
        return (self.root / "state/running").read_text().strip()

    def files(self) -> set[str]:
        """All that lies in its /boot and /lib/modules, and its boot loader's entries."""
        return {
            str(path.relative_to(self.root))
            for folder in ("boot", "lib/modules", "efi")
            for path in (self.root / folder).rglob("*")
            if path.is_file()
        }

    # --- Host and FileSink ---

    def copy(self, local: Path, remote: str) -> None:
        shutil.copyfile(local, remote)

    def run(self, *argv: str, timeout: float = 10.0, check: bool = True) -> Completed:
        self._reached()
        if argv[0] not in ("sh", "uname", "id", "df", "sha256sum", "findmnt") and argv[1:2] != ("status",):
            self.told.append(argv)
        done = subprocess.run(
            ("sh", "-c", 'command -v -- "$1" >/dev/null || exit 127; exec "$@"', "sh", *argv),
            capture_output=True, text=True, check=False, env={"PATH": str(self.root / "bin"), "ROOT": str(self.root)},
        )  # fmt: skip
        completed = Completed(argv, done.returncode, done.stdout, done.stderr)
        if check and completed.exit_code:
            raise CommandError(self.name, f"`{' '.join(argv)}`", completed)
        self._restart_if_told()
        return completed

    def run_json(self, *argv: str, timeout: float = 10.0) -> Any:
        return json.loads(self.run(*argv).stdout or "[]")

    def read(self, path: str) -> str:
        self._reached()
        try:
            return self._at(path).read_text()
        except OSError as error:
            raise CommandError(self.name, f"reading {path}", Completed((), 1, "", str(error.strerror))) from error

    def write(self, path: str, text: str) -> None:
        self._reached()
        self._at(path).write_text(text)

    def exists(self, path: str) -> bool:
        self._reached()
        return self._at(path).exists()

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    # --- Restarts ---

    def power_cycle(self) -> None:
        """What a person does with a machine that does not come back."""
        self.away = False
        self._start(self._selected("reboot"))

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith(_OF_THE_KERNEL) else Path(path)

    def _reached(self) -> None:
        if self.away:
            raise HostError(f"`sh` on {self.name} got no answer: No route to host")

    def _restart_if_told(self) -> None:
        request = self.root / "state/restart"
        if not request.exists():
            return
        how = request.read_text().strip()
        request.unlink()
        release = self._selected(how)
        fate = self.fates.get(release, "runs")
        if fate == "never restarts":
            return
        self.starts.append(release)
        if fate == "panics":
            release = self._selected("reboot")
            self.starts.append(release)
        if fate == "hangs":
            self.away = True
        else:
            self._start(release)
        raise HostError(f"`{how}` on {self.name} got no answer: its shell ended")

    def _selected(self, how: str) -> str:
        """The kernel that starts next; a selection for once is forgotten as the loader reads it."""
        if how == "kexec":
            (self.root / "sys/kernel/kexec_loaded").write_text("0\n")
            return (self.root / "state/kexec").read_text().strip()
        one_shot = self.root / _ONE_SHOT
        if one_shot.exists():
            entry = one_shot.read_text().strip()
            one_shot.unlink()
            return entry.removeprefix("0123abcd-").removesuffix(".conf")
        grubenv = self.root / "boot/grub/grubenv"
        lines = grubenv.read_text().splitlines()
        grubenv.write_text("".join(f"{line}\n" for line in lines if not line.startswith("next_entry=")))
        for line in lines:
            if line.startswith("next_entry="):
                return line.rpartition(">")[2].removeprefix("gnulinux-").removesuffix("-advanced-12")
        return DEFAULT

    def _start(self, release: str) -> None:
        self.state("running", release)
        self._new_boot()

    def _new_boot(self) -> None:
        (self.root / "proc/sys/kernel/random/boot_id").write_text(f"boot-{next(self._boots)}\n")


class TornSink:
    """A sink that loses the end of every file, and says nothing."""

    def copy(self, local: Path, remote: str) -> None:
        Path(remote).write_bytes(local.read_bytes()[:-1])


class FullSink:
    """A sink whose disk is full."""

    def copy(self, local: Path, remote: str) -> None:
        raise TestbedError(f"cannot copy {local.name}: No space left on device; is there room?")
