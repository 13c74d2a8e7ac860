"""The list of benches: what each shows, and the pages on which its figures stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BENCHES = ROOT / "tests" / "bench"
_PAGES = ("docs", ".")


def bench_rows() -> Iterator[str]:
    """The rows of tests/bench/README.md, one for each program."""
    yield "| bench | what it shows | page |"
    yield "|---|---|---|"
    pages = [page for folder in _PAGES for page in sorted((ROOT / folder).glob("*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    for file in sorted((*_BENCHES.glob("*.py"), *_BENCHES.glob("*/__main__.py"))):
        name = file.parent.name if file.name == "__main__.py" else file.stem
        told = _first_paragraph(file)
        if "\n    " not in (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""):
            continue  # a module of another bench: it names no command
        named = (page for page, text in texts.items() if f"bench/{name}" in text)
        yield f"| `{name}` | {told} | {', '.join(f'[{one.stem}](../../{one.relative_to(ROOT)})' for one in named)} |"


def _first_paragraph(file: Path) -> str:
    """The first paragraph of a module's docstring, in a line."""
    whole = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(whole.partition("\n\n")[0].split()).replace("``", "`")
