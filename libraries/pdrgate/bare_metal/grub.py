"""GRUB 2: entries made by its own tool, one of them selected by ``next_entry``, which GRUB forgets as it starts it.

GRUB keeps that variable in a file. On some file systems it can read the file and not write it, and then would never
forget: such a host is refused. So is a host whose default is the newest kernel: the build would become the default. The
default is read from grub.cfg alone: /etc/default/grub is one of several files that it is made from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pdrgate.bare_metal.layout import InstalledKernel, Layout, has
from pdrgate.bare_metal.loader import BootLoader, LoaderError
from pdrgate.hosts.host import Host

_MAKE_TIMEOUT = 300.0
_UNWRITABLE_TYPES = frozenset({"btrfs", "zfs", "zfs_member", "bcachefs", "f2fs"})
_UNWRITABLE_DEVICES = ("/dev/mapper/", "/dev/dm-", "/dev/md")
_DEFAULTS = "/etc/default/grub"
_SAVED, _SELECTED = "${saved_entry}", "${next_entry}"
_WORD = r"""((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+)"""
"""A word of a grub.cfg, of which parts may be quoted: an apostrophe is written as ``'\\''``."""
_PART = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^\s'"\\]+)""")


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A menu entry: the names that select it, and what it starts."""

    names: tuple[tuple[str, str], ...]
    """Id and title of each submenu around it, and of itself."""
    release: str | None
    """The release of the entry's kernel; None if it starts something else."""
    numbers: tuple[int, ...] = ()
    """The numbers of each submenu around the entry and of itself, counted within its menu from 0."""

    @property
    def path(self) -> str:
        """The entry's name for grub-reboot."""
        return ">".join(id_.replace(">", ">>") for id_, _ in self.names)

    @property
    def for_rescue(self) -> bool:
        """Whether it is the second entry of its kernel."""
        return any("recovery" in name for name in self.names[-1])

    def is_named(self, path: str) -> bool:
        """Whether GRUB takes it for ``path``, which may be made of ids, titles and numbers."""
        words = [word.replace("\0", ">") for word in path.replace(">>", "\0").split(">")]
        if all(word.isdecimal() for word in words):
            return tuple(map(int, words)) == self.numbers
        return len(words) == len(self.names) and all(
            word in names for word, names in zip(words, self.names, strict=True)
        )


class Grub(BootLoader):
    """The loader of hosts that start by GRUB 2, with Debian's or Fedora's names of the tools."""

    name = "grub"

    def __init__(self, host: Host, layout: Layout) -> None:
        super().__init__(host, layout)
        self._prefix = "grub" if has(host, "grub-reboot") else "grub2"
        self._folder = layout.at(f"/boot/{self._prefix}")

    def problem(self) -> str | None:
        if not has(self._host, f"{self._prefix}-reboot"):
            return "there is no grub-reboot, GRUB 2 is not installed"
        if not self._host.exists(self._config):
            return f"there is no {self._config}, GRUB is not set up"
        text = self._text()
        if "blscfg" in text:
            return "its entries are files of the Boot Loader Specification, which is not supported yet; use kexec"
        if "${next_entry}" not in text:
            return f"{self._config} does not look at next_entry, so that GRUB starts nothing for once; use kexec"
        return self._unsafe_default() or self._unwritable()

    def register(self, kernel: InstalledKernel) -> None:
        default = self._default()
        self._host.run(*self._make_config(), timeout=_MAKE_TIMEOUT)
        now = self._default()
        if now != default:
            raise LoaderError(
                f"GRUB on {self._host.name} would start {now or 'no kernel'} by default as soon as {kernel.release} is "
                f"there, and {default} before; save an entry of that very kernel with {self._prefix}-set-default"
            )
        self._entry(kernel.release)

    def unregister(self, kernel: InstalledKernel) -> None:
        self._host.run(*self._make_config(), timeout=_MAKE_TIMEOUT)

    def select_once(self, kernel: InstalledKernel) -> None:
        path = self._entry(kernel.release).path
        self._host.run(f"{self._prefix}-reboot", f"--boot-directory={self._layout.boot_folder}", path)
        if (back := self._variable("next_entry")) != path:
            raise LoaderError(
                f"{self._prefix}-reboot on {self._host.name} selected {path}, and next_entry reads back "
                f"{back or 'empty'}"
            )

    def deselect(self) -> None:
        self._host.run(f"{self._prefix}-editenv", self._environment, "unset", "next_entry")

    @property
    def _config(self) -> str:
        return f"{self._folder}/grub.cfg"

    @property
    def _environment(self) -> str:
        return f"{self._folder}/grubenv"

    def _make_config(self) -> tuple[str, ...]:
        if has(self._host, "update-grub"):
            return ("update-grub",)
        return (f"{self._prefix}-mkconfig", "-o", self._config)

    def _unsafe_default(self) -> str | None:
        chosen = default_of(self._text())
        remedy = f"save an entry of the present kernel with {self._prefix}-set-default"
        if chosen != _SAVED:
            fixed = self._layout.at(_DEFAULTS)
            remedy = (
                f"see that GRUB_DEFAULT=saved is the last that {fixed} and {fixed}.d/*.cfg say, run "
                f"{' '.join(self._make_config())}, then {remedy}"
            )
        if chosen is None:
            return f"what {self._config} starts by default depends on more than the saved entry; {remedy}"
        default, whose = self._named(chosen), "saved default" if chosen == _SAVED else f"default of {self._config}"
        if not default:
            return f"no default entry is saved; {remedy}"
        if re.fullmatch(r"[\d>]+", default):
            return f"the {whose} is {default}, a number that a new kernel shifts; {remedy}"
        if self._default() is None:
            return f"the {whose} {default} is no entry of {self._config} that starts a kernel; {remedy}"
        return None

    def _unwritable(self) -> str | None:
        answer = self._host.run(
            "findmnt", "-nro", "FSTYPE,SOURCE", "--target", self._folder, check=False
        ).stdout.split()
        if len(answer) < 2:
            return f"findmnt does not say what {self._folder} lies on, and whether GRUB can write there"
        kind, source = answer[0], answer[1]
        if kind in _UNWRITABLE_TYPES or source.startswith(_UNWRITABLE_DEVICES):
            return (
                f"GRUB cannot write {self._environment} ({kind} on {source}), and so would start the build again and "
                "again; use kexec, or a /boot of ext4 on a plain partition"
            )
        return None

    def _default(self) -> str | None:
        """The release that is started when nothing was selected; None if it is not known."""
        chosen = default_of(self._text())
        named = "" if chosen is None else self._named(chosen)
        found = [entry for entry in self._entries() if entry.is_named(named)]
        return found[0].release if found else None

    def _named(self, chosen: str) -> str:
        """The entry that grub.cfg chooses, by its name; empty if none is saved."""
        return self._variable("prev_saved_entry") or self._variable("saved_entry") if chosen == _SAVED else chosen

    def _entry(self, release: str) -> MenuEntry:
        found = [entry for entry in self._entries() if entry.release == release and not entry.for_rescue]
        if not found:
            raise LoaderError(
                f"{' '.join(self._make_config())} on {self._host.name} made no entry for {release}; does its "
                "configuration leave kernels out?"
            )
        # The entry by its own name, not the one at the top that stands for whatever is newest.
        return max(found, key=lambda entry: len(entry.names))

    def _entries(self) -> list[MenuEntry]:
        return parse_config(self._text())

    def _text(self) -> str:
        """All that GRUB reads: what its tool wrote, and what an administrator has beside it."""
        own = f"{self._folder}/custom.cfg"
        return "\n".join(self._host.read(path) for path in (self._config, own) if self._host.exists(path))

    def _variable(self, name: str) -> str:
        variables = self._host.run(f"{self._prefix}-editenv", self._environment, "list", check=False).stdout
        return next((line[len(name) + 1 :] for line in variables.splitlines() if line.startswith(f"{name}=")), "")


def default_of(text: str) -> str | None:
    """The entry that a grub.cfg starts when nothing was selected, as it names it; None if that depends on more.

    ``${saved_entry}`` is the saved one. Without any assignment GRUB starts the first.
    """
    depth, found = 0, set()
    for line in map(str.strip, text.splitlines()):
        assigned = re.match(rf"(?:set\s+)?default={_WORD}", line)
        if assigned and not depth and _SELECTED not in line:
            found.add(_quoted(assigned).replace("$saved_entry", _SAVED))
        depth += line.endswith("{") - (line == "}")
    return next(iter(found or {"0"})) if len(found) < 2 and not any("$" in one for one in found - {_SAVED}) else None


def parse_config(text: str) -> list[MenuEntry]:
    """The menu entries of a grub.cfg as its tools write it, in their order."""
    entries: list[MenuEntry] = []
    around: list[tuple[str, str] | None] = []
    """Id and title of each open block; None for a block that is no menu."""
    counts = [0]
    """Number of entries and submenus so far, for each open block that may have some."""
    release: str | None = None
    in_entry = False
    for line in map(str.strip, text.splitlines()):
        word = line.split(maxsplit=1)[0] if line else ""
        if line.endswith("{"):
            around.append(_names(line.removeprefix(word)) if word in ("menuentry", "submenu") else None)
            if around[-1] is not None:
                counts[-1] += 1
                counts.append(0)
            in_entry, release = word == "menuentry", None
        elif line == "}" and around:
            if in_entry:
                names = tuple(one for one in around if one is not None)
                entries.append(MenuEntry(names, release, tuple(count - 1 for count in counts[:-1])))
            in_entry = False
            if around.pop() is not None:
                counts.pop()
        elif word in ("linux", "linux16", "linuxefi"):
            match = re.search(r"/(?:vmlinu[xz]|kernel|bzImage)-([^\s'\"/]+)(?=[\s'\"]|$)", line)
            release = match[1] if match else None
    return entries


def _names(text: str) -> tuple[str, str]:
    """Id and title of a menu or entry. The title replaces a missing id."""
    title = re.match(rf"\s*{_WORD}", text)
    name = re.search(rf"(?:\$menuentry_id_option|--id)[ =]{_WORD}", text)
    return _quoted(name or title), _quoted(title)


def _quoted(match: re.Match[str] | None) -> str:
    """The text that a word of a grub.cfg stands for."""
    parts = _PART.findall(match[1]) if match else ()
    return "".join(one + re.sub(r'\\([$"\\])', r"\1", two) + three + four for one, two, three, four in parts)
