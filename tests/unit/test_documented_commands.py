"""Every command in the documentation: parsed as the shell and the command line do; run, where it reads what is stored.

One that measures is run by a test of its own, which `MEASURED` names for each option that a page shows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import click
import pytest
from flat_values import changed
from made_results import compared, pdr, scenario, trial, written
from made_trees import made_tree
from said_options import said

from pdrgate.cli import cli, main
from pdrgate.cli.gate import _asked
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.launch import default_testbed, found, listed
from pdrgate.record.phase import Phase

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCKS = re.compile(r"^(?: {4}\S.*\n(?: {4}.*\n|\n(?= {4}))*|```.*\n(?:.*\n)*?```$)", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_COMMAND = re.compile(
    r"""(?:^|[\s'=])[\w/.$"]*?\b(pdrgate|ci/[\w-]+)"?(?:$|\s+)(.*?)(?=$|\s+(?:&&|\||>))""", re.MULTILINE
)
_COMMENT = re.compile(r"\s+#.*$", re.MULTILINE)
_META = {
    "RUN": "results/20261101-120000", "RUN…": "results/20261101-120000", "BASELINE": "results/20261101-120000",
    "CANDIDATE": "results/20261102-120000", "FILE…": f"results/20261101-120000/{TRIALS_FILE}",
    "FILE": f"results/20261101-120000/{TRIALS_FILE}", "PATH…": "results", "RESULTS…": "results", "NAME": "v6.12",
    "AGE": "9999d", "URL": "https://ci.example/job/net/job/gate/", "[TESTBED]": "", "$OPTIONS": "",
    "$HISTORY": "watched.db", "$COUNT": "3", "BUILD": "b.deb",
}  # fmt: skip
"""What the words stand for that a page writes in place of a value."""
_NO_COMMAND = {"OPTIONS", "ARGUMENTS", "COMMAND"}

_ONLY_NAMED = {("import",), ("ungated",)}

READS = {"report", "assess", "compare", "merge", "trend", "history"}
"""Commands that are run here, against results that are stored."""
_MAY_FAIL = {"assess", "compare", "trend", "merge"}
"""Those whose exit code is a verdict."""

_REAL = "acceptance/test_real_gate.py::test_the_default_scenario_end_to_end"
_GUEST = "guest/test_comparison_cli.py::test_a_build_is_gated_against_itself"
_BISECT = "unit/test_bisection_steps.py::test_what_the_command_prints_and_exits_with"
_BPF = "acceptance/test_data_paths.py::test_a_slower_program_is_a_regression"
_FILLED = "datapath/test_filled_programs.py::test_a_program_forwards_by_what_its_maps_were_filled_with"
_BENEATH = "datapath/test_filled_programs.py::test_what_a_program_lets_pass_is_right_with_a_path_beneath"
_PAGE = "acceptance/test_program_pages.py::test_xdp_filter_with_rules"
_AFRESH = "unit/test_build_comparison.py::test_a_retry_of_what_is_plain_takes_two_pairs_and_afresh_it_takes_four"
MEASURED = {
    "affected": {
        "": "guest/test_affected.py::test_the_command_prints_values",
        "--history": "guest/test_affected.py::test_the_command_prints_values",
        "--format": "guest/test_affected.py::test_the_command_prints_values",
    },
    "gate": {
        "": "acceptance/test_real_gate.py::test_without_options_it_is_a_guest_of_constant_speed",
        "--profile": _REAL, "--testbed": _REAL, "--output": _REAL,
        "--scenario": "acceptance/test_data_paths.py::test_a_path_of_each_kind",
        "--measure": "acceptance/test_data_paths.py::test_a_path_of_each_kind",
        "--shard": "guest/test_comparison_cli.py::test_a_part_of_the_paths_is_measured_by_itself",
        "--workers": "guest/test_comparison_cli.py::test_workers_measure_all_paths_and_leave_one_report",
        "--paths": "guest/test_comparison_cli.py::test_builds_that_differ_in_nothing_pass_without_a_guest",
        "--baseline": "acceptance/test_verdicts.py::test_against_a_baseline",
        "--require-baseline": "acceptance/test_verdicts.py::test_a_required_baseline_that_there_is_not",
        "--resume": "acceptance/test_real_gate.py::test_ctrl_c_puts_everything_back_and_can_be_resumed",
        "--suite": "acceptance/test_real_gate.py::test_a_load_can_be_measured_and_asserted",
        "soak": "acceptance/test_latency_and_soak.py::test_a_soak_says_what_it_confirms",
        "retis": "acceptance/test_latency_and_soak.py::test_retis_looks_in_one_trial_more",
        "latency": "acceptance/test_latency_and_soak.py::test_latency_of_any_scenario",
        "--history": "acceptance/test_history.py::test_a_run_puts_itself_into_the_history",
        "--arch": "guest/test_arm64_guest.py::test_one_command_judges_two_architectures_with_a_column_for_each",
        "--kernel": _GUEST, "budget": _GUEST, "boots": _GUEST, "--tolerance": _GUEST,
        "--bpf": _BPF, "--against": _BPF,
        "program": "unit/test_cli.py::test_a_program_is_chosen_of_both_objects",
        "attach": _BENEATH, "maps": _FILLED, "rodata": _FILLED, "traffic": _PAGE, "fate": _PAGE,
        "frame_size": "unit/test_run_settings.py::test_a_change_is_made_to_each_path_that_can_have_it",
        "packets": "guest/test_packet_vectors_guest.py::test_equal_programs_pass_and_a_lookup_more_is_named",
        "--afresh": _AFRESH,
        "--quiet": "acceptance/test_verdicts.py::test_it_runs_from_any_folder_and_finds_its_own_suites_quietly",
        "--bisect": "guest/test_bisect.py::test_the_first_slow_build_of_a_list_is_found",
        "--spike-in": "unit/test_spike_in.py::test_a_pass_that_could_have_failed_says_so",
        "--help": "ci/test_ci_scripts.py::test_help_needs_neither_root_nor_compilers",
    },
    "doctor": {
        "": "datapath/test_doctor_netns.py::test_a_sound_testbed",
        "--kernel": "unit/test_doctor.py::test_a_testbed_for_kernels_without_one_is_told_to_be_given_one",
    },
    "calibrate": {
        "": "acceptance/test_verdicts.py::test_a_testbed_is_calibrated_and_later_runs_go_by_it",
        "--pairs": "acceptance/test_real_gate.py::test_a_testbed_is_calibrated",
        "--scenario": "acceptance/test_real_gate.py::test_a_testbed_is_calibrated",
        "--kernel": "guest/test_comparison_cli.py::test_a_build_is_gated_against_itself",
    },
    "bisect": {
        "": _BISECT, "--scenario": _BISECT, "--output": _BISECT, "--measure": _BISECT,
        "--bpf": "unit/test_bisection_steps.py::test_a_program_is_loaded_into_the_data_path_that_runs_it",
        "--each": "unit/test_bisection_steps.py::test_in_a_series_each_build_is_judged_against_the_one_before",
    },
    "notify": {
        "": "unit/test_news.py::test_each_way_and_each_series_is_reported_by_itself",
        "--of": "unit/test_news.py::test_each_way_and_each_series_is_reported_by_itself",
        "--history": "unit/test_news.py::test_each_chat_hears_of_a_change_once",
        "--webhook": "unit/test_news.py::test_each_chat_hears_of_a_change_once",
        "--link": "unit/test_news.py::test_each_chat_hears_of_a_change_once",
        "--mail": "unit/test_news.py::test_mail_goes_out_once",
        "--standing": "unit/test_news.py::test_what_stands_is_a_file_that_is_the_same_from_day_to_day",
    },
    "loads": {"": "guest/test_loads_guest.py::test_each_kernel_says_what_it_makes_of_a_program"},
    "build": {"": "unit/test_git_tree.py::test_a_revision_is_built_into_a_folder_for_another_machine"},
    "restore": {"": "datapath/test_knobs.py::test_restore_undoes_what_a_killed_run_left"},
    "fetch": {
        "": "unit/test_jenkins_builds.py::test_the_newest_that_is_kept_and_passed_is_the_pin",
        "--build": "unit/test_jenkins_builds.py::test_one_that_is_asked_for_by_name",
        "--in": "unit/test_jenkins_builds.py::test_of_several_the_one_in_a_folder",
    },
    "ci/gate": {"": "ci/test_ci_scripts.py::test_arguments_and_exit_code_pass_through"},
    "ci/build-from-env": {"": "ci/test_pipelines.py::test_a_change_and_the_commit_where_it_began_are_compiled"},
    "ci/test": {
        "": "ci/test_ci_scripts.py::test_arguments_go_to_pytest_whose_summary_is_the_last_line",
        "--all": "ci/test_ci_scripts.py::test_arguments_go_to_pytest_whose_summary_is_the_last_line",
    },
    "ci/bootstrap": {
        "": "ci/test_ci_scripts.py::test_the_first_leaves_pdrgate_ready",
        "--dev": "ci/test_ci_scripts.py::test_the_test_tools_come_with_dev_and_stay",
        "--arch": "ci/test_ci_scripts.py::test_what_boots_kernels_for_arm64_is_installed_where_it_is_named",
    },
    "ci/docs": {"": "unit/test_docs.py::test_the_site_has_all_pages_and_asks_nobody_for_anything"},
    "ci/lock": {"": "ci/test_ci_scripts.py::test_it_is_in_step_with_pyproject"},
    "ci/project-file": {
        "": "ci/test_pipelines.py::test_a_projects_file_is_the_default_branchs_and_never_the_changes",
    },
    "ci/gate-from-env": {"": "ci/test_pipelines.py::test_its_options_are_those_of_the_environment"},
    "ci/folder-digest": {
        "": "ci/test_pipelines.py::test_a_baseline_that_the_candidates_job_has_replaced_is_not_gated"
    },
    "ci/merge-from-env": {"": "ci/test_pipelines.py::test_a_gate_that_left_nothing_fails_the_whole"},
}  # fmt: skip


@dataclass(frozen=True)
class Documented:
    """A command as a page shows it."""

    page: str
    script: str
    """``pdrgate``, or one of ``ci/``."""
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """What it does: a subcommand of pdrgate's, or a script that is none."""
        if self.script == "pdrgate":
            return next((word for word in self.words if not word.startswith("-")), "")
        return "gate" if self.script == "ci/gate" else self.script

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the subcommand gets them; of one that is only named, none."""
        words = self.words[self.words.index(self.command) + 1 :] if self.script == "pdrgate" else self.words
        return () if self.command == "history" and words in _ONLY_NAMED else words

    @property
    def options(self) -> set[str]:
        """Those that it is given, without their values; of ``--set`` the keys."""
        set_keys = {word.partition("=")[0] for before, word in pairwise(self.arguments) if before == "--set"}
        return {word.partition("=")[0] for word in self.arguments if word.startswith("--")} - {"--set"} | set_keys


def documented(page: str, text: str) -> Iterator[Documented]:
    """The commands of a page, from its blocks and from what it sets as code in a sentence."""
    spans = [block[0] for block in _BLOCKS.finditer(text)]
    spans += [code[1].replace("\n", " ") for code in _INLINE.finditer(_BLOCKS.sub("", text))]
    for span in spans:
        for script, rest in _COMMAND.findall(_COMMENT.sub("", span.replace("\\\n", " "))):
            words = tuple(_META.get(word, word) for word in _split(rest))
            if (words or script != "pdrgate") and not _NO_COMMAND & set(words):
                yield Documented(page, script, tuple(filter(None, words)))


def _split(rest: str) -> list[str]:
    """Words, as the shell makes them; the command itself may be within a quotation that ends after it."""
    for ending in ("", "'", '"'):
        try:
            return shlex.split(rest.removesuffix(ending))
        except ValueError:
            continue
    # Another command follows where the quotation ends.
    return shlex.split(rest.rpartition("'")[0])


COMMANDS = [one for page in PAGES for one in documented(page.name, page.read_text())]


def parsed(one: Documented) -> click.Context:
    """What the command line makes of it; nothing is run."""
    command: click.Command = cli.commands[one.command]
    words = list(one.arguments)
    context = click.Context(cli, info_name="pdrgate")
    while isinstance(command, click.Group) and words:
        command = command.commands[words.pop(0)]
    return command.make_context(command.name, words, parent=context)


def test_they_are_found() -> None:
    text = (
        '`pdrgate report RUN --format markdown >> "$X"` and `pdrgate` and `./ci/gate OPTIONS`\n\n'
        "    KERNEL=a TOLERANCE=2% ./ci/gate-from-env\n    sudo gate/bin/pdrgate gate --suite 'a b' # c\n"
        "    ./ci/gate --kernel a \\\n        --against b && x\n\nExecStart=/no/command\n"
        '```sh\n"$GATE/ci/gate" --bisect\'\n```\n'
    )
    assert [(one.script, one.words) for one in documented("", text)] == [
        ("ci/gate-from-env", ()), ("pdrgate", ("gate", "--suite", "a b")),
        ("ci/gate", ("--kernel", "a", "--against", "b")), ("ci/gate", ("--bisect",)),
        ("pdrgate", ("report", _META["RUN"], "--format", "markdown")),
    ]  # fmt: skip
    assert len(COMMANDS) > 100
    assert {one.page for one in COMMANDS} >= {"README.md", "tutorial.md", "ci.md", "watch.md", "bisect.md"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the git tree that the pages name: a branch, and the tags of releases."""
    folder = tmp_path_factory.mktemp("home")
    tree = made_tree(folder / "linux")
    for tag in ("GOOD", "v6.12"):
        tree.git("tag", tag)
    tree.git("checkout", "--quiet", "-b", "my-branch")
    tree.commit("int b;")
    tree.git("tag", "v6.12.3")
    return folder


@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: f"{one.page}:{' '.join((one.script, *one.words))}"[:80])
def test_the_command_line_takes_it(one: Documented, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    if any(word.startswith(".@") for word in one.words):
        monkeypatch.chdir(home / "linux")
    if one.command not in cli.commands or not one.arguments or "--help" in one.options:
        assert not one.arguments or one.command.startswith("ci/") or "--help" in one.options
        return
    with parsed(one) as context:
        given = dict(context.params)
    if one.command == "gate" and given["resume"] is None:
        given = said(context)
        given.pop("workers", None)  # which this machine may have too few CPUs for
        given.setdefault("testbed", default_testbed("kernel" in given)[0])
        if "bpf" in given:
            given["scenarios"] = ("path-xdp-ipv4",)  # else the object, which is not there, says which
            given.pop("packets", None)  # nor is the capture
        if not found(given["testbed"]).is_file():
            given["testbed"] = Path("resources/testbeds/rack-trex.yaml")  # in place of a reader's own
        _asked(**given)
    testbed = given.get("testbed")
    if testbed is not None and str(testbed).startswith("resources/"):
        assert found(testbed).is_file()


def test_each_chooses_tests_that_there_are() -> None:
    own = [
        one
        for one in COMMANDS
        if one.command == "gate" and "--scenario" in one.options and "--suite" not in one.options
    ]
    scenarios = {one.arguments[one.arguments.index("--scenario") + 1] for one in own}
    files = {scenario for scenario in scenarios if scenario.endswith(".yaml")}
    assert all((ROOT / file).exists() for file in files)
    listed((Path("robot/gate"),), sorted(scenarios - files))


def test_each_that_measures_is_run_by_a_test() -> None:
    unknown, gone = set(), set()
    for one in COMMANDS:
        if one.command in READS or not one.command:
            continue
        known = MEASURED[one.command]
        unknown |= {f"{one.command} {option}" for option in one.options or {""} if option not in known}
        if one.script != "pdrgate":
            unknown |= {one.script} - MEASURED.keys()
    for place in {place for known in MEASURED.values() for place in known.values()}:
        file, name = place.split("::")
        if not re.search(rf"^ *def {name}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE):
            gone.add(place)
    assert unknown == set(), "name the test that runs it in MEASURED"
    assert gone == set()


def test_each_that_reads_does_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path)
    for history in ((), ("--history", "watched.db")):
        assert main(["history", "import", "results", *history]) == 0
    wrong = {}
    for one in COMMANDS:
        if one.command in READS and one.arguments:
            code = main([*one.words])
            told = capsys.readouterr()
            if code not in ((0, 1) if one.command in _MAY_FAIL else (0,)):
                wrong[" ".join(one.words)] = (code, told.err)
    assert wrong == {}


def stored(folder: Path) -> None:
    """What the pages name: runs of two days, a link to the newest, gates of several machines."""
    for name, day in (("20261101-120000", 1.0), ("20261102-120000", 2.0)):
        run = written(folder / "results" / name, compared(), scenario(), started=86400.0 * day)
        trials = [
            changed(trial(number), phase=Phase.REPEAT, boot="abcd", started=86400 * day + number)
            for number in range(1, 9)
        ]
        (run / TRIALS_FILE).write_text("".join(f"{one.to_json()}\n" for one in trials))
    (folder / "results/latest").symlink_to("20261102-120000")
    for number, name in enumerate(("rack-a", "rack-b", "steady-guest"), 1):
        measured = changed(scenario(), measurands=(pdr(),))
        written(folder / "gates" / name / "20261101-120000", measured, started=float(number))
