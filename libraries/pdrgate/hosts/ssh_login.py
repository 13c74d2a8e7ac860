"""The way into a host by SSH: its address and keys, the host key's verification, and the login.

The host key is always verified, against a known_hosts file or the key that the testbed file gives. (SSHLibrary itself
takes any key, so logins are made here and handed to it, see `pdrgate.keywords.testbed`.) Keys and agents log in. A
password comes from an environment variable or a Robot `Secret`, and is never written down.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import logging
import os
import re
import select
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from pdrgate.hosts.host import HostError
from pdrgate.hosts.ssh_target import SshTarget

KEEPALIVE = 5.0
"""Seconds of silence after which the host is asked for a sign of life."""

_UNHEARD = 20_000
"""Milliseconds that sent data may stay unacknowledged before the connection is taken to be lost."""

_KNOWN_HOSTS = tuple(
    map(Path, ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"))
)

# Without a handler Python prints the library's own tracebacks on stderr, next to our one line.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class SshError(HostError):
    """A host does not let us in by SSH: what it refused, and what to do."""


class UnreachableError(SshError):
    """No SSH server answers there now. A later try may succeed."""


class HostKeyError(SshError):
    """The host's key is unknown, changed or revoked: it may be another host."""


@dataclass(frozen=True, slots=True)
class Login:
    """A connection that is authenticated in both directions, and what it came through."""

    client: paramiko.SSHClient
    jump: Login | None = None

    @property
    def active(self) -> bool:
        """Whether the connection is there, as far as the SSH library knows."""
        transport = self.client.get_transport()
        return transport is not None and transport.is_active()

    @property
    def hung_up(self) -> bool:
        """Whether the kernel knows that the other side is gone, which it does sooner than the SSH library's own
        thread."""
        if not self.active:
            return True
        if self.jump is not None:
            return self.jump.hung_up
        try:
            watch = select.poll()
            watch.register(self.client.get_transport().sock.fileno(), select.POLLRDHUP)
            return bool(watch.poll(0))
        except (AttributeError, OSError, ValueError):  # closed at this moment
            return True

    def close(self) -> None:
        """End it, and then what it came through."""
        self.client.close()
        if self.jump is not None:
            self.jump.close()


def log_in(target: SshTarget) -> Login:
    """Connect, verify the host, authenticate.

    Raises:
        UnreachableError: nobody answers. Only this error may go away when it is tried again.
        HostKeyError: the host key is not the known one.
        SshError: the key, the agent or the password is refused, or a file or a variable of the target is missing.
    """
    jump = log_in(target.jump) if target.jump else None
    client = paramiko.SSHClient()
    try:
        way = _connect(target, jump)
        try:
            _authenticate(client, target, way)
        except BaseException:
            way.close()
            raise
        transport = client.get_transport()
        assert transport is not None
        transport.set_keepalive(KEEPALIVE)
    except BaseException:
        client.close()
        if jump is not None:
            jump.close()
        raise
    return Login(client, jump)


def _connect(target: SshTarget, jump: Login | None) -> Any:
    """A socket to the target, or a channel through the jump host that serves as one."""
    if jump is None:
        return _socket(target)
    transport = jump.client.get_transport()
    try:
        return transport.open_channel(
            "direct-tcpip", (target.address, target.port), ("127.0.0.1", 0), timeout=target.timeout
        )
    except (paramiko.SSHException, EOFError, OSError) as error:
        assert target.jump is not None
        raise UnreachableError(
            f"cannot reach {target.alias} ({target.where}) through the jump host {target.jump.where}: {_words(error)}; "
            "is it up, and does the jump host allow forwarding to it (AllowTcpForwarding)?"
        ) from error


def _socket(target: SshTarget) -> socket.socket:
    try:
        way = socket.create_connection((target.address, target.port), target.timeout)
    except socket.gaierror as error:
        raise UnreachableError(
            f"cannot reach {target.alias} ({target.where}): {error.strerror}; check the address in the testbed file"
        ) from error
    except OSError as error:
        raise UnreachableError(
            f"cannot reach {target.alias} ({target.where}): {_words(error)}; is it up, and does an SSH server listen "
            "there?"
        ) from error
    # Commands are short and waited for: nothing is gained by collecting them into larger segments.
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD)
    return way


