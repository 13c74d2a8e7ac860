"""Hosts that known_hosts knows by an authority alone."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest

from pdrgate.hosts.ssh_login import HostKeyError, _RefuseUnknown
from pdrgate.hosts.ssh_target import SshTarget

LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("line", "by_authority"),
    [
        (f"@cert-authority *.lab.example.org,10.0.0.* {LINE} the lab", True),
        (f"@cert-authority SUT1.lab.example.org {LINE}", True),
        (f"@cert-authority [sut1.lab.example.org]:2222 {LINE}", True),
        (f"@cert-authority *.example.org,!sut1.lab.example.org {LINE}", False),
        (f"@cert-authority *.other.org {LINE}", False),
        (f"@revoked *.lab.example.org {LINE}", False),
        (f"other.example.org {LINE}", False),
        ("", False),
    ],
)
def test_the_refusal_names_the_authority(tmp_path: Path, line: str, by_authority: bool) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"# a lab\n{line}\n")
    target = SshTarget("sut", "sut1.lab.example.org", port=2222, known_hosts=known)
    key = paramiko.RSAKey.generate(1024)
    with pytest.raises(HostKeyError) as error:
        _RefuseUnknown(target).missing_host_key(paramiko.SSHClient(), "[sut1.lab.example.org]:2222", key)
    told = str(error.value)
    assert ("is known by its authority only" in told) is by_authority
    assert ("is unknown: it shows" in told) is not by_authority
    assert "host_key" in told
