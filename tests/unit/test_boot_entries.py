"""Entries of systemd-boot as tools write them: files with words, and images of all in one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from pdrgate.bare_metal.layout import InstalledKernel, Layout
from pdrgate.bare_metal.loader import LoaderError
from pdrgate.bare_metal.systemd_boot import SystemdBoot
from pdrgate.hosts.host import Completed, Host


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
    SystemdBoot(cast("Host", host), Layout()).select_once(kernel)
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
