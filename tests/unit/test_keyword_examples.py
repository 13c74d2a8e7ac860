"""Each example in the documentation of a keyword is a line that Robot takes, with arguments that convert."""

from __future__ import annotations

import io
from pathlib import Path

from robot import run
from robot.libdocpkg import LibraryDocumentation

LIBRARY = Path(__file__).parents[2] / "libraries/PdrGate.py"


def examples() -> list[str]:
    """The examples in its keywords' documentation: what stands behind a bar, and in no table."""
    return [
        line.removeprefix("| ").strip()
        for keyword in LibraryDocumentation(str(LIBRARY)).keywords
        for line in keyword.doc.splitlines()
        if line.startswith("| ") and not line.endswith("|")
    ]


def test_robot_takes_each(tmp_path: Path) -> None:
    found = examples()
    assert len(found) > 30
    tests = "".join(f"Example {number}\n    {line}\n" for number, line in enumerate(found))
    suite = tmp_path / "examples.robot"
    suite.write_text(f"*** Settings ***\nLibrary    {LIBRARY}\n\n*** Test Cases ***\n{tests}")
    said = io.StringIO()
    code = run(str(suite), dryrun=True, outputdir=str(tmp_path), stdout=said, stderr=said)
    assert code == 0, said.getvalue()
