"""Who gets in, and where: host keys, user keys, jump hosts. Each refusal is one line that says what to do."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_server import SshServer, make_key

from pdrgate.hosts.ssh_login import (
    HostKeyError,
    SshError,
    UnreachableError,
    _keys_of,
    key_fingerprint,
    log_in,
    parse_host_key,
)
from pdrgate.hosts.ssh_target import SshTarget


def refusal(target: SshTarget) -> str:
    """What a login is refused with."""
    with pytest.raises(SshError) as error:
        log_in(target).close()
    assert "\n" not in str(error.value)
    return str(error.value)


def shown(server: SshServer) -> str:
    """The fingerprint of the server's key, by ssh-keygen."""
    return key_fingerprint(parse_host_key(server.public_key)[1])


def name(server: SshServer) -> str:
    return f"[127.0.0.1]:{server.port}"


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_known_keys_of_all_types(sshd_is_there: None, tmp_path: Path, kind: str) -> None:
    with SshServer(tmp_path, host_key=kind) as server:
        log_in(server.target).close()
        log_in(server.other(known_hosts=None, host_key=server.public_key)).close()
        log_in(server.other(known_hosts=None, host_key=shown(server))).close()


def test_fingerprints_are_those_of_ssh_keygen(shared_server: SshServer) -> None:
    told = subprocess.run(
        ("ssh-keygen", "-lf", str(shared_server.host_key)), check=True, capture_output=True, text=True
    ).stdout
    assert told.split()[1] == shown(shared_server)


def test_a_hashed_known_hosts_file(server: SshServer) -> None:
    subprocess.run(("ssh-keygen", "-H", "-f", str(server.known_hosts)), check=True, capture_output=True)
    assert "127.0.0.1" not in server.known_hosts.read_text()
    log_in(server.target).close()


@pytest.mark.parametrize("pattern", ["*.lab.example,127.0.0.*", "[127.0.0.1]:{}"])
def test_a_host_that_is_known_by_an_authority_only_is_told_so(server: SshServer, pattern: str) -> None:
    """No fault is to be looked for: ssh logs in by the certificate."""
    line = f"@cert-authority {pattern.format(server.port)} {server.public_key}"
    server.known_hosts.write_text(f"# ours\n{line}\n")
    told = refusal(server.target)
    assert told.startswith(
        f"the host key of sut (root@127.0.0.1:{server.port}) is known by a certificate authority only (line 2 of "
        f"{server.known_hosts}), whose certificates pdrgate does not read: it shows ssh-ed25519 {shown(server)}; "
    )
    assert told.endswith("then give it in the testbed file as host_key")
    server.known_hosts.write_text(f"@cert-authority *.other.example {server.public_key}\n")
    assert "is unknown: it shows" in refusal(server.target)


def test_an_unknown_key_is_refused(server: SshServer) -> None:
    server.known_hosts.write_text(f"other.example.org {server.public_key}\n")
    assert refusal(server.target) == (
        f"the host key of sut (root@127.0.0.1:{server.port}) is unknown: it shows ssh-ed25519 {shown(server)}, and "
        f"{server.known_hosts} has none for {name(server)}; compare it on the host (ssh-keygen -lf "
        "/etc/ssh/ssh_host_*_key.pub), then give it in the testbed file as host_key, or add it to known_hosts"
    )


