"""A set-up as a person writes it, in words and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdrgate.data_paths.set_up import SetUp, SetUpFile, SetUpStep, named_set_up, set_up_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.values.errors import DataError, UsageError


def test_commands_and_what_undoes_them() -> None:
    made = set_up_of(["ip link add d0 type dummy", "undo: ip link delete d0", "  true  "])
    assert made.steps == (SetUpStep("ip link add d0 type dummy", "ip link delete d0"), SetUpStep("true"))


def test_a_file_that_a_step_names_goes_with_it(tmp_path: Path) -> None:
    rules = tmp_path / "nat.nft"
    rules.write_text("flush ruleset\n")
    made = set_up_of([f"nft -f {rules}", "cat /etc/hosts /no/such/file >/dev/null"])
    assert made.steps[0].command == "nft -f ./nat.nft"
    assert made.steps[1].command == "cat /etc/hosts /no/such/file >/dev/null"
    assert made.files == (SetUpFile("nat.nft", b"flush ruleset\n"),)


def test_programs_and_words_of_commands_and_scripts(tmp_path: Path) -> None:
    script = tmp_path / "load.sh"
    script.write_text("#!/bin/sh\nfor one in a b; do bridge vlan add vid 7; done\nif true; then wg show; fi\n")
    script.chmod(0o755)
    made = set_up_of(["A=1 nft list ruleset | grep table && tc qdisc show", "./load.sh"], [script])
    assert {"nft", "grep", "tc", "bridge", "wg"} <= set(made.programs)
    assert "./load.sh" not in made.programs
    assert {"qdisc", "vlan"} <= made.words
    assert made.files[0].executable


def test_equal_steps_with_another_file_are_others(tmp_path: Path) -> None:
    rules, digests = tmp_path / "nat.nft", set()
    for text in ("table ip a { }", "table ip b { }"):
        rules.write_text(text)
        digests.add(set_up_of(["nft -f nat.nft"], [rules]).digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("commands", "files", "message"),
    [
        (["undo: true"], [], "`undo: true` stands behind no step that it undoes; put it right behind one"),
        (["true", "undo: true", "undo: true"], [], "`undo: true` stands behind no step that it undoes"),
        (["true", " "], [], "step 2 of the set-up is empty; leave it out"),
        ([], ["/no/such/file"], "cannot put /no/such/file on the SUT: No such file or directory"),
        (["true"] * 201, [], "201 steps are too many"),
    ],
)
def test_what_cannot_be_meant_is_told(commands: list[str], files: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        set_up_of(commands, files)
    assert str(raised.value).startswith(message)


def test_two_files_of_one_name_are_told(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.nft").write_text(folder)
    with pytest.raises(UsageError, match=r"two files that are put on the SUT are called x\.nft; rename one"):
        set_up_of([], [tmp_path / "a/x.nft", tmp_path / "b/x.nft"])


def test_what_was_done_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "nat.nft").write_text("table ip a { }")
    recorded = set_up_of(["nft -f nat.nft", "true", "undo: false"], [tmp_path / "nat.nft"]).recorded()
    assert recorded == {
        "step 1": "nft -f nat.nft", "step 2": "true (undo: false)",
        "nat.nft": "SHA-256 fb7b28b50b62731bba771da0b013ec4781976a32f475b3d801b0796f220e2549",
    }  # fmt: skip


def test_it_is_in_the_name_and_the_title_of_a_scenario() -> None:
    plain = set_up_of(["nft -f nat.nft"])
    scenario = Scenario("ip-routing", set_up=plain)
    assert scenario.name == f"ip-routing-set_up_{plain.digest}-1cpu-4096-64B"
    assert ", set up by nft -f nat.nft" in scenario.title
    assert Scenario("ip-routing", set_up=named_set_up("nat", plain)).name == "ip-routing-set_up_nat-1cpu-4096-64B"
    with pytest.raises(UsageError, match="a set-up cannot be called 'a-b'"):
        named_set_up("a-b", SetUp(()))


def test_a_file_says_what_a_scenario_is(tmp_path: Path) -> None:
    (tmp_path / "nat.nft").write_text("table ip a { }")
    file = tmp_path / "nat.yaml"
    file.write_text(
        "name: nat\nfiles: [nat.nft]\nset_up:\n- nft -f nat.nft\n- run: ip link add d0 type dummy\n"
        "  undo: ip link delete d0\nbuffer: 512\nframe_size: imix\npinning: unpinned\n"
    )
    made = scenario_of(file)
    assert made.set_up is not None
    assert made.set_up.steps == (
        SetUpStep("nft -f nat.nft"),
        SetUpStep("ip link add d0 type dummy", "ip link delete d0"),
    )
    assert [one.name for one in made.set_up.files] == ["nat.nft"]
    assert (made.data_path, made.buffer, made.frame_size, made.pinning) == ("ip-routing", 512, "imix", "unpinned")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "the scenario FILE is no YAML"),
        ("set_up: []", "the scenario FILE: Object missing required field `name`"),
        ("name: nat\nset_up: true", "the scenario FILE: Expected `array`"),
        (
            "name: nat\nsetup: []",
            "the scenario FILE has a key 'setup', which there is not; there are alike, attach, background",
        ),
        ("name: a b", "the scenario FILE: a set-up cannot be called 'a b'"),
        ("name: nat\nbuffer: many", "the scenario FILE: buffer: 'many' is no whole number from 1 to 1000000"),
        ("name: nat\nbuffer: 4.5", "the scenario FILE: buffer: 4.5 is no whole number from 1 to 1000000"),
        ("name: nat\nbuffer:", "the scenario FILE: buffer: '' is no whole number from 1 to 1000000"),
        ("name: nat\nflows: true", "the scenario FILE: flows: True is no whole number"),
        ("name: nat\nlatency: 2", "the scenario FILE: latency: 2 is neither true nor false"),
        ("name: nat\npinning: 1", "the scenario FILE: pinning: '1' is none; choose one of unpinned, 1 cpu, 2 cpus"),
        ("name: nat\nframe_size: 64.5", "the scenario FILE: frame_size: 64.5 is no whole number or imix"),
        ("name: nat\ncpu_shares: [50, x]", "the scenario FILE: cpu_shares: 'x' is no whole number"),
        ("name: nat\noverload: .nan", "the scenario FILE: overload: nan is no number from 2.5 to 1000"),
        ("name: nat\ndirections: 3", "the scenario FILE: directions: '3' is none; choose one of 1, 2"),
        ("name: nat\nloss_ratio: some", "the scenario FILE: loss_ratio: 'some' is not a ratio"),
        ("name: nat\nloss_ratio: 2", "the scenario FILE: loss_ratio: 2 must be at least 0 and below 100%"),
        ("name: nat\nwidth: 0", "the scenario FILE: goal PDR: a width of 0.000% would never be reached"),
        ("name: nat\ngro: maybe", "the scenario FILE: gro: 'maybe' is none; choose one of on, off"),
        ("name: nat\ndata_path: nowhere", "the scenario FILE: there is no data path 'nowhere'"),
        ("name: nat\nfiles: [no.nft]", "the scenario FILE: cannot put FOLDER/no.nft on the SUT"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as raised:
        scenario_of(file)
    assert str(raised.value).startswith(message.replace("FILE", str(file)).replace("FOLDER", str(tmp_path)))
    assert "\n" not in str(raised.value)


def test_values_are_written_as_yaml_has_them(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    told = "probe_rate: 10\ngro: off\nloss_ratio: 0.1%\nwidth: 0.02\n"
    file.write_text(f"name: nat\n{told}")
    made = scenario_of(file)
    assert (made.probe_rate, made.gro, made.loss_ratio, made.width) == (10.0, "off", 0.001, 0.02)
    file.write_text("name: udp\ndata_path: udp-delivery\nreceivers: 2\ncpu_shares: [40, 60]\n")
    assert scenario_of(file).cpu_shares == (40, 60)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the scenario .*/no\.yaml: No such file or directory"):
        scenario_of(tmp_path / "no.yaml")
