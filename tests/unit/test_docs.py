"""What the documentation names is there: links, commands and their options."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import option_lists
from pdrgate.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
README_LINES = 80

_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\]\((?!https?://)([\w./-]*\.md)?#([\w-]+)\)")
_HEADING = re.compile(r"^#{1,4} (.*)$", re.MULTILINE)
_SCRIPT = re.compile(r"(?<![\w.])\./ci/([\w-]+)|\"\$GATE/ci/([\w-]+)\"")
_COMMAND = re.compile(r"(?:\bpdrgate|\./ci/|\"\$GATE/ci/)[\"]? ?([a-z]+)\b\"?((?:\\\n|[^|`\n])*)")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
_ROW = re.compile(r"^\| `(?:pdrgate |\./ci/)([a-z]+)[^|]*\|(.*)\|$", re.MULTILINE)
_OWN_OPTIONS = {"bootstrap": {"--dev", "--arch", "--vm", "--compile", "--python-only"}}
"""Of scripts that are no front of a command of pdrgate's."""
_OF_THE_SITE = {"command.md", "contributing.md", "keywords/PdrGate.html"}
"""Pages that are made with it, see ci/site.py."""
_OF_A_RUN = {"run.json", "result.json", "trials.jsonl"}
_FOREIGN = {"test", "docs", "lock"}
"""Scripts whose arguments go to another program."""


def named(text: str) -> Iterator[tuple[str, str]]:
    """Subcommand or script, and an option that is named with it on one line, or in one row of a table of commands."""
    for command, rest in [*_COMMAND.findall(text), *_ROW.findall(text)]:
        for option in _OPTION.findall(rest):
            yield command, option


def anchors(page: Path) -> set[str]:
    """Those of a page's headings, as MkDocs and GitHub make them."""
    return {
        re.sub(r"[^\w\s-]", "", one.lower()).strip().replace(" ", "-") for one in _HEADING.findall(page.read_text())
    }


def options(command: str) -> set[str]:
    """Those that a subcommand takes, or one of its own."""
    found = cli.commands.get(command)
    commands = found.commands.values() if isinstance(found, click.Group) else [found] if found else []
    known = {name for one in commands for param in one.params for name in (*param.opts, *param.secondary_opts)}
    return known | {"--help"} | _OWN_OPTIONS.get(command, set())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
class TestPages:
    def test_links_lead_somewhere(self, page: Path) -> None:
        lost = {link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()}
        assert lost <= _OF_THE_SITE

    def test_anchors_are_headings_of_their_page(self, page: Path) -> None:
        """Quicker than the site, and it says which."""
        assert len(page.read_text().split()) > 50
        links = _ANCHOR.findall(page.read_text())
        lost = {
            f"{link}#{anchor}" for link, anchor in links if anchor not in anchors(page.parent / (link or page.name))
        }
        assert lost == set()

    def test_the_scripts_that_it_names_are_there(self, page: Path) -> None:
        scripts = {name for pair in _SCRIPT.findall(page.read_text()) for name in pair if name}
        assert {name for name in scripts if not (ROOT / "ci" / name).is_file()} == set()

    def test_the_options_that_it_names_with_a_command_are_there(self, page: Path) -> None:
        found = {pair for pair in named(page.read_text()) if pair[0] in cli.commands or pair[0] in _OWN_OPTIONS}
        assert {f"{command} {option}" for command, option in found if option not in options(command)} == set()

    def test_the_commands_that_it_names_are_there(self, page: Path) -> None:
        commands = set(re.findall(r"(?:\.venv/bin/|`)pdrgate ([a-z]+)", page.read_text()))
        assert commands <= cli.commands.keys()


def test_the_paths_that_contributors_are_sent_to_are_there() -> None:
    """Folders, and files by their endings: of the checkout, or of the package."""
    spans = re.findall(r"`([\w./-]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    paths = {
        one
        for one in spans
        if not one.startswith("/") and ("/" in one or re.search(r"\.(py|json|jsonl|toml|txt)$", one))
    } - _OF_A_RUN
    assert len(paths) > 80
    places = (ROOT, ROOT / "libraries/pdrgate")
    assert {path for path in paths if not any((place / path).exists() for place in places)} == set()


@pytest.mark.parametrize("file", option_lists.files(), ids=lambda file: file.name)
def test_the_lists_of_options_are_those_that_are_declared(file: Path) -> None:
    assert file.read_text() == option_lists.remade(file), "make them anew: .venv/bin/python ci/lists/option_lists.py"


def test_every_command_is_in_the_reference() -> None:
    told = set(re.findall(r"`pdrgate ([a-z]+)", (ROOT / "docs" / "reference.md").read_text()))
    assert cli.commands.keys() <= told


def test_the_readme_can_be_read_at_once() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_options_are_found_where_they_are_named() -> None:
    text = (
        "    ./ci/gate --nonsense x \\\n        --budget 1\n`pdrgate report --more` and --not-its\n"
        "| `pdrgate assess FILE` | text: `--format` |\n'\"$GATE/ci/gate\" $OPTIONS --bisect'\n"
    )
    assert set(named(text)) == {
        ("gate", "--nonsense"), ("gate", "--budget"), ("gate", "--bisect"), ("report", "--more"),
        ("assess", "--format"),
    }  # fmt: skip


def test_the_site_has_all_pages_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    """Built as ci/docs does; a link or an anchor that leads nowhere fails it."""
    build = (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path))
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert {page.stem for page in PAGES} - {"README", "CONTRIBUTING"} <= {page.stem for page in tmp_path.glob("*.html")}
    asked = re.compile(r"""(?:<script|<link rel="stylesheet"|<img)[^>]*(?:src|href)="https?://""")
    assert not [page.name for page in tmp_path.glob("*.html") if asked.search(page.read_text())]
    assert "pdrgate history import" in (tmp_path / "command.html").read_text()
    assert "The Partial Drop Rate Is Searched" in (tmp_path / "keywords" / "gate.html").read_text()
