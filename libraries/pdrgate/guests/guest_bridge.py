"""Joins standard input, output and error to a shell in a guest: `python guest_bridge.py CONTROL SHELL ERRORS`.

A program of its own that imports nothing of pdrgate, so that `ShellHost` can start and kill it like any shell. Its
arguments are addresses of the guest's sockets, see pdrgate.guests.guest_ports.
"""

import contextlib
import os
import select
import socket
import sys

LONGEST_ANSWER = 1 << 16
"""Bytes of a guest's answers before the one that was asked for."""


def connect(address: str) -> socket.socket:
    """Connect to one of the guest's ports."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.connect(address)
    return one


def main(*addresses: str) -> int:
    """Ask for a new shell, then carry bytes until one side ends."""
    try:
        control, shell, errors = map(connect, addresses)
    except OSError as error:
        print(f"the guest has ended ({error.strerror})", file=sys.stderr)
        return 1
    token = os.urandom(8).hex()
    control.sendall(f"open {token}\n".encode())
    answer = b""
    while f"open {token}\n".encode() not in answer:
        chunk = control.recv(4096)
        if not chunk or len(answer) > LONGEST_ANSWER:
            print("the guest has ended" if not chunk else "the guest opens no shell and says all else", file=sys.stderr)
            return 1
        answer += chunk
    ways = {0: shell.fileno(), shell.fileno(): 1, errors.fileno(): 2}
    while True:
        for source in select.select(list(ways), [], [])[0]:
            chunk = os.read(source, 1 << 16)
            if not chunk:
                if source:
                    print("the guest has ended", file=sys.stderr)
                return int(source != 0)
            while chunk:
                chunk = chunk[os.write(ways[source], chunk) :]


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        sys.exit(main(*sys.argv[1:]))
    sys.exit(1)