def test_a_changed_key_is_refused(server: SshServer, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    server.known_hosts.write_text(f"{name(server)} {other}")
    message = refusal(server.target)
    assert message == (
        f"the host key of sut (root@127.0.0.1:{server.port}) is not the expected one: it shows ssh-ed25519 "
        f"{shown(server)}, but {server.known_hosts} has ssh-ed25519 {key_fingerprint(parse_host_key(other)[1])}; "
        "somebody may be in between: only if you know that the host was installed anew, remove the old key "
        f"(ssh-keygen -R '{name(server)}') and add the new one"
    )


def test_a_key_of_another_type_than_the_known_one_is_refused(server: SshServer, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other", "ecdsa").with_suffix(".pub").read_text()
    server.known_hosts.write_text(f"{name(server)} {other}")
    with pytest.raises(HostKeyError, match=r"shows ssh-ed25519 SHA256:\S+, but .* has ecdsa-sha2-nistp256 SHA256"):
        log_in(server.target)


@pytest.mark.parametrize("form", ["fingerprint", "line"])
def test_a_key_that_the_testbed_file_does_not_expect_is_refused(server: SshServer, tmp_path: Path, form: str) -> None:
    other = " ".join(make_key(tmp_path / "other").with_suffix(".pub").read_text().split()[:2])
    expected = key_fingerprint(parse_host_key(other)[1])
    # known_hosts, where the right key stands, has no say then.
    message = refusal(server.other(host_key=other if form == "line" else expected))
    assert f"it shows ssh-ed25519 {shown(server)}, but the testbed file (host_key) expects " in message
    assert expected in message
    assert message.endswith("only if you know that the host was installed anew, correct host_key")


def test_a_revoked_key_is_refused(server: SshServer) -> None:
    known = server.known_hosts.read_text()
    server.known_hosts.write_text(f"{known}@revoked * {server.public_key}\n")
    assert "is unknown: it shows" in refusal(server.target)


@pytest.mark.parametrize(
    ("host", "line", "known"),
    [
        ("sut1.lab.example.org", "*.lab.example.org", True),
        ("lab.example.org", "*.lab.example.org", False),
        ("10.0.0.7", "10.0.0.?", True),
        ("10.0.0.17", "10.0.0.?", False),
        ("SUT1", "sut1", True),
        ("sut1", "SUT1", True),
        ("[sut1]:2222", "[sut1]:2222", True),
        ("[sut1]:2222", "[*]:2222", True),
        ("sut1.lab", "*.lab,!sut1.lab", False),
        ("sut1.lab", "!sut1.lab,*.lab", False),
        ("sut2.lab", "!sut1.lab,*.lab", True),
        ("sut1", "sut.", False),
        ("sut1", "[a-z]*1", False),
    ],
)
def test_names_in_known_hosts_are_patterns(shared_server: SshServer, host: str, line: str, known: bool) -> None:
    """As ssh takes them; ``.`` and brackets mean themselves."""
    assert bool(_keys_of(host, [f"{line} {shared_server.public_key}"])) is known


def test_a_port_without_a_line_of_its_own_is_known_by_its_hosts(server: SshServer) -> None:
    server.known_hosts.write_text(f"127.0.0.? {server.public_key}\n")
    log_in(server.target).close()
    server.known_hosts.write_text(f"127.0.0.?,!127.0.0.1 {server.public_key}\n")
    assert refusal(server.target).startswith("the host key of ")


def test_lines_that_nobody_can_read_are_passed_over(server: SshServer) -> None:
    known = server.known_hosts.read_text()
    server.known_hosts.write_text(f"# words\n\n@cert-authority * {server.public_key}\nx y z\nx ssh-rsa %\n{known}")
    log_in(server.target).close()
    server.known_hosts.write_text(f"@cert-authority * {server.public_key}\n")
    assert "is known by a certificate authority only (line 1 of" in refusal(server.target)


def test_no_password_and_no_key_is_sent_to_a_host_that_is_not_known(server: SshServer) -> None:
    server.known_hosts.write_text("")
    refusal(server.other(key=None, password="secret"))
    log = server.log.read_text()
    assert "Failed password" not in log and "Accepted" not in log and "publickey" not in log


def test_a_known_hosts_file_that_is_not_there(server: SshServer, tmp_path: Path) -> None:
    assert refusal(server.other(known_hosts=tmp_path / "nope")) == (
        f"cannot read the host keys in {tmp_path}/nope for sut (root@127.0.0.1:{server.port}): No such file or "
        "directory; name another file as known_hosts"
    )


def test_a_wrong_user_key(server: SshServer, tmp_path: Path) -> None:
    key = make_key(tmp_path / "other")
    assert refusal(server.other(key=key)) == (
        f"sut (root@127.0.0.1:{server.port}) refuses the key {key}; add the public key to root's authorized_keys "
        "there, or name another user or key"
    )


def test_keys_that_cannot_be_used(server: SshServer, tmp_path: Path) -> None:
    where = f"for sut (root@127.0.0.1:{server.port})"
    assert refusal(server.other(key=tmp_path / "nope")).startswith(f"cannot read the key {tmp_path}/nope {where}; name")
    locked = make_key(tmp_path / "locked", passphrase="x")
    assert refusal(server.other(key=locked)) == (
        f"the key {locked} {where} is encrypted; add it to an agent (ssh-add) and leave key out of the testbed file"
    )
    (tmp_path / "text").write_text("no key\n")
    assert refusal(server.other(key=tmp_path / "text")).startswith(f"{tmp_path}/text is no private key that can be")


def test_no_key_at_all(server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    message = refusal(server.other(key=None))
    assert message.startswith(f"sut (root@127.0.0.1:{server.port}) refuses every key of agent and ~/.ssh; add the")


def test_an_agent(server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = subprocess.Popen(("ssh-agent", "-D", "-a", str(tmp_path / "agent")), stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        agent.stdout.readline()  # it listens
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        subprocess.run(("ssh-add", "-q", str(server.user_key)), check=True, capture_output=True)
        log_in(server.other(key=None)).close()
    finally:
        agent.kill()
        agent.communicate()


def test_a_password_comes_from_the_environment_that_the_file_names(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PDRGATE_TEST", raising=False)
    target = server.other(key=None, password_env="PDRGATE_TEST")
    assert refusal(target) == (
        f"the environment has no PDRGATE_TEST, which is to hold the password for sut (root@127.0.0.1:{server.port}); "
        "set it, or use a key"
    )
    monkeypatch.setenv("PDRGATE_TEST", "wrong")
    message = refusal(target)
    assert message == (
        f"sut (root@127.0.0.1:{server.port}) refuses the password; check it, or name another user or key"
    )


# --- Ways ---


def test_a_jump_host(sshd_is_there: None, tmp_path: Path) -> None:
    with SshServer(tmp_path / "jump") as jump, SshServer(tmp_path / "inner") as inner:
        through = inner.other(jump=jump.other(alias="jump"))
        login = log_in(through)
        try:
            _, out, _ = login.client.exec_command("echo $SSH_CONNECTION")
            assert out.read().split()[3] == str(inner.port).encode()
            assert (jump.logins, inner.logins) == (1, 1)
        finally:
            login.close()
        # Each is verified by its own key.
        jump.known_hosts.write_text("")
        assert refusal(through).startswith(f"the host key of jump (root@127.0.0.1:{jump.port}) is unknown")
        assert inner.logins == 1


def test_a_jump_host_that_does_not_get_there(sshd_is_there: None, tmp_path: Path) -> None:
    with SshServer(tmp_path / "jump") as jump, SshServer(tmp_path / "inner") as inner:
        through = inner.other(jump=jump.other(alias="jump"))
        inner.stop()
        with pytest.raises(UnreachableError, match=rf"through the jump host root@127.0.0.1:{jump.port}: .*; is it up"):
            log_in(through)
    with SshServer(tmp_path / "closed", "AllowTcpForwarding no") as jump, SshServer(tmp_path / "other") as inner:
        with pytest.raises(UnreachableError, match=r"\(AllowTcpForwarding\)\?$"):
            log_in(inner.other(jump=jump.other(alias="jump")))
        assert inner.logins == 0


@pytest.fixture
def mute() -> Iterator[int]:
    """A port where somebody listens and says nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    yield listener.getsockname()[1]
    listener.close()


def test_nobody_and_somebody_else(server: SshServer, mute: int) -> None:
    with pytest.raises(
        UnreachableError, match=r"^sut \(root@127.0.0.1:\d+\) does not speak SSH as it should: no answer in time; is"
    ):
        log_in(server.other(port=mute, timeout=0.5))
    server.stop()
    assert "Connection refused; is it up, and does an SSH server listen there?" in refusal(server.target)
    with pytest.raises(UnreachableError, match=r"^cannot reach sut \(root@host.invalid:22\): .*check the address"):
        log_in(SshTarget("sut", "host.invalid"))


def test_a_server_that_speaks_something_else(server: SshServer) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        message = refusal(server.other(port=listener.getsockname()[1]))
        assert "does not speak SSH as it should" in message and "is another service at that port" in message
    finally:
        thread.join()
        listener.close()
