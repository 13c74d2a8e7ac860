"""Docstrings are understood without their neighbours, and no sentence of the code uses the verb tell."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import pdrgate

_SOURCES = Path(pdrgate.__file__).parent

_OPENING = re.compile(r"[^\W\d_a-zß-ÿ]|`|\d|pdrgate\b")
_POINTING_OPENING = re.compile(r"(?:Of|By|Where|As|The same|These|Those|It|They|This|That)\b")
_TELL = re.compile(r"\b(?:un)?(?:tell|tells|telling|told)\b", re.IGNORECASE)


def _docstrings(module: ast.Module) -> Iterator[ast.Constant]:
    """Docstrings of the module, its classes, functions and fields."""
    for node in ast.walk(module):
        statements = getattr(node, "body", None)
        if not isinstance(statements, list):
            continue
        documents_node = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        previous: ast.stmt | None = None
        for statement in statements:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
                and ((previous is None and documents_node) or isinstance(previous, ast.Assign | ast.AnnAssign))
            ):
                yield statement.value
            previous = statement


def _faults(path: Path) -> Iterator[str]:
    """Broken rules in a module, each with its line."""
    source = path.read_text(encoding="utf-8")
    where = path.relative_to(_SOURCES)
    for docstring in _docstrings(ast.parse(source)):
        text = str(docstring.value).strip()
        if not _OPENING.match(text) or _POINTING_OPENING.match(text):
            yield f"{where}:{docstring.lineno}: the docstring opens with {text.split()[:2]}"
        if _TELL.search(text):
            yield f"{where}:{docstring.lineno}: the docstring uses the verb tell"
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT and _TELL.search(token.string):
                yield f"{where}:{token.start[0]}: the comment uses the verb tell"


def test_sentences_of_the_code_keep_the_rules():
    broken = [fault for path in sorted(_SOURCES.rglob("*.py")) for fault in _faults(path)]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('"""Of a packet, its cost."""', "opens with ['Of', 'a']"),
        ('"""its cost."""', "opens with ['its', 'cost.']"),
        ('class Cost:\n    cost: int\n    """What tells its unit."""', "the docstring uses the verb tell"),
        ("cost = 1  # told in instructions", "the comment uses the verb tell"),
    ],
)
def test_sentence_that_breaks_a_rule_is_reported_with_its_line(source, fault, tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}._SOURCES", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(source + "\n")
    line = source.count("\n") + 1
    (reported,) = _faults(module)
    assert reported.startswith(f"module.py:{line}: ")
    assert fault in reported


@pytest.mark.parametrize(
    "source",
    [
        '"""Cost of a packet."""',
        '"""`cost` in instructions."""',
        '"""64 bytes: the smallest frame."""',
        '"""pdrgate\'s own version."""',
        'words = ["by"]\nif words:\n    "by itself"\n',
    ],
)
def test_sentence_that_keeps_the_rules_is_not_reported(source, tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}._SOURCES", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(source + "\n")
    assert list(_faults(module)) == []
