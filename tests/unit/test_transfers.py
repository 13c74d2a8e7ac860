"""Transfers: what iperf3's JSON says, what is measured of it, and what a scenario of a closed loop comes to."""

from __future__ import annotations

import codecs
import copy
import dataclasses
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from causes import because
from fake_testbed import QUICK, FakeTestbed, Killed, Watcher, new_session
from flat_values import flat_trial
from html_fragments import fragments
from known_noise import OF_TCP, KnownNoise
from made_results import scenario, written
from simulated_sut import IdealCurve, SimulatedSut
from simulated_tcp import SEGMENT, SimulatedLoop, SimulatedTcp, of_loops

from pdrgate.cli import main
from pdrgate.data_paths.catalogue import TcpStreams
from pdrgate.data_paths.iperf import check_believable, json_and_words, read_transfer
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.judged_again.file_comparison import compare_files
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.scenarios.transfer_run import TransferRun, station_limited
from pdrgate.gate.verdicts.baseline import Baselines, BaselineSource, HistoryBaselines, name_in_history
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.measurands import TcpThroughput, WindowCurve
from pdrgate.measurands.transfers.tcp import ByteCost, LoadedRoundTrip, Transmissions
from pdrgate.record.phase import Phase
from pdrgate.record.transfer import EndsCpu, Senders, Transfer
from pdrgate.record.trial import Trial
from pdrgate.reports.pages.scenario_pictures import pictures
from pdrgate.results.file_name import distinct_names
from pdrgate.results.model import ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stability import read_trials
from pdrgate.values.errors import DataError, SutError, TestbedError, UsageError

TRIAL = flat_trial(1e3, 1.0, offered=1000, forwarded=1000, sending_time=1.0, phase=Phase.REPEAT)
TCP = Scenario("tcp-transfer")


def interval(end: float, *streams: tuple[int, int, int]) -> dict[str, Any]:
    """As iperf3 prints it; each stream is bytes, segments sent again, and microseconds of round trip."""
    return {
        "streams": [
            {
                "end": end, "seconds": 0.1, "bytes": sent, "retransmits": again, "rtt": rtt, "rttvar": rtt // 2,
                "snd_cwnd": 14480, "snd_wnd": 60_000 + again,
            }
            for sent, again, rtt in streams
        ]
    }  # fmt: skip


SENDER: dict[str, Any] = {
    "intervals": [interval(0.1, (1_000, 1, 200), (2_000, 0, 400)), interval(0.2, (3_000, 2, 0), (4_000, 0, 600))],
    "end": {"sum_sent": {"bytes": 14_480, "retransmits": 3}},
}
RECEIVED: dict[str, Any] = {
    "sum_received": {"bytes": 14_000, "seconds": 0.2},
    "cpu_utilization_percent": {"host_total": 50.0, "remote_total": 25.0},
    "sender_tcp_congestion": "reno",
}
START = {"tcp_mss_default": SEGMENT}
TO_SUT: dict[str, Any] = {"start": START, "intervals": SENDER["intervals"], "end": {**SENDER["end"], **RECEIVED}}
FROM_SUT: dict[str, Any] = {"start": START, "intervals": [], "end": RECEIVED, "server_output_json": SENDER}


@pytest.mark.parametrize(
    ("told", "streams"), [(TO_SUT, TcpStreams(2)), (FROM_SUT, TcpStreams(2, direction="sends"))], ids=["to", "from"]
)
def test_what_the_sender_saw_and_what_the_receiver_read(told: dict[str, Any], streams: TcpStreams) -> None:
    transfer = read_transfer(told, streams, window=65536)
    assert (transfer.delivered, transfer.seconds, transfer.throughput) == (14_000, 0.2, 560_000.0)
    assert (transfer.senders.sent, transfer.senders.segments, transfer.senders.retransmitted) == (14_480, 10, 3)
    assert [(look.end, look.sent, look.retransmitted) for look in transfer.senders.looks] == [
        (0.1, 3_000, 1),
        (0.2, 7_000, 2),
    ]
    assert [look.rtt for look in transfer.senders.looks] == pytest.approx([300e-6, 600e-6])  # who saw none tells none
    assert transfer.senders.rtt == pytest.approx(450e-6)
    assert transfer.senders.advertised == 60_002
    assert transfer.congestion == "reno"  # which it really was
    assert (transfer.cpu.sut_cpu, transfer.cpu.station_cpu) == (pytest.approx(0.05), pytest.approx(0.1))


