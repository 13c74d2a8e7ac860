"""What an option of a run says of itself, and the value that a text gives it.

The fields of `pdrgate.gate.run.options.RunOptions` are declared with these. The command line, Robot's variables, the
arguments of keywords, the lists of pipelines and the pages are made of the declarations.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pdrgate.history.address import Address
from pdrgate.values.errors import UsageError
from pdrgate.values.units import Duration, Ratio

_NONE = ("", ".", "none", "${none}")
"""Texts that name no value: a suite may hand over a variable that nobody has set."""
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0", *_NONE)


class By(enum.Flag):
    """The people and programs that may set an option."""

    COMMAND = enum.auto()
    VARIABLE = enum.auto()
    """A Robot variable of the option's name; `Open Testbed` takes those that belong to a session as arguments."""
    PIPELINE = enum.auto()
    """A variable of the environment of ``ci/gate-from-env``, an input of the action, a variable of the templates."""


PEOPLE = By.COMMAND | By.VARIABLE
EVERYBODY = PEOPLE | By.PIPELINE


@dataclass(frozen=True, slots=True)
class Said:
    """The part of a declaration that the type and the default of a field do not tell.

    Attributes:
        help: one sentence, for the command line, keywords and pipelines.
        page: what docs/reference.md says in its place, where that is more.
        by: who may set it.
        form: what a value looks like, such as ``BUILD``; by the type where it is empty.
        default: the default in words, where the field's own tells little.
        option: the name on the command line, where that is not the field's.
        environment: the variable that is read where the command line says nothing.
        range: the least and the greatest value of a number.
        commands: whether the value is run or written with the rights of whoever runs the gate, so that nobody else may
            choose it: a suite, a testbed file, where a history lies.
        of: what must be measured for the option to mean anything, by the names of ``--measure``; empty: anything.
    """

    help: str
    page: str = ""
    by: By = PEOPLE
    form: str = ""
    default: str = ""
    option: str = ""
    environment: str | None = None
    range: tuple[int, int] | None = None
    commands: bool = False
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """An option of a run, as its field declares it."""

    name: str
    kind: type[Any]
    """Type of one value."""
    choices: tuple[str, ...]
    """The values that there are; empty: any of the type."""
    many: bool
    """Whether it may be repeated."""
    default: Any
    """The default; None where nothing is taken, or something that depends on other options."""
    said: Said

    @property
    def option(self) -> str:
        """The name on the command line."""
        return f"--{(self.said.option or self.name).replace('_', '-')}"

    @property
    def variable(self) -> str:
        """The name of Robot's variable, and of a pipeline's."""
        return (self.name if By.VARIABLE in self.said.by else self.said.option or self.name).upper()

    @property
    def flag(self) -> bool:
        """Whether it is set without a value."""
        return self.kind is bool

    @property
    def default_text(self) -> str:
        """The default as a person writes it; empty where there is none."""
        if self.said.default or self.flag or self.default in (None, ""):
            return self.said.default
        return " ".join(plain(self.default)) if self.many else str(plain(self.default))

    @property
    def form(self) -> str:
        """What a value looks like."""
        if self.flag:
            return "true or false"
        return self.said.form or ("|".join(self.choices) if self.choices else _FORMS.get(self.kind, "TEXT"))

    def value(self, given: object) -> Any:
        """What a text or a value gives the option. Raises UsageError when it gives none."""
        if given is None or (isinstance(given, str | Path) and str(given).lower() in _NONE and self.default is None):
            return self.default
        try:
            return self._typed(given)
        except (UsageError, ValueError) as error:
            raise UsageError(f"{self.name}: {error}") from error  # a history's address may hold a password

    def _typed(self, given: object) -> Any:
        if self.choices:
            text = str(given).lower()
            if text not in self.choices:
                raise UsageError(f"{text!r} is none; choose one of {', '.join(self.choices)}")
            return text if self.kind is str else self.kind(text)
        if self.kind is Address:
            return Address.known(given.text if isinstance(given, Address) else str(given))
        if isinstance(given, self.kind):
            return given
        if self.flag:
            text = str(given).lower()
            if text not in _TRUE + _FALSE:
                raise UsageError(f"{given!r} is neither true nor false; write one of the two")
            return text in _TRUE
        if self.kind in (Ratio, Duration):
            return self.kind.parse(given)
        return self.kind(given)


_FORMS: Mapping[type[Any], str] = {Ratio: "RATIO", Duration: "TIME", Path: "FILE", Address: "FILE_OR_URL", int: "N"}


def declarations(options: type[Any]) -> Mapping[str, Declaration]:
    """The options of this dataclass by the names of their fields; those of the class itself come before inherited."""
    hints = get_type_hints(options, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(options)}
    own = [name for name in fields if name in options.__annotations__]
    return {
        name: _declaration(fields[name], hints[name])
        for name in (*own, *(name for name in fields if name not in own))
    }  # fmt: skip


def values(options: type[Any], given: Mapping[str, object]) -> dict[str, Any]:
    """What was given by name, typed. Raises UsageError when a name is unknown, or a value is none of its type."""
    known = declarations(options)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"there is no option {name}; {meant}there are {', '.join(sorted(known))}")
    return {name: known[name].value(value) for name, value in given.items()}


def plain(value: object) -> Any:
    """A value as JSON has it: quantities and paths as the text that a person would write."""
    match value:
        case Ratio() | Duration() | Address():
            return value.text
        case Path():
            return str(value)
        case enum.Enum():
            return value.value
        case tuple():
            return [plain(one) for one in value]
    return value


def _declaration(field: dataclasses.Field[Any], hint: object) -> Declaration:
    kind, said = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
    if not isinstance(said, Said):
        raise TypeError(f"{field.name} is declared without Said: nobody could be told what it is for")
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(one for one in get_args(kind) if one is not types.NoneType)
    many = get_origin(kind) is tuple
    if many:
        kind = get_args(kind)[0]
    choices: tuple[str, ...] = ()
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    elif issubclass(kind, enum.Enum):
        choices = tuple(one.value for one in kind)
    default = None if field.default is dataclasses.MISSING else field.default
    return Declaration(field.name, kind, choices, many, default, said)
