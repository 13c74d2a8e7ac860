"""``pdrgate watch``: each new build is gated once, and nothing is said while nothing moved."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from made_results import compared, written

import pdrgate.cli.watch as module
from pdrgate.builds import found_builds
from pdrgate.builds.found_builds import builds_at
from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.cli import main
from pdrgate.history.address import Address
from pdrgate.results.verdict import Verdict


def build(name: str) -> KernelBuild:
    return KernelBuild(name, f"/builds/{name}", Path(f"/builds/{name}"), name, "#1")


class Archive:
    """Builds, and what a gate comes to for each; gates put themselves into the history."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.verdicts: dict[str, str] = {}
        self.speeds: dict[str, float] = {}
        self.gated: list[str] = []
        self._days = itertools.count(1)

    def builds_at(self, place: str) -> list[KernelBuild]:
        return [build(name) for name in self.verdicts]

    def gate(
        self, one: KernelBuild, against: str, where: Address, output: Path, further: Sequence[str]
    ) -> tuple[int, str]:
        self.gated.append(one.name)
        verdict, day = Verdict(self.verdicts[one.name]), next(self._days)
        speed = self.speeds.get(one.name, 1.0)
        entry = compared(verdict, candidate=one.release)
        value = dataclasses.replace(entry.measurands[0], value=speed * entry.measurands[0].value)
        sides = (entry.sides[0], dataclasses.replace(entry.sides[1], build=one.label, measurands=(value,)))
        path = written(self.folder / f"run-{day}", dataclasses.replace(entry, sides=sides), started=86_400.0 * day)
        assert main(["history", "import", str(path), "--history", str(where)]) == 0
        return verdict.exit_code, f"{verdict}: of {one.name}\n"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    archive = Archive(tmp_path)
    monkeypatch.setattr(found_builds, "builds_at", archive.builds_at)
    monkeypatch.setattr(module, "_gated", archive.gate)
    monkeypatch.chdir(tmp_path)
    return archive


def passed(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """The exit code of a pass over the archive, and what it told; without what the imports of a test say."""
    capsys.readouterr()
    code = main(["watch", "builds", "--against", "good"])
    return code, [line for line in capsys.readouterr().out.splitlines() if ": added (" not in line]


def test_each_build_is_gated_once_and_nothing_is_said_of_those_that_pass(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.verdicts = {"6.1": "PASS", "6.2": "PASS"}
    assert passed(capsys) == (0, [])
    archive.verdicts |= {"6.3": "PASS"}
    assert passed(capsys) == (0, [])
    assert passed(capsys) == (0, [])
    assert archive.gated == ["6.1", "6.2", "6.3"]


def test_a_build_that_fails_is_told_once_with_the_last_one_that_passed(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.verdicts = {"6.1": "PASS", "6.2": "DISTURBED", "6.3": "REGRESSION"}
    code, told = passed(capsys)
    assert code == 1
    assert told == [
        "6.2 (6.2)", "DISTURBED: of 6.2", "6.3 (6.3)", "REGRESSION: of 6.3",
        "the last build that passed is 6.1 (6.1); docs/bisect.md says how to find the step after it",
    ]  # fmt: skip
    assert passed(capsys)[0] == 2  # once more the one that nothing could be said of
    assert passed(capsys)[0] == 2
    assert passed(capsys) == (0, [])
    assert archive.gated == ["6.1", "6.2", "6.3", "6.2", "6.2"]


def test_what_is_faster_is_told_and_fails_nothing(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    archive.verdicts = {"6.1": "IMPROVEMENT"}
    assert passed(capsys) == (0, ["6.1 (6.1)", "IMPROVEMENT: of 6.1"])


def test_a_trend_that_bends_is_told_though_every_build_passed(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.verdicts = {f"6.{number}": "PASS" for number in range(20)}
    archive.speeds = {f"6.{number}": 0.985 for number in range(14, 20)}
    code, told = passed(capsys)
    assert code == 1
    assert "6.13 (6.13)" in told[0] and "6.14 (6.14)" in told[0]


def test_builds_of_a_folder_are_taken_as_their_names_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("linux-6.10.deb", "linux-6.9.deb", "headers-6.9.deb", "README"):
        (tmp_path / name).touch()

    def known(source: str | Path, *, cache: Path | None = None) -> KernelBuild:
        if Path(source).name.startswith("linux"):
            return build(Path(source).name)
        raise BuildError(f"{source}: is no kernel")

    monkeypatch.setattr(found_builds, "kernel_build", known)
    assert [one.name for one in builds_at(str(tmp_path))] == ["linux-6.9.deb", "linux-6.10.deb"]
    with pytest.raises(BuildError, match="is no kernel"):
        builds_at(str(tmp_path / "README"))


def test_packages_by_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt = tmp_path / "apt-cache"
    apt.write_text(
        '#!/bin/sh\n[ "$*" = "pkgnames linux-image-6." ] && printf "linux-image-6.%s\\n" 10-amd64 9-amd64 9-rt\n'
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(found_builds, "kernel_build", lambda source, *, cache=None: build(source))
    found = builds_at("linux-image-6.*-amd64")
    assert [one.name for one in found] == ["linux-image-6.9-amd64", "linux-image-6.10-amd64"]
    assert [one.name for one in builds_at("linux-image-6.[89]-amd64")] == ["linux-image-6.9-amd64"]
    with pytest.raises(BuildError, match=r"linux-image-6\.\*-arm64: apt knows no such package"):
        builds_at("linux-image-6.*-arm64")
    apt.unlink()
    with pytest.raises(BuildError, match="apt-cache does not say"):
        builds_at("linux-image-6.*-amd64")