def test_who_receives_at_the_sut_takes_no_less_time_than_was_sent_in() -> None:
    """Its seconds are its own word: half of them would be twice the throughput."""
    told = copy.deepcopy(TO_SUT)
    told["end"]["sum_sent"]["seconds"], told["end"]["sum_received"]["seconds"] = 0.2, 0.1
    assert read_transfer(told, TcpStreams(2), window=65536).seconds == 0.2


@pytest.mark.parametrize(
    ("delivered", "sent", "on_wire", "sent_here"),
    [(2000, 1000, 5000, True), (2000, 4000, 1999, True), (2000, 4000, 1999, False)],
)
def test_no_transfer_delivers_more_than_was_sent_or_seen_on_the_wire(
    delivered: int, sent: int, on_wire: int, sent_here: bool
) -> None:
    found = Transfer(65536, 1, "cubic", delivered=delivered, seconds=1.0, senders=Senders(sent))
    with pytest.raises(SutError, match=r"iperf3 is said to have delivered 2000 bytes, and \d+ went over this side's"):
        check_believable(found, on_wire, sent_here=sent_here, where="iperf3")
    # What the SUT says that it sent bounds nothing.
    check_believable(
        replace(found, senders=Senders(2000 if sent_here else 0)), 2000, sent_here=sent_here, where="iperf3"
    )


def test_json_that_lacks_something_is_told() -> None:
    told = copy.deepcopy(TO_SUT)
    del told["end"]["sum_sent"]
    with pytest.raises(TestbedError, match=r"iperf3's JSON lacks what a transfer needs .*sum_sent"):
        read_transfer(told, TcpStreams(), window=65536)


@pytest.mark.parametrize("value", [1.8446744073709552e19, -1, "1e400", 1e400, math.nan, None, [], "x"])
@pytest.mark.parametrize("place", ["retransmits", "bytes"])
def test_counts_that_iperf3_does_not_know_are_not_taken_for_so_many(value: Any, place: str) -> None:
    """A sender without TCP_INFO has -1, as 64 bits without a sign."""
    told = copy.deepcopy(TO_SUT)
    told["end"]["sum_sent"][place] = value
    with pytest.raises(TestbedError, match=r"^iperf3's JSON lacks what a transfer needs \("):
        read_transfer(told, TcpStreams(), window=65536)


WHOLE = '{"start": {}, "intervals": [], "end": {}}'


@pytest.mark.parametrize(
    ("text", "whole", "words"),
    [
        (WHOLE, True, ""),
        (f"{WHOLE}\niperf3: error - unable to send control message: Broken pipe\n", True, "iperf3: error - unable"),
        (f"warning: {{1}} of these\n{WHOLE}\n", True, "warning: {1} of these"),
        (f"iperf3: one\n{WHOLE}iperf3: two", True, "iperf3: one\n\niperf3: two"),
        ('{"start": {}, "interv\niperf3: error - the server has terminated\n', False, "iperf3: error - the server has"),
        ("unable to connect", False, "unable to connect"),
        ("{" * 100_000, False, "{{{"),
        ("", False, ""),
    ],
)
def test_the_json_of_iperf3_is_taken_where_it_is_whole_and_else_its_words_are(
    text: str, whole: bool, words: str
) -> None:
    found, said = json_and_words(text)
    assert (found is not None) is whole
    assert found is None or found["end"] == {}
    assert words in said


