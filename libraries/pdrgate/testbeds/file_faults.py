"""Faults in the content of a YAML file, by its schema and beyond it; each with its line and key.

The keys are defined in a file of schemas/, whose descriptions are the remedies that an error names.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import jsonschema

from pdrgate.testbeds.kinds import KINDS
from pdrgate.testbeds.yaml_lines import Key, brief, key_in_words
from pdrgate.this_process.checkout import own_testbed_file

_UNKNOWN = "unknown key"


def faults(content: Mapping[str, Any], lines: Mapping[Key, int]) -> list[tuple[int, str, str]]:
    """All faults of a testbed file as line, key and problem, the one to mend first at the beginning."""
    return schema_faults("testbed", content, lines, f"see {own_testbed_file('local-netns')}") or sorted(
        set(_contradictions(content, lines))
    )


def schema_faults(
    schema: str, content: Mapping[str, Any], lines: Mapping[Key, int], example: str
) -> list[tuple[int, str, str]]:
    """All faults by a schema as line, key and problem, the one to mend first at the beginning.

    Args:
        schema: which file of schemas/, without its ending.
        example: where to see a key that is missing.
    """
    keys = json.loads(resources.files("pdrgate").joinpath(f"schemas/{schema}.schema.json").read_text())
    found = set()
    for error in jsonschema.Draft202012Validator(keys).iter_errors(content):
        key = tuple(error.absolute_path)
        for part, problem in _problems(error, example):
            full = (*key, *part)
            found.add((line_of_key(full, lines), key_in_words(full), problem))
    # An unknown key first: it mostly is why another one is missing.
    return sorted(found, key=lambda fault: (not fault[2].startswith(_UNKNOWN), fault))


def _contradictions(content: Mapping[str, Any], lines: Mapping[Key, int]) -> Iterator[tuple[int, str, str]]:
    for key, problem in KINDS[content["kind"]].contradictions(content):
        # The name of a sysctl has dots of its own, and is part of the problem's text.
        known_key = tuple(part for part in key if not re.search("[./]", str(part)))
        yield line_of_key(key, lines), key_in_words(known_key), problem


def _problems(error: jsonschema.ValidationError, example: str) -> Iterator[tuple[Key, str]]:
    """Problems of a schema error, each with the key it concerns below the one the validator stopped at."""
    schema: Any = error.schema
    value: Any = error.instance
    expected: Any = error.validator_value
    remedy = f"; write {schema['description']}" if "description" in schema else ""
    match error.validator:
        case "additionalProperties":
            known, patterns = list(schema.get("properties", {})), list(schema.get("patternProperties", {}))
            for name in map(str, value):
                if name not in known and not any(re.search(pattern, name) for pattern in patterns):
                    choice = remedy.removeprefix("; ") if patterns else f"known are {', '.join(known)}"
                    yield (name,), f"{_UNKNOWN}; {_meant(name, known) or choice}"
        case "required":
            for name in expected:
                if name not in value:
                    near = difflib.get_close_matches(name, [str(other) for other in value if other not in expected], 1)
                    hint = f"is {near[0]} meant for it?" if near else f"add it, {example}"
                    yield (), f"the key {name} is missing; {hint}"
        case "enum":
            choices = [str(choice) for choice in expected]
            yield (
                (),
                f"{brief(value)} is not one of {', '.join(choices)}; {_meant(str(value), choices) or 'write one'}",
            )
        case "type" if expected == "object":
            yield (), f"has keys of its own, and no value{remedy}"  # whatever stands there may be a secret
        case "anyOf" | "pattern":
            yield (), f"{brief(value)} does not fit{remedy}"
        case _:
            yield (), f"{error.message if len(error.message) < 120 else f'{brief(value)} does not fit'}{remedy}"


def _meant(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def line_of_key(key: Key, lines: Mapping[Key, int]) -> int:
    """The line of the key, or of the nearest one around it that is in the file."""
    while key not in lines and key:
        key = key[:-1]
    return lines.get(key, 1)
