"""What the site has besides docs/: files that its pages link to, the command's own help, keywords (hooks of MkDocs)."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files
from robot.libdoc import libdoc

from pdrgate.cli import cli

ROOT = Path(__file__).parents[1]
_OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)")
"""A link from a page of docs/ to a file of the repository."""
_INSIDE = re.compile(r"\]\(docs/")
_LIBRARIES = {
    "PdrGate": ROOT / "libraries/PdrGate.py",
    "gate": ROOT / "resources/gate.resource",
}


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in docs/."""
    linked = {link for page in files.documentation_pages() for link in _OUTSIDE.findall(page.content_string)}
    for link in sorted(linked):
        files.append(File.generated(config, f"files/{link}", abs_src_path=str(ROOT / link)))
    contributing = _INSIDE.sub("](", (ROOT / "CONTRIBUTING.md").read_text())
    files.append(File.generated(config, "contributing.md", content=contributing))
    files.append(File.generated(config, "command.md", content=command_page()))
    with tempfile.TemporaryDirectory() as folder:
        for name, source in _LIBRARIES.items():
            page = Path(folder) / f"{name}.html"
            libdoc(str(source), str(page), quiet=True)
            files.append(File.generated(config, f"keywords/{name}.html", content=page.read_text()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to files of the repository lead to their copies."""
    return _OUTSIDE.sub(r"](files/\1", markdown)


def command_page() -> str:
    """What `--help` says, of each command."""
    parts = ["# The command's own help\n"]
    with click.Context(cli, info_name="pdrgate") as context:
        parts += _helps(cli, context)
    return "\n".join(parts)


def _helps(command: click.Command, context: click.Context) -> list[str]:
    parts = [f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"]
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        with click.Context(found, info_name=name, parent=context) as own:
            parts += _helps(found, own)
    return parts
