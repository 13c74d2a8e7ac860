"""Reading and writing of result.json: the result of a run, as other programs read it.

Written is only what the reader takes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from pdrgate.history.whole_file import write_whole
from pdrgate.results.file_name import as_text
from pdrgate.results.model import SCHEMA, RunResult, ScenarioResult
from pdrgate.results.on_disk import from_disk, to_disk
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.errors import DataError, without_value

RESULT_FILE = "result.json"
LATEST = "latest"
"""A link in a folder of runs, to the one that ended last."""
ROOM_OF_A_RUN = 50 << 20
"""Bytes that a disk must have free for a run to begin: a long one with its plots takes tens of MB."""
LARGEST_RESULT = 64 << 20
"""Bytes of a result.json. A portfolio's has some MB."""
_LONGEST_TEXT = 64 << 10
"""Bytes of one text in it; a command, or the end of a console, has some thousand."""
_TOO_LONG = re.compile(rb'"(?:[^"\\]|\\.){%d}' % _LONGEST_TEXT, re.DOTALL)
_ADVICE = "name a result.json or the folder of a run"
_WHERE = re.compile(r"^(?P<fault>.*?)(?: - at `(?:key in )?\$\.?(?P<place>.*?)`)?$", re.DOTALL)
"""Pattern of msgspec's messages, such as ``Expected `float`, got `str` - at `$.scenarios[0].pdr.load` ``."""


def write_result(path: Path, result: RunResult) -> None:
    """Put ``result`` in place of the file at once, so that no reader sees half of it, and on disk before it returns.

    Raises:
        StorageError: the file cannot be written.
        ValueError: the reader would not take it, or a number is not finite (a fault of pdrgate's).
    """
    write_whole(path, encoded(result))


