"""The JSON schema of result.json, generated from the classes of the results.

``python -m pdrgate.history.schema`` writes the file that is committed. That is for other programs: pdrgate
itself reads by the classes.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from pdrgate.results.model import SCHEMA
from pdrgate.results.on_disk import FileOfRun

SCHEMA_PATH = Path(__file__).parents[1] / "schemas" / "result.schema.json"
COMMAND = "PYTHONPATH=libraries .venv/bin/python -m pdrgate.history.schema"


def result_schema() -> dict[str, Any]:
    """The schema of result.json (JSON Schema 2020-12), as of this version of pdrgate."""
    schema = msgspec.json.schema(FileOfRun)
    for definition in schema["$defs"].values():  # until Python 3.13 docstrings kept their indentation
        definition["description"] = inspect.cleandoc(definition["description"])
    run = schema["$defs"]["RunResult"]
    run["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "pdrgate/result.schema.json",
        "title": "The result of one run of pdrgate",
        "description": (
            "Loads and rates are packets/s, ratios and changes are fractions, times are seconds (of the epoch where a "
            "moment is meant), null is what is not known."
        ),
        **schema,
    }


def schema_text() -> str:
    """The content of the committed file."""
    return json.dumps(result_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
