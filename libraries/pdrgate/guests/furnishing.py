"""Furnishing of a guest that is up: programs of this machine, and modules of its kernel that a scenario's words
name."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import OF_THE_NETWORK, Module, module_places, select_modules
from pdrgate.builds.named_build import GUEST_MODULES
from pdrgate.guests.guest_programs import Programs, programs_for
from pdrgate.guests.initramfs import (
    MORE_MODULES,
    ArchiveEntry,
    cpio,
    files_from_start,
    installed_modules,
    program_files,
)
from pdrgate.hosts.host import CommandError, Host

_TIMEOUT = 60.0
_ARCHIVE = "/tmp/pdrgate-furnishing.cpio"
_CHECKSUM = "crc32c_generic"
"""Module that nf_tables and connection tracking need by libcrc32c, which asks for it by no symbol of it."""
_FAMILIES = {
    "nft": ("nf_", "nft_", "nfnetlink", _CHECKSUM),
    "iptables": ("ip_tables", "iptable_", "x_tables", "xt_", "ipt_", "nf_", "nft_", "nfnetlink", _CHECKSUM),
    "ip6tables": ("ip6_tables", "ip6table_", "x_tables", "xt_", "ip6t_", "nf_", "nft_", "nfnetlink", _CHECKSUM),
    "ebtables": ("ebt_", "ebtable", "nft_", "nf_", "x_tables", "nfnetlink", _CHECKSUM),
    "conntrack": ("nf_conntrack", "nf_nat", "nfnetlink", _CHECKSUM),
    "ipset": ("ip_set", "xt_set", "em_ipset", "nfnetlink"),
    "ipvsadm": ("ip_vs", "nf_conntrack", _CHECKSUM),
    "tc": ("sch_", "cls_", "act_", "em_"),
    "xfrm": ("xfrm", "esp", "ah4", "ah6", "af_key", "aes", "gcm", "ghash", "ctr", "cbc", "seqiv", "echainiv", "authenc",
             "hmac", "sha256", "sha1", "ccm", "cryptd", "crypto_simd", "crypto_null", "ecb",
             "geniv", "rng", "drbg", "jitterentropy", "sha512"),
    "bridge": ("br_netfilter",),
}  # fmt: skip
"""Prefixes of modules that a program, or a word of ip's, loads as it needs them."""
_PLUGINS = {"iptables": "xtables", "ip6tables": "xtables"}
"""Programs that load libraries of their own, and the folder below /usr/lib/ARCHITECTURE where these lie."""

_in_turn = threading.Lock()
"""Lock of a search for modules: guests that are furnished at once want the same ones, and the later ones find them."""


class Furnished:
    """A guest that is given programs that it lacks and modules that words name, none of them twice."""

    def __init__(self, guest: Host, build: KernelBuild) -> None:
        self._guest = guest
        self._build = build
        self._asked: frozenset[str] = frozenset()
        """Programs that were looked for there."""
        self._words: frozenset[str] = frozenset()
        self._files: dict[str, ArchiveEntry] = {}
        """The programs that the guest has from the start or was given since; empty before it is given any."""

    def add(self, programs: Collection[str], words: Collection[str]) -> None:
        """Put there what it lacks of these; what it was given for others stays of use.

        Raises:
            BuildError: a module cannot be read.
            TestbedError: the guest does not take them.
        """
        if self._asked.issuperset(programs) and self._words.issuperset(words):
            return
        wanted = dict(_lacking(self._guest, programs_for(self._build.architecture), set(programs) - self._asked))
        self._asked |= frozenset(programs)
        self._words |= frozenset(words)
        with _in_turn:
            modules = modules_for(self._build, self._words)
        if modules:
            wanted |= installed_modules(self._build, modules)
        if not wanted:
            return
        self._files = self._files or files_from_start(self._build)
        new = {name: entry for name, entry in wanted.items() if self._files.get(name) != entry}
        if new:
            self._put(new)
            self._files |= new

    def _put(self, files: Mapping[str, ArchiveEntry]) -> None:
        guest = self._guest
        guest.put(_ARCHIVE, cpio(files))
        done = guest.run("sh", "-c", f"cd / && cpio -idmu <{_ARCHIVE}; code=$?; rm {_ARCHIVE}; exit $code",
                         timeout=_TIMEOUT, check=False)  # fmt: skip
        if done.exit_code:
            raise CommandError(guest.name, "unpacking the programs that the scenario needs", done)


@lru_cache(maxsize=8)
def modules_for(build: KernelBuild, words: frozenset[str]) -> tuple[Module, ...]:
    """The modules that words name, by a family, by their own name or by an alias for a kind of device, with those that
    a guest has from the start; none if it need not have more."""
    begin = tuple(prefix for word in words for prefix in _FAMILIES.get(word, ()))
    places = {name: place for name, place in module_places(build).items() if OF_THE_NETWORK.search(place)}
    by_name = [name for name in places if name in words or (begin and name.startswith(begin))]
    wanted = dict.fromkeys([*by_name, *_by_alias(build, tuple(places), words)])
    if not set(wanted) - set(GUEST_MODULES) - set(MORE_MODULES):
        return ()
    return select_modules(build, GUEST_MODULES, (*MORE_MODULES, *wanted))


def _by_alias(build: KernelBuild, names: tuple[str, ...], words: Collection[str]) -> Iterator[str]:
    """Modules that the kernel asks for by the kind of a link, of a scheduler, classifier or action, or of a tunnel."""
    kinds = {f"rtnl-link-{word}" for word in words} | {f"rtnl-lwt-{word.upper()}" for word in words}
    kinds |= {f"net-{part}-{word}" for word in words for part in ("sch", "cls", "act")}
    kinds |= {f"tcp_{word}" for word in words}
    for module in _read(build, names):
        if kinds & {module.name, *module.aliases}:
            yield module.name


@lru_cache(maxsize=4)  # to read them takes half a second, and each boot of a build asks
def _read(build: KernelBuild, names: tuple[str, ...]) -> tuple[Module, ...]:
    return select_modules(build, (), names)


def _lacking(guest: Host, programs: Programs, wanted: Collection[str]) -> Iterator[tuple[str, ArchiveEntry]]:
    """The programs that are to be had and that the guest has not, with their libraries."""
    here = {name: found for name in wanted if (found := programs.find(name)) is not None}
    if not here:
        return
    asked = "; ".join(f"command -v {name} >/dev/null || echo {name}" for name in here)
    for name in guest.script(asked).stdout.split():
        if name in here:
            yield from program_files(programs, name, here[name]).items()
            for place, file in programs.plugins(_PLUGINS[name]).items() if name in _PLUGINS else ():
                yield place.lstrip("/"), ArchiveEntry(0o100644, file.read_bytes())