class GrowingResult:
    """The result.json of a run that goes on: scenarios that were written once are not encoded and checked anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: list[tuple[ScenarioResult, msgspec.Raw]] = []

    def write(self, result: RunResult) -> None:
        """Put ``result`` in place of what the file has. It is on disk before this returns where the run has finished:
        what a run that goes on was judged by is there already. Raises as `write_result`.
        """
        del self._known[self._unchanged(result) :]
        for scenario in result.scenarios[len(self._known) :]:
            try:
                (told,) = _checked(replace(result, scenarios=(scenario,)))["scenarios"]
            except ValueError:
                _checked(result)  # which has the number of the scenario
                raise
            self._known.append((scenario, msgspec.Raw(_json(told))))
        whole = _checked(replace(result, scenarios=())) | {"scenarios": [raw for _, raw in self._known]}
        write_whole(self._path, _formatted(whole), durable=result.finished is not None)

    def _unchanged(self, result: RunResult) -> int:
        """How many of the scenarios, from the first on, are those that were written."""
        same = (known is one for (known, _), one in zip(self._known, result.scenarios, strict=False))
        return sum(1 for _ in itertools.takewhile(bool, same))


def keep_result(path: Path, raw: bytes, source: str) -> RunResult:
    """Put the content of a result.json that came from ``source`` into a file, as it is, if it is a result.

    Raises:
        DataError: it is not a result that this version understands; what was in the file stays.
        StorageError: the file cannot be written.
    """
    result = decoded_result(raw, source)
    write_whole(path, raw)
    return result


def followed(path: Path) -> Path:
    """The path, and what ``latest`` in it stands for by now: it will be another run soon.

    A ``latest`` that leads out of its folder is none of ours, and stays a link.
    """
    for one in (path, path.parent):
        if one.name == LATEST and one.is_symlink():
            target = one.readlink()
            beside = target.parts == (target.name,) and target.name != ".."
            return one.parent / target / path.relative_to(one) if beside else path
    return path


def read_result(path: Path) -> RunResult:
    """The result in a file, or in ``result.json`` of a folder.

    Raises:
        DataError: there is none, or it is not a result that this version understands.
    """
    named = followed(path)
    file = named / RESULT_FILE if named.is_dir() else named
    try:
        raw = read_no_follow(file, LARGEST_RESULT)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}; {_ADVICE}") from error
    return decoded_result(raw, str(file))


def decoded_result(raw: bytes, file: str) -> RunResult:
    """The result in the content of ``file``, which is only named. Raises as `read_result` does."""
    if not raw.strip():
        raise DataError(f"{file} is empty; {_ADVICE}")
    if (long := _TOO_LONG.search(raw)) is not None:
        raise DataError(
            f"{file} is no result of a run: at byte {long.start()}: a text of more than {_LONGEST_TEXT >> 10} KiB; "
            f"{_ADVICE}"
        )
    content = _content(file, raw)
    try:
        return from_disk(content)
    except msgspec.ValidationError as error:
        raise DataError(f"{file} is no result of a run: {_told(error)}") from error


def results_below(folder: Path) -> Iterator[tuple[Path, RunResult]]:
    """The readable results of ``folder`` and of the run folders directly in it, the newest first."""
    found = []
    runs = (one for one in folder.glob("*") if one.name != LATEST or not one.is_symlink())  # it is one of the others
    for file in (one / RESULT_FILE for one in (folder, *runs) if (one / RESULT_FILE).is_file()):
        try:
            found.append((file, read_result(file)))
        except DataError:
            continue  # a run that was killed early, or of another version: no baseline, and no reason to stop
    yield from sorted(found, key=lambda item: item[1].started, reverse=True)


def encoded(result: RunResult) -> bytes:
    """The bytes of result.json. Raises ValueError for what the reader would not take, with the place of it."""
    return _formatted(_checked(result))


def _checked(result: RunResult) -> dict[str, Any]:
    """What is to be encoded. Raises as `encoded`."""
    plain = to_disk(result, _plain)
    where = next(_not_finite(plain, ""), None)
    if where is not None:
        raise ValueError(f"the result has no finite number at {where}; every number of a result must be one")
    try:
        from_disk(plain)
    except msgspec.ValidationError as error:
        raise ValueError(f"the result is not what its reader takes: {_told(error)}") from error
    return plain


def _formatted(plain: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(_json(plain), indent=1) + b"\n"


def _json(plain: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:  # of a testbed file, a baseline or a folder that is called so
        return msgspec.json.encode(_texts(plain))


def _texts(value: Any) -> Any:
    """Value as JSON can hold it: each string and key in it went through `as_text`."""
    match value:
        case str():
            return as_text(value)
        case dict():
            return {_texts(key): _texts(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_texts(inner) for inner in value]
    return value


def _plain(value: Any) -> Any:
    """What is a number for its arithmetic, such as `Rate`, as JSON's number."""
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"a result cannot hold {value!r}")


def _content(file: str, raw: bytes) -> Mapping[str, Any]:
    """The decoded file as a result of this schema version, still unchecked but for its version."""
    try:
        content = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is no JSON ({error}); {_ADVICE}") from error
    except RecursionError as error:
        raise DataError(f"{file} is nested too deeply to be a result; {_ADVICE}") from error
    if not isinstance(content, dict) or "schema" not in content:
        raise DataError(f"{file} is no result of a run: it has no schema number at its top level; {_ADVICE}")
    version = content["schema"]
    if type(version) is not int:
        raise DataError(f"{file} is no result of a run: at schema: the number {SCHEMA} belongs there")
    if version != SCHEMA:
        raise DataError(
            f"{file} is of schema {version}, and this pdrgate reads schema {SCHEMA}; use the version that wrote it, or "
            "measure anew"
        )
    return content


def _told(error: msgspec.ValidationError) -> str:
    """The place of a fault in the file, and what belongs there."""
    found = _WHERE.match(without_value(error))
    assert found is not None  # it matches any text
    fault = found["fault"]
    return f"at {found['place'] or 'its top level'}: {fault[:1].lower()}{fault[1:]}"


def _not_finite(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield where
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            yield from _not_finite(inner, f"{where}[{number}]")