def test_scenarios_of_tcp_have_names_and_titles() -> None:
    assert TCP.name == "tcp-transfer-1cpu-4096-1024KiBwindow"
    assert TCP.title == "TCP, 1 cpu, buffer 4096 packets, 1 stream to the SUT with a window of 1 MiB by cubic"
    other = Scenario("tcp6-transfer", "unpinned", 512, tcp=TcpStreams(8, 64, "bbr", "sends", 0.01, 0.001))
    assert other.name == "tcp6-transfer-unpinned-512-64KiBwindow-8streams-sends-bbr-10msdelay-pathloss0.1"
    assert other.title.endswith(
        "8 streams from the SUT with a window of 64 KiB by bbr, over a path of 10 ms and 0.1 % loss"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "0 TCP streams are out of range; use 1 to 128"),
        ({"window": 1}, "a window of 1 KiB is out of range; use 16 to 16384, such as 64"),
        ({"congestion": "cubik"}, "there is no congestion control 'cubik'; there are cubic, reno, bbr, dctcp, "),
        ({"delay": 2.0}, "a path delay of 2 s is out of range; use 0 to 1 s, such as 10 ms"),
        ({"buffers": "soket"}, "buffers cannot be 'soket'; they are fixed, kernel, socket"),
        ({"loss": 1.0}, "a path that loses 1 of its packets makes no sense; use 0.1% or 1%"),
    ],
)
def test_what_streams_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as told:
        TcpStreams(**values)
    assert str(told.value).startswith(message)


def test_every_word_about_streams_is_in_the_name() -> None:
    other = {
        "count": 2, "window": 64, "congestion": "reno", "direction": "sends", "delay": 0.01, "loss": 0.01,
        "buffers": "socket", "request": 64, "anew": True,
    }  # fmt: skip
    assert other.keys() == {field.name for field in dataclasses.fields(TcpStreams)}
    for name, value in other.items():
        usual = TcpStreams(request=32) if name == "anew" else TcpStreams()
        changed = Scenario("tcp-transfer", tcp=dataclasses.replace(usual, **{name: value}))
        assert changed.name not in (TCP.name, dataclasses.replace(TCP, tcp=usual).name)


def test_a_closed_loop_has_nothing_of_an_open_one() -> None:
    with pytest.raises(UsageError, match="tcp-transfer is a closed loop and has no frame_size, loss_ratio; leave that"):
        Scenario("tcp-transfer", frame_size=128, loss_ratio=0.01)


def test_other_data_paths_have_no_streams() -> None:
    with pytest.raises(UsageError, match="ipv6-routing has no TCP streams; use tcp-transfer"):
        Scenario(tcp=TcpStreams(2))


def transfers(loop: SimulatedLoop, window: int, *, phase: str = "repeat", count: int = 1, **more: Any) -> list[Trial]:
    made = [loop.transfer(window, 1.0) for _ in range(count)]
    return [Trial.from_mapping({**json.loads(one.to_json()), "phase": phase, **more}) for one in made]


def test_what_transfers_come_to() -> None:
    loop = SimulatedLoop(scatter=0.0, again=0.01)
    rest = [Trial.from_mapping({**json.loads(loop.transfer(1 << 20, 0.25, 10e6).to_json()), "phase": "rest"})]
    made = rest + transfers(loop, 1 << 20, count=2)
    assert TcpThroughput(1 << 20, 1.0, 2).value(made) == pytest.approx(10.0)
    assert LoadedRoundTrip().value(made) == pytest.approx(8 * (1 << 20) / 10e9)
    assert Transmissions().value(made) == pytest.approx(1.01, abs=1e-4)
    assert ByteCost().value(made) is None  # not counted
    counted = transfers(loop, 1 << 20, functions={"tcp_rcv_established": [5_000_000_000, 1], "user space": [1, 1]})
    assert ByteCost().value(counted) == pytest.approx(4.0)
    slower = transfers(loop, 1 << 20, functions={"tcp_rcv_established": [7_000_000_000, 1]})
    assert ByteCost().value([*counted, *slower]) == pytest.approx(4.8)
    assert ByteCost(least=True).value([*counted, *slower]) == pytest.approx(4.0)


