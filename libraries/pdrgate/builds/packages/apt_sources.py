"""The sources of packages that apt has on this machine, and those that another suite would have.

apt names no keyring of a source, and lists no source whose index it has not fetched yet. So its files are read here
(sources.list(5)).
"""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.packages.package_fields import stanzas
from pdrgate.this_process.child_environment import PROXIES, run_program

_LARGEST = 1 << 20
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>[^#]*)")
_OPTIONS = {"arch": "architectures", "lang": "languages", "target": "targets"}
"""Options of the one-line form that are spelled differently in the other one."""
_OWN = frozenset(
    {"types", "uris", "suites", "components", "architectures", "languages", "targets", "pdiffs", "enabled"}
)  # fmt: skip
"""Fields that are written anew for another suite; the rest, such as the keyring, stays as the machine has it."""


@dataclass(frozen=True, slots=True)
class AptSource:
    """One entry of the machine's sources, of binary packages."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    further: tuple[tuple[str, str], ...]
    """Other fields, such as ``signed-by``."""

    def of_suite(self, suite: str, architecture: str) -> str:
        """The stanza that names another suite of the same archive, with the same keyring."""
        # Kernels are in main, and the indexes of all components take several times as long to fetch.
        components = ("main",) if "main" in self.components else self.components
        fields = {
            "Types": "deb", "URIs": " ".join(self.uris), "Suites": suite, "Components": " ".join(components),
            "Architectures": architecture, "Targets": "Packages", "PDiffs": "no",
        }  # fmt: skip
        return "".join(f"{name}: {value}\n" for name, value in (*fields.items(), *self.further))


def machine_sources() -> tuple[AptSource, ...]:
    """The entries of the machine's sources; none if it has no apt."""
    found: list[AptSource] = []
    for path in _files():
        try:
            with path.open(errors="replace") as file:
                text = file.read(_LARGEST)
        except OSError:
            continue  # apt passes over what it may not read, too
        found += _stanza_entries(text) if path.suffix == ".sources" else _line_entries(text)
    return tuple(found)


def sources_of_suite(suite: str, known: tuple[AptSource, ...]) -> list[AptSource]:
    """The entries whose archive may have a suite, the likeliest first.

    That is an entry that names the suite; one whose suite has the same suffix, such as ``-security``, which is an
    archive of its own; and one whose suite has none. Of these the distribution's own archive comes first.
    """
    likely = [one for one in known if _likeness(suite, one) < _UNLIKE]
    return sorted(likely, key=lambda one: (_likeness(suite, one), not _is_distributions(one)))


_UNLIKE = 3


def _likeness(suite: str, source: AptSource) -> int:
    if suite in source.suites:
        return 0
    suffixes = {one.partition("-")[2] for one in source.suites}
    return 1 if (suffix := suite.partition("-")[2]) and suffix in suffixes else 2 if "" in suffixes else _UNLIKE


def _is_distributions(source: AptSource) -> bool:
    """Whether its address ends in the distribution's name, as that of others' packages for it does not."""
    try:
        name = platform.freedesktop_os_release().get("ID", "")
    except OSError:
        return False
    return any(uri.rstrip("/").rpartition("/")[2].startswith(name) for uri in source.uris)


def _files() -> Iterator[Path]:
    try:
        places_of = ("shell", "ONE", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d")
        done = run_program("apt-config", *places_of, more=PROXIES)
        done.check_returncode()
    except (OSError, subprocess.CalledProcessError):
        return
    places = dict(word.partition("=")[::2] for word in shlex.split(done.stdout))
    yield Path(places["ONE"])
    parts = Path(places["PARTS"])
    yield from sorted((*parts.glob("*.list"), *parts.glob("*.sources")))


def _stanza_entries(text: str) -> Iterator[AptSource]:
    for fields in stanzas(text):
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes").lower() not in ("no", "false"):
            yield from _entry(fields)


def _line_entries(text: str) -> Iterator[AptSource]:
    for line in text.splitlines():
        if (match := _ONE_LINE.match(line.strip())) is None:
            continue
        options = (word.partition("=")[::2] for word in (match["options"] or "").split())
        fields = {_OPTIONS.get(name.lower(), name.lower()): value.replace(",", " ") for name, value in options}
        own = {"uris": match["uri"], "suites": match["suite"], "components": match["components"]}
        yield from _entry(fields | own)


def _entry(fields: Mapping[str, str]) -> Iterator[AptSource]:
    uris, suites, components = (tuple(fields.get(name, "").split()) for name in ("uris", "suites", "components"))
    suites = tuple(one for one in suites if not one.endswith("/"))  # that is a folder, and no suite
    if uris and suites and components:
        further = tuple((name, value) for name, value in fields.items() if name not in _OWN)
        yield AptSource(uris, suites, components, further)
