"""A folder for PATH that has the machine's programs, but for some."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")


def tools_but(folder: Path, left_out: Callable[[str], bool], folders: Iterable[str | Path] = FOLDERS) -> Path:
    """Make the folder, of links to all programs whose name is not left out; the first of a name counts, as in PATH.

    What is no program is none: folders (``/usr/bin/X11`` is a link to its own), and links that lead nowhere.
    """
    folder.mkdir()
    for tool in (tool for each in folders if Path(each).is_dir() for tool in sorted(Path(each).iterdir())):
        link = folder / tool.name
        if not left_out(tool.name) and not os.path.lexists(link) and tool.is_file() and os.access(tool, os.X_OK):
            link.symlink_to(tool)
    return folder