def test_a_disturbed_transfer_tells_nothing_and_is_made_good() -> None:
    throughput, loop = TcpThroughput(1 << 20, 1.0, 2), SimulatedLoop()
    made = transfers(loop, 1 << 20, disturbed=because("a stall of 10 ms")) + transfers(loop, 1 << 20)
    assert throughput.next(made) is not None
    assert throughput.next(made + transfers(loop, 1 << 20)) is None
    lost = transfers(loop, 1 << 20, count=4, disturbed=because("a stall of 10 ms"))
    assert throughput.next(lost) is None  # within bounds
    assert throughput.value(lost) is None


WINDOWS = tuple(16384 << step for step in range(6))


def swept(loop: SimulatedLoop, curve: WindowCurve) -> list[Trial]:
    made: list[Trial] = []
    while (ask := curve.next(made)) is not None:
        made += transfers(loop, ask.window, phase=Phase.CURVE)
    return made


def test_a_knee_is_believed_once_two_sweeps_agree() -> None:
    curve = WindowCurve(WINDOWS, 1.0)
    made = swept(SimulatedLoop(), curve)  # 10 Gbit/s in 100 us: 125 kB
    assert [one.transfer.window for one in made] == [*WINDOWS, *WINDOWS[::-1]]
    assert curve.knees(made) == (131072, 131072)
    assert curve.knee(made) == 131072


