"""News by mail: through a server of SMTP, else through this machine's sendmail."""

from __future__ import annotations

import getpass
import shutil
import smtplib
import socket
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import TestbedError, UsageError

SMTP_VARIABLE, FROM_VARIABLE = "PDRGATE_SMTP", "PDRGATE_MAIL_FROM"
"""``smtp://host:25`` or ``smtps://user:password@host``; who writes."""
_PATIENCE = 30.0
_SENDMAIL = "/usr/sbin/sendmail"


def message(title: str, text: str, sender: str, to: Sequence[str]) -> EmailMessage:
    """A message of plain text. Raises UsageError for an address that is none."""
    mail = EmailMessage()
    try:
        mail["Subject"] = " ".join(title.split())
        mail["From"] = sender or f"pdrgate <{getpass.getuser()}@{socket.getfqdn()}>"
        mail["To"] = ", ".join(to)
    except ValueError as error:
        raise UsageError(f"--mail {', '.join(to)}: {error}; name an address such as net@example.org") from error
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text)
    return mail


def send(mail: EmailMessage, environ: Mapping[str, str]) -> None:
    """Send it by the server that the environment names, else by sendmail. Raises TestbedError, UsageError."""
    address = environ.get(SMTP_VARIABLE, "")
    try:
        if address:
            _by_server(mail, address)
        else:
            _by_sendmail(mail)
    except (OSError, smtplib.SMTPException, subprocess.SubprocessError) as error:
        # What the error says may quote the login.
        raise TestbedError(
            f"the mail was not sent ({type(error).__name__}); it is reported again by the next run, see {SMTP_VARIABLE}"
        ) from None


def _by_server(mail: EmailMessage, address: str) -> None:
    try:
        parts = urlsplit(address)
        host, port, kind = parts.hostname or "", parts.port or 0, parts.scheme
    except ValueError:
        host, port, kind = "", 0, ""
    if not host or kind not in ("smtp", "smtps"):
        raise UsageError(f"{SMTP_VARIABLE} is no address of a mail server; write smtp://HOST:PORT or smtps://HOST")
    server = smtplib.SMTP_SSL if kind == "smtps" else smtplib.SMTP
    with server(host, port, timeout=_PATIENCE) as connection:
        connection.ehlo()
        encrypted = kind == "smtps" or connection.has_extn("starttls")
        if kind == "smtp" and encrypted:
            connection.starttls(context=ssl.create_default_context())
        if parts.username and not encrypted:
            raise UsageError(f"the server of {SMTP_VARIABLE} has no TLS, and no password is sent without it; use smtps")
        if parts.username:
            connection.login(unquote(parts.username), unquote(parts.password or ""))
        connection.send_message(mail)


def _by_sendmail(mail: EmailMessage) -> None:
    program = shutil.which("sendmail") or shutil.which(_SENDMAIL)
    if program is None:
        raise UsageError(f"there is no sendmail here; install one, or name a mail server as {SMTP_VARIABLE}")
    subprocess.run(
        [program, "-t", "-oi"], input=bytes(mail), check=True, capture_output=True, timeout=_PATIENCE,
        env=child_environment(),
    )  # fmt: skip
