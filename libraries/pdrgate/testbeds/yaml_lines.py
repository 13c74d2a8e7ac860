"""The text of a YAML file: its content, and for each key the line it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pdrgate.this_process.checkout import own_testbed_file
from pdrgate.values.errors import TestbedError

Key = tuple[str | int, ...]
"""A key of the file by its path: ``("sut", "ports", 0)``."""
_LARGEST = 2**64
"""The largest number of a file. A number of thousands of digits could not even be printed."""


class _NoValueError(yaml.MarkedYAMLError):
    """A scalar is not of the kind that it looks like, or that its tag names."""


class _Loader(yaml.SafeLoader):
    """Loader that reports where an unreadable scalar stands: PyYAML's constructors raise whatever Python does."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:
            raise _no_value(node) from error
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise _no_value(node)
        return value


def _no_value(node: yaml.Node) -> _NoValueError:
    standard = node.tag.startswith("tag:yaml.org,")
    kind = node.tag.rpartition(":")[2] if standard else "value that YAML has"
    return _NoValueError(problem=f"what stands here is no {kind}", problem_mark=node.start_mark)


def parse(
    source: Path, text: str, what: str = "testbed", begin: str = "name: local-netns", example: str = ""
) -> tuple[dict[str, Any], dict[Key, int]]:
    """The content of a YAML text, and for each key of it the line it stands on.

    Args:
        what: what the file describes, for errors.
        begin: a line that such a file may begin with.
        example: where to see one; empty: in a testbed file of pdrgate's own.

    Raises:
        TestbedError: it is no YAML, no mapping, or has a key twice.
        RecursionError: it is nested too deeply.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            begun = example or f"start from {own_testbed_file('local-netns')}"
            raise TestbedError(f"{source}:1: the file is empty; {begun}")
        lines = dict(_lines(source, node, (), node.start_mark.line + 1, set()))
        content = loader.construct_document(node)
    except _NoValueError as error:
        assert error.problem_mark is not None
        line = error.problem_mark.line + 1
        raise TestbedError(f"{source}:{line}: {error.problem}; write one, or put it in quotes") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        raise TestbedError(
            f"{source}:{at}: is no YAML: {_problem(error)}; check indentation and colons there"
        ) from error
    except yaml.YAMLError as error:
        raise TestbedError(f"{source}: is no YAML: unacceptable character; check that it is text in UTF-8") from error
    if not isinstance(content, dict):
        raise TestbedError(f"{source}:{lines[()]}: is no {what}; start with lines such as `{begin}`")
    return content, lines


def _problem(error: yaml.MarkedYAMLError) -> str:
    """PyYAML's message, with its quotes cut to single characters: root reads files that others only name."""
    return re.sub(r"(['\"])(?!\\?.\1).*\1", "this", error.problem or "", flags=re.DOTALL)


def _lines(source: Path, node: yaml.Node, key: Key, line: int, met: set[int]) -> Iterator[tuple[Key, int]]:
    """Each key of the file with its line. Raises TestbedError at a key given twice: YAML would take the last."""
    yield key, line
    if id(node) in met:  # an alias, perhaps to what it stands in
        return
    met.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for name, value in node.value:
            at = name.start_mark.line + 1
            word = str(name.value)
            full = (*key, word)
            if word in seen:
                raise TestbedError(
                    f"{source}:{at}: {key_in_words(full)}: is there twice, also in line {seen[word]}; keep one"
                )
            seen[word] = at
            yield from _lines(source, value, full, at, met)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(source, value, (*key, index), value.start_mark.line + 1, met)


def key_in_words(key: Key) -> str:
    """The key in words: ``sut.ports.0``."""
    return ".".join(str(part) for part in key) or "the file"


def brief(value: object) -> str:
    """The value of a known key, cut to fit into a line. Values of unknown keys are not printed."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}…"
