"""Builds that others put somewhere: into a folder, or into the distribution's archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdrgate.builds import found_builds
from pdrgate.builds.found_builds import builds_at
from pdrgate.builds.kernel_build import BuildError, KernelBuild


def build(name: str) -> KernelBuild:
    return KernelBuild(name, f"/builds/{name}", Path(f"/builds/{name}"), name, "#1")


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
        "#!/bin/sh\n"
        'case "$*" in *" pkgnames linux-image-6.") printf "linux-image-6.%s\\n" 10-amd64 9-amd64 9-rt;; esac\n'
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(found_builds, "kernel_build", lambda source, *, cache=None: build(source))
    found = builds_at("linux-image-6.*-amd64")
    assert [one.name for one in found] == ["linux-image-6.9-amd64", "linux-image-6.10-amd64"]
    assert [one.name for one in builds_at("linux-image-6.[89]-amd64")] == ["linux-image-6.9-amd64"]
    with pytest.raises(BuildError, match=r"linux-image-6\.\*-686: apt knows no such package"):
        builds_at("linux-image-6.*-686")
    apt.unlink()
    with pytest.raises(BuildError, match="apt-cache cannot list packages: No such file"):
        builds_at("linux-image-6.*-amd64")
