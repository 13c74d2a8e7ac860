"""An address that somebody mistyped is not printed with the password that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pdrgate.cli import main
from pdrgate.values.printable import redacted

MISTYPED = (
    "postgresql://ci@nowhere.invalid/runs?passwd=hunter2", "postgresql://nowhere.invalid/runs?pasword=hunter2",
    "postgresql:/ci:hunter2@nowhere.invalid/runs", "postgres:/nowhere.invalid/runs?password=hunter2",
    "postgresq://ci:hunter2@nowhere.invalid/runs", "https://nowhere.invalid/gate/?token=hunter2",
    "htps://me:hunter2@nowhere.invalid/job/gate/", "https://nowhere.invalid/#hunter2", "http:/me:hunter2@nowhere/job/x",
    "https://me:a/hunter2@nowhere.invalid/job/gate", "https:///job/x?private_token=hunter2",
)  # fmt: skip
COMMANDS: Sequence[Sequence[str]] = (
    ("gate", "--history", "URL"), ("gate", "--baseline", "URL"), ("gate", "--testbed", "URL"),
    ("gate", "--kernel", "URL", "--against", "URL"), ("gate", "--bpf", "URL", "--against", "URL"),
    ("gate", "--suite", "URL"), ("gate", "--resume", "URL"),
    ("report", "URL"), ("merge", "URL"), ("assess", "URL"),
    ("compare", "URL", "URL"), ("fetch", "URL"), ("trend", "URL"), ("trend", "--history", "URL"),
    ("history", "list", "--history", "URL"), ("history", "import", "URL"), ("bisect", "URL", "URL"), ("doctor", "URL"),
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("url", MISTYPED)
def test_no_command_prints_it(
    words: Sequence[str], url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([url if word == "URL" else word for word in words]) != 0
    told = "".join(capfd.readouterr())
    assert "hunter2" not in told
    assert len(told.splitlines()) == 1
    assert not any(tmp_path.rglob("*hunter2*"))


@pytest.mark.parametrize("url", [url for url in MISTYPED if url.startswith("postgresql://")])
def test_a_key_that_is_misspelled_is_not_shown_of_the_environments_address_either(
    url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDRGATE_HISTORY", url)
    assert main(["history", "list"]) == 2
    assert "hunter2" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://ci/job/net/", "https://ci/job/net/"),
        ("https://ci/job/net/?a=b&c=d", "https://ci/job/net/?***"),
        ("https://ci/job/net/#x", "https://ci/job/net/?***"),
        ("https://me:pa?ss@ci/job/net/", "https://***"),
        ("https://ci/?mail=a@b&passwd=c", "https://***"),
        ("me:pass@ci/job", "***"),
        ("gate", "gate"),
    ],
)
def test_what_is_left_of_an_address(address: str, shown: str) -> None:
    assert redacted(address) == shown
