"""The folder ``allure-results``: each test gets its verdict, parameters, attachments and numbers; may be done again."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pdrgate.history.results import LARGEST_RESULT, RESULT_FILE
from pdrgate.history.whole_file import write_whole
from pdrgate.record.cause import causes_in_words
from pdrgate.record.parts import flattened
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.allure.settings import (
    MEANINGS,
    categories,
    configuration,
    environment,
    executor,
    job_links,
    labelled,
    numbers,
    status,
)
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.ci.pipeline import pipeline
from pdrgate.reports.pages.scenario_pictures import Picture
from pdrgate.reports.words.build_words import kernel_release
from pdrgate.reports.words.headline import scenario_fault, scenario_headline
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.printable import printable

ALLURE_FOLDER, CONFIGURATION_FILE = "allure-results", "allurerc.json"
_OURS = "pdrgate-"
"""What the names of our attachments begin with."""
_CONSOLES = 6
"""Logs of kernels that are attached, at most."""
_LARGEST = 64 << 20
"""Bytes of a console, and of what Allure's listener wrote of a test."""
_LARGE = 64 << 10
"""Bytes of a log of a keyword that holds pictures, which are attached anyway."""
_COLUMNS = (
    "pair", "side", "build", "boot", "repeat", "phase", "intended_load", "intended_duration", "offered", "forwarded",
    "drained", "unsent", "refused", "loss_ratio", "steady_loss_ratio", "forwarding_rate", "generator_limited",
    "disturbed", "started",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Attachment:
    name: str
    kind: str
    ending: str
    content: bytes


def tell_allure(
    folder: Path, result: RunResult, pictures: Mapping[int, Sequence[Picture]], trials: Sequence[Trial]
) -> None:
    """Complete what allure-robotframework wrote of the run in ``folder``; nothing where it wrote nothing.

    Raises:
        StorageError: a file cannot be written.
    """
    tests = [(path, test) for path in sorted((folder / ALLURE_FOLDER).glob("*-result.json")) if (test := _read(path))]
    if not tests:
        return
    left = list(enumerate(result.scenarios))
    for path, test in sorted(tests, key=lambda one: one[1].get("start") or 0):
        skipped = test.get("status") == "skipped"
        mine = next((one for one in left if one[1].origin.test == test.get("name") and not skipped), None)
        _forget_large_logs(test, path.parent)
        if mine is not None:
            left.remove(mine)
            number, scenario = mine
            attached = list(_attachments(folder, scenario, pictures.get(number, ()), trials))
            _tell(test, result, scenario, _kept(attached, path))
        else:
            _tell_fault(test)
        write_whole(path, _json(test), durable=False)
    put = folder / ALLURE_FOLDER
    write_whole(put / "environment.properties", _properties(environment(result)), durable=False)
    write_whole(put / "executor.json", _json(executor(result, pipeline())), durable=False)
    write_whole(put / "categories.json", _json(categories()), durable=False)
    write_whole(put / "performance.json", _json(list(_performance(result))), durable=False)
    write_whole(folder / CONFIGURATION_FILE, _json(configuration(result)), durable=False)


def _tell(test: dict[str, Any], result: RunResult, scenario: ScenarioResult, attached: list[Mapping[str, str]]) -> None:
    told, job = f"{scenario.verdict}: {scenario.reason}", pipeline()
    told_links = job_links(result, job)
    baseline, candidate = (scenario.builds.side(one) for one in ("baseline", "candidate"))
    lasting = {"testbed": result.testbed.name, "profile": result.profile, "scenario": scenario.label}
    lasting |= {"baseline": baseline.build} if baseline else {}
    passing = {"kernel": kernel_release(scenario)} | ({"candidate": candidate.build} if candidate else {})
    # A build is another one each time: it must not make another history, and another testbed must.
    identity = "\n".join([str(test.get("fullName")), *(lasting | {"scenario": scenario.name}).values()])
    test["historyId"] = hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()
    test["parameters"] = [
        {"name": name, "value": printable(value), "excluded": name in passing}
        for name, value in (lasting | passing).items()
    ]
    if not scenario.verdict.passes:
        test["status"] = "skipped" if scenario.details.acknowledged else status(scenario.verdict)
        message = "\n".join(filter(None, (scenario_headline(scenario), scenario_fault(scenario))))
        test["statusDetails"] = {"message": message, "trace": printable(told)}
    test["labels"] = labelled(test.get("labels") or [], scenario.verdict)
    test["links"] = [*(one for one in test.get("links") or [] if one not in told_links), *told_links]
    alone = replace(result, scenarios=(scenario,), verdict=scenario.verdict, reason=scenario.reason)
    test["description"] = run_markdown(alone, job.pages)
    test["attachments"] = attached


def _tell_fault(test: dict[str, Any]) -> None:
    """A test that measured nothing: the testbed was not there."""
    details = test.get("statusDetails") or {}
    told = str(details.get("message") or "")
    words = [word for word in MEANINGS if status(word) == "broken" and f"{word}: " in told]
    if test.get("status") == "failed" and words:
        test["status"] = "broken"
        test["statusDetails"] = {"message": f"{words[0]}: {MEANINGS[Verdict(words[0])]}", "trace": told}


def _attachments(
    folder: Path, scenario: ScenarioResult, pictures: Sequence[Picture], trials: Sequence[Trial]
) -> Iterator[_Attachment]:
    for picture in pictures:
        yield _Attachment(picture.title, "image/png", "png", picture.png)
    own = [trial for trial in trials if trial.belonging.scenario == scenario.name]
    if own:
        yield _Attachment("Trials", "text/csv", "csv", _csv(own))
    with contextlib.suppress(OSError):
        yield _Attachment(RESULT_FILE, "application/json", "json", read_no_follow(folder / RESULT_FILE, LARGEST_RESULT))
    if any(boot.failure for boot in scenario.builds.boots):
        for log in sorted((folder / "consoles").glob("*"))[-_CONSOLES:]:
            with contextlib.suppress(OSError):
                name = f"Console of a kernel: {printable(log.name)}"
                yield _Attachment(name, "text/plain", "txt", read_no_follow(log, _LARGEST))


def _kept(attached: Sequence[_Attachment], test: Path) -> list[Mapping[str, str]]:
    """Their files beside the test's, and how it names them."""
    begin = _OURS + test.name.removesuffix("-result.json")
    told: list[Mapping[str, str]] = []
    for number, one in enumerate(attached):
        # Allure takes for an attachment what is called so.
        name = f"{begin}-{number}-attachment.{one.ending}"
        write_whole(test.parent / name, one.content, durable=False)
        told.append({"name": one.name, "source": name, "type": one.kind})
    return told


def _forget_large_logs(step: dict[str, Any], folder: Path) -> None:
    """The HTML of Robot's log as an attachment: a megabyte of pictures in a frame that shows none of its folds."""
    kept = []
    for one in step.get("attachments", []):
        file = folder / Path(str(one.get("source"))).name
        if str(one.get("type")) == "text/html" and file.is_file() and file.stat().st_size > _LARGE:
            file.unlink()
        else:
            kept.append(one)
    if "attachments" in step:
        step["attachments"] = kept
    for below in step.get("steps", []):
        _forget_large_logs(below, folder)


def _performance(result: RunResult) -> Iterator[Mapping[str, Any]]:
    start, stop = (int(1000 * moment) for moment in (result.started, result.finished or result.started))
    for one in numbers(result):
        identity = hashlib.md5(f"{result.run}\n{one.key}".encode(), usedforsecurity=False).hexdigest()
        yield {"id": identity, "key": one.key, "value": one.value, "start": start, "stop": stop}


def _csv(trials: Sequence[Trial]) -> bytes:
    """A line per trial; no text in it is a formula to a spreadsheet."""
    content = io.StringIO()
    lines = csv.writer(content, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for trial in trials:
        told = flattened(trial) | {"disturbed": causes_in_words(trial.seen.disturbed)}
        cells = (told[name] if name in told else getattr(trial, name) for name in _COLUMNS)
        lines.writerow([_inert(cell) if isinstance(cell, str) else cell for cell in cells])
    return content.getvalue().encode()


def _inert(told: str) -> str:
    line = printable(told)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def _properties(values: Mapping[str, str]) -> bytes:
    """Java's format, whose escapes readers of Allure's know or show."""
    return "".join(f"{name} = {value.replace(chr(92), chr(92) * 2)}\n" for name, value in values.items()).encode()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(read_no_follow(path, _LARGEST))
    except (OSError, ValueError):
        return None  # torn by a kill
    return found if isinstance(found, dict) else None


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
