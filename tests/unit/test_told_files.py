"""What is told of a file that holds something else: never its content, for root reads files that others only name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pdrgate.cli import main

SECRET = "hunter2"
CONTENTS = {
    "a line": f"{SECRET}:$6$x:19000:0:99999\n",
    "a line with a bracket": f"[{SECRET}\n",
    "a text of JSON": json.dumps(SECRET),
    "a list of JSON": json.dumps([SECRET]),
    "rows of JSON": json.dumps([[SECRET, 1], [SECRET, 2]]),
    "a row of texts": json.dumps([[1000, 0], [SECRET, SECRET], SECRET]),
    "a load that is none": json.dumps([[1000, 0], SECRET]),
    "an object": json.dumps({"token": SECRET}),
    "an object of ours": json.dumps({"schema": 2, "run": SECRET, "pdrgate": [SECRET], "scenarios": SECRET}),
    "an object of another schema": json.dumps({"schema": 1, "scenarios": [SECRET], "verdict": SECRET}),
    "a verdict": json.dumps({"schema": 2, "verdict": SECRET}),
    "a trial": json.dumps({"intended_load": SECRET, "phase": SECRET, "offered": SECRET}),
    "options": json.dumps({"profile": SECRET, "tolerance": SECRET, "suites": [SECRET], "testbed": 1, "scenarios": []}),
    "a mapping of YAML": f"user: {SECRET}\n",
    "a list of YAML": f"- {SECRET}\n",
    "a number of YAML": f"port: !!int {SECRET}\n",
    "a tag of YAML": f"key: !{SECRET} 1\n",
    "an alias of YAML": f"key: *{SECRET}\n",
    "a key twice": f"user: {SECRET}\nuser: {SECRET}\n",
    "a quote that does not end": f'password: "{SECRET}\nuser\n',
    "an INI file": f"[default]\npassword = {SECRET}\n",
    "XML": f"<a><b>{SECRET}</b>\n",
    "known hosts": f"{SECRET} ssh-ed25519 {SECRET}\n",
}  # fmt: skip
COMMANDS: Sequence[Sequence[str]] = (
    ("assess", "FILE"),
    ("assess", "FILE.jsonl"),
    ("assess", "FOLDER"),
    ("compare", "FILE", "FILE"),
    ("compare", "FILE.jsonl", "FILE.jsonl"),
    ("report", "FILE"),
    ("report", "FOLDER"),
    ("merge", "FOLDER", "--into", "INTO"),
    ("history", "--help"),
    ("history", "import", "FILE", "--history", "INTO/h.db"),
    ("history", "import", "FOLDER", "--history", "INTO/h.db"),
    ("history", "list", "--history", "FILE"),
    ("trend", "FILE"),
    ("trend", "FOLDER"),
    ("trend", "--history", "FILE"),
    ("gate", "--testbed", "FILE", "--output", "INTO"),
    ("gate", "--baseline", "FILE", "--output", "INTO"),
    ("gate", "--baseline", "FOLDER", "--output", "INTO"),
    ("gate", "--kernel", "FILE", "--against", "FILE", "--output", "INTO"),
    ("gate", "--bpf", "FILE", "--against", "FILE", "--output", "INTO"),
    ("gate", "--suite", "FILE.robot", "--output", "INTO"),
    ("gate", "--resume", "FOLDER"),
    ("doctor", "FILE"),
    ("calibrate", "FILE", "--output", "INTO"),
    ("bisect", "FILE", "FILE", "--output", "INTO"),
)
NAMES = ("result.json", "trials.jsonl", "run.json", "ends.json", "pairs.jsonl", "fingerprints.json")
"""What a folder of a run has."""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_error_tells_what_stands_in_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    """`is not JSON` had the first line of /etc/shadow in it, and a CI's log has it then for ever."""
    for number, (kind, content) in enumerate(CONTENTS.items()):
        place = tmp_path / str(number)
        folder = place / "run"
        folder.mkdir(parents=True)
        paths = {"FILE": place / "file", "FILE.jsonl": place / "file.jsonl", "FILE.robot": place / "file.robot"}
        for path in (*paths.values(), *(folder / name for name in NAMES)):
            path.write_text(content)
        (folder / "run.json").unlink() if words[0] in ("merge", "report") and number % 2 else None
        known = {**paths, "FOLDER": folder, "INTO": place / "into", "INTO/h.db": place / "into/h.db"}
        main([str(known.get(word, word)) for word in words])
        told = "".join(capfd.readouterr())
        assert SECRET not in told, f"{kind}: {told}"
