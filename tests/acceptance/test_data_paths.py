"""Paths of XDP, tc, SRv6, UDP and TCP, as a user starts them, on namespaces of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machine_noise import MEASURED, UNDECIDED

from pdrgate.builds.bpf_build import own_build
from pdrgate.cli import main
from pdrgate.results.verdict import Verdict
from tests.acceptance.conftest import Ended
from tests.acceptance.test_real_gate import gate, leaves_no_trace, leaving_no_trace

__all__ = ["leaves_no_trace"]  # for each test here too

pytestmark = pytest.mark.datapath


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run of paths that are not the kernel's own routing."""
    tags = ("path-xdp-ipv6", "path-xdp-ipv4", "path-tc-redirect", "path-srv6-end")
    chosen = [word for tag in tags for word in ("--scenario", tag)]
    with leaving_no_trace():
        return gate(tmp_path_factory.mktemp("data-paths"), "--measure", "pdr", *chosen)


@pytest.mark.parametrize(
    ("scenario", "title"),
    [
        ("xdp-ipv6-routing-1cpu-4096-64B", "IPv6 routing by XDP, 1 cpu, buffer 4096 packets"),
        ("xdp-ipv4-routing-1cpu-4096-64B", "IPv4 routing by XDP, 1 cpu, buffer 4096 packets"),
        ("tc-redirect-1cpu-4096-64B", "redirection by tc, 1 cpu, buffer 4096 packets"),
        ("srv6-end-1cpu-4096-128B", "SRv6 End, 1 cpu, buffer 4096 packets, 128-byte frames"),
    ],
)
def test_a_path_of_each_kind(measured: Ended, scenario: str, title: str) -> None:
    assert measured.result["verdict"] in MEASURED, measured.stdout + measured.stderr
    assert len(measured.result["scenarios"]) == 4
    (entry,) = (entry for entry in measured.result["scenarios"] if entry["name"] == scenario)
    assert entry["verdict"] in MEASURED
    assert entry["title"].startswith(title)
    assert entry["calibration"]["forwarding_rate"] > 0
    assert entry["calibration"]["ceiling"] > entry["calibration"]["forwarding_rate"]


