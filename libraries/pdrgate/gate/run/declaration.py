"""What an option of a run says of itself, and the value that a text gives it.

The fields of `pdrgate.gate.run.options.RunOptions` and `pdrgate.gate.run.scenario.Scenario` are declared with these.
The command line, the keys of testbed files and of scenario files, Robot's variables, the arguments of keywords, the
lists of pipelines and the pages are made of the declarations.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pdrgate.history.address import Address
from pdrgate.values.errors import UsageError
from pdrgate.values.units import Duration, Ratio

_NONE = ("", ".", "none", "${none}")
"""Texts that name no value: a suite may hand over a variable that nobody has set."""
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0", *_NONE)
_SWITCHED = {"true": "on", "false": "off"}
"""What YAML makes of the words on and off."""
CENTURY = 36525 * 86400.0
"""Seconds; what clocks and counts take is more, and not much more."""


_MARKUP = re.compile(r"\[([^]]*)\]\([^)]*\)|`")
"""Links and code of Markdown."""


class By(enum.Flag):
    """The places where an option may stand."""

    COMMAND = enum.auto()
    VARIABLE = enum.auto()
    """A Robot variable of the option's name; `Open Testbed` takes those that belong to a session as arguments."""
    PIPELINE = enum.auto()
    """A variable of the environment of ``ci/gate-from-env``, an input of the action, a variable of the templates."""
    TESTBED = enum.auto()
    """A key of a testbed's file, below ``run``; ``--set`` says another value for one run."""
    PATH = enum.auto()
    """A key of a scenario's file; ``--set`` says another value for one run."""


PEOPLE = By.COMMAND | By.VARIABLE
EVERYBODY = PEOPLE | By.PIPELINE
OF_TESTBED = By.VARIABLE | By.TESTBED
OF_PATH = By.VARIABLE | By.PATH
KEYS = By.TESTBED | By.PATH
"""What ``--set`` takes."""


@dataclass(frozen=True, slots=True)
class Said:
    """The part of a declaration that neither the type nor the default of a field has.

    Attributes:
        words: what docs/reference.md says of it; the command line, keywords and pipelines have the first sentence.
        by: where it may stand.
        form: what a value looks like, such as ``BUILD``; by the type where it is empty.
        default: the default in words, where the field's own says little.
        option: the name on the command line, where that is not the field's.
        environment: the variable that is read where the command line says nothing.
        range: the least and the greatest value of a number.
        commands: whether the value is run or written with the rights of whoever runs the gate, so that nobody else may
            choose it: a suite, a testbed file, where a history lies.
        of: what must be measured for the option to mean anything, by the names of ``--measure``; empty: anything.
    """

    words: str
    by: By = PEOPLE
    form: str = ""
    default: str = ""
    option: str = ""
    environment: str | None = None
    range: tuple[float, float] | None = None
    commands: bool = False
    of: tuple[str, ...] = ()