def _authenticate(client: paramiko.SSHClient, target: SshTarget, way: Any) -> None:
    key = target.key.expanduser() if target.key else None
    if key is not None and not os.access(key, os.R_OK):
        raise SshError(
            f"cannot read the key {key} for {target.alias} ({target.where}); name the private key's file as key, or "
            "leave it out to use the agent"
        )
    password = _password(target)
    _know(client, target)
    at_hand = key is None and password is None
    try:
        client.connect(
            target.address, target.port, target.user,
            password=password, key_filename=str(key) if key else None, allow_agent=at_hand, look_for_keys=at_hand,
            sock=way, timeout=target.timeout, banner_timeout=target.timeout, auth_timeout=target.timeout,
            channel_timeout=target.timeout,
        )  # fmt: skip
    except paramiko.BadHostKeyException as error:
        raise HostKeyError(_changed(target, error.key, error.expected_key)) from error
    except paramiko.PasswordRequiredException as error:
        raise SshError(
            f"the key {key or 'found'} for {target.alias} ({target.where}) is encrypted; add it to an agent (ssh-add) "
            "and leave key out of the testbed file"
        ) from error
    except paramiko.AuthenticationException as error:
        raise SshError(_refused(target, key, password)) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        if "No authentication methods available" in str(error):
            raise SshError(_refused(target, key, password)) from error
        if key is not None and isinstance(error, paramiko.SSHException) and "private key" in str(error):
            raise SshError(f"{key} is no private key that can be used ({error}); name another as key") from error
        raise UnreachableError(
            f"{target.alias} ({target.where}) does not speak SSH as it should: {_words(error)}; is another service at "
            "that port, or the SSH server overloaded or just starting?"
        ) from error


def _password(target: SshTarget) -> str | None:
    if target.password is not None or target.password_env is None:
        return target.password
    if (password := os.environ.get(target.password_env)) is None:
        raise SshError(
            f"the environment has no {target.password_env}, which is to hold the password for {target.alias} "
            f"({target.where}); set it, or use a key"
        )
    return password


def _refused(target: SshTarget, key: Path | None, password: str | None) -> str:
    offered = f"the key {key}" if key else "the password" if password is not None else "every key of agent and ~/.ssh"
    remedy = "check it" if password is not None else f"add the public key to {target.user}'s authorized_keys there"
    return f"{target.alias} ({target.where}) refuses {offered}; {remedy}, or name another user or key"


# --- Host keys ---


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # it ships no types
    """Policy that compares the key shown with the fingerprint wanted, and refuses a host without one."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        wanted = self._target.host_key
        if wanted is None:
            raise HostKeyError(_unknown(self._target, hostname, key))
        if wanted.rstrip("=") != key_fingerprint(key):
            raise HostKeyError(_changed(self._target, key, None))


def _know(client: paramiko.SSHClient, target: SshTarget) -> None:
    """Set the host keys that the client may accept."""
    client.set_missing_host_key_policy(_RefuseUnknown(target))
    name = target.address if target.port == 22 else f"[{target.address}]:{target.port}"
    if target.host_key is not None:
        if not target.host_key.startswith("SHA256:"):
            kind, key = parse_host_key(target.host_key)
            client.get_host_keys().add(name, kind, key)
        return
    for path in _known_hosts(target):
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError as error:
            raise HostKeyError(
                f"cannot read the host keys in {path} for {target.alias} ({target.where}): {_words(error)}; name "
                "another file as known_hosts"
            ) from error
        # As ssh does: a port that has no line of its own is known by its host's.
        for kind, key in (_keys_of(name, lines) or _keys_of(target.address, lines)).items():
            client.get_host_keys().add(name, kind, key)


def _keys_of(name: str, lines: Iterable[str]) -> dict[str, paramiko.PKey]:
    """The host's keys in the lines of a known_hosts file, by type, without those that a line revokes for any host.

    Other marked lines (@cert-authority) are passed over, and so are those that nobody can read. Of a type that several
    lines have, the first counts.
    """
    known: dict[str, paramiko.PKey] = {}
    revoked = set()
    for words in map(str.split, lines):
        if words and words[0] == "@revoked":
            revoked.update(words[3:4])
        elif words and words[0][0] not in "@#":
            with contextlib.suppress(paramiko.SSHException, paramiko.hostkeys.InvalidHostKey, ValueError):
                entry = paramiko.hostkeys.HostKeyEntry.from_line(" ".join(words))
                if entry is not None and _names(entry.hostnames, name.lower()):
                    known.setdefault(entry.key.get_name(), entry.key)
    return {kind: key for kind, key in known.items() if key.get_base64() not in revoked}


def _by_authority(target: SshTarget) -> str:
    """The file and the line that know the host by who has signed its key; empty if there is none."""
    names = (target.address, f"[{target.address}]:{target.port}")
    for path in _known_hosts(target):
        with contextlib.suppress(OSError):
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                words = line.split()
                if (
                    words[:1] == ["@cert-authority"]
                    and words[1:]
                    and any(_names(words[1].split(","), one.lower()) for one in names)
                ):
                    return f"line {number} of {path}"
    return ""


def _names(patterns: Iterable[str], name: str) -> bool:
    """Whether the first field of a line means a host (sshd(8), ssh_known_hosts file format).

    Args:
        patterns: a hashed name, or names with ``*`` and ``?``; a pattern after ``!`` excludes the names that it
            matches.
        name: in lower case.
    """
    matches = False
    for pattern in patterns:
        if pattern.startswith("|1|"):
            matches |= paramiko.HostKeys.hash_host(name, pattern) == pattern
            continue
        excludes = pattern.startswith("!")
        parts = re.split(r"([*?])", pattern.removeprefix("!").lower())
        wanted = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
        if re.fullmatch(wanted, name):
            if excludes:
                return False
            matches = True
    return matches


def parse_host_key(text: str) -> tuple[str, paramiko.PKey]:
    """Type and key of a line such as ``ssh-ed25519 AAAA…``. Raises HostKeyError if it is no such line."""
    try:
        kind, blob = text.split()[:2]
        return kind, paramiko.PKey.from_type_string(kind, base64.b64decode(blob, validate=True))
    except (ValueError, IndexError, paramiko.SSHException, paramiko.UnknownKeyType) as error:
        raise HostKeyError(
            f"{text[:60]!r} is no host key; write SHA256:… (ssh-keygen -lf) or the first two words of the host's "
            "/etc/ssh/ssh_host_ed25519_key.pub"
        ) from error


def key_fingerprint(key: paramiko.PKey) -> str:
    """``SHA256:…``, as ssh-keygen -l shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")


