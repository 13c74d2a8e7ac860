"""``pdrgate loads`` on this machine's kernel: what a load costs, and the kernel's words where it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wrong_routers import RIGHT, router

from pdrgate.cli import main

pytestmark = pytest.mark.datapath

NAMESPACES = Path(__file__).parents[2] / "resources/testbeds/local-netns.yaml"


def test_a_program_loads_or_is_refused_in_the_verifiers_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--testbed", str(NAMESPACES), "--output", str(tmp_path / "out"), "--wait", "600 s")
    right = router(tmp_path, RIGHT, "right")
    assert main(["loads", str(right), "--format", "json", *more]) == 0
    told = json.loads(capsys.readouterr().out)
    (found,) = told["kernels"]
    assert (found["loads"], found["reason"]) == (True, "")
    assert found["release"]
    assert min(found["cost"][name] for name in ("verified", "jited", "memory")) > 0

    refused = router(tmp_path, "return *(unsigned char *)(end + 1);", "refused")
    assert main(["loads", str(refused), *more]) == 1
    assert "): is refused: " in (out := capsys.readouterr().out)
    assert "the verifier says: " in out