testbed_key, path_key = partial(Said, by=OF_TESTBED), partial(Said, by=OF_PATH)
"""What keys of testbed files and of scenario files say of themselves."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """An option of a run, as its field declares it."""

    name: str
    kind: type[Any]
    """Type of one value."""
    choices: tuple[str, ...]
    """The values that there are; empty: any of the type."""
    besides: tuple[str, ...]
    """Words that it may be besides a value of the type."""
    many: bool
    """Whether it may be repeated."""
    default: Any
    """The default; None where nothing is taken, or something that depends on other options."""
    said: Said

    @property
    def option(self) -> str:
        """The name on the command line; that of a key is behind ``--set``."""
        if self.is_key:
            return f"--set {self.name}"
        return f"--{(self.said.option or self.name).replace('_', '-')}"

    @property
    def is_key(self) -> bool:
        """Whether the command line takes it by ``--set`` only."""
        return bool(self.said.by & KEYS) and By.COMMAND not in self.said.by

    def words(self, value: object) -> list[str]:
        """The words of a command line that set it to ``value``."""
        if self.is_key:
            return ["--set", f"{self.name}={str(plain(value)).lower() if self.flag else plain(value)}"]
        return [self.option] if value is True else [self.option, str(plain(value))]

    @property
    def help(self) -> str:
        """The first sentence of its words, as plain text."""
        sentence = _MARKUP.sub(r"\1", self.said.words.partition(". ")[0])
        return f"{sentence[0].upper()}{sentence[1:]}."

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
            if not self.many:
                return self._typed(given)
            split = given.split(",") if isinstance(given, str) and self.kind is int else (given,)
            return tuple(map(self._typed, given if isinstance(given, list | tuple) else split))
        except UsageError as error:
            raise UsageError(f"{self.name}: {error}") from error  # a history's address may hold a password
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.name}: {given!r} is none; write {self.form}") from error

    def _typed(self, given: Any) -> Any:
        text = str(given).lower()
        if text in self.besides:
            return text
        if self.choices:
            text = _SWITCHED.get(text, text) if "on" in self.choices else text
            if text not in self.choices:
                raise UsageError(f"{text!r} is none; choose one of {', '.join(self.choices)}")
            return self.kind(text)
        if self.kind is Address:
            return Address.known(given.text if isinstance(given, Address) else str(given))
        if self.kind in _READ:
            return _READ[self.kind](given)
        if self.kind in (int, float):
            number = self.kind(text) if self.kind is float or text.isdecimal() else -1
            least, most = self.said.range or (0, sys.maxsize)
            if not least <= number <= most:
                bounds = f" from {least} to {most}" if self.said.range else ""
                what = "whole number" if self.kind is int else "number"
                raise UsageError(f"{given!r} is no {what}{bounds}{''.join(f' or {one}' for one in self.besides)}")
            return number
        if self.flag:
            if text not in _TRUE + _FALSE:
                raise UsageError(f"{given!r} is neither true nor false; write one of the two")
            return text in _TRUE
        if isinstance(given, dict | list):
            raise UsageError(f"{given!r} is no single value; write {self.form}")
        return given if isinstance(given, self.kind) else self.kind(given)


_FORMS: Mapping[type[Any], str] = {
    Ratio: "RATIO",
    Duration: "TIME",
    Path: "FILE",
    Address: "FILE_OR_URL",
    int: "N",
    float: "N",
}


def declarations(options: type[Any]) -> Mapping[str, Declaration]:
    """The options of this dataclass by the names of their fields; those of the class itself come before inherited.

    A field without `Said` is no option.
    """
    hints = get_type_hints(options, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(options)}
    own = [name for name in fields if name in options.__annotations__]
    return {
        name: _declaration(fields[name], hints[name])
        for name in (*own, *(name for name in fields if name not in own))
        if get_origin(hints[name]) is Annotated
    }


def accepted_ratio(given: Any) -> Ratio:
    """A ratio of at least 0 and below 1. Raises UnitError, UsageError."""
    ratio = Ratio.parse(given)
    if not 0 <= ratio < 1:
        meant = f"; did you mean {given}%?" if 1 <= ratio < 100 and "%" not in str(given) else ""
        raise UsageError(f"{given!r} must be at least 0 and below 100%{meant}")
    return ratio


def accepted_duration(given: Any) -> Duration:
    """A span that clocks and counts take. Raises UnitError, UsageError."""
    duration = Duration.parse(given)
    if duration > CENTURY:
        raise UsageError(f"{given!r} is longer than a century")
    return duration


_READ: Mapping[type[Any], Callable[[Any], Any]] = {Ratio: accepted_ratio, Duration: accepted_duration}


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
    kind, said = get_args(hint)
    besides: tuple[str, ...] = ()
    if get_origin(kind) in (Union, types.UnionType):
        kind, *others = (one for one in get_args(kind) if one is not types.NoneType)
        besides = tuple(word for one in others for word in get_args(one))
    many = get_origin(kind) is tuple
    if many:
        kind = get_args(kind)[0]
    choices: tuple[str, ...] = ()
    if get_origin(kind) is Literal:
        kind, choices = type(get_args(kind)[0]), tuple(str(one) for one in get_args(kind) if one != "")
    elif issubclass(kind, enum.Enum):
        choices = tuple(one.value for one in kind)
    default = None if field.default is dataclasses.MISSING else field.default
    return Declaration(field.name, kind, choices, besides, many, default, said)
