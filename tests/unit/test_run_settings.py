"""Keys of files and of ``--set``: one reader, one line for what is wrong, and none changes what is measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pdrgate.cli import cli, main
from pdrgate.cli.gate import _asked, _of_testbed
from pdrgate.gate.run.declaration import By, declarations
from pdrgate.gate.run.options import Options, RunOptions
from pdrgate.gate.run.run_settings import keys, named_values, read_settings, settings_of_testbed
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.gate.run.scenario_keys import changed, with_changes
from pdrgate.launch import default_testbed
from pdrgate.testbeds import load_testbed
from pdrgate.values.errors import UsageError
from pdrgate.values.units import Duration, Ratio

REFERENCE = (Path(__file__).parents[2] / "docs/reference.md").read_text(encoding="utf-8")
VM = Path("resources/testbeds/local-vm.yaml")
LINES_OF_HELP = 65
WRONG = {"traffic": "udp dport=x", "data_path": "nowhere", "soak": "0 s"}
"""Values that are of the key's type and mean nothing; of other keys any word is wrong, or needs an eBPF object."""


@pytest.mark.parametrize("name", sorted(keys()))
def test_a_key_is_documented_and_a_wrong_value_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"\n| `{name}=" in REFERENCE
    wrong = WRONG.get(name, "nonsense")
    assert main(["gate", "--output", str(tmp_path), "--set", f"{name}={wrong}"]) == 64
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"{name}: " in told or f"{name} is of eBPF objects; name one with --bpf OBJECT" in told
    one = keys()[name]
    for choice in one.choices:
        assert choice in told
    if one.choices or one.flag or one.kind in (int, float, Ratio, Duration):
        assert wrong in told


def test_an_option_is_documented() -> None:
    for parameter in cli.commands["gate"].params:
        assert f"\n| `{parameter.opts[0]}" in REFERENCE


def test_the_help_fits_a_screen_and_a_half(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "--help"]) == 0
    assert capsys.readouterr().out.count("\n") <= LINES_OF_HELP


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "bots=3"], "--set bots: there is no such key; did you mean boots?"),
        (["--set", "zzz=3"], "--set zzz: there is no such key; there are alike, allow_config_differences, "),
        (["--set", "boots"], "--set boots: write KEY=VALUE, such as boots=12"),
        (["--boots", "3"], "there is no option --boots; write --set boots=VALUE"),
        (["--frame-size=64"], "there is no option --frame-size; write --set frame_size=VALUE"),
        (["--fates", "dropped"], "there is no option --fates; write --set fate=VALUE"),
        (["--Fate", "dropped"], "there is no option --Fate; write --set fate=VALUE"),
        (["--set", "FATE=dropped"], "--set FATE: there is no such key; did you mean fate?"),
        (
            ["--set", "tolerance=1%", "--tolerance", "2%"],
            "--tolerance and --set tolerance say one thing; leave one out",
        ),
        (["--set", "frame_size=9"], "--set frame_size: frame size 9 is out of range; use 64 to 1518 bytes"),
        (["--set", "receivers=9"], "--set receivers: 9 receivers are out of range; use 1 to 8"),
    ],
)
def test_a_key_that_there_is_not_is_told_with_what_to_write(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "--output", str(tmp_path), *words]) == 64
    told = capsys.readouterr().err
    assert told.startswith(f"pdrgate: {says}")
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", ["bisect", "calibrate"])
def test_other_commands_take_the_keys_that_they_can_have(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [command, *(["a.deb", "b.deb"] if command == "bisect" else [str(VM)])]
    assert main([*words, "--set", "flow=3"]) == 64
    assert capsys.readouterr().err.endswith("--set flow: there is no such key; did you mean flows?\n")
    assert main([*words, "--flows", "3"]) == 64
    assert capsys.readouterr().err == "pdrgate: there is no option --flows; write --set flows=VALUE\n"


SAMPLES: dict[str, Any] = {
    "profile": "standard", "tolerance": Ratio(0.05), "cost_tolerance": Ratio(0.05), "latency_tolerance": Ratio(0.5),
    "load_tolerance": Ratio(0.1), "boots": 9, "budget": Duration(60), "below_noise": True, "any_fingerprint": True,
    "allow_config_differences": True, "retis": True, "soak": Duration(90), "order": 7,
}  # fmt: skip


@pytest.mark.parametrize("builds", [{}, {"kernel": "a", "against": "b"}], ids=["one build", "two kernels"])
@pytest.mark.parametrize("name", [*keys(By.TESTBED), "wait"])
def test_what_is_measured_does_not_depend_on_a_testbeds_key(name: str, builds: dict[str, str]) -> None:
    """A key that has no meaning there is refused, and the sentence names it."""
    plain = _asked(testbed=VM, **builds)
    try:
        asked = _asked(testbed=VM, **builds, **{name: SAMPLES.get(name, Duration(60))})
    except UsageError as error:
        assert name.replace("_", "-") in str(error).replace("_", "-")
    else:
        assert (asked.measure, asked.scenarios) == (plain.measure, plain.scenarios)


EVERYWHERE = By.COMMAND | By.TESTBED | By.PATH
_CHOOSES = {"testbed", "kernel", "bpf", "against", "arch", "measure", "scenarios", "paths", "shard", "project"}
"""Options of pipelines that say what is compared, on which paths, by what: and say so in their names. What a project's
file says is these options again."""
_VALUES = {
    "profile": "standard", "tolerance": "3%", "cost_tolerance": "3%", "budget": "1 h", "wait": "1 h", "spike_in": True,
    "traffic": "udp dport=53", "fate": "dropped", "data_path": "bare-ipv4", "program": "filter",
    "attach": "xdp", "maps": "maps.yaml", "rodata": "a=1", "packets": "some.pcap", "replaces": "old.o:main/f",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(
    name for name, one in keys(EVERYWHERE).items() if By.PIPELINE in one.said.by and name not in _CHOOSES
))  # fmt: skip
def test_no_other_option_of_a_pipeline_changes_what_is_measured(name: str) -> None:
    """A tolerance of 3 % once made one path of 72."""
    one = keys(EVERYWHERE)[name]
    given = read_settings([(name, _VALUES[name])], {name: one})
    try:
        asked = _asked(testbed=VM, kernel="a", **{"against": "b", **given})
    except UsageError as error:
        assert re.search(rf"\b{name.replace('_', '[-_]')}\b", str(error)), error
    else:
        assert (asked.measure, asked.scenarios) == ("cost", ("portfolio",))


def own_testbed(folder: Path, run: str) -> Path:
    file = folder / "own.yaml"
    file.write_text(f"{VM.read_text(encoding='utf-8')}\nrun: {run}\n", encoding="utf-8")
    return file


def test_a_testbeds_file_says_what_the_command_line_does_not(tmp_path: Path) -> None:
    file = own_testbed(tmp_path, "{tolerance: 1%, boots: 12, budget: 5 min, retis: yes}")
    given = {"testbed": file, "boots": 9, "tolerance": declarations(RunOptions)["tolerance"].default}
    found = _of_testbed(_asked(**given), given)
    assert (found.boots, found.budget, found.retis) == (9, Duration(300), True)
    assert found.tolerance.text == "2%"  # it was said, though it is the default
    assert _of_testbed(_asked(testbed=file), ["testbed"]).tolerance == Ratio(0.01)
    assert settings_of_testbed(load_testbed(file), Options) == settings_of_testbed(load_testbed(file))


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("{bots: 12}", "run: bots: there is no such key; did you mean boots?"),
        ("{fate: dropped}", "run: fate: there is no such key; there are allow_config_differences, any_fingerprint, "),
        ("{boots: 2}", "run: boots: 2 is no whole number from 3 to 500"),
        ("{tolerance: {a: 1}}", "run: tolerance: {'a': 1} is none; write RATIO"),
    ],
)
def test_a_wrong_key_of_a_testbed_is_told_with_the_file(run: str, says: str, tmp_path: Path) -> None:
    file = own_testbed(tmp_path, run)
    with pytest.raises(UsageError) as raised:
        settings_of_testbed(load_testbed(file))
    assert str(raised.value).startswith(f"{file}: {says}")


