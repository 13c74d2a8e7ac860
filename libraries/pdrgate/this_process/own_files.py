"""Suites and testbed files that come with pdrgate. They are commands for root, so a working directory that a stranger
has filled must not have others in their place.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_FOLDERS = ("robot", "resources")


def found(path: Path) -> Path:
    """The file of pdrgate's own where a relative path names one, else the path as given."""
    own = PACKAGE / path
    return own if path.parts and path.parts[0] in _FOLDERS and own.exists() else path


def is_own(path: Path) -> bool:
    """Whether a path names a file of pdrgate's own."""
    place = found(path).resolve()
    return any(place.is_relative_to((PACKAGE / one).resolve()) for one in _FOLDERS)


def beside_own(path: Path) -> Path:
    """The absolute path of a file if it shares the name of one of pdrgate's own but is another file; else ``path``."""
    own = found(path)
    return path.absolute() if own != path and path.exists() and not path.samefile(own) else path
