"""What tests take of a machine's PATH, whatever lies there."""

from __future__ import annotations

from pathlib import Path

from tools_folder import tools_but


def test_a_folder_of_tools_takes_what_other_machines_have(tmp_path: Path) -> None:
    """As a desktop: X11 is a link to its own folder; and links lead nowhere, and /bin is a link to /usr/bin."""
    usr = tmp_path / "usr"
    usr.mkdir()
    for name in ("sh", "qemu-system-x86_64"):
        (usr / name).write_text("#!/bin/sh\n")
        (usr / name).chmod(0o755)
    (usr / "README").write_text("no program")
    (usr / "X11").symlink_to(".")
    (usr / "nowhere").symlink_to("/etc/alternatives/there-is-none")
    (usr / "itself").symlink_to("itself")
    (tmp_path / "bin").symlink_to("usr")
    folders = (tmp_path / "absent", usr, tmp_path / "bin")
    tools = tools_but(tmp_path / "tools", lambda name: name.startswith("qemu"), folders)
    assert [tool.name for tool in tools.iterdir()] == ["sh"]
    assert (tools / "sh").resolve() == usr / "sh"
