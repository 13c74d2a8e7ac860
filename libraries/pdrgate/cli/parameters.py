"""What the command line says, as the values of pdrgate; options that commands share, and notes beside an output."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from pdrgate.gate.run.declaration import CENTURY, By, accepted_duration, accepted_ratio, declarations, plain
from pdrgate.gate.run.options import Options, RunOptions
from pdrgate.history.address import HISTORY_SCHEMES, HISTORY_VARIABLE, Address
from pdrgate.history.results import followed
from pdrgate.this_process.own_files import beside_own
from pdrgate.values.errors import UsageError
from pdrgate.values.printable import is_address, redacted
from pdrgate.values.units import Duration, Ratio


class ParsedType(click.ParamType[Any]):
    """A type of parameters whose text a function parses; a usage error where that raises one."""

    def __init__(self, name: str, parse: Callable[[Any], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of the text."""
        try:
            return self._parse(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


RATIO, DURATION = ParsedType("ratio", accepted_ratio), ParsedType("duration", accepted_duration)
"""``0.5%`` or ``0.005``, at least 0 and below 1; ``90 s``, ``5 min`` or a number of seconds."""


class _FileCompletion:
    """Has the shell propose files."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _too_long(path: str | Path) -> bool:
    """Whether no file can be called so, which every command would find out somewhere else."""
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    return False


def _is_typed(param: click.Parameter | None, ctx: click.Context | None) -> bool:
    """Whether the command line itself says it, and no default or variable of the environment."""
    source = ctx.get_parameter_source(param.name) if ctx and param and param.name else None
    return source is ParameterSource.COMMANDLINE


def _named(path: Path, typed: bool) -> Path:
    """The path of what is there now: ``latest`` will be another run soon, and a file that somebody typed may have the
    name of one of pdrgate's own.
    """
    named = followed(path)
    return beside_own(named) if typed else named


class PathType(_FileCompletion, click.ParamType[Path]):
    """A path, with a run's own folder in place of ``latest``. Empty text names none: pathlib would take it for the
    working directory.
    """

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error when the text is empty."""
        if not str(value).strip():
            self.fail("it is empty; name a file or a folder, such as '.' for this one", param, ctx)
        if _too_long(value):
            self.fail(f"{len(value)} characters are too many for the name of a file", param, ctx)
        history = str(value).partition(":")[0] in HISTORY_SCHEMES  # whoever takes a baseline says what to write instead
        if is_address(str(value)) and not Path(value).exists() and not (history and param and param.name == "baseline"):
            self.fail(f"{redacted(str(value))} is an address; name a file or a folder here", param, ctx)
        return _named(Path(value), _is_typed(param, ctx))


class AddressType(_FileCompletion, click.ParamType[Address]):
    """A type of parameters: where a history is, a file or the URL of a server."""

    name = "history"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """The address; a usage error when it is none."""
        try:
            address = Address.known(value) if _is_typed(param, ctx) else Address.parse(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)
        if address.file is not None and _too_long(address.file):
            self.fail(f"{len(str(address.file))} characters are too many for the name of a file", param, ctx)
        return address


def _commit(text: str) -> str:
    """What names a commit: a digest, or what else a version control has."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}", text):
        raise UsageError("it names no commit; write its digest, such as git rev-parse HEAD prints")
    return text


COMMIT = ParsedType("commit", _commit)


class BuildType(_FileCompletion, click.ParamType[str]):
    """What a person calls a build: a path, perhaps with parts, or a package.

    Empty text is refused. It comes from an unset shell variable, and would silently leave the comparison out.
    """

    name = "build"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; a usage error when it is empty."""
        if not str(value).strip():
            self.fail("it is empty; name a file or a package, or leave the option out", param, ctx)
        if is_address(str(value)) and not Path(value).exists():
            self.fail(f"{redacted(str(value))} is an address; fetch it, and name the file", param, ctx)
        return str(value)


_FORMS: Mapping[str, click.ParamType[Any]] = {
    "BUILD": BuildType(),
    "OBJECT": BuildType(),
    "COMMIT": COMMIT,
}
_TYPES: Mapping[type[Any], click.ParamType[Any]] = {
    Ratio: RATIO, Duration: DURATION, Path: PathType(), Address: AddressType(), str: click.STRING,
}  # fmt: skip
_Command = Callable[..., Any]
_Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def declared(name: str, complete: _Completion | None = None) -> Callable[[_Command], _Command]:
    """The option of a run of this name, as it is declared; ``complete`` proposes values to a shell."""
    one = declarations(RunOptions)[name]
    names = (f"--{(one.said.option or name).replace('_', '-')}", name)
    typed: dict[str, Any] = {}
    if one.flag:
        return click.option(*names, is_flag=True, help=one.help)
    if one.choices:
        kind: click.ParamType[Any] = click.Choice(one.choices)
        typed = {"callback": lambda _context, _option, text: one.value(text)}
    else:
        kind = _FORMS.get(one.said.form) or _TYPES[one.kind]
    more = [", ".join(one.choices)] if one.choices else []
    more += [f"default: {one.default_text}"] if one.default_text else []
    own = one.default not in (None, "", ())
    return click.option(
        *names,
        metavar=one.said.form or (None if one.choices else one.form),
        type=kind,
        multiple=one.many,
        default=plain(one.default) if own else None,
        envvar=one.said.environment,
        shell_complete=complete,
        **typed,
        help=f"{one.help}  [{'; '.join(more)}]" if more else one.help,
    )


def declared_options(**complete: _Completion) -> Callable[[_Command], _Command]:
    """All options of a run that the command line may set, in the order in which they are declared."""

    def with_options(command: _Command) -> _Command:
        for name, one in reversed(tuple(declarations(RunOptions).items())):
            if By.COMMAND in one.said.by:
                command = declared(name, complete.get(name))(command)
        return command

    return with_options


output_option = click.option("--output", metavar="FOLDER", default="results", show_default=True, type=PathType())


def scenario_option(default: str = "default") -> Callable[[_Command], _Command]:
    """The options that name one scenario, and the suites that have it."""
    named = click.option(
        "--scenario",
        metavar="NAME",
        default=default or None,
        show_default=bool(default),
        help="The tag of its test, its name in results, or a YAML file.",
    )
    return lambda command: named(declared("suites")(command))


PATIENT = Duration(CENTURY)
"""A wait for `git bisect run`, where nobody says how long: whoever measures here is waited for, and no commit passed
over."""
LOSS_HELP = "The PLR that defines the PDR.  [default: what the trials were measured for, else 0.5%]"


def history_option(*names: str, **more: Any) -> Callable[[_Command], _Command]:
    """The option ``--history``, with what a command says of it."""
    return click.option(
        "--history", *names, metavar="FILE_OR_URL", type=AddressType(), envvar=HISTORY_VARIABLE, **more
    )  # fmt: skip


def forms(*names: str) -> Callable[[_Command], _Command]:
    """The option ``--format``, whose first form is the default."""
    return click.option("--format", "form", type=click.Choice(names), default=names[0], show_default=True)


text_or_json = forms("text", "json")


def echo_json(told: object) -> None:
    """Print it as JSON: a value of the standard types, a dataclass, or a msgspec struct."""
    import json

    import msgspec

    click.echo(json.dumps(msgspec.to_builtins(told), indent=1, allow_nan=False))


def said_options(changes: Sequence[str], more: Mapping[str, Any], options: type[Options] = Options) -> dict[str, Any]:
    """The options that a command line or its environment says, by the names of their fields: by ``--set``, and those of
    ``more`` that are no defaults.

    Raises:
        UsageError: a key is unknown, a value is none, or an option is said both ways.
    """
    from pdrgate.gate.run.run_settings import keys, named_values, read_settings

    try:
        found = read_settings(named_values(changes), keys(options=options))
    except UsageError as error:
        raise UsageError(f"--set {error}") from error
    source = click.get_current_context().get_parameter_source
    said = {name: value for name, value in more.items() if source(name) is not ParameterSource.DEFAULT}
    for name in said.keys() & found:
        raise UsageError(f"{declarations(options)[name].option} and --set {name} say one thing; leave one out")
    return said | {name: _named(value, True) if isinstance(value, Path) else value for name, value in found.items()}


def note(sentence: str) -> None:
    """Print a sentence on stderr, where it is no part of the output."""
    click.echo(f"pdrgate: note: {sentence}", err=True)
