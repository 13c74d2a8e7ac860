"""Settings for all unit tests, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from pdrgate.testbeds import TestbedConfig, load_testbed

# No test asserts time: a first example that imports scipy, or a busy machine, is no failure.
settings.register_profile("pdrgate", deadline=None)
settings.load_profile("pdrgate")


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial is synced, which takes longer than to simulate it, and no test pulls the plug."""
    monkeypatch.setattr("os.fsync", lambda fd: None)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], TestbedConfig]:
    """Loads the text of a testbed file, which is then called x.yaml."""
    monkeypatch.chdir(tmp_path)

    def load(text: str) -> TestbedConfig:
        Path("x.yaml").write_text(text)
        return load_testbed("x.yaml")

    return load