def test_set_and_a_scenarios_file_make_the_same_scenario(tmp_path: Path) -> None:
    told = {
        "data_path": "udp-delivery", "receivers": "2", "cpu_shares": "40,60", "buffer": "512", "gro": "off",
        "wait": "1000", "pinning": "unpinned", "loss_ratio": "0.1%", "width": "0.02", "flows": "8",
    }  # fmt: skip
    file = tmp_path / "own.yaml"
    file.write_text("name: own\n" + "".join(f"{name}: {value}\n" for name, value in told.items()))
    said = read_settings(named_values(f"{name}={value}" for name, value in told.items()), keys())
    (made,) = changed([Scenario()], said["changes"])
    of_file = scenario_of(file)
    assert {name: getattr(made, name) for name in told} == {name: getattr(of_file, name) for name in told}
    assert (
        made.name
        == "udp_delivery-unpinned-512-64B-8flows-2receivers-shares40.60-grooff-1000uswait-loss0.1-width2".replace(
            "udp_delivery", "udp-delivery"
        )
    )


def test_a_scenarios_file_says_what_programs_are_set_up_with(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("name: own\nattach: tcx-ingress\n")
    with pytest.raises(UsageError, match=r"^attach is of eBPF objects; name one with --bpf OBJECT"):
        _asked(testbed=VM, scenario_file=file)
    file.write_text("name: own\nattach: nowhere\n")
    with pytest.raises(UsageError, match=r"attach: 'nowhere' is none; choose one of auto, xdp, "):
        _asked(testbed=VM, scenario_file=file)


def test_a_change_is_made_to_each_path_that_can_have_it() -> None:
    routed, transfer = Scenario(), Scenario("tcp-transfer")
    made = changed([routed, transfer], ("frame_size=1518", "buffer=512"))
    assert [one.name for one in made] == ["ipv6-routing-1cpu-512-1518B", "tcp-transfer-1cpu-512-1024KiBwindow"]
    assert list(with_changes(transfer, ("frame_size=1518",))[1]) == ["frame_size=1518"]
    with pytest.raises(UsageError, match=r"^frame_size: tcp-transfer is a closed loop and has no frame_size"):
        changed([transfer], ("frame_size=1518",))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--scenario", "path-tcp-requests", "--set", "frame_size=128"), "is a closed loop and has no frame_size"),
        (("--measure", "mrr", "--set", "latency=true"), "latency is taken at shares of the PDR, and no part of mrr"),
        (("--set", "alike=true"), "alike compares the packets of two builds; name them: --bpf OBJECT --against"),
    ],
)
def test_a_change_that_no_chosen_path_can_have_is_told_before_anything_is_set_up(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    testbed = str(default_testbed(builds=False)[0])
    assert main(["gate", "--output", str(tmp_path), "--testbed", testbed, *words]) == 64
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