def test_a_knee_that_moves_is_not_believed() -> None:
    curve, made, number = WindowCurve(WINDOWS, 1.0), [], 0
    while (ask := curve.next(made)) is not None:
        speed = 1e9 if number // len(WINDOWS) % 2 else 40e9
        made += transfers(SimulatedLoop(speed=speed), ask.window, phase=Phase.CURVE)
        number += 1
    assert len(made) == 4 * len(WINDOWS)
    assert curve.knees(made) == (524288, 16384, 524288, 16384)
    assert curve.knee(made) is None


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a run of a closed loop, all its steps, in a folder of its own name."""

    def run(
        loop: SimulatedLoop, name: str = "run", baseline: str = "", *, curve: bool = False, resume: bool = False,
        watcher: Watcher | None = None, experience: Experience | None = None,
    ) -> tuple[ScenarioResult, Judgement]:  # fmt: skip
        monkeypatch.setattr("pdrgate.gate.sut.prepared_sut.data_path", of_loops(lambda: loop))
        testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6)))
        state = tmp_path / f"state-{name}"
        folder = tmp_path / name
        with new_session(
            testbed, folder, watcher or Watcher(), state, QUICK, resume=resume, experience=experience
        ) as session:
            baselines: BaselineSource | None = None
            if named := name_in_history(Path(baseline)):
                baselines = HistoryBaselines(Address(file=tmp_path / "h.db"), named, folder)
            elif baseline:
                baselines = Baselines(tmp_path / baseline, folder)
            measured = TransferRun(session, TCP, baselines=baselines)
            measured.prepare()
            if curve:
                measured.sweep()
            measured.repeat()
            measured.judge(0.02)
            judgement = measured.finish()
            session.record.close()
            return measured.result(judgement), judgement

    return run


def test_a_run_without_a_baseline_tells_what_it_measured(measure, tmp_path: Path) -> None:
    result, judgement = measure(SimulatedLoop(), curve=True)
    assert judgement.verdict is Verdict.NO_BASELINE, judgement
    assert judgement.reason.startswith("nothing was compared: TCP throughput 10")
    assert (result.pdr, result.findings.search, result.findings.assessment) == (
        None,
        None,
        None,
    )  # a closed loop has none
    assert result.details.transfers is not None
    assert result.details.transfers.knee == 131072
    assert [one.name for one in result.findings.measurands] == [
        "TCP throughput",
        "round trip under load",
        "transmissions per segment",
    ]
    on_disk = read_trials(tmp_path / "run" / TRIALS_FILE)
    assert len(on_disk) == len(result.details.transfers.transfers)
    assert {one.occasion.phase for one in on_disk} == {"rest", "curve", "repeat"}
    assert all(
        one.belonging.scenario == TCP.name and one.belonging.boot == "boot-1" and one.belonging.fingerprint
        for one in on_disk
    )


def test_reports_have_the_curve_and_every_transfer(measure) -> None:
    result, _ = measure(SimulatedLoop(), curve=True)
    assert [picture.name for picture in pictures(result)] == [f"{distinct_names([result.label])[0]}-transfers"]
    told = "".join(fragments(result))
    assert "a round trip takes 0.1 ms at rest; knee 128 KiB (by sweep 128, 128 KiB)" in told
    assert told.count(">curve<") == 2 * 9
    assert "The throughput of the repeats" in told


def busy(loop: SimulatedLoop, sut: float, station: float) -> list[Trial]:
    (made,) = transfers(loop, 1 << 20)
    return [replace(made, transfer=replace(made.transfer, cpu=EndsCpu(sut_busy=sut, station_busy=station)))]


def test_who_is_slower_is_told() -> None:
    loop = SimulatedLoop()
    assert station_limited(busy(loop, 0.6, 1.0)) == (
        "the other end's CPU was busy for 100% of the time, and the SUT's for 60%: a faster SUT would not show"
    )
    assert station_limited(busy(loop, 1.0, 1.0)) == ""
    assert station_limited(transfers(loop, 1 << 20)) == ""  # nobody knows


def test_a_throughput_that_wanders_is_unstable(measure) -> None:
    _, judgement = measure(SimulatedLoop(scatter=0.3))
    assert judgement.verdict is Verdict.UNSTABLE
    assert judgement.reason.startswith("the TCP throughput deviates by ")


@pytest.mark.parametrize(
    ("candidate", "verdict", "telling"),
    [
        (SimulatedLoop(seed=2), Verdict.NO_BASELINE, "not judged"),
        (SimulatedLoop(speed=8e9, seed=2), Verdict.INCONCLUSIVE, "TCP throughput"),
        (SimulatedLoop(again=0.02, seed=2), Verdict.INCONCLUSIVE, "transmissions per segment"),
    ],
    ids=["equal", "slower", "lossy"],
)
def test_a_change_against_a_baseline_is_told(measure, candidate: SimulatedLoop, verdict: Verdict, telling: str) -> None:
    """Nobody knows what boots deviate by there, so that one boot against one is no REGRESSION."""
    measure(SimulatedLoop(), "first")
    result, judgement = measure(candidate, "second", "first")
    assert judgement.verdict is verdict, judgement
    assert telling in judgement.reason
    assert result.comparison is not None
    assert [one.measurand for one in result.comparison.changes] == [one.name for one in result.findings.measurands]


@pytest.mark.parametrize(
    ("candidate", "verdict", "telling"),
    [
        (SimulatedLoop(seed=9), Verdict.PASS, "not slower: TCP throughput"),
        (SimulatedLoop(speed=8e9, seed=9), Verdict.REGRESSION, "slower: TCP throughput"),
        (SimulatedLoop(again=0.02, seed=9), Verdict.REGRESSION, "transmissions per segment"),
    ],
    ids=["equal", "slower", "lossy"],
)
def test_a_build_of_the_history_is_a_baseline_by_all_its_boots(
    measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: SimulatedLoop, verdict: Verdict, telling: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2, 3):
        measure(SimulatedLoop(seed=seed), f"run-{seed}")
        assert main(["history", "import", f"run-{seed}", "--history", "h.db"]) == 0
    assert main(["history", "pin", "run-1", "--name", "v6.1", "--history", "h.db"]) == 0
    result, judgement = measure(candidate, "later", "history:v6.1", experience=KnownNoise(names=OF_TCP))
    assert judgement.verdict is verdict, judgement
    assert telling in judgement.reason
    assert result.comparison is not None
    assert result.comparison.baseline.startswith("history:v6.1 (")
    assert result.comparison.baseline.endswith(", 3 boots in 3 runs)")
    # Whatever passed since is no part of what was pinned, unless it is the same build.
    assert [one.measurand for one in result.comparison.changes] == [one.name for one in result.findings.measurands]


def test_a_build_of_the_history_that_was_not_measured_by_tcp_cannot_serve(measure, tmp_path: Path) -> None:
    measure(SimulatedLoop(), "first")
    written(tmp_path / "other", scenario(), started=1.0)
    history = ("--history", str(tmp_path / "h.db"))
    assert main(["history", "import", str(tmp_path / "other"), *history]) == 0
    assert main(["history", "pin", str(tmp_path / "other"), "--name", "v6.18", *history]) == 0
    with pytest.raises(DataError, match=r"history:v6.18 has no stable result of this scenario \(but of: "):
        measure(SimulatedLoop(), "later", "history:v6.18")


def test_stored_runs_of_transfers_are_assessed_compared_and_listed(
    measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(SimulatedLoop(), "first", curve=True)
    measure(SimulatedLoop(speed=8e9, seed=2), "second")
    monkeypatch.chdir(tmp_path)
    assert main(["assess", "first"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("STABLE\n  source          first/trials.jsonl\n  TCP throughput  10")
    assert told.err == ""  # its empty trials.jsonl is nothing to speak of
    assert main(["assess", "first", "second", "--format", "json"]) == 0
    entries = json.loads(capsys.readouterr().out)["experiments"]
    assert [one["verdict"] for one in entries] == ["STABLE", "STABLE"]
    assert [one["window"] for one in entries[1]["transfers"] if one["phase"] == "repeat"] == [1 << 20]
    assert main(["compare", "first", "second"]) == 3
    assert capsys.readouterr().out.startswith("INCONCLUSIVE: unpaired boots do not decide: TCP throughput 7.9")
    assert main(["compare", "first", "second", "--boots-deviate", "0.5%"]) == 1
    assert capsys.readouterr().out.startswith("REGRESSION: slower: TCP throughput 7.9")
    assert main(["history", "import", "first", "--history", "h.db"]) == 0
    assert main(["history", "list", "--history", "h.db"]) == 0
    assert " 10.01 Gbit/s " in capsys.readouterr().out
    path = tmp_path / "first" / TRIALS_FILE
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())  # some editors begin a file with it
    assert main(["assess", "first"]) == 0
    assert capsys.readouterr().out.startswith("STABLE\n")
    with path.open("a") as file:
        file.write('{"window": 1048576, "streams"')  # a kill while it was written
    assert len(read_trials(tmp_path / "first" / TRIALS_FILE)) == 2 * 9 + 6 * 2 + 1
    (tmp_path / "trials.jsonl").write_text(TRIAL.to_json() + "\n")
    assert main(["compare", "first", "trials.jsonl"]) == 2
    assert "first holds transfers and trials.jsonl trials; name two runs of one scenario" in capsys.readouterr().err


def test_a_killed_run_goes_on_where_it_stood(measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(Watcher):
        def said(self, sentence: str) -> None:
            super().said(sentence)
            if sum(one.startswith("repeat,") for one in self.sentences) == 5:
                raise Killed

        warned = said

    loop = SimulatedLoop()
    with pytest.raises(Killed):
        measure(loop, watcher=Dying())
    before = len(loop.calls)
    whole = SimulatedLoop()
    result, _ = measure(whole, resume=True)
    assert result.details.transfers is not None
    assert len(whole.calls) == len(result.details.transfers.transfers) - before


def test_each_test_of_a_closed_loop_goes_on_with_its_own_transfers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that had never run once told those of the test before it, and nothing was transferred."""
    loop = SimulatedLoop()
    monkeypatch.setattr("pdrgate.gate.sut.prepared_sut.data_path", of_loops(lambda: loop))
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6)))

    def run(resume: bool, *tests: str) -> None:
        with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state", QUICK, resume=resume) as session:
            for test in tests:
                measured = TransferRun(session, TCP, longname=test)
                measured.prepare()
                measured.repeat()
                measured.finish()

    run(False, "One.Same Name")
    each = len(loop.calls)
    run(True, "One.Same Name", "Another.Same Name")
    assert len(loop.calls) == 2 * each
    on_disk = read_trials(tmp_path / "run" / TRIALS_FILE)
    assert [one.belonging.test for one in on_disk] == ["One.Same Name"] * each + ["Another.Same Name"] * each


