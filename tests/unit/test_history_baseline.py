"""Baselines that a history names: which boots they are of, and what keeps them from serving."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from history_contract import imported
from made_results import FINGERPRINT, PER_RUN, compared, scenario, written

from pdrgate.cli import main
from pdrgate.gate.verdicts.baseline import HistoryBaselines
from pdrgate.history.address import Address
from pdrgate.history.database.baselines import pin
from pdrgate.history.database.connection import Database
from pdrgate.values.errors import DataError

CANDIDATE = FINGERPRINT | {"kernel": "7.0"}


@pytest.fixture
def where(tmp_path: Path) -> Address:
    """A history in which v6.18 is the build of runs a and b, and c passed later."""
    written(tmp_path / "runs" / "a", scenario(), started=1.0)
    written(tmp_path / "runs" / "b", compared(boots=(1.1e6, 0.9e6, 1.0e6)), started=2.0)
    written(tmp_path / "runs" / "c", scenario("PASS", kernel="6.20", per_run=(2e6, 2e6)), started=3.0)
    address = Address(file=tmp_path / "runs.db")
    with Database.open(address, create=True) as database:
        imported(database, tmp_path / "runs")
        with database.writing() as connection:
            pin(connection, "a", "v6.18")
    return address


def refused(where: Address, fingerprint: dict[str, str]) -> str:
    with pytest.raises(DataError) as error:
        HistoryBaselines(where, "v6.18", Path("/own")).find(fingerprint)
    return str(error.value)


def test_a_pinned_build_is_pooled_over_its_boots_and_never_ratchets(where: Address) -> None:
    found, why = HistoryBaselines(where, "v6.18", Path("/own")).find(CANDIDATE)
    assert (why, found is None) == ("", False)
    assert found is not None
    assert found.source == "history:v6.18 (linux-6.18.44, 4 boots in 2 runs)"
    assert found.samples == {"PDR": (1.1e6, 0.9e6, 1.0e6, 1e6)}
    assert found.scenario.findings.cost is not None
    assert found.scenario.findings.fingerprint["kernel"] == "6.18.44"


def test_it_is_read_when_the_run_begins(where: Address) -> None:
    baselines = HistoryBaselines(where, "v6.18", Path("/own"))
    assert where.file is not None
    where.file.unlink()
    assert baselines.find(CANDIDATE)[0] is not None


def test_a_run_is_no_baseline_of_its_own(where: Address, tmp_path: Path) -> None:
    found, _ = HistoryBaselines(where, "v6.18", tmp_path / "runs" / "b").find(CANDIDATE)
    assert found is not None
    assert found.source == "history:v6.18 (6.18.44, 1 boot in 1 runs)"
    assert found.samples == {"PDR": PER_RUN}


def test_the_newest_that_passed_for_those_who_ask_for_it(where: Address) -> None:
    found, _ = HistoryBaselines(where, "latest-green", Path("/own")).find(CANDIDATE)
    assert found is not None
    assert (found.source, found.samples) == ("history:latest-green (6.20, 1 boot in 1 runs)", {"PDR": (2e6, 2e6)})
    assert HistoryBaselines(where, "latest-green", Path("/own")).find(FINGERPRINT | {"testbed": "rack"}) == (
        None, "no comparable result in the history has passed yet (history:latest-green)",
    )  # fmt: skip


def test_what_was_measured_otherwise_is_refused_entry_by_entry(where: Address) -> None:
    assert refused(where, CANDIDATE | {"profile": "standard"}) == (
        "the baseline cannot serve: history:v6.18 is not comparable: profile quick there, standard here (run b); "
        "measure it anew, or compare in spite of that with --set any_fingerprint=true"
    )
    assert refused(where, CANDIDATE | {"scenario": "other"}) == (
        "the baseline cannot serve: history:v6.18 has no stable result of this scenario (but of: "
        "IPv6 routing); measure it there first, or name another baseline"
    )


def test_what_was_not_repeated_is_refused(tmp_path: Path) -> None:
    """It once was NO_BASELINE, and nobody knew why."""
    written(tmp_path / "runs" / "a", scenario(per_run=(1e6,)))
    address = Address(file=tmp_path / "h.db")
    with Database.open(address, create=True) as database:
        imported(database, tmp_path / "runs")
        with database.writing() as connection:
            pin(connection, "a", "v6.18")
    told = "(6.18.44, 1 boot in 1 runs) has 1 repeats; a comparison needs two or more"
    assert refused(address, CANDIDATE) == f"the baseline cannot serve: history:v6.18 {told}"
    assert HistoryBaselines(address, "latest-green", Path("/own")).find(CANDIDATE) == (
        None, f"history:latest-green {told}"
    )  # fmt: skip


def test_what_nobody_can_have_measured_is_refused(where: Address, tmp_path: Path) -> None:
    written(tmp_path / "later" / "d", scenario(per_run=(1e6, 1e308)), started=4.0)
    with Database.open(where) as database:
        imported(database, tmp_path / "later")
    told = "(run d) has a PDR of 1e+308, which nobody can have measured; measure it anew"
    assert refused(where, CANDIDATE) == f"the baseline cannot serve: history:v6.18 {told}"


def test_whoever_forces_it_is_told_so(where: Address) -> None:
    baselines = HistoryBaselines(where, "v6.18", Path("/own"), any_fingerprint=True)
    found, _ = baselines.find(CANDIDATE | {"profile": "standard"})
    assert found is not None
    assert found.source.endswith(", 4 boots in 2 runs; of another fingerprint, as was asked)")
    with pytest.raises(DataError, match="has no stable result of this scenario"):
        baselines.find(CANDIDATE | {"method": "1"})


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--baseline", "history:x"], 2, "there is no history at results/history.db; "),
        (
            ["--baseline", "results", "--set", "any_fingerprint=true"],
            64,
            "any_fingerprint is for --baseline history:NAME; ",
        ),
        (["--baseline", "runs.db"], 64, "--baseline names a history, which has many; name it with --history "),
        (["--baseline", "postgresql://a:secret@b/c"], 64, "--baseline names a history, which has many; name it with"),
        (["--baseline", "history:x", "--history", "none.db"], 2, "there is no history at none.db; "),
        (["--baseline", "history:x", "--history", "runs.db"], 2, "no build is pinned as x; there are: v6.18; "),
    ],
)
def test_what_cannot_serve_is_told_before_anything_is_measured(
    options: list[str], code: int, said: str, where: Address, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["gate", "--testbed", "resources/testbeds/local-netns.yaml", *options]) == code
    assert capsys.readouterr().err.startswith(f"pdrgate: {said}")
    assert not (tmp_path / "results").exists()


def test_names_on_the_command_line(where: Address, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(tmp_path / "runs")
    options = ["--history", str(where)]
    assert main(["history", "pin", "c", "--name", "v6.18", *options]) == 0
    assert main(["history", "pin", "b", "--name", "old", "--side", "baseline", *options]) == 0
    assert main(["history", "baselines", *options]) == 0
    assert main(["history", "unpin", "old", *options]) == 0
    assert main(["history", "unpin", "old", *options]) == 2
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "v6.18 is 6.20 (run c); it was 6.18.44",
        "old is linux-6.18.44 (run b)",
        "old  linux-6.18.44  (run b)",
        "v6.18  6.20  (run c)",
    ]
    assert told.err.startswith("pdrgate: no build is pinned as old; there are: v6.18; ")
