"""The command line of a guest."""

import pytest

from pdrgate.guests import qemu


@pytest.mark.parametrize(
    ("version", "accelerator", "model"),
    [
        ("7.2.22", "tcg", "max,-erms,-fsrm,-cx16"), ("8.2.2", "tcg", "max,-erms,-fsrm"),
        ("10.0.13", "tcg", "max,-erms,-fsrm"), ("", "tcg", "max,-erms,-fsrm"), ("7.2.22", "kvm", "host"),
    ],
)  # fmt: skip
def test_an_emulator_that_gets_flags_wrong_has_not_the_instruction(
    monkeypatch: pytest.MonkeyPatch, version: str, accelerator: qemu.Accelerator, model: str
) -> None:
    monkeypatch.setattr(qemu, "qemu_version", lambda: version)
    monkeypatch.setattr(qemu, "find_qemu", lambda: "/usr/bin/qemu")
    words = qemu.command_line(
        accelerator=accelerator, vcpus=1, memory=256, image="bzImage", initrd="initrd", cmdline="", console="console",
        channels=[], ports=[],
    )  # fmt: skip
    assert words[words.index("-cpu") + 1] == model
