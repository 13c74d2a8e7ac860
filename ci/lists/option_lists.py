"""The lists in pages and pipelines: of options, of paths and of benches, made of what declares them.

    .venv/bin/python ci/lists/option_lists.py

writes them anew.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from bench_list import bench_rows
from path_page import paths_page
from pdrgate.cli.gate import gate
from pdrgate.gate.run.declaration import By, Declaration, declarations
from pdrgate.gate.run.options import RunOptions
from pdrgate.gate.run.run_settings import keys

ROOT = Path(__file__).parents[2]
"""A checkout."""
_PAGES: Mapping[str, str] = {
    "resume": "go on with the run in this folder, with its options, trials and pairs of boots: [resuming](#resuming)",
    "output": "where the run's folder goes",
    "form": "`json` prints the content of result.json on standard output, and all other text on standard error",
    "list_scenarios": "list the tests of the suites with their tags, and end. `--scenario` lists those that it "
    "chooses. `--format json` lists them as JSON",
}
"""What the reference says of options that are no part of a run, where it is more than the help."""
_MATRIX = ("testbed", "scenarios", "wait")
"""Options that the matrix of the Jenkinsfile sets."""
_NO_VARIABLES = {"baseline", "commit", "format", "help", "history", "list_scenarios", "output", "quiet", "verbose"}
"""Options that change nothing of what is measured, or whose variables have values of their own."""
_OPTIONS = declarations(RunOptions)
_KEYS = keys()
_ALL = (*_OPTIONS.values(), *(one for name, one in _KEYS.items() if name not in _OPTIONS))
_PIPELINES = tuple(one for one in _ALL if By.PIPELINE in one.said.by)


def reference_table() -> Iterator[str]:
    """The rows of docs/reference.md."""
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for parameter in gate.params:
        name = parameter.name or ""
        names = ", ".join(f"`{one}`" for one in parameter.opts)
        if one := _OPTIONS.get(name):
            form, default, told, flag = one.form, one.default_text, one.said.words, one.flag
        else:
            assert isinstance(parameter, click.Option)
            form, flag = parameter.metavar or "FORM", parameter.is_flag
            default = parameter.default if isinstance(parameter.default, str) else ""
            told = _PAGES.get(name) or _clause(parameter.help or "")
        shown = names if flag else names.replace("`--", "`--", 1)[:-1] + f" {form}`"
        yield f"| {shown} | {default} | {told} |"


def keys_table() -> Iterator[str]:
    """The keys that docs/reference.md lists, with the file that each stands in."""
    yield "| key | in the file of | default | meaning |"
    yield "|---|---|---|---|"
    for name, one in sorted(_KEYS.items()):
        form = " or ".join((one.form, *filter(None, one.besides))) if not one.choices else "|".join(one.choices)
        shown = form.replace("|", "\\|")
        file = "a testbed" if By.TESTBED in one.said.by else "a scenario"
        default = one.default_text or ("false" if one.flag else "")
        yield f"| `{name}={shown}` | {file} | {default} | {one.said.words} |"


def environment_lists() -> Iterator[str]:
    """The variables of ci/gate-from-env, as the names of their options and of their keys."""
    options = [one for one in _PIPELINES if not one.is_key]
    yield f"valued=({' '.join(one.option[2:] for one in options if not one.flag)})"
    yield f"flags=({' '.join(one.option[2:] for one in options if one.flag)})"
    for name, many in (("keys", False), ("lists", True)):
        yield f"{name}=({' '.join(one.name for one in _PIPELINES if one.is_key and one.many is many)})"
    spelled = {opt[2:].replace("-", "_") for param in gate.params for opt in param.opts if opt.startswith("--")}
    asked = {*_KEYS, *spelled}
    asked -= _NO_VARIABLES | {one.name if one.is_key else one.option[2:].replace("-", "_") for one in _PIPELINES}
    yield from textwrap.wrap(f"elsewhere=({' '.join(sorted(asked))})", 116, subsequent_indent="    ")


def gate_options() -> Iterator[str]:
    """The options that ci/gate knows, as they are spelled, and what those take that are one of few words."""
    for name, flag in (("valued", False), ("flags", True)):
        spelled = (
            opt for one in gate.params if isinstance(one, click.Option) and one.is_flag is flag for opt in one.opts
        )
        yield from textwrap.wrap(f"{name}=({' '.join(spelled)})", 116, subsequent_indent="    ", break_on_hyphens=False)
    yield from textwrap.wrap(f"keys=({' '.join(sorted(_KEYS))})", 116, subsequent_indent="    ")
    yield "declare -A choices=("
    for one in _OPTIONS.values():
        if one.choices and not one.is_key:
            yield f"    [{one.option}]='{' '.join(one.choices)}'"
    yield ")"


def gate_help() -> Iterator[str]:
    """The help of the gate, for a clone in which nothing is installed yet."""
    context = click.Context(
        gate, info_name="pdrgate gate", terminal_width=80, max_content_width=80, **gate.context_settings
    )
    yield from gate.get_help(context).splitlines()


def action_inputs() -> Iterator[str]:
    """The inputs of action.yml."""
    for one in _PIPELINES:
        yield f"  {_input(one)}:"
        yield f"    description: {json.dumps(_described(one))}"
        yield "    default: ''"


def action_environment() -> Iterator[str]:
    """How action.yml hands its inputs to ci/gate-from-env."""
    for one in _PIPELINES:
        yield f"        {one.variable}: ${{{{ inputs.{_input(one)} }}}}"


def _input(one: Declaration) -> str:
    """The name of an input of action.yml."""
    return one.name if one.is_key else one.option[2:]


def jenkins_parameters() -> Iterator[str]:
    """The parameters of the Jenkinsfile."""
    for one in _PIPELINES:
        if one.name in _MATRIX:
            continue
        if one.flag:
            kind, more = "booleanParam", ""
        elif one.choices:
            kind = "choice"
            # Jenkins takes the first where nobody chooses: what is said goes before the project's file.
            more = f"choices: [{', '.join(repr(choice) for choice in ('', *one.choices))}], "
        else:
            kind, more = "string", ""
        described = _described(one).replace("\\", "\\\\").replace("'", "\\'")
        yield f"        {kind}(name: '{one.variable}', {more}description: '{described}')"


def _clause(sentence: str) -> str:
    """Names that have more capitals than their first keep it: IPVS, WireGuard."""
    first, _, _ = sentence.partition(" ")
    capital = sentence[:1] if first[1:] != first[1:].lower() else sentence[:1].lower()
    return (capital + sentence[1:]).rstrip(".")


def _described(one: Declaration) -> str:
    """The help, with the values that there are and the default: an empty one is left to the gate."""
    parts = [one.help]
    if one.flag:
        parts.append("Set by true.")
    if one.choices:
        parts.append(f"One of {', '.join(one.choices)}.")
    if one.default_text:
        parts.append(f"Empty: {one.default_text}.".replace("`", ""))
    return " ".join(parts)


_LISTS: Mapping[str, tuple[tuple[str, Callable[[], Iterator[str]]], ...]] = {
    "docs/reference.md": (("options", reference_table), ("keys", keys_table)),
    "docs/paths.md": (("paths", paths_page),),
    "ci/gate": (("options", gate_options),),
    "ci/gate-help": (("help", gate_help),),
    "ci/gate-from-env": (("options", environment_lists),),
    "action.yml": (("options", action_inputs), ("variables of options", action_environment)),
    "Jenkinsfile": (("options", jenkins_parameters),),
    "tests/bench/README.md": (("benches", bench_rows),),
}
_MADE = "made by ci/lists"


def made(path: str, text: str) -> str:
    """The text of this file with its lists made anew; they stand between two lines of comments."""
    for title, lines in _LISTS[path]:
        block = re.compile(rf"(?m)^(?P<first>.*\b{title}: {_MADE}\b.*\n)(?s:.*?)^(?P<last>.*\bend of {title}\b)")
        body = "\n".join((*lines(), ""))
        text, count = block.subn(lambda found, body=body: f"{found['first']}{body}{found['last']}", text)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{path} has {count} lists of {title}, and not one")
    return text


def files() -> tuple[Path, ...]:
    """The files of the checkout that have such lists."""
    return tuple(ROOT / path for path in _LISTS)


def remade(file: Path) -> str:
    """What this file of the checkout should be."""
    return made(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for each in files():
        each.write_text(remade(each), encoding="utf-8")
