"""Entries of boot loaders as their tools write them: titles with quotation marks, and images of all in one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from pdrgate.bare_metal.grub import parse_config
from pdrgate.bare_metal.layout import InstalledKernel
from pdrgate.bare_metal.loader import LoaderError
from pdrgate.bare_metal.systemd_boot import SystemdBoot
from pdrgate.hosts.host import Completed, Host

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


@pytest.mark.parametrize(
    ("word", "title"),
    [
        (r"""'Lab'\''s GNU/Linux'""", "Lab's GNU/Linux"),
        (r'''"Lab's \"own\" Linux"''', 'Lab\'s "own" Linux'),
        (r"""Lab\'s\ Linux""", "Lab's Linux"),
        (r"""'a'"'"'b'""", "a'b"),
        (r'''"costs \$5 \\ \`x\`"''', "costs $5 \\ `x`"),
        ("'x > y'", "x > y"),
    ],
)
def test_a_title_is_a_word_of_the_shell(word: str, title: str) -> None:
    text = (
        f"submenu {word} $menuentry_id_option 'm' {{\nmenuentry {word} --class os {{\nlinux /vmlinuz-6.1.0 ro\n}}\n}}\n"
    )
    (entry,) = parse_config(text)
    assert (entry.names, entry.release) == ((("m", title), (title, title)), "6.1.0")
    doubled = title.replace(">", ">>")
    assert entry.path == f"m>{doubled}"
    assert entry.is_named(f"{doubled}>{doubled}")
    assert entry.is_named(f"m>{doubled}")
    assert not entry.is_named(doubled)


@dataclass
class FakeBootctl:
    """A host of which only the list of entries is asked, and one is selected."""

    listing: str
    selected: list[str] = field(default_factory=list)
    name: str = "fake"

    def run(self, *argv: str, **_: object) -> Completed:
        if argv[:2] == ("bootctl", "set-oneshot"):
            self.selected.append(argv[2])
        return Completed(argv, 0, self.listing if argv[:2] == ("bootctl", "list") else "", "")

    def exists(self, _: str) -> bool:
        return True


def entry(id_: str, *more: str) -> str:
    lines = ("type: Boot Loader Specification", "title: Linux (6.18.0-test)", f"id: {id_}", *more)
    return "\n".join(f"        {line}" for line in lines)


def selected(*entries: str) -> str:
    host = FakeBootctl("\n\n".join(entries))
    kernel = InstalledKernel("x", "6.18.0-test", "/boot/vmlinuz-6.18.0-test")
    SystemdBoot(cast("Host", host)).select_once(kernel)
    return host.selected[0]


@pytest.mark.parametrize(
    "id_",
    ["0123-6.18.0-test.conf", "0123-6.18.0-test.efi", "0123-6.18.0-test+3.efi", "0123-6.18.0-test+2-1.conf",
     "6.18.0-test.efi", "linux-6.18.0-TEST.efi"],
)  # fmt: skip
def test_an_image_of_all_is_an_entry(id_: str) -> None:
    assert selected(entry("0123-6.12.9-base.efi"), entry(id_), entry("auto-reboot-to-firmware-setup")) == id_


def test_an_entry_of_another_name_is_found_by_its_version() -> None:
    named = entry("arch-linux.efi", "version: 6.18.0-test", "linux: /efi//EFI/Linux/arch-linux.efi")
    assert selected(entry("arch-lts.efi", "version: 6.12.9"), named) == "arch-linux.efi"
    assert selected(entry("0123-6.18.0-test.conf", "version: 6.18.0-test"), named) == "0123-6.18.0-test.conf"


def test_two_entries_of_a_release_are_refused() -> None:
    with pytest.raises(LoaderError, match=r"names 2 entries of 6\.18\.0-test, and it must be one"):
        selected(entry("0123-6.18.0-test.conf"), entry("0123-6.18.0-test.efi"))


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
def test_entries_as_they_were_reported() -> None:
    listing = (CASES / "uki-entries/bootctl-list.txt").read_text()
    assert selected(listing) == "0123456789abcdef0123456789abcdef-6.18.0-test.efi"
    saved = (CASES / "grub-apostrophe/grubenv").read_text().partition("saved_entry=")[2].splitlines()[0]
    entries = parse_config((CASES / "grub-apostrophe/grub.cfg").read_text())
    assert [one.names[0][1] for one in entries] == ["Lab's GNU/Linux", "Advanced options for Lab's GNU/Linux"]
    assert [one.is_named(saved) for one in entries] == [False, True]
