"""The pipelines that a CI owner copies: their files against the published schemas, each executed as a whole, and its
shell parts by themselves.

No Jenkins, no GitHub and no GitLab is here. The shell runs as each of them runs it, with the variables that it sets;
the gate itself is a script that notes its options and leaves a result. What compiles is pdrgate, from git trees whose
kernel is one C file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner
from github_runner import GitHub, Job
from gitlab_runner import GitLab
from jenkins_runner import JenkinsBuild, built, runs_here
from jenkins_server import Build, Jenkins, serving
from made_results import compared, result, scenario, written
from made_trees import Tree, made_tree
from request_server import Comments, keeping

from pdrgate.builds.named_build import named_build
from pdrgate.cli import cli
from pdrgate.history.results import encoded

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
MERGE_ACTION = ROOT / "ci/github/merge/action.yml"
KERNEL_ACTION = ROOT / "ci/github/kernel/action.yml"
WORKFLOW = ROOT / "ci/github/kernel-gate.yml"
RELEASE = ROOT / ".github/workflows/release.yml"
TEMPLATE = ROOT / "ci/gitlab/pdrgate.gitlab-ci.yml"

Done = subprocess.CompletedProcess[str]

HOSTILE = (
    "a b.deb", '"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "a\ntouch pwned\n",
    "--help", "--bisect", "${PATH}", "*", "%0A::error::x",
)  # fmt: skip

GATE = """#!/bin/bash
printf '%s\\0' "$@" >options
printf '%s' "${PDRGATE_HISTORY:-}" >history
for option; do case $option in --output=*) output=${option#*=} ;; esac; done
[[ -z $SAID ]] || printf '%s\\n' "$SAID"
if [[ -n ${HOLDS_ON:-} ]]; then
    trap 'touch put-back; echo interrupted; exit 143' TERM
    touch began
    while :; do sleep 0.1; done
fi
for word in "$@"; do
    [[ $word != --project=* ]] || cp "${word#--project=}" project
done
env >environment
if [[ -n $RESULT ]]; then
    mkdir "$output/20261101-120000"
    printf '%s' "$RESULT" >"$output/20261101-120000/result.json"
    ln -sfn 20261101-120000 "$output/latest"
fi
exit "$CODE"
"""
_BUILD = """import sys
from pdrgate.__main__ import begin
from pdrgate.builds.git_tree import tree_build
tree_build._check_tools = lambda revision, configuration: None
sys.exit(begin())"""
"""The command, for a tree that needs no more than a compiler."""
_HEADLINE = """import json, sys
print("{verdict}: {reason}".format_map(json.load(open(sys.argv[1] + "/result.json"))).replace(chr(10), " "))"""
"""The headline of a result that is no more than a verdict."""
REPORT = f"""#!/bin/bash
[[ $REAL || $1/$3/$4 != report/--format/sentence ]] || exec {sys.executable} -I -c '{_HEADLINE}' "$2"
[[ $REAL || $1/$2/$3/$4 != report/*/20261101-120000/--format/markdown ]] || exec echo '| the table |'
if [[ $1 = merge && -n ${{HOLDS_ON:-}} ]]; then
    trap 'touch put-back; echo interrupted; exit 143' TERM
    touch began
    while :; do sleep 0.1; done
fi
if [[ $1 = merge && -z $REAL ]]; then
    printf '%s\\0' "${{@:3}}" >merged-options
    into=${{2#--into=}}
    touch "$into/merged.json"
    echo '| all tables |' >"$into/summary.md"
    printf 'ERROR: $(touch pwned)\\n\\nmore of it\\n'
    exit 2
fi
if [[ $1 = trend && -z $REAL ]]; then
    printf '%s\\n' "$*" >>trends
    exec echo '**1 got worse**'
fi
[[ $1 != build ]] || PYTHONPATH={ROOT / "libraries"} exec {sys.executable} -c '{_BUILD}' "$@"
PYTHONPATH={ROOT / "libraries"} exec {sys.executable} -m pdrgate.cli "$@"
"""
CCACHE = """#!/bin/sh
case $1 in --max-size=*) exit ;; esac
exec "$@"
"""


@dataclass
class Checkout:
    """The real scripts of ci/, with a gate that only notes how it was called."""

    root: Path

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "ci", self.root / "ci")
        shutil.copy(ACTION, self.root)
        script = {
            "ci/gate": GATE,
            "ci/bootstrap": "#!/bin/sh\n",
            ".venv/bin/pdrgate": REPORT,
            "tools/ccache": CCACHE,
        }
        (self.root / ".venv/bin").mkdir(parents=True)
        (self.root / "tools").mkdir()
        for name, text in script.items():
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        (self.root / ".venv/bin/python").symlink_to(sys.executable)


@dataclass
class Work:
    """A workspace of a pipeline beside a checkout, and how a step is run in it."""

    checkout: Checkout
    folder: Path

    def run(
        self, *command: str, code: int = 0, verdict: str = "PASS", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        found = "" if verdict == "none" else json.dumps({"verdict": verdict, "reason": "because\n$(touch pwned)"})
        known = self.known | {"CODE": str(code), "RESULT": found}
        return subprocess.run(
            command, cwd=self.folder, env=known | environment, capture_output=True, text=True, check=False, timeout=60
        )  # fmt: skip

    @property
    def known(self) -> dict[str, str]:
        # Most tests name nothing to compare with.
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SAID": "", "UNCOMPARED": "true"}

    def cancelled(self, script: str, number: signal.Signals, *words: str, **environment: str) -> tuple[int, str]:
        """Exit code and output of a step whose shell alone is told to end, once what it waits for has begun."""
        with subprocess.Popen(
            (str(self.checkout.root / "ci" / script), *words), cwd=self.folder, text=True, stdout=subprocess.PIPE,
            env=self.known | {"HOLDS_ON": "1", "RESULT": "", "CODE": "0"} | environment, start_new_session=True,
        ) as step:  # fmt: skip
            while not (self.folder / "began").exists():
                assert step.poll() is None
                time.sleep(0.05)
            step.send_signal(number)
            out, _ = step.communicate(timeout=60)
        return step.returncode, out

    def gate(self, **given: Any) -> Done:
        return self.run(str(self.checkout.root / "ci/gate-from-env"), **given)

    @property
    def options(self) -> list[str]:
        """But for where runs, noise and tries are kept."""
        return [one for one in self.all_options if not one.startswith("--history=")]

    @property
    def all_options(self) -> list[str]:
        return (self.folder / "options").read_bytes().decode().split("\0")[:-1]

    @property
    def kept_in(self) -> Path:
        (history,) = [one for one in self.all_options if one.startswith("--history=")]
        return Path(history.removeprefix("--history=")).parent

    def told(self, name: str = "verdict.txt", output: str = "results") -> str:
        return (self.folder / output / name).read_text()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    (tmp_path / "workspace").mkdir()
    yield Work(Checkout(tmp_path / "pdrgate"), tmp_path / "workspace")
    assert not list(tmp_path.rglob("pwned"))


class TestGateFromEnv:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    @pytest.mark.parametrize("script", ["gate-from-env", "github/gate"])
    def test_a_gate_hears_of_a_pipeline_that_is_cancelled(
        self, work: Work, script: str, number: signal.Signals
    ) -> None:
        told = {name: str(work.folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        code, out = work.cancelled(script, number, **told)
        assert (code, (work.folder / "put-back").exists()) == (143, True)
        assert "interrupted\n" in out
        assert work.told() == "stopped with exit code 143: interrupted\n"

    def test_its_options_are_those_of_the_environment(self, work: Work) -> None:
        done = work.gate(
            KERNEL="k.deb", AGAINST="b.deb", BPF="", COST_TOLERANCE="2%", HISTORY="h.db", BASELINE="results",
            SPIKE_IN="true",
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(work.options) == sorted(
            ["--output=results", "--kernel=k.deb", "--against=b.deb", "--cost-tolerance=2%",
             "--baseline=results", "--spike-in"]
        )  # fmt: skip
        assert work.told("summary.md").startswith("| the table |\n\nOver the last 10 runs of the history:\n\n**1 got")
        asked = [line.split() for line in (work.folder / "trends").read_text().splitlines()]
        assert asked[1] == ["trend", "--page=results/trend.html"]
        # A password may stand in it: it is on no command line.
        assert (work.folder / "history").read_text() == "h.db"
        for words in asked:
            cli.commands["trend"].make_context("trend", words[1:])

    def test_tries_are_kept_where_it_is_said_and_nowhere_in_the_workspace(self, work: Work) -> None:
        """A change may put a history of its own into any folder of the workspace."""
        (work.folder / "results").mkdir()
        (work.folder / "results/history.db").write_text("forged")
        assert work.gate().returncode == 0
        fresh = work.kept_in
        assert fresh.is_absolute()
        assert not fresh.is_relative_to(work.folder)
        assert not fresh.exists()
        keep = work.folder.parent / "kept $(touch pwned)"
        assert work.gate(KEEP=str(keep), OUTPUT="again").returncode == 0
        assert work.kept_in == keep
        (work.folder / "options").unlink()
        refused = work.gate(KEEP="results")
        assert refused.returncode == 64
        assert "name an absolute path, outside of what the change can write" in work.told()
        assert not (work.folder / "options").exists()

    def test_nothing_is_written_through_what_a_change_has_left_in_the_workspace(self, work: Work) -> None:
        victim = work.folder.parent / "victim"
        victim.write_text("whole")
        (work.folder / "results").mkdir()
        for name in ("verdict.txt", "summary.md", "console.txt", "baseline.json", "planted"):
            (work.folder / "results" / name).symlink_to(victim)
        assert work.gate().returncode == 0
        assert victim.read_text() == "whole"
        assert not (work.folder / "results/planted").is_symlink()  # an upload would follow it
        shutil.rmtree(work.folder / "results")
        (work.folder / "results").symlink_to(work.folder.parent)
        refused = work.gate()
        assert (refused.returncode, refused.stdout) == (64, "")
        assert "results is a link" in refused.stderr

    @pytest.mark.parametrize("script", ["gate-from-env", "merge-from-env", "build-from-env", "github/gate"])
    @pytest.mark.parametrize("output", ["link", "link/below", "real/link/", "./link//below", "dangling/x", "absolute"])
    def test_no_script_writes_behind_a_link(self, work: Work, script: str, output: str) -> None:
        victim = work.folder.parent / "victim"
        (victim / "below").mkdir(parents=True)
        for name in ("verdict.txt", "summary.md", "candidate/file"):
            for folder in (victim, victim / "below"):
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text("whole")
        before = {path: path.read_text() for path in victim.rglob("*") if path.is_file()}
        (work.folder / "link").symlink_to(victim)
        (work.folder / "real").mkdir()
        (work.folder / "real/link").symlink_to(victim)
        (work.folder / "dangling").symlink_to(victim.with_name("nowhere"))
        told = {name: str(work.folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        where = str(work.folder / "link/below") if output == "absolute" else output
        done = work.run(str(work.checkout.root / "ci" / script), OUTPUT=where, RUNS="gates", TREE=".", **told)
        assert (done.returncode, done.stdout) == (64, "")
        assert re.fullmatch(r"ci/\S+: \S+ is a link, and may lead anywhere; name a folder as OUTPUT\n", done.stderr)
        assert {path: path.read_text() for path in victim.rglob("*") if path.is_file()} == before
        assert not victim.with_name("nowhere").exists()
        assert not any(map(os.path.exists, told.values()))

    def test_no_value_is_shell_code_or_an_option(self, work: Work) -> None:
        names = ("KERNEL", "BPF", "AGAINST", "TESTBED", "SCENARIO", "PROFILE", "TOLERANCE", "BASELINE", "BUDGET")
        for first in (0, len(HOSTILE) - len(names)):
            values = dict(zip(names, HOSTILE[first:], strict=False))
            assert work.gate(OUTPUT=f"out {first}", **values).returncode == 0
            wanted = {f"--{name.lower()}={value}" for name, value in values.items() if name != "BUDGET"}
            assert set(work.options) == wanted | {f"--output=out {first}", f"--set=budget={values['BUDGET']}"}

    @pytest.mark.parametrize(
        ("code", "verdict", "exit_code", "told"),
        [
            (0, "PASS", 0, "PASS: because $(touch pwned)"),
            (1, "REGRESSION", 1, "REGRESSION: because $(touch pwned)"),
            (3, "INCONCLUSIVE", 3, "undecided: INCONCLUSIVE: because $(touch pwned)"),
            (2, "DISTURBED", 2, "testbed fault: DISTURBED: because $(touch pwned)"),
            (130, "ERROR", 130, "stopped with exit code 130: ERROR: because $(touch pwned)"),
            (2, "none", 2, "testbed fault: pdrgate: no `QEMU`"),
            (64, "none", 64, "wrong parameters: pdrgate: no `QEMU`"),
            (0, "none", 2, "testbed fault: pdrgate: no `QEMU`"),
        ],
    )  # fmt: skip
    def test_what_came_of_it(self, work: Work, code: int, verdict: str, exit_code: int, told: str) -> None:
        (work.folder / "results/20261031-120000").mkdir(parents=True)
        (work.folder / "results/20261031-120000/result.json").write_text('{"verdict": "PASS", "reason": "earlier"}')
        (work.folder / "results/latest").symlink_to("20261031-120000")
        done = work.gate(code=code, verdict=verdict, SAID="a run\npdrgate: no `QEMU`")
        assert (done.returncode, work.told()) == (exit_code, f"{told}\n")
        assert not (work.folder / "results/latest").is_symlink()
        assert done.stdout == work.told("console.txt") == "a run\npdrgate: no `QEMU`\n"
        if verdict == "none":
            assert work.told("summary.md") == f"**pdrgate** `{told.replace('`', chr(39))}`\n"

    def test_a_variable_says_whether_an_undecided_run_passes(self, work: Work) -> None:
        for word, code in (("pass", 0), ("fail", 3), ("", 3)):
            out = f"out-{word}"
            assert work.gate(code=3, verdict="INCONCLUSIVE", UNDECIDED=word, OUTPUT=out).returncode == code
            assert work.told(output=out).startswith("undecided: INCONCLUSIVE: ")
        assert work.gate(code=1, verdict="REGRESSION", UNDECIDED="pass").returncode == 1
        for template in (ACTION, MERGE_ACTION, ROOT / "Jenkinsfile", TEMPLATE):
            assert re.search(r"\bUNDECIDED\b", template.read_text())

    def test_its_summary_is_the_run_as_markdown(self, work: Work) -> None:
        assert work.gate(RESULT=encoded(result(scenario())).decode(), REAL="1").returncode == 0
        assert work.told("summary.md").startswith("**NO_BASELINE:** because\n")
        assert work.told() == "NO_BASELINE: because\n"

    @pytest.mark.parametrize(
        ("given", "wrong", "right"),
        [
            ({"COST_TOLERENCE": "5%"}, "COST_TOLERENCE", "COST_TOLERANCE"),
            ({"SCENARIOS": "path-nat"}, "SCENARIOS", "SCENARIO"),
            ({"AGANIST": "old.deb"}, "AGANIST", "AGAINST"),
            ({"PDRGATE_KERNEL": "new.deb"}, "PDRGATE_KERNEL", "KERNEL"),
            ({"PACKET": "some.pcap"}, "PACKET", "PACKETS"),
            ({"FATES": "dropped"}, "FATES", "FATE"),
            ({"TESTBEDS": "rack.yaml"}, "TESTBEDS", "TESTBED"),
            ({"fate": "dropped"}, "fate", "FATE"),
            ({"Cost_Tolerance": "5%"}, "Cost_Tolerance", "COST_TOLERANCE"),
            ({"FRAMESIZE": "64"}, "FRAMESIZE", "FRAME_SIZE"),
            ({"COST-TOLERANCE": "5%"}, "COST-TOLERANCE", "COST_TOLERANCE"),
        ],
    )
    def test_a_variable_that_is_nearly_one_is_refused(
        self, work: Work, given: dict[str, str], wrong: str, right: str
    ) -> None:
        done = work.gate(KERNEL="a.deb", AGAINST="b.deb", code=64, verdict="none", **given)
        assert done.returncode == 64
        assert work.told() == (
            f"wrong parameters: ci/gate-from-env: there is no variable {wrong}; did you mean {right}?\n"
        )
        assert not (work.folder / "options").exists()

    @pytest.mark.parametrize("name", ["FLOWS", "FRAME_SIZE", "WORKERS", "SUITE", "BOOTS"])
    def test_a_key_or_an_option_that_is_no_variable_is_refused_and_not_ignored(self, work: Work, name: str) -> None:
        done = work.gate(KERNEL="a.deb", AGAINST="b.deb", code=64, verdict="none", **{name: "2"})
        assert done.returncode == 64
        assert work.told().startswith(f"wrong parameters: ci/gate-from-env: there is no variable {name}; docs/ci.md ")
        assert not (work.folder / "options").exists()

    @pytest.mark.parametrize(
        ("name", "value", "right"),
        [
            ("UNDECIDED", "passed", "pass or fail"),
            ("SPIKE_IN", "yes", "true or false"),
            ("UNCOMPARED", "1", "true or false"),
            ("KEEP", "kept", "an absolute path, outside"),
            ("PROJECT", "pdrgate.yaml", "an absolute path, outside"),
        ],
    )
    def test_a_value_that_a_variable_cannot_have_is_refused_in_the_verdicts_line(
        self, work: Work, name: str, value: str, right: str
    ) -> None:
        done = work.gate(code=64, verdict="none", **{"KERNEL": "a.deb", "AGAINST": "b.deb", name: value})
        assert done.returncode == 64
        assert work.told().startswith(f"wrong parameters: ci/gate-from-env: {name} is {value}; ")
        assert right in work.told()
        assert not (work.folder / "options").exists()

    def test_variables_of_a_machines_own_are_no_misspelled_ones(self, work: Work) -> None:
        others = ("SHELL", "DATE", "MAP", "KERNELS", "PDRGATE_COMMIT", "CI_COMMIT_SHA", "TARGET", "USER")
        assert work.gate(**dict.fromkeys(others, "1"), COST_TOLERENCE="").returncode == 0

    @pytest.mark.parametrize(
        ("given", "compares"),
        [
            ({}, False),
            ({"KERNEL": "", "AGAINST": "", "BASELINE": ""}, False),
            ({"BPF": "new.o"}, False),
            ({"BPF": "new.o", "AGAINST": "old.o"}, True),
            ({"KERNEL": "linux@topic"}, True),
            ({"BASELINE": "results"}, True),
            ({"UNCOMPARED": "true"}, True),
        ],
    )
    def test_a_gate_that_would_compare_nothing_is_refused(
        self, work: Work, given: dict[str, str], compares: bool
    ) -> None:
        done = work.gate(**({"UNCOMPARED": "false"} | given), code=0 if compares else 64)
        assert done.returncode == (0 if compares else 64)
        assert (work.folder / "options").exists() is compares
        assert compares or work.told().startswith("wrong parameters: ci/gate-from-env: nothing would be compared: ")

    def project(self, work: Work, *, file: str | None = "acknowledged: []\n", link: bool = False) -> str:
        """The address of a repository with that file on its default branch, and a muting one on the change's."""
        folder = work.folder.parent / "project"
        folder.mkdir()
        git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
        if link:
            (folder / "pdrgate.yaml").symlink_to("/etc/passwd")
        elif file is not None:
            (folder / "pdrgate.yaml").write_text(file)
        for branch, text in (("", ""), ("change", "acknowledged: all\n")):
            if branch:
                subprocess.run([*git, "checkout", "--quiet", "-b", branch], check=True)
                (folder / "pdrgate.yaml").unlink(missing_ok=True)
                (folder / "pdrgate.yaml").write_text(text)
            subprocess.run([*git, "add", "--all"], check=True)
            subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True)
        subprocess.run([*git, "checkout", "--quiet", "main"], check=True)
        return folder.as_uri()

    def test_a_projects_file_is_the_default_branchs_and_never_the_changes(self, work: Work) -> None:
        (work.folder / "pdrgate.yaml").write_text("acknowledged: all\n")
        done = work.gate(KERNEL="a", AGAINST="b", PROJECT_OF=self.project(work), PROJECT_TOKEN="s3cret")
        assert done.returncode == 0
        assert (work.folder / "project").read_text() == "acknowledged: []\n"
        assert not any("s3cret" in (work.folder / name).read_text() for name in ("environment", "results/console.txt"))

    def test_a_branch_that_is_named_is_taken(self, work: Work) -> None:
        assert work.gate(KERNEL="a", AGAINST="b", PROJECT_OF=self.project(work), PROJECT_REF="change").returncode == 0
        assert (work.folder / "project").read_text() == "acknowledged: all\n"

    def test_a_project_without_the_file_is_gated_without(self, work: Work) -> None:
        assert work.gate(KERNEL="a", AGAINST="b", PROJECT_OF=self.project(work, file=None)).returncode == 0
        assert not any(one.startswith("--project") for one in work.options)

    @pytest.mark.parametrize("kind", ["missing", "link", "command"])
    def test_a_project_that_cannot_be_read_is_a_testbed_fault(self, work: Work, kind: str) -> None:
        places = {"missing": "file:///nowhere", "command": "ext::sh -c touch% pwned", "link": ""}
        of = places[kind] or self.project(work, link=True)
        done = work.gate(KERNEL="a", AGAINST="b", PROJECT_OF=of, code=0)
        assert done.returncode == 2
        assert work.told().startswith("testbed fault: ci/project-file: ")
        assert not (work.folder / "options").exists()

    @pytest.mark.parametrize("more", [{"PROJECT": "pdrgate.yaml"}, {"PROJECT": "/p.yaml", "PROJECT_OF": "file:///p"}])
    def test_a_file_that_the_change_could_write_is_refused(self, work: Work, more: dict[str, str]) -> None:
        assert work.gate(KERNEL="a", AGAINST="b", **more).returncode == 64
        assert not (work.folder / "options").exists()

    @pytest.mark.parametrize(("file", "code"), [("gate: {against: v6.12}\n", 0), ("acknowledged: []\n", 64)])
    def test_a_project_may_name_what_is_compared_with(self, work: Work, file: str, code: int) -> None:
        done = work.gate(KERNEL="a", UNCOMPARED="false", PROJECT_OF=self.project(work, file=file))
        assert done.returncode == code

    def test_what_an_ebpf_program_is_measured_with_are_variables_too(self, work: Work) -> None:
        said = {
            "FATE": "dropped", "MAPS": "maps.yaml", "ATTACH": "xdp-generic", "PACKETS": "some.pcap",
            "REPLACES": "d.o:main/f", "DATA_PATH": "bare-ipv4",
        }  # fmt: skip
        assert work.gate(BPF="new.o", AGAINST="old.o", RODATA="a=1\nb=$(touch pwned)\n", **said).returncode == 0
        wanted = {f"--set={name.lower()}={value}" for name, value in said.items()}
        wanted |= {"--set=rodata=a=1", "--set=rodata=b=$(touch pwned)"}
        assert wanted < set(work.options)
        for template in (ACTION, ROOT / "Jenkinsfile"):
            text = template.read_text()
            assert all(re.search(rf"\b{name}\b", text) for name in (*said, "RODATA", "UNCOMPARED"))

    def test_a_result_that_cannot_be_read_is_a_fault(self, work: Work) -> None:
        assert work.gate(RESULT="{", SAID="the end").returncode == 2
        assert work.told() == "testbed fault: the end\n"

    def test_a_baseline_of_a_jenkins_job(self, work: Work) -> None:
        kept = encoded(result(scenario()))
        archive = {"gate/rack/default/x/result.json": kept, "gate/vm/default/x/result.json": b"{}"}
        with serving(Jenkins({"gate": [Build(1, keep=True, archive=archive)], "new": [Build(1)]})) as jenkins:
            assert work.gate(BASELINE=jenkins.job("gate"), BASELINE_IN="rack/default").returncode == 0
            assert "--baseline=results/baseline.json" in work.options
            assert (work.folder / "results/baseline.json").read_bytes() == kept
            (work.folder / "options").unlink()
            assert work.gate(BASELINE=jenkins.job("new"), OUTPUT="new").returncode == 2
        assert work.told(output="new").startswith("testbed fault: pdrgate: job new keeps no build forever, so that no ")
        assert not (work.folder / "options").exists()


MERGED = {"RUNS": "gates/a\n\n$(touch pwned)\n--help\n", "OUTPUT": "merged"}
"""One gate that left a run, and two that left nothing."""


def check_merged(work: Work, done: Done) -> None:
    assert done.returncode == 2, done.stderr
    assert (work.folder / "merged-options").read_text() == "--\0gates/a\0$(touch pwned)\0--help\0"
    assert work.told(output="merged") == "testbed fault: ERROR: $(touch pwned)\n"
    assert work.told("summary.md", "merged") == "| all tables |\n"


class TestMergeFromEnv:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    @pytest.mark.parametrize("words", [("merge-from-env",), ("github/gate", "merge-from-env")], ids=" ".join)
    def test_a_merge_hears_of_a_pipeline_that_is_cancelled(
        self, work: Work, words: tuple[str, ...], number: signal.Signals
    ) -> None:
        told = {name: str(work.folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        script, *further = words
        code, out = work.cancelled(script, number, *further, REAL="1", **MERGED, **told)
        assert (code, (work.folder / "put-back").exists()) == (143, True)
        assert "interrupted\n" in out
        assert work.told(output="merged") == "stopped with exit code 143: interrupted\n"

    def test_a_gate_that_left_nothing_fails_the_whole(self, work: Work) -> None:
        written(work.folder / "gates/a/20261101-120000", compared())
        done = work.run(str(work.checkout.root / "ci/merge-from-env"), REAL="1", **MERGED)
        assert done.returncode == 2, done.stderr
        told = "testbed fault: ERROR: $(touch pwned): no result: no run lies in $(touch pwned): "
        assert work.told(output="merged").startswith(told)
        assert work.told("summary.md", "merged").startswith("**ERROR:** ")
        assert (work.folder / "merged/summary.html").is_file()

    def test_nothing_passes_that_the_ci_says_has_failed(self, work: Work) -> None:
        written(work.folder / "gates/a/20261101-120000", compared())
        script = str(work.checkout.root / "ci/merge-from-env")
        for word, code in (("success", 0), ("failure", 2), ("cancelled", 2), ("skipped", 2), ("--help", 2)):
            done = work.run(script, REAL="1", RUNS="gates", OUTPUT="merged", GATES=word)
            assert done.returncode == code, done.stdout + done.stderr
        assert work.told(output="merged").startswith("testbed fault: ERROR: the gates: the CI says")
        assert work.run(script, REAL="1", RUNS="gates", OUTPUT="merged", PDRGATE_COMMIT="a" * 40).returncode == 2
        assert "is of no commit" in work.told(output="merged")

    def test_no_run_at_all(self, work: Work) -> None:
        done = work.run(str(work.checkout.root / "ci/merge-from-env"), REAL="1", RUNS="", OUTPUT="merged")
        assert done.returncode == 64
        assert work.told(output="merged").startswith("stopped with exit code 64: pdrgate: Missing argument 'RUN...'")
        assert work.told("summary.md", "merged").startswith("**pdrgate** `stopped")


@dataclass(frozen=True)
class Change:
    """A branch of a kernel's repository, and the branch that it goes to, which went on."""

    tree: Tree
    base: str
    head: str
    newer: str

    @property
    def folder(self) -> Path:
        return self.tree.folder


def committed(folder: Path) -> Path:
    """The folder, as a repository with all of it on main."""
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    for words in (("init",), ("add", "--force", "."), ("commit", "--message", "all")):
        subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, check=True)
    return folder


def changed(folder: Path, line: str = "int of_the_change;") -> Change:
    """A change that puts this line into the kernel, in a tree that whoever asks gets any commit of."""
    tree = made_tree(folder)
    base = tree.commit("int of_the_base;")
    tree.git("checkout", "--quiet", "-b", "topic")
    head = tree.commit(line)
    tree.git("checkout", "--quiet", "main")
    newer = tree.commit("int newer;")
    for name in ("allowAnySHA1InWant", "allowFilter"):
        tree.git("config", f"uploadpack.{name}", "true")
    tree.git("checkout", "--quiet", "topic")
    return Change(tree, base, head, newer)


def lines_of(kernel: Path) -> set[str]:
    """Which commit a kernel was compiled of."""
    known = {"of_the_change", "of_the_base", "newer"}
    image = (kernel / "vmlinux").read_bytes()
    assert named_build(str(kernel)).label.startswith(kernel.name)
    return {word for word in known if word.encode() in image}


@pytest.mark.skipif(not all(map(shutil.which, ("git", "make", "gcc"))), reason="git, make or gcc is not installed")
class TestBuildFromEnv:
    def build(self, work: Work, **given: str) -> tuple[int, str]:
        script = str(work.checkout.root / "ci/build-from-env")
        done = work.run(script, **{"TREE": "../linux", "TARGET": "main", **given})
        return done.returncode, work.told(output="builds").strip()

    def test_a_change_and_the_commit_where_it_began_are_compiled(self, work: Work) -> None:
        change = changed(work.folder.parent / "linux")
        assert self.build(work) == (0, "built: baseline candidate")
        assert lines_of(work.folder / "builds/candidate") == {"of_the_change"}
        assert lines_of(work.folder / "builds/baseline") == {"of_the_base"}
        assert self.build(work, SIDE="baseline", BASELINE=change.newer, TARGET="") == (0, "built: baseline")
        assert lines_of(work.folder / "builds/baseline") == {"newer"}
        assert not (work.folder / "builds/candidate").exists()

    def test_a_change_that_does_not_compile_is_to_blame_and_a_baseline_is_not(self, work: Work) -> None:
        change = changed(work.folder.parent / "linux", "int b = c;")
        code, told = self.build(work)
        assert code == 1
        assert re.match(r"linux@v1-2-g\w{12}: does not compile: net.c:1:9: error: ", told)
        code, told = self.build(work, BASELINE=change.head, CANDIDATE="main")
        assert code == 2
        assert told.startswith("testbed fault: linux@v1-2-g")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_make_ends_with_a_pipeline_that_is_cancelled(self, work: Work, number: signal.Signals) -> None:
        """A CI tells the step's shell alone; make and its compilers are three processes further down."""
        changed(work.folder.parent / "linux")
        tools = work.checkout.root / "tools"
        make = tools / "make"
        make.write_text(f"#!/bin/bash\necho $$ >{work.folder}/make.pid\ntouch {work.folder}/began\nexec sleep 600\n")
        make.chmod(0o755)
        # A sandbox has no make but the system's; that it ends is tested in tests/unit/test_hostile_trees.py.
        told = {"TREE": "../linux", "TARGET": "main", "HOLDS_ON": "", "PATH": f"{tools}:{os.environ['PATH']}"}
        told["PDRGATE_UNCONFINED"] = "1"
        code, _ = work.cancelled("build-from-env", number, **told)
        assert code == 143
        assert work.told(output="builds").startswith("testbed fault: ")
        assert not Path(f"/proc/{(work.folder / 'make.pid').read_text().strip()}").exists()

    def test_a_history_that_is_cut_off_is_told(self, work: Work) -> None:
        change = changed(work.folder.parent / "linux")
        cut = work.folder.parent / "cut"
        for words in (
            ("clone", "--depth=1", "--branch=topic", f"file://{change.folder}", str(cut)),
            ("-C", str(cut), "fetch", "--depth=1", "origin", "main:main"),
        ):
            subprocess.run(["git", *words], check=True, capture_output=True)
        code, told = self.build(work, TREE="../cut")
        assert code == 2
        assert "knows no commit main...HEAD, whose history is cut off (git fetch --unshallow" in told
        assert "fetch-depth: 0, GIT_DEPTH: 0" in told
        code, told = self.build(work, TREE="../cut", TARGET="")
        assert (code, told.endswith("name as TARGET the branch that it goes to")) == (2, True)

    def test_no_program_that_the_tree_s_configuration_names_runs_on_this_machine(self, work: Work) -> None:
        """An object that is not there is asked of a remote, and a remote may be a program."""
        change = changed(work.folder.parent / "linux")
        ran = work.folder.parent / "ran"
        ran.mkdir()
        ran.chmod(0o777)
        program = change.folder / "program"
        program.write_text(f"#!/bin/sh\ntouch {ran}/$$\ncat\n")
        program.chmod(0o755)
        settings = {
            "remote.origin.url": f"ext::{program}", "remote.origin.promisor": "true", "protocol.ext.allow": "always",
            "extensions.partialClone": "origin", "core.repositoryFormatVersion": "1", "core.fsmonitor": program,
            "gpg.program": program, "log.showSignature": "true", "diff.external": program,
        }  # fmt: skip
        for name, value in settings.items():
            change.tree.git("config", name, str(value))
        code, told = self.build(work, BASELINE="1" * 40)
        assert (code, "knows no commit 1111" in told) == (2, True)
        assert self.build(work) == (0, "built: baseline candidate")
        assert list(ran.iterdir()) == []

    def test_no_value_is_shell_code_or_an_option(self, work: Work) -> None:
        changed(work.folder.parent / "linux")
        for value in HOSTILE:
            for name in ("CANDIDATE", "BASELINE", "TARGET", "SIDE", "TREE"):
                code, told = self.build(work, **{name: value})
                assert code in (2, 64), (name, value, told)


by_groovy = pytest.mark.skipif(not runs_here(), reason="Java or Groovy is not installed: apt-get install groovy")


class TestJenkins:
    FILE = (ROOT / "Jenkinsfile").read_text()

    def test_its_step_with_the_variables_of_a_cell(self, work: Work) -> None:
        _, gate, _ = re.findall(r"script: '''(.*?)'''", self.FILE, re.DOTALL)
        (work.folder / "step").write_text(gate)
        (work.folder / "pdrgate").symlink_to(work.checkout.root)
        cell = {"CELL_TESTBED": "steady-guest", "CELL_SCENARIO": "default", "TESTBED": "every", "SCENARIO": "every"}
        done = work.run(
            "bash", "step", code=1, verdict="REGRESSION", PDRGATE="x", KERNEL=HOSTILE[1], AGAINST=HOSTILE[2], BPF="",
            BASELINE="", PROFILE="quick", TOLERANCE="--help", COST_TOLERANCE="1%", JOB_NAME="net/a job..", **cell,
        )  # fmt: skip
        assert done.returncode == 1
        assert set(work.options) == {
            "--output=gate/steady-guest/default", "--testbed=resources/testbeds/steady-guest.yaml", "--wait=1 h",
            "--scenario=default", "--profile=quick", "--cost-tolerance=1%", f"--kernel={HOSTILE[1]}",
            f"--against={HOSTILE[2]}", "--tolerance=--help",
        }  # fmt: skip
        assert work.told(output="gate/steady-guest/default").startswith("REGRESSION: ")
        # A retry on the same agent knows what the try before it found, and no build writes there.
        assert work.kept_in == Path("/var/lib/pdrgate/kept/net/a_job__/steady-guest/default")
        assert "deleteDir" not in gate

    def test_its_step_that_compiles_a_change(self, work: Work) -> None:
        build, _, _ = re.findall(r"script: '''(.*?)'''", self.FILE, re.DOTALL)
        change = changed(work.folder.parent / "linux")
        (work.folder / "step").write_text(build)
        (work.folder / "pdrgate").symlink_to(work.checkout.root)
        subprocess.run(["git", "clone", "--quiet", str(change.folder), "tree"], cwd=work.folder, check=True)
        for side, wanted in (("baseline", "of_the_base"), ("candidate", "of_the_change")):
            done = work.run("bash", "step", SIDE=side, CHANGE_TARGET="main")
            assert done.returncode == 0, done.stdout + done.stderr
            assert lines_of(work.folder / "builds" / side) == {wanted}

    def test_by_default_each_cell_can_be_green(self) -> None:
        """Suites that compare kernels are red where a build has no kernel."""
        found = re.search(r"name 'CELL_SCENARIO'\s+values ([^/\n]*)", self.FILE)
        assert found is not None
        assert found[1].strip() == "'default'"

    def test_its_cells_are_merged(self, work: Work) -> None:
        _, _, merge = re.findall(r"script: '''(.*?)'''", self.FILE, re.DOTALL)
        (work.folder / "step").write_text(merge)
        (work.folder / "pdrgate").symlink_to(work.checkout.root)
        check_merged(work, work.run("bash", "step", PDRGATE="x", **MERGED))

    @pytest.mark.parametrize("name", ["TESTBED", "SCENARIO"])
    def test_a_person_can_choose_each_value_of_the_matrix(self, name: str) -> None:
        def listed(pattern: str) -> set[str]:
            found = re.search(pattern, self.FILE)
            assert found is not None
            return set(re.findall(r"'([\w-]+)'", found[1]))

        choices = listed(rf"choice\(name: '{name}', choices: \[([^]]*)\]")
        assert choices == listed(rf"name 'CELL_{name}'\s+values ([^/\n]*)") | {"every"}

    def test_no_parameter_is_put_into_its_shell(self) -> None:
        # In Groovy only the other quotes would put a value in.
        assert not re.search(r'\bsh\b[^\n]*"""|\bsh\s*\(?\s*"|script: *"', self.FILE)

    def job(self, work: Work, text: str = FILE, change: Change | None = None, **given: str) -> JenkinsBuild:
        """What came of a job that has this one file, with pdrgate's address in it."""
        testbeds = "resources/testbeds"
        shutil.copytree(ROOT / testbeds, work.checkout.root / testbeds)
        file = work.folder / "Jenkinsfile"
        file.write_text(text.replace("PDRGATE = ''", f"PDRGATE = 'file://{committed(work.checkout.root)}'"))
        known = {
            "PATH": f"{work.checkout.root / 'tools'}:{os.environ['PATH']}", "HOME": str(work.folder), "CODE": "0",
            "SAID": "", "REAL": "1", "RESULT": encoded(result(compared())).decode(),
        }  # fmt: skip
        of_the_server = {"JOB_NAME": "net/gate"} | ({"CHANGE_TARGET": "main"} if change else {})
        (work.folder.parent / "elsewhere").mkdir()
        repository = change.folder if change else work.folder.parent / "elsewhere"
        return built(
            file, work.folder.parent / "jenkins", repository, "topic", known | given, of_the_server,
            {"KERNEL": "" if change else "k.deb", "AGAINST": "" if change else HOSTILE[1]},
        )  # fmt: skip

    def gated_with(self, build: JenkinsBuild, agent: int) -> list[str]:
        return (build.place / f"agent-{agent}/options").read_text().split("\0")[:-1]

    @by_groovy
    def test_the_file_alone_gates_a_change(self, work: Work) -> None:
        build = self.job(work, change=changed(work.folder.parent / "linux"))
        assert (build.result, build.errors) == ("SUCCESS", ()), build.said
        assert build.stages == ("", "Build", "Gate steady-guest default", "Measure steady-guest default")
        assert build.labels == ("pdrgate-build", "testbed-steady-guest")
        assert build.description == "steady-guest default: PASS: because, on IPv6 routing"
        options = self.gated_with(build, 2)
        for side, name, line in (
            ("candidate", "--kernel", "of_the_change"), ("baseline", "--against", "of_the_base"),
        ):  # fmt: skip
            assert f"{name}=builds/{side},vmlinux=builds/{side}/vmlinux" in options
            assert lines_of(build.place / "agent-2/builds" / side) == {line}
        assert "--history=/var/lib/pdrgate/kept/net/gate/steady-guest/default/history.db" in options
        (told,) = (build.place / "archive/gate/steady-guest/default").glob("2*/result.json")
        assert "PASS" in told.read_text()

    @by_groovy
    def test_a_change_that_does_not_compile_is_red_and_says_why(self, work: Work) -> None:
        build = self.job(work, change=changed(work.folder.parent / "linux", "int b = c;"))
        assert build.result == "FAILURE"
        assert build.stages == ("", "Build")
        assert re.search(r"^candidate: \S+: does not compile: net.c:1:9: error: ", build.description)

    @by_groovy
    def test_a_red_gate_fails_the_build_and_is_published(self, work: Work) -> None:
        red = encoded(result(compared("REGRESSION"))).decode()
        build = self.job(work, CODE="1", RESULT=red)
        assert (build.result, build.errors) == ("FAILURE", ("REGRESSION: because, on IPv6 routing",)), build.said
        assert build.description == "steady-guest default: REGRESSION: because, on IPv6 routing"
        assert {"--kernel=k.deb", f"--against={HOSTILE[1]}"} <= set(self.gated_with(build, 1))
        assert build.published == ("junit 0", "allure 0")  # the gate here leaves a result and no page

    @by_groovy
    def test_the_cells_of_a_matrix_are_one_verdict_also_where_one_of_them_dies(self, work: Work) -> None:
        text = self.FILE.replace("values 'default'", "values 'default', 'path-nat'")
        text = text.replace("choices: ['default', 'every']", "choices: ['every']")
        dies = work.checkout.root / "ci/gate"
        dies.write_text(GATE.replace("exit", "for one; do [[ $one != *path-nat ]] || exit 137; done\nexit"))
        build = self.job(work, text)
        assert build.result == "FAILURE"
        assert build.stages[1:] == (
            "Gate steady-guest default", "Measure steady-guest default",
            "Gate steady-guest path-nat", "Measure steady-guest path-nat",
        )  # fmt: skip
        merged, *cells = build.description.splitlines()
        assert cells[0] == "steady-guest default: PASS: because, on IPv6 routing"
        assert merged.startswith("testbed fault: ERROR: "), build.description
        assert (build.place / "archive/gate/merged/summary.html").is_file()


class TestSchemas:
    @pytest.mark.parametrize(
        ("schema", "file"),
        [
            ("github-actions", ACTION),
            ("github-actions", MERGE_ACTION),
            ("github-actions", KERNEL_ACTION),
            ("github-workflows", WORKFLOW),
            ("gitlab-ci", TEMPLATE),
        ],
    )
    def test_the_published_one_finds_nothing(self, schema: str, file: Path) -> None:
        done = CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", str(file)])
        assert done.exit_code == 0, done.output


def expanded(text: str, inputs: Mapping[str, str]) -> str:
    """Text of an action with its inputs put in, as a runner does before the shell sees it."""
    known = {f"inputs.{name}": value for name, value in inputs.items()} | {"github.event.pull_request.number": "5"}
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: known[found[1]], text)


def test_python_starts_isolated_wherever_a_pipeline_starts_it() -> None:
    """A workspace is the change's: a json.py in it would be run."""
    files = (ACTION, MERGE_ACTION, TEMPLATE, *(ROOT / "ci" / name for name in ("gate-from-env", "merge-from-env")))
    for file in files:
        for line in file.read_text().splitlines():
            if "python3 " in line or "bin/python" in line:
                assert re.search(r'python3?"? -I ', line), f"{file}: {line}"


class TestGitHub:
    CONTENT = yaml.safe_load(ACTION.read_text())

    MERGE = yaml.safe_load(MERGE_ACTION.read_text())

    def steps(
        self, work: Work, code: int, verdict: str, api: str = "", action: Mapping[str, Any] = CONTENT, **given: str
    ) -> list[subprocess.CompletedProcess[str]]:
        """What an action's shell steps did, one after the other, as a composite action runs them."""
        inputs = {name: str(one.get("default")) for name, one in action["inputs"].items()}
        inputs |= {"uncompared": "true"} | given
        place = work.checkout.root / (MERGE_ACTION.parent.relative_to(ROOT) if action is self.MERGE else "")
        inputs["token"] = "s3cret"
        runner = {
            "GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(place), "GITHUB_OUTPUT": "outputs",
            "GITHUB_STEP_SUMMARY": "summary", "GITHUB_API_URL": api, "GITHUB_REPOSITORY": "me/linux",
        }  # fmt: skip
        done = []
        for step in action["runs"]["steps"]:
            if "run" in step:
                assert "${{" not in step["run"], "an input in it would be shell code"
                (work.folder / "step.sh").write_text(step["run"])
                environment = {name: expanded(value, inputs) for name, value in step["env"].items()}
                shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh")
                done.append(work.run(*shell, code=code, verdict=verdict, **runner, **environment))
        return done

    def test_a_red_gate_is_annotated_summed_up_and_commented_once(self, work: Work) -> None:
        with keeping(Comments("s3cret", ["<!-- pdrgate pdrgate --> not ours"] + ["hello"] * 120, {0})) as comments:
            for _ in range(2):
                gate, comment = self.steps(work, 1, "REGRESSION", comments.url, kernel="k", against="b")
                shutil.rmtree(work.folder / "results")
                assert (gate.returncode, comment.returncode, comment.stdout) == (1, 0, "")
        assert set(work.options) == {"--kernel=k", "--against=b", "--output=results"}  # all else is the gate's to say
        stop, resume, note = gate.stdout.splitlines()
        assert stop.removeprefix("::stop-commands::") == resume.strip(":")
        assert note == "::error title=pdrgate::REGRESSION: because $(touch pwned)"
        assert (work.folder / "summary").read_text() == "| the table |\n" * 2
        output = r"verdict<<(\w{32})\nREGRESSION: because \$\(touch pwned\)\n(\w{32})\n"
        first, second = re.findall(output, (work.folder / "outputs").read_text())
        assert first[0] == first[1] != second[0] == second[1]
        assert comments.bodies[121:] == ["<!-- pdrgate pdrgate -->\n| the table |\n"]

    @pytest.mark.parametrize("may_ask", [True, False])
    def test_only_a_comment_of_our_own_is_edited(self, work: Work, may_ask: bool) -> None:
        """Whoever copies our mark could else have an owner's token write below it, in their name."""
        bodies = ["<!-- pdrgate pdrgate -->\ntheirs", "<!-- pdrgate pdrgate -->\nours", "other"]
        with keeping(Comments("s3cret", bodies, {0}, may_ask=may_ask)) as comments:
            _, comment = self.steps(work, 0, "PASS", comments.url)
        assert (comment.returncode, comment.stdout) == (0, "")
        assert comments.bodies == [bodies[0], "<!-- pdrgate pdrgate -->\n| the table |\n", "other"]

    def test_a_history_and_its_password_are_on_no_command_line(self, work: Work) -> None:
        gate = self.steps(work, 0, "PASS", history="postgresql://ci:hunter2@host/runs")[0]
        assert gate.returncode == 0
        assert not any("hunter2" in option for option in work.all_options)
        assert (work.folder / "history").read_text() == "postgresql://ci:hunter2@host/runs"

    def test_a_run_again_that_knows_nothing_of_the_first_says_so(
        self, work: Work, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for attempt, kept, told in (("1", "", False), ("2", "", True), ("2", "/srv/kept", False)):
            (work.folder / "summary").write_text("")
            inputs = {"GITHUB_STEP_SUMMARY": "summary", "GITHUB_OUTPUT": "outputs", "KEEP": kept}
            script = str(work.checkout.root / "ci/github/gate")
            work.run(script, GITHUB_RUN_ATTEMPT=attempt, **inputs)
            assert ("This is attempt 2" in (work.folder / "summary").read_text()) is told

    def test_results_are_bound_to_the_change_and_to_what_github_says(self) -> None:
        commit = "${{ github.event.pull_request.head.sha || github.sha }}"
        for action in (self.CONTENT, self.MERGE):
            assert action["inputs"]["commit"]["default"] == commit
            first = next(step for step in action["runs"]["steps"] if "run" in step)
            assert first["env"]["PDRGATE_COMMIT"] == "${{ inputs.commit }}"
        verdict = yaml.safe_load(WORKFLOW.read_text())["jobs"]["verdict"]
        assert verdict["steps"][-1]["with"]["gates"] == "${{ needs.gate.result }}"
        assert self.MERGE["inputs"]["gates"]["required"]
        assert self.MERGE["runs"]["steps"][0]["env"]["GATES"] == "${{ inputs.gates }}"

    def test_what_a_kernel_prints_is_no_command_to_the_runner(self, work: Work) -> None:
        gate = self.steps(work, 2, "none", kernel="::set-output name=x::100%\r")[0]
        assert gate.returncode == 2
        assert "--kernel=::set-output name=x::100%\r" in work.options

    @pytest.mark.parametrize("system", ["github", "gitlab"])
    def test_an_issue_is_open_while_something_stands(self, work: Work, system: str) -> None:
        script = str(work.checkout.root / "ci/comment.py")
        with keeping(Comments("s3cret")) as server:
            known = {
                "github": {
                    "GITHUB_ACTIONS": "1", "GITHUB_TOKEN": "s3cret", "GITHUB_API_URL": server.url,
                    "GITHUB_REPOSITORY": "me/linux",
                },
                "gitlab": {"GITLAB_TOKEN": "s3cret", "CI_API_V4_URL": server.url, "CI_PROJECT_ID": "9"},
            }[system]  # fmt: skip
            mark = "<!-- pdrgate nightly -->\n"
            server.issues.append({"title": "", "text": mark + "theirs", "open": True, "comments": [], "by": "them"})
            seen = []
            for text in ("", "NAT is slower", "NAT is slower", "NAT and IPVS are slower", "", ""):
                (work.folder / "standing.md").write_text(text)
                done = work.run(sys.executable, "-I", script, "standing.md", "nightly", "--issue", **known)
                assert (done.returncode, done.stderr) == (0, "")
                seen.append([(one["text"], one["open"], len(one["comments"])) for one in server.issues[1:]])
        first, both = f"{mark}NAT is slower", f"{mark}NAT and IPVS are slower"
        assert seen == [
            [], [(first, True, 0)], [(first, True, 0)], [(both, True, 1)], [(both, False, 2)], [(both, False, 2)],
        ]  # fmt: skip
        assert server.issues[0]["text"] == mark + "theirs" and server.issues[0]["open"]

    @pytest.mark.parametrize("planted", ["summary.md", "results"])
    def test_no_comment_publishes_what_a_link_leads_to(self, work: Work, planted: str) -> None:
        (work.folder.parent / "secret").mkdir()
        (work.folder.parent / "secret/summary.md").write_text("hunter2")
        if planted == "results":
            (work.folder / "results").symlink_to(work.folder.parent / "secret")
        else:
            (work.folder / "results").mkdir()
            (work.folder / "results/summary.md").symlink_to("../../secret/summary.md")
        comment = str(work.checkout.root / "ci/comment.py")
        with keeping(Comments("s3cret")) as comments:
            known = {"GITHUB_ACTIONS": "1", "GITHUB_TOKEN": "s3cret", "GITHUB_API_URL": comments.url}
            known |= {"GITHUB_REPOSITORY": "me/linux", "PULL_REQUEST": "5"}
            done = work.run(sys.executable, "-I", comment, "results/summary.md", "x", **known)
        assert (done.returncode, comments.bodies) == (2, [])
        assert done.stderr.startswith("ci/comment.py: no comment was written: ")

    def test_a_token_that_may_not_write_leaves_the_gate_alone(self, work: Work) -> None:
        with keeping(Comments("another")) as comments:
            gate, comment = self.steps(work, 0, "PASS", comments.url)
        assert (gate.returncode, comment.returncode) == (0, 0)
        assert gate.stdout.splitlines()[-1].startswith("::notice title=pdrgate::PASS")
        assert comment.stdout.startswith("::warning title=pdrgate::no comment was written")
        assert comment.stderr.startswith("ci/comment.py: no comment was written: HTTP Error 401")
        assert "s3cret" not in comment.stdout + comment.stderr

    def test_the_gates_of_several_runners_are_one_verdict_and_one_comment(self, work: Work) -> None:
        with keeping(Comments("s3cret")) as comments:
            merge, comment = self.steps(work, 0, "", comments.url, self.MERGE, runs=MERGED["RUNS"], gates="")
        check_merged(work, merge)
        assert comment.returncode == 0
        assert merge.stdout.splitlines()[-1].startswith("::error title=pdrgate::testbed fault: ERROR: ")
        assert comments.bodies == ["<!-- pdrgate pdrgate -->\n| all tables |\n"]

    def test_the_workflow_names_inputs_that_the_actions_have(self) -> None:
        jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
        gate, verdict = jobs["gate"]["steps"][-1], jobs["verdict"]["steps"][-1]
        assert (gate["uses"], verdict["uses"]) == ("OWNER/pdrgate@REF", "OWNER/pdrgate/ci/github/merge@REF")
        assert gate["with"].keys() <= self.CONTENT["inputs"].keys()
        assert verdict["with"].keys() <= self.MERGE["inputs"].keys()
        matrix = jobs["gate"]["strategy"]["matrix"]
        assert matrix["parts"] == [len(matrix["part"])]
        owed = [f"gates/gate-{one}-{part}" for one in matrix["scenario"] for part in matrix["part"]]
        assert verdict["with"]["runs"].split() == owed

    def workflow(
        self, work: Work, change: Change, after: Callable[[Job], None] = lambda job: None, **github: Any
    ) -> GitHub:
        """What came of the workflow in a folder that has nothing but it; ``after`` is what its jobs' code does."""
        alone = work.folder / "kernel-gate.yml"
        shutil.copy(WORKFLOW, alone)
        event = {
            "event_name": "pull_request", "sha": "f" * 40, "token": "", "ref": "refs/pull/5/merge",
            "workflow": "packet data path",
            "server_url": f"file://{change.folder.parent}", "repository": change.folder.name,
            "event": {"pull_request": {"number": 5, "head": {"sha": change.head}, "base": {"sha": change.newer}}},
        }  # fmt: skip
        environment = {
            "PATH": f"{work.checkout.root / 'tools'}:{os.environ['PATH']}", "HOME": str(work.folder), "CODE": "0",
            "SAID": "", "REAL": "1", "RESULT": encoded(result(compared(), commit=change.head)).decode(),
        }  # fmt: skip
        runner = GitHub(
            work.folder / "runner", change.folder, work.checkout.root, event | github, environment, after=after
        )
        runner.run(alone)
        return runner

    def test_the_workflow_alone_gates_a_pull_request(self, work: Work) -> None:
        runner = self.workflow(work, changed(work.folder.parent / "linux"))
        assert list(runner.jobs) == ["baseline", "candidate", "gate", "verdict"]
        assert all(job.succeeded for jobs in runner.jobs.values() for job in jobs), runner.jobs
        (gate,) = runner.jobs["gate"]
        options = (gate.workspace / "options").read_text().split("\0")
        for side, name, line in (
            ("candidate", "--kernel", "of_the_change"), ("baseline", "--against", "of_the_base"),
        ):  # fmt: skip
            kernel = f"builds/kernel-{side}"
            assert f"{name}={kernel},vmlinux={kernel}/vmlinux" in options
            assert lines_of(gate.workspace / kernel) == {line}
        assert "--scenario=portfolio" in options
        made = [job for name in ("baseline", "candidate") for job in runner.jobs[name]]
        assert not any(job.kept for job in made)  # no pull request writes what the next one reads
        assert not any(job.credentials for job in made)  # its Makefiles could read them
        assert [len(job.restored) for job in made] == [0, 1]  # a pull request's cache comes before its target's
        assert "PASS" in (runner.place / "artifacts/pdrgate/summary.md").read_text()

    def test_a_pull_request_that_does_not_compile_is_red_and_says_why(self, work: Work) -> None:
        runner = self.workflow(work, changed(work.folder.parent / "linux", "int b = c;"))
        assert list(runner.jobs) == ["baseline", "candidate", "verdict"]
        (candidate,), (baseline,) = runner.jobs["candidate"], runner.jobs["baseline"]
        assert (candidate.succeeded, baseline.succeeded) == (False, True)
        assert re.search(r"::error title=pdrgate::candidate@\S+: does not compile: net.c:1:9: error: ", candidate.said)
        (verdict,) = runner.jobs["verdict"]
        assert not verdict.succeeded
        assert verdict.said.startswith("::error title=pdrgate::a kernel was not built, and nothing was measured")

    @pytest.mark.parametrize("name", ["vmlinux", "boot/another", "a link"])
    def test_a_baseline_that_the_candidates_job_has_replaced_is_not_gated(self, work: Work, name: str) -> None:
        """The code of a change can upload any artifact, also under the name of another job's."""

        def replaced(job: Job) -> None:
            artifact = work.folder / "runner/artifacts/kernel-baseline"
            if job.name == "candidate":
                if name == "a link":
                    (artifact / "boot/another").symlink_to("/etc/passwd")
                else:
                    (artifact / name).write_text("slower")

        runner = self.workflow(work, changed(work.folder.parent / "linux"), replaced)
        (gate,), (verdict,) = runner.jobs["gate"], runner.jobs["verdict"]
        assert (gate.succeeded, verdict.succeeded) == (False, False)
        assert not (gate.workspace / "options").exists(), "it was gated"
        told = (gate.workspace / "results/verdict.txt").read_text()
        assert told.startswith("testbed fault: ci/")
        assert ("is no file" if name == "a link" else "another job has replaced it, so nothing was measured") in told

    def test_a_branch_that_pull_requests_go_to_leaves_its_kernel_for_them(self, work: Work) -> None:
        change = changed(work.folder.parent / "linux")
        runner = self.workflow(work, change, event_name="push", sha=change.newer, event={})
        assert list(runner.jobs) == ["baseline"]
        (build,) = runner.jobs["baseline"]
        assert build.succeeded, build.said
        assert build.kept == [f"kernels-{change.newer}"]
        assert lines_of(build.workspace / "builds/baseline") == {"newer"}

    def test_who_runs_what_the_change_wrote_has_no_right_to_write(self) -> None:
        content = yaml.safe_load(WORKFLOW.read_text())
        assert content["permissions"] == {"contents": "read"}
        assert [name for name, job in content["jobs"].items() if "permissions" in job] == ["verdict"]
        assert "secrets." not in json.dumps([content["jobs"][name] for name in ("baseline", "candidate")])


_PINNED = re.compile(r"uses: (?:OWNER/pdrgate\S*@REF  # EDIT|\S+@[0-9a-f]{40}  # v[\d.]+)$")


@pytest.mark.parametrize(
    "file", [ACTION, MERGE_ACTION, KERNEL_ACTION, WORKFLOW, RELEASE], ids=lambda file: str(file.relative_to(ROOT))
)
class TestActionsOfOthers:
    def test_each_is_pinned_by_the_digest_of_its_commit(self, file: Path) -> None:
        """A tag moves with whoever can write to the action's repository, also in the job that signs releases."""
        used = [line.strip("- ") for line in file.read_text().splitlines() if re.match(r"\s*(- )?uses: ", line)]
        assert used
        assert [line for line in used if not _PINNED.fullmatch(line)] == []

    def test_no_checkout_leaves_its_token_beside_makefiles(self, file: Path) -> None:
        content = yaml.safe_load(file.read_text())
        jobs = content["jobs"].values() if "jobs" in content else [content["runs"]]
        steps = [step for job in jobs for step in job["steps"] if "actions/checkout@" in step.get("uses", "")]
        assert [step["with"]["persist-credentials"] for step in steps] == [False] * len(steps)


PLANTED = {
    ".cache/pdrgate/trees/builds/key/vmlinux": "slower", "builds/baseline/arch/x86/boot/bzImage": "slower",
    "compiled/baseline/arch/x86/boot/bzImage": "slower", "compiled/baseline/vmlinux": "slower",
    ".pdrgate/ci/gate-from-env": "#!/bin/sh\ntouch pwned\n", "robot/gate/evil.robot": "evil",
    "results/portfolio/1/1/20991231-235959/result.json": "{}", "merged/summary.md": "theirs",
}  # fmt: skip
"""Files that a change has in its tree, or its job in its artifact."""


class TestGitLab:
    CONTENT = yaml.safe_load(TEMPLATE.read_text())
    GATE, VERDICT = CONTENT["gate"], CONTENT["verdict"]

    def pipeline(
        self, work: Work, change: Change, after: Callable[[str, Path], None] = lambda name, artifacts: None,
        **environment: str,
    ) -> GitLab:  # fmt: skip
        """What came of the pipeline in a folder that has nothing but its file; ``after`` is what jobs' code does."""
        alone = work.folder / ".gitlab-ci.yml"
        shutil.copy(TEMPLATE, alone)
        server = work.folder.parent / "server/GROUP"
        server.mkdir(parents=True)
        (server / "pdrgate.git").symlink_to(committed(work.checkout.root))
        known = {
            "PATH": f"{work.checkout.root / 'tools'}:{os.environ['PATH']}", "HOME": str(work.folder), "CODE": "0",
            "SAID": "", "REAL": "1", "RESULT": encoded(result(compared(), commit=change.head)).decode(),
        }  # fmt: skip
        predefined = {
            "CI_SERVER_URL": f"file://{server.parent}", "CI_COMMIT_SHA": change.head, "CI_COMMIT_REF_NAME": "topic",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": change.base, "CI_MERGE_REQUEST_IID": "5", "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_PROJECT_URL": f"file://{change.folder}/", "CI_JOB_TOKEN": "",
            "CI_PROJECT_PATH_SLUG": "net-linux", "CI_MERGE_REQUEST_PROJECT_ID": "9", "CI_JOB_NAME": "gate --> x",
            "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "", "CI_REPOSITORY_URL": f"file://{change.folder}",
        }  # fmt: skip
        template = alone.read_text()
        assert template.count("/var/lib/pdrgate/") == 2
        alone.write_text(template.replace("/var/lib/pdrgate/kernels", str(work.folder / "volume")))
        runner = GitLab(work.folder / "runner", change.folder, known | environment, predefined, after=after)
        runner.run(alone)
        return runner

    def test_the_file_alone_gates_a_merge_request(self, work: Work) -> None:
        change = changed(work.folder.parent / "linux")
        with keeping(Comments("s3cret")) as comments:
            runner = self.pipeline(work, change, CI_API_V4_URL=comments.url, GITLAB_TOKEN="s3cret")
        assert [ran.code for jobs in runner.jobs.values() for ran in jobs] == [0] * 3, runner.jobs
        (gate,) = runner.jobs["gate"]
        options = (gate.workspace / "options").read_text().split("\0")
        for folder, name, line in (
            ("builds/candidate", "--kernel", "of_the_change"), ("compiled/baseline", "--against", "of_the_base"),
        ):  # fmt: skip
            assert f"{name}={folder},vmlinux={folder}/vmlinux" in options
            assert lines_of(gate.workspace / folder) == {line}
        assert "--history=/var/lib/pdrgate/kept/net-linux/portfolio/history.db" in options
        assert [ran.cache for jobs in runner.jobs.values() for ran in jobs] == ["ccache-5", "", ""]
        assert [body.splitlines()[0] for body in comments.bodies] == ["<!-- pdrgate gate - x -->"]
        assert "PASS" in comments.bodies[0]

    def test_a_merge_request_that_does_not_compile_is_red_and_says_why(self, work: Work) -> None:
        runner = self.pipeline(work, changed(work.folder.parent / "linux", "int b = c;"))
        assert list(runner.jobs) == ["build", "verdict"]
        (candidate,) = runner.jobs["build"]
        assert candidate.code == 1
        assert ": does not compile: net.c:1:9: error: " in candidate.said.splitlines()[-1]
        assert [ran.code for ran in runner.jobs["verdict"]] == [2]

    def planted(self, folder: Path, victim: Path) -> None:
        for name, text in PLANTED.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for name in ("merged/verdict.txt", "results/portfolio/1/1/verdict.txt", "results/portfolio/1/1/console.txt"):
            (folder / name).symlink_to(victim)

    @pytest.mark.parametrize("where", ["in its tree", "in its artifact"])
    def test_what_a_change_has_planted_is_nobodys(self, work: Work, where: str) -> None:
        """A committed build was handed out as the baseline, and a link led into the script that has the token."""
        victim = work.folder.parent / "victim"
        victim.write_text("whole")
        change = changed(work.folder.parent / "linux")
        if where == "in its tree":
            self.planted(change.folder, victim)
            change.tree.git("add", "--force", ".")
            change = replace(change, head=change.tree.commit("int of_the_change;"))

        def after(name: str, artifacts: Path) -> None:
            if where == "in its artifact" and name == "build":
                self.planted(artifacts, victim)

        runner = self.pipeline(work, change, after)
        (gate,), (verdict,) = runner.jobs["gate"], runner.jobs["verdict"]
        assert (gate.code, verdict.code) == (0, 0), gate.said + verdict.said
        assert lines_of(gate.workspace / "compiled/baseline") == {"of_the_base"}
        assert lines_of(gate.workspace / "builds/candidate") == {"of_the_change"}
        assert victim.read_text() == "whole"
        for ran, output in ((gate, "results/portfolio/1/1"), (verdict, "merged")):
            told = ran.workspace / output / "verdict.txt"
            assert (told.is_symlink(), told.read_text().startswith("PASS: ")) == (False, True)
        if where == "in its tree":
            assert not any((ran.workspace / "robot").exists() for ran in (gate, verdict))

    def test_folders_in_an_artifact_that_are_links_lead_nowhere(self, work: Work) -> None:
        elsewhere = work.folder.parent / "elsewhere"
        elsewhere.mkdir()

        def after(name: str, artifacts: Path) -> None:
            for folder in ("compiled", "results", ".pdrgate") if name == "build" else ():
                (artifacts / folder).symlink_to(elsewhere)

        runner = self.pipeline(work, changed(work.folder.parent / "linux"), after)
        assert [ran.code for jobs in runner.jobs.values() for ran in jobs] == [0] * 3
        assert not list(elsewhere.iterdir())

    def test_no_job_begins_in_a_checkout_or_keeps_its_token(self) -> None:
        assert self.CONTENT[".pdrgate"]["variables"]["GIT_STRATEGY"] == "empty"
        for job in ("build", "gate", "verdict"):
            assert "GIT_STRATEGY" not in self.CONTENT[job].get("variables", {})
        assert "remote add" not in TEMPLATE.read_text()
        assert self.CONTENT["build"]["cache"]["paths"] == [".cache/ccache"]

    def test_secrets_are_those_of_an_environment_and_results_of_a_commit(self) -> None:
        for job in (self.GATE, self.VERDICT):
            assert job["environment"]["name"] == "pdrgate"
            assert job["variables"]["PDRGATE_COMMIT"] == "$CI_COMMIT_SHA"
        assert "environment" not in self.CONTENT["build"]  # it runs what the change wrote

    def test_without_a_token_there_is_no_note(self, work: Work) -> None:
        (work.folder / "results").mkdir()
        (work.folder / "results/summary.md").write_text("x")
        done = work.run("sh", "-e", "-c", "\n".join(self.VERDICT["after_script"]), OUTPUT="results")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
