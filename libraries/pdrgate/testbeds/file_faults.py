"""What is wrong with the content of a testbed file, by the schema and beyond it; each fault with its line and key.

The keys are defined in schemas/testbed.schema.json, whose descriptions are what an error tells to write instead.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import jsonschema

from pdrgate.knobs import contradictions, sysctls
from pdrgate.testbeds.kinds import LocalVm, Rack
from pdrgate.testbeds.yaml_lines import Key, brief, shown

TREX = "trex"
"""The kind of generator that is a TRex server."""

_UNKNOWN = "unknown key"


def faults(content: Mapping[str, Any], lines: Mapping[Key, int]) -> list[tuple[int, str, str]]:
    """All faults as line, key and problem, the one to mend first at the beginning."""
    # An unknown key first: it mostly is why another one is missing.
    return sorted(set(_faults(content, lines)), key=lambda fault: (not fault[2].startswith(_UNKNOWN), fault))


def _faults(content: Mapping[str, Any], lines: Mapping[Key, int]) -> Iterator[tuple[int, str, str]]:
    schema = json.loads(resources.files("pdrgate").joinpath("schemas/testbed.schema.json").read_text())
    faulty = False
    for error in jsonschema.Draft202012Validator(schema).iter_errors(content):
        faulty = True
        key = tuple(error.absolute_path)
        for part, problem in _problems(error):
            full = (*key, *part)
            yield _line(full, lines), shown(full), problem
    if not faulty:
        yield from _contradictions(content, lines)


def _contradictions(content: Mapping[str, Any], lines: Mapping[Key, int]) -> Iterator[tuple[int, str, str]]:
    """What no schema can say of a file that follows it."""
    cpu, cpus = content["generator"].get("cpu", "auto"), content.get("sut", {}).get("cpus", "auto")
    # A SUT reached by SSH has CPUs of its own.
    if cpus != "auto" and cpu in cpus and content["sut"].get("host", {}).get("kind") != "ssh":
        yield (
            _line(("sut", "cpus"), lines),
            "sut.cpus",
            f"CPU {cpu} is the generator's too (generator.cpu); the two must not share one",
        )
    yield from _rack_contradictions(content, lines)
    whole_machine = content["kind"] == Rack.kind and "namespace" not in content["sut"]["host"]
    section = content.get("sut", {}).get("knobs", {})
    problems = list(contradictions(section))
    if not whole_machine:
        wrong = {key[-1] for key, _ in problems}
        for name in sysctls(section):
            if name not in wrong and not name.startswith(("net.", "net/")):
                where = (name,) if name in section else ("sysctls", name)
                problem = f"{name} is a setting of the whole machine; only those of net. belong to the SUT's namespace"
                problems.append((where, problem))
    if content["kind"] == LocalVm.kind and "rings" in section.get("ports", {}):
        problems.append((("ports", "rings"), "a guest's rings are made when it boots; write sut.ring"))
    for key, problem in problems:
        # A sysctl's name is in the problem, and has dots of its own.
        plain = [part for part in key if "." not in part and "/" not in part]
        yield _line(("sut", "knobs", *key), lines), shown(("sut", "knobs", *plain)), problem


def _rack_contradictions(content: Mapping[str, Any], lines: Mapping[Key, int]) -> Iterator[tuple[int, str, str]]:
    if content["kind"] != Rack.kind:
        return
    for index, port in enumerate(content["sut"]["ports"]):
        key: Key = ("sut", "ports", index)
        if len(named := [name for name in ("interface", "mac", "pci") if name in port]) != 1:
            problem = f"is named by {' and '.join(named) or 'nothing'}; name it by one of interface, mac and pci"
            yield _line(key, lines), shown(key), problem
        if content["generator"]["kind"] == TREX and "faces" not in port:
            problem = "the key faces is missing; write the MAC address of TRex's port at the other end"
            yield _line(key, lines), shown(key), problem
    for part in ("sut", "station"):
        host = content.get(part, {}).get("host", {})
        for within, one in (((), host), (("jump",), host.get("jump", {}))):
            if "key" in one and "password_env" in one:
                full = (part, "host", *within, "password_env")
                yield _line(full, lines), shown(full), "there is a key too; keep the key, or the password"


def _problems(error: jsonschema.ValidationError) -> Iterator[tuple[Key, str]]:
    """What is wrong, with the key it concerns below the one the validator stopped at."""
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
                    hint = f"is {near[0]} meant for it?" if near else "add it, see resources/testbeds/local-netns.yaml"
                    yield (), f"the key {name} is missing; {hint}"
        case "enum":
            choices = [str(choice) for choice in expected]
            yield (
                (),
                f"{brief(value)} is not one of {', '.join(choices)}; {_meant(str(value), choices) or 'write one'}",
            )
        case "anyOf" | "pattern":
            yield (), f"{brief(value)} does not fit{remedy}"
        case _:
            yield (), f"{error.message if len(error.message) < 120 else f'{brief(value)} does not fit'}{remedy}"


def _meant(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def _line(key: Key, lines: Mapping[Key, int]) -> int:
    """The line of the key, or of the nearest one around it that is in the file."""
    while key not in lines and key:
        key = key[:-1]
    return lines.get(key, 1)