def _known_hosts(target: SshTarget) -> list[Path]:
    if target.known_hosts is not None:
        return [target.known_hosts.expanduser()]
    with contextlib.suppress(RuntimeError):  # no home
        return [path for each in _KNOWN_HOSTS if (path := each.expanduser()).exists()]
    return []


def _unknown(target: SshTarget, hostname: str, key: paramiko.PKey) -> str:
    files = _known_hosts(target)
    where = " and ".join(map(str, files)) or "no known_hosts file"
    verb = "have" if len(files) > 1 else "has" if files else "knows"
    if authority := _by_authority(target):
        return (
            f"the host key of {target.alias} ({target.where}) is known by a certificate authority only ({authority}), "
            f"whose certificates pdrgate does not read: it shows {key.get_name()} {key_fingerprint(key)}; compare it "
            "on the host (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then give it in the testbed file as host_key"
        )
    return (
        f"the host key of {target.alias} ({target.where}) is unknown: it shows {key.get_name()} "
        f"{key_fingerprint(key)}, and {where} {verb} none for {hostname}; compare it on the host "
        "(ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), "
        "then give it in the testbed file as host_key, or add it to known_hosts"
    )


def _changed(target: SshTarget, shown: paramiko.PKey, known: paramiko.PKey | None) -> str:
    if target.host_key is not None:
        expected = f"the testbed file (host_key) expects {target.host_key[:80]}"
        if known is not None:
            expected = f"the testbed file (host_key) expects {known.get_name()} {key_fingerprint(known)}"
        remedy = "correct host_key"
    else:
        assert known is not None
        where = " and ".join(map(str, _known_hosts(target)))
        expected = f"{where} has {known.get_name()} {key_fingerprint(known)}"
        name = target.address if target.port == 22 else f"[{target.address}]:{target.port}"
        remedy = f"remove the old key (ssh-keygen -R '{name}') and add the new one"
        if authority := _by_authority(target):
            remedy += f" (the authority of {authority}, which ssh goes by, is not read)"
    return (
        f"the host key of {target.alias} ({target.where}) is not the expected one: it shows {shown.get_name()} "
        f"{key_fingerprint(shown)}, but {expected}; somebody may be in between: only if you know that the host was "
        f"installed anew, {remedy}"
    )


def _words(error: BaseException) -> str:
    # The library raises the same error for a late banner and for an unreadable one: the cause distinguishes them.
    if TimeoutError in (type(error), type(error.__context__)) or str(error) == "No existing session":
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".") or type(error).__name__