@pytest.fixture(scope="module")
def one_stream(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run of the suite of TCP: of three the first that the machine lets be stable."""
    with leaving_no_trace():
        for _ in range(3):
            ended = gate(tmp_path_factory.mktemp("tcp"), "--scenario", "tcp-one")
            if ended.result["verdict"] == "NO_BASELINE":
                break
        return ended


def test_tcp_is_compared_with_its_imported_predecessor(
    one_stream: Ended, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where none was stable, the name of an unstable one is refused."""
    history = str(tmp_path / "runs.db")
    first = one_stream
    (earlier,) = first.result["scenarios"]
    assert earlier["verdict"] in MEASURED, first.stdout + first.stderr
    stable = earlier["verdict"] == "NO_BASELINE"
    assert main(["history", "import", str(first.folder), "--history", history]) == 0
    assert main(["history", "pin", str(first.folder), "--name", "first", "--history", history]) == 0
    capsys.readouterr()
    asked = ("--scenario", "tcp-one", "--history", history, "--baseline", "history:first")
    ended = gate(tmp_path / "second", *asked)
    told, where = ended.result["verdict"], ended.stdout + ended.stderr
    assert ended.code == Verdict(told).exit_code
    assert f"\n{ended.headline}\n" in ended.stdout
    if told == "ERROR":
        assert not stable, where
        assert "the baseline cannot serve: history:first " in ended.stdout
        return
    assert stable or earlier["verdict"] == "INCONCLUSIVE", where
    # Nobody knows what boots deviate by here yet: one against one is no PASS, and no REGRESSION.
    assert told in MEASURED, where
    (entry,) = ended.result["scenarios"]
    if (found := entry["comparison"]) is None:
        assert told in UNDECIDED, where  # each transfer was disturbed
        return
    build = earlier["fingerprint"]["kernel"]
    assert found["baseline"] == f"history:first ({build}, 1 boot in 1 runs)"
    before = {one["name"]: one["value"] for one in earlier["measurands"]}
    assert {one["measurand"]: one["baseline"] for one in found["changes"]} == pytest.approx(before)
    assert f"against {before['TCP throughput']:.4g} Gbit/s, change " in ended.result["reason"]
    # What was compared has put itself beside its predecessor.
    assert main(["history", "list", "--history", history, "--verdict", told]) == 0
    assert f"{100 * found['change']:+.1f}%" in capsys.readouterr().out


def test_a_slower_program_is_a_regression(tmp_path: Path) -> None:
    """pdrgate's own router against one that looks every packet's route up eight times."""
    good, slow = own_build("xdp_router"), own_build("xdp_router", ("LOOKUPS=8",))
    ended = gate(
        tmp_path, "--bpf", str(slow.path), "--against", str(good.path), "--set", "boots=4", "--tolerance", "5%"
    )
    assert ended.result["verdict"] in {"REGRESSION"} | UNDECIDED, ended.stdout + ended.stderr
    (entry,) = ended.result["scenarios"]
    assert [side["build"] for side in entry["sides"]] == [good.label, slow.label]
    assert entry["carried"].startswith("XDP native")
    baseline, candidate = ({one["name"]: one["value"] for one in side["measurands"]} for side in entry["sides"])
    assert candidate["PDR"] == entry["pdr"]["load"] < 0.95 * baseline["PDR"]
    assert len({boot["boot"] for boot in entry["boots"]}) == len(entry["boots"])


def test_an_object_that_is_no_program_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "text.o").write_text("no ELF")
    good = own_build("xdp_router").path
    ended = gate(tmp_path, "--bpf", str(tmp_path / "text.o"), "--against", str(good))
    assert (ended.code, ended.folder) == (2, None)
    assert "text.o: is no eBPF object" in ended.stderr


@pytest.fixture(scope="module")
def overloaded(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run in which programs are offered far more than they can take."""
    with leaving_no_trace():
        return gate(tmp_path_factory.mktemp("overload"), "--scenario", "path-udp-delivery", "--measure", "overload")


@pytest.fixture(scope="module")
def knee(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run that sweeps over TCP windows."""
    with leaving_no_trace():
        return gate(tmp_path_factory.mktemp("windows"), "--scenario", "tcp-one", "--measure", "windows")


def entry_of(ended: Ended, name: str) -> dict[str, Any]:
    (entry,) = (entry for entry in ended.result["scenarios"] if entry["name"] == name)
    assert entry["verdict"] in MEASURED, ended.stdout + ended.stderr
    return dict(entry)


def measurands_of(entry: dict[str, Any]) -> list[str]:
    return [measurand["name"] for measurand in entry["measurands"]]


def test_programs_that_are_offered_too_much_tell_what_is_delivered(overloaded: Ended) -> None:
    entry = entry_of(overloaded, "udp-delivery-1cpu-4096-64B-overload8")
    assert entry["calibration"]["forwarding_rate"] > 0
    assert entry["verdict"] != "NO_BASELINE" or "PDR" in measurands_of(entry)


def test_the_path_of_tcp_tells_throughput_and_round_trips(one_stream: Ended, knee: Ended) -> None:
    (one,) = one_stream.result["scenarios"]
    (swept,) = knee.result["scenarios"]
    assert {one["verdict"], swept["verdict"]} <= MEASURED, one_stream.stdout + knee.stdout + knee.stderr
    assert one["name"] == swept["name"] == "tcp-transfer-1cpu-4096-1024KiBwindow"
    assert one["pdr"] is None  # a closed loop has none
    assert measurands_of(one)[:2] == ["TCP throughput", "round trip under load"]
    assert one["transfers"]["rest_rtt"] > 0
    assert swept["transfers"]["knees"]
    for ended in (one_stream, knee):
        assert ended.folder is not None
        assert (ended.folder / "trials.jsonl").stat().st_size
        assert "TCP throughput" in (ended.folder / "summary.html").read_text()