@pytest.mark.parametrize(
    ("candidate", "verdict", "telling"),
    [
        (SimulatedLoop(seed=2), Verdict.PASS, "not slower: TCP throughput"),
        (SimulatedLoop(speed=9e9, seed=2), Verdict.REGRESSION, "slower: TCP throughput"),
        (SimulatedLoop(again=0.02, seed=2), Verdict.REGRESSION, "slower: transmissions per segment"),
        (SimulatedLoop(waits=1e-3, seed=2), Verdict.REGRESSION, "slower: round trip under load 1.84 ms"),
    ],
    ids=["equal", "slower", "lossy", "inflated"],
)
def test_two_configurations_in_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: SimulatedLoop, verdict: Verdict, telling: str
) -> None:
    loops = {"baseline": SimulatedLoop(), "candidate": candidate}

    def path(name: str, program: Path | None, *_: object, **__: object) -> SimulatedTcp:
        return SimulatedTcp(loops[str(program)])

    monkeypatch.setattr("pdrgate.gate.sut.prepared_sut.data_path", path)
    with new_session(
        FakeTestbed(SimulatedSut(IdealCurve(1e6))), tmp_path / "run", Watcher(), tmp_path / "s"
    ) as session:
        builds = {
            side: Build(side, f"the {side}", lambda _: FakeTestbed(SimulatedSut(IdealCurve(1e6))), Path(side))
            for side in SIDES
        }
        comparison = comparison_of(ComparisonTask(session, TCP, builds, Plan(12, None, 0.02)))
        assert isinstance(comparison, PairsComparison)
        comparison.measure()
        comparison.judge(0.02)
        comparison.judge(0.9)  # the gravest stands
        judgement = comparison.finish()
        assert judgement.verdict is verdict, judgement
        assert judgement.reason.startswith(telling), judgement
        result = comparison.result(judgement)
        session.record.close()
    assert result.pdr is None
    assert result.details.transfers is not None
    assert [one.measurand for one in result.comparison.changes] == [  # type: ignore[union-attr]
        "TCP throughput", "round trip under load", "transmissions per segment",
    ]  # fmt: skip
    on_disk = read_trials(tmp_path / "run" / TRIALS_FILE)
    assert {(one.belonging.side, one.belonging.pair) for one in on_disk} == {
        (boot.side, boot.pair) for boot in result.builds.boots
    }
    assert {one.belonging.build for one in on_disk} == {"the baseline", "the candidate"}
    again, stored = compare_files(tmp_path / "run", tmp_path / "run", 0.02, 0.005)
    assert stored.verdict is verdict, stored
    assert again is not None
    assert result.comparison is not None
    # What early stopping adds is taken off by how many pairs there might have been, which files do not tell.
    assert (again.pairs, again.change) == (result.comparison.pairs, pytest.approx(result.comparison.change, abs=1e-4))


def test_trials_and_transfers_are_each_others_error(tmp_path: Path) -> None:
    with new_session(
        FakeTestbed(SimulatedSut(IdealCurve(1e6))), tmp_path / "run", Watcher(), tmp_path / "state"
    ) as session:
        with pytest.raises(
            TestbedError, match="tcp-transfer has no PDR: a closed loop offers what it gets acknowledged"
        ):
            ScenarioRun(session, TCP)
        with pytest.raises(TestbedError, match="ipv6-routing transfers nothing by TCP; choose tcp-transfer, or search"):
            TransferRun(session, Scenario())
