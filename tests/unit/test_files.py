"""Reading trials: ours and theirs, and one exact line about every file that is neither."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from flat_values import flat_trial

from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.stability import expand, read_experiments, read_trials
from pdrgate.values.errors import DataError

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to(content: str | bytes, name: str = "trials.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to


def ours(load: float = 1e6, **more: object) -> Trial:
    return flat_trial(intended_load=load, intended_duration=1, offered=1000, forwarded=990, **more)


def lines(*trials: Trial) -> str:
    return "".join(f"{trial.to_json()}\n" for trial in trials)


def test_our_trials_come_back_as_they_were_written(write: Write) -> None:
    trials = [ours(1e6), ours(2e6, phase=Phase.SEARCH, counters_after={"in0": {"a": 1}})]
    path = write(lines(*trials))
    assert read_trials(path) == trials
    (experiment,) = read_experiments(path)
    assert list(experiment.trials) == trials
    assert (experiment.source, experiment.notes) == (str(path), ())


def test_scenario_and_boot_make_experiments(write: Write) -> None:
    path = write(
        lines(
            ours(1e6, scenario="ipv6", boot="1"),
            ours(1e6, scenario="ipv6", boot="2"),
            ours(2e6, scenario="ipv6", boot="1"),
        )
    )
    first, second = read_experiments(path)
    assert (first.scenario, first.boot, len(first.trials)) == ("ipv6", "1", 2)
    assert (second.scenario, second.boot, len(second.trials)) == ("ipv6", "2", 1)
    assert first.source == f"{path} (ipv6, 1)"


def test_builds_of_two_comparisons_are_experiments_of_their_own(write: Write) -> None:
    """Candidates of one side were one curve, whatever builds they were."""
    path = write(
        lines(
            *(
                ours(load, scenario="s", side=side, build=build, pair=pair)
                for load, candidate in ((1e6, "linux-b"), (2e6, "linux-c"))
                for pair in (1, 2)
                for side, build in (("baseline", "linux-a"), ("candidate", candidate))
            )
        )
    )
    found = read_experiments(path)
    assert [(one.source, [trial.intended_load for trial in one.trials]) for one in found] == [
        (f"{path} (s, baseline linux-a, comparison 1)", [1e6, 1e6]),
        (f"{path} (s, candidate linux-b, comparison 1)", [1e6, 1e6]),
        (f"{path} (s, baseline linux-a, comparison 2)", [2e6, 2e6]),
        (f"{path} (s, candidate linux-c, comparison 2)", [2e6, 2e6]),
    ]


def test_nothing_that_was_sent_is_no_experiment(write: Write) -> None:
    idle = flat_trial(0.0, 0.5, 0, 0, phase=Phase.IDLE, boot="1")
    with pytest.raises(DataError, match="in none of its trials was anything sent; name a file of others"):
        read_experiments(write(lines(idle)))
    (experiment,) = read_experiments(write(lines(idle, ours(boot="2"))))
    assert experiment.boot == "2"


def test_repeats_are_taken_alone_where_there_are_any(write: Write) -> None:
    path = write(
        lines(
            ours(1e6, phase=Phase.SEARCH, boot="1"),
            ours(2e6, phase=Phase.REPEAT, boot="1"),
            ours(3e6, phase=Phase.SEARCH, boot="2"),
        )
    )
    first, second = read_experiments(path)
    assert [trial.intended_load for trial in first.trials] == [2e6]
    assert [trial.intended_load for trial in second.trials] == [3e6]
    assert len(read_trials(path)) == 3


def test_a_torn_last_line_is_left_out_and_said(write: Write) -> None:
    whole = lines(ours(1e6), ours(2e6))
    path = write(whole + ours(3e6).to_json()[:25])
    (experiment,) = read_experiments(path)
    assert len(experiment.trials) == 2
    assert experiment.notes == (f"{path}, line 3: torn by a kill while it was written; left out",)


def test_a_last_line_that_lacks_only_its_newline_is_whole(write: Write) -> None:
    (experiment,) = read_experiments(write(lines(ours(1e6), ours(2e6))[:-1]))
    assert len(experiment.trials) == 2
    assert experiment.notes == ()


def test_the_older_published_format(write: Write) -> None:
    path = write("[[300000, 0], [3000, 3001, 0], [3000, 2900, 5]]\n\n[[450000, 7], [4500, 0, 0]]", "a.txt")
    (experiment,) = read_experiments(path)
    assert [(trial.intended_load, trial.offered, trial.forwarded) for trial in experiment.trials] == [
        (300000.0, 3000, 3001),
        (300000.0, 3000, 2900),
        (450000.0, 4500, 0),
    ]
    assert experiment.trials[0].surplus == 1
    assert not any(trial.generator_limited for trial in experiment.trials)


def test_the_newer_published_format(write: Write) -> None:
    path = write('[[3e5, 0], [6000, 5970, 99.5, 12.5, 0.1, "run-1"]]\n', "x_exp_t_20_k6.8_intel_vm_as-is.txt")
    (experiment,) = read_experiments(path)
    (trial,) = experiment.trials
    assert (trial.intended_duration, trial.loss_ratio) == (20.0, pytest.approx(0.005))
    assert experiment.scenario == "ipv6 vm unpinned ring 512"


def test_counts_that_do_not_match_load_and_duration_are_said(write: Write) -> None:
    (experiment,) = read_experiments(write("[[1000, 0], [10000, 10000], [6000, 6000]]\n", "a.txt"))
    assert experiment.notes == (
        "1 of 2 runs sent other than load x 10 s (the first: 6000 packets at 1000 pps); "
        "loss is counted on what was sent",
    )


WHOLE = ours().to_json()


def changed(**fields: object) -> str:
    return json.dumps(json.loads(WHOLE) | fields)


BAD = {
    "empty": ("", "{path}: is empty; it should hold one line of JSON per trial or per load"),
    "blank": (" \n\n", "{path}: is empty; it should hold one line of JSON per trial or per load"),
    "binary": (
        b"\x7fELF\x02\x01\x00\xff",
        "{path}, line 1: binary data; it should hold one line of JSON per trial or per load",
    ),
    "nul": (WHOLE + "\n\0", "{path}, line 2: binary data; it should hold one line of JSON per trial or per load"),
    "no JSON": (
        "hello\n",
        "{path}, line 1: it is not JSON (column 1: Expecting value); a trial object {{…}} belongs there",
    ),
    "only a torn line": (
        '{"intended_load": 1',
        "{path}, line 1: it is not JSON (column 20: Expecting ',' delimiter); a trial object {{…}} belongs there",
    ),
    "torn in the middle": (
        WHOLE[:20] + "\n" + WHOLE + "\n",
        "{path}, line 1: it is not JSON (column 21: Expecting ',' delimiter); a trial object {{…}} belongs there",
    ),
    "torn with a newline": (
        WHOLE + "\n" + WHOLE[:16] + "\n",
        "{path}, line 2: it is not JSON (column 17: Expecting ':' delimiter); a trial object {{…}} belongs there",
    ),
    "a number": ("7\n", "{path}, line 1: 7: a trial object {{…}} belongs there"),
    "NaN": (
        WHOLE.replace("1000000.0", "NaN") + "\n",
        "{path}, line 1: it is not JSON (NaN is no number); a trial object {{…}} belongs there",
    ),
    "infinite": (
        WHOLE.replace("1000000.0", "1e999") + "\n",
        "{path}, line 1: intended_load is inf: it must be finite and not negative; a trial belongs there",
    ),
    "a negative count": (
        changed(forwarded=-5) + "\n",
        "{path}, line 1: forwarded is -5: a count cannot be negative; a trial belongs there",
    ),
    "nothing offered": (
        changed(offered=0) + "\n",
        "{path}, line 1: offered is 0 and so is unsent: a count above 0 belongs in one of them",
    ),
    "a zero load": (
        WHOLE + "\n" + changed(intended_load=0) + "\n",
        "{path}, line 2: intended_load is 0.0: a load above 0 packets/s belongs there",
    ),
    "a zero duration": (
        changed(intended_duration=0) + "\n",
        "{path}, line 1: intended_duration is 0.0: a time above 0 s belongs there",
    ),
    "text for a number": (
        changed(offered="many") + "\n",
        "{path}, line 1: Expected `int`, got `str` - at `$.offered`; a trial belongs there",
    ),
    "a missing key": (
        '{"a": 1}\n',
        "{path}, line 1: Object missing required field `intended_load`; a trial belongs there",
    ),
    "theirs: torn": (
        "[[1000, 0], [10000, 99",
        "{path}, line 1: it is not JSON (column 23: Expecting ',' delimiter); "
        "[[load, discards], [tx, rx, …], …] belongs there",
    ),
    "theirs: a flat list": (
        "[1, 2, 3]\n",
        "{path}, line 1: a list of 3: [[load, discards], [tx, rx, …], …] belongs there",
    ),
    "theirs: an empty list": ("[]\n", "{path}, line 1: a list of 0: [[load, discards], [tx, rx, …], …] belongs there"),
    "theirs: an object among lists": (
        '[[1000, 0], [10000, 9999]]\n{"a": 1}\n',
        "{path}, line 2: an object: [[load, discards], [tx, rx, …], …] belongs there",
    ),
    "theirs: a zero load": (
        "[[0, 0], [1, 1]]\n",
        "{path}, line 1: the load is 0: a number of packets/s above 0 belongs there",
    ),
    "theirs: an infinite load": (
        "[[1e999, 0], [1, 1]]\n",
        "{path}, line 1: the load is inf: a number of packets/s above 0 belongs there",
    ),
    "theirs: text for a load": (
        '[["fast", 0], [1, 1]]\n',
        "{path}, line 1: the load is a text: a number of packets/s above 0 belongs there",
    ),
    "theirs: no runs": (
        "[[1000, 0]]\n",
        "{path}, line 1: no runs at load 1000: at least one [tx, rx, …] belongs after it",
    ),
    "theirs: a zero tx": (
        "[[1000, 0], [10000, 9999], [0, 0]]\n",
        "{path}, line 1: tx of run 2 is 0: a packet count above 0 belongs there",
    ),
    "theirs: a negative rx": (
        "[[1000, 0], [10000, -1]]\n",
        "{path}, line 1: rx of run 1 is -1: a packet count of 0 or more belongs there",
    ),
    "theirs: text for a count": (
        '[[1000, 0], [10000, "x"]]\n',
        "{path}, line 1: rx of run 1 is a text: a packet count of 0 or more belongs there",
    ),
    "theirs: half a packet": (
        "[[1000, 0], [10000.5, 1]]\n",
        "{path}, line 1: tx of run 1 is 10000.5: a packet count above 0 belongs there",
    ),
    "theirs: a count beyond every counter": (
        "[[1000, 0], [1" + "0" * 400 + ", 1]]\n",
        "{path}, line 1: tx of run 1 is 1" + "0" * 38 + "…: a packet count above 0 belongs there",
    ),
    "a load beyond every number": (
        changed(intended_load=10**400) + "\n",
        "{path}, line 1: Number out of range - at `$.intended_load`; a trial belongs there",
    ),
    "a count beyond every counter": (
        changed(forwarded=10**400) + "\n",
        "{path}, line 1: a count is beyond 64 bits; a trial belongs there",
    ),
    "a load beyond every counter": (
        changed(intended_load=1e308) + "\n",
        "{path}, line 1: intended_load is 1e+308: a load above 0 packets/s belongs there",
    ),
    "theirs: NaN": (
        "[[1000, 0], [NaN, 1]]\n",
        "{path}, line 1: it is not JSON (NaN is no number); [[load, discards], [tx, rx, …], …] belongs there",
    ),
    "theirs: a lone count": (
        "[[1000, 0], [10000]]\n",
        "{path}, line 1: run 1 is a list of 1: [tx, rx, …] belongs there",
    ),
    "nested without end": (
        "[" * 100_000 + "\n",
        "{path}, line 1: it is not JSON (nested too deeply); [[load, discards], [tx, rx, …], …] belongs there",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_exact_line(case: str, write: Write) -> None:
    content, message = BAD[case]
    path = write(content)
    with pytest.raises(DataError) as caught:
        read_experiments(path)
    assert str(caught.value) == message.format(path=path)
    assert caught.value.exit_code == 2


def test_no_file_no_permission_and_a_directory(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"nope: no such file; name a file of trials"):
        read_experiments(tmp_path / "nope")
    with pytest.raises(DataError, match=r"is a directory; name a file of trials in it"):
        read_experiments(tmp_path)

    def denied(self: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(WHOLE)
    monkeypatch.setattr(Path, "open", denied)  # root may read everything, so chmod would not do
    with pytest.raises(DataError, match=r"no permission to read it"):
        read_experiments(path)


@pytest.mark.parametrize("text", [WHOLE, "[[1000, 0], [1000, 999]]\n"], ids=["ours", "PASTRAMI"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(write: Callable[[str], Path], text: str) -> None:
    assert read_trials(write(f"\ufeff{text}")) == read_trials(write(text))


def test_a_directory_stands_for_the_trial_files_below_it(tmp_path: Path) -> None:
    for name in ("b/trials.jsonl", "a.txt", "b/other.jsonl", "b/notes.md", "b/console.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[[1000, 0], [1, 1]]\n" if name == "a.txt" else "x\n")
    assert expand([tmp_path, tmp_path / "b/notes.md"]) == [
        tmp_path / "a.txt",
        tmp_path / "b/trials.jsonl",
        tmp_path / "b/notes.md",
    ]


def test_a_directory_without_trials_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no trials\.jsonl or \*\.txt of PASTRAMI's in this directory"):
        expand([tmp_path])
