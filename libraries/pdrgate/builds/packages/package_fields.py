"""Fields of a package, and which other packages hold the rest of its kernel.

Distributions spread a kernel over packages: Ubuntu over image and modules; Debian, since Linux 6.19, over binary, base
and modules, with an empty image that needs all three; Fedora over core and modules-core. A package of modules names
none that holds its kernel, nor does a binary name its modules, so these go by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

PackageRole = Literal["image", "base", "modules"]
"""A package's part of a kernel. The base is its configuration, and the lists of its modules."""

_DEB = re.compile(
    r"linux-(?P<part>image|binary|base|modules)-(?P<variant>(?:unsigned-|extra-)*)(?P<release>\d[\w.+~-]*)", re.ASCII
)
_DEBUGGING = re.compile(r"-dbg(sym)?$")
_RPM = re.compile(r"(?P<kernel>kernel(?:-[a-z0-9]+)*?)-(?P<part>core|modules|modules-core|modules-extra)", re.ASCII)
_ROLES: dict[str, PackageRole] = {"image": "image", "binary": "image", "core": "image", "base": "base"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9.+:~^_-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class PackageFields:
    """Fields that a package declares."""

    name: str
    version: str = ""
    needs: tuple[str, ...] = ()
    """The packages with other parts of its kernel that it depends on: the first alternative of each."""

    @property
    def label(self) -> str:
        """The package for people: name and version."""
        return f"{self.name} {self.version}".rstrip()

    @property
    def parts(self) -> tuple[str, ...]:
        """The packages with other parts of its kernel, also those that it does not depend on."""
        return tuple(dict.fromkeys((*self.needs, *self._companions())))

    @property
    def kernel(self) -> str:
        """Common key of the packages of one kernel: the release in their names, else their version."""
        match = _DEB.fullmatch(self.name)
        return match["release"] if match else self.version

    @property
    def is_part(self) -> bool:
        """Whether its name is that of a part of a kernel."""
        return role_of(self.name) is not None and not _DEBUGGING.search(self.name)

    def _companions(self) -> Iterator[str]:
        if match := _RPM.fullmatch(self.name):
            yield from (f"{match['kernel']}-{part}" for part in ("core", "modules-core") if part != match["part"])
        elif match := _DEB.fullmatch(self.name):
            # Ubuntu has linux-modules-R too, of an image that may be linux-image-R or linux-image-unsigned-R.
            base = next((need for need in (*self.needs, self.name) if need.startswith("linux-base-")), "")
            release = base.removeprefix("linux-base-")
            if release and match["part"] == "binary":
                yield f"linux-modules-{release}"
            elif release and match["part"] in ("base", "modules"):
                yield from (f"linux-{part}-{release}" for part in ("binary", "modules") if part != match["part"])


def role_of(name: str) -> PackageRole | None:
    """Part of a kernel that a package of that name holds; None if it is not known."""
    match = _DEB.fullmatch(name) or _RPM.fullmatch(name)
    return None if match is None else _ROLES.get(match["part"], "modules")


def fields_of_control(text: str) -> PackageFields:
    """The fields in the file ``control`` of a .deb. Raises ValueError if it lacks a name or a version."""
    found = next(stanzas(text), {})
    needs = needed_packages(f"{found.get('pre-depends', '')},{found.get('depends', '')}")
    return checked_fields(found.get("package", ""), found.get("version", ""), needs)


def checked_fields(name: str, version: str, needs: tuple[str, ...]) -> PackageFields:
    """Fields of a package, once they are checked. Raises ValueError if a package may have no such name or version."""
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        raise ValueError("it names no package and version")
    return PackageFields(name, version, tuple(need for need in needs if need != name))


def needed_packages(depends: str) -> tuple[str, ...]:
    """The parts of a kernel in fields such as Depends: names without version and architecture, one of alternatives."""
    needs = (alternative for one in depends.split(",") if (alternative := _alternative(one)))
    return tuple(dict.fromkeys(needs))


def _alternative(need: str) -> str:
    names = (re.split(r"[\s(:\[]", one.strip(), maxsplit=1)[0] for one in need.split("|"))
    return next((name for name in names if (match := _DEB.fullmatch(name)) and "extra" not in match["variant"]), "")


def stanzas(text: str) -> Iterator[Mapping[str, str]]:
    """The stanzas of a text: each field's value by its name in lower case, with line breaks where it has several lines.

    A line that is neither a field nor goes on with one is passed over.
    """
    found: dict[str, str] = {}
    key = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if found:
                yield found
            found, key = {}, ""
        elif line[0] in " \t":
            if key:
                found[key] += f"\n{line}"
        elif not line.startswith("#"):
            name, colon, value = line.partition(":")
            key = name.strip().lower() if colon else ""
            if key:
                found[key] = value.strip()
