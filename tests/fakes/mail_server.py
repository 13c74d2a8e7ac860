"""A mail server on loopback: it speaks SMTP (RFC 5321) as far as a client that sends needs it, and keeps all mails."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message


@dataclass
class Mails:
    """What it got."""

    address: str = ""
    got: list[tuple[tuple[str, ...], Message]] = field(default_factory=list)
    """Recipients of the envelope, and the message."""
    refuses: bool = False
    """Whether it takes no recipient."""


@contextmanager
def mail_server() -> Iterator[Mails]:
    """A server that runs meanwhile."""
    mails = Mails()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            to: list[str] = []
            self.say("220 here")
            while line := self.rfile.readline():
                word, _, rest = line.decode().strip().partition(" ")
                match word.upper():
                    case "EHLO" | "HELO" | "MAIL" | "RSET":
                        self.say("250 yes")
                    case "RCPT":
                        to.append(rest.partition(":")[2].strip("<> "))
                        self.say("550 nobody" if mails.refuses else "250 yes")
                    case "DATA":
                        self.say("354 go on")
                        mails.got.append((tuple(to), email.message_from_bytes(self.content())))
                        to.clear()
                        self.say("250 kept")
                    case "QUIT":
                        self.say("221 bye")
                        return
                    case _:
                        self.say("502 no such command")

        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def content(self) -> bytes:
            lines = iter(self.rfile.readline, b".\r\n")
            return b"".join(line.removeprefix(b".") for line in lines)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        mails.address = f"smtp://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield mails
        finally:
            server.shutdown()
            thread.join()
