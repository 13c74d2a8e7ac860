"""Several commands in one round trip to a host, each with an exit code and output of its own."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence

from pdrgate.hosts.host import Completed, Host


def commands_at_once(
    host: Host, before: str, commands: Sequence[str], timeout: float, *, go_on: bool = False
) -> list[Completed]:
    """Run commands one after the other, up to the first that fails; what each came to that was begun.

    Each has a shell of its own, so that none changes what the next one finds but by what it does to the host.

    Args:
        before: lines of a script that all commands stand behind; where it ends, the first command has its exit code.
        timeout: seconds for all of them.
        go_on: whether those behind a command that fails are run, too.

    Raises:
        HostError: they did not end in time, or the way to the host broke.
    """
    if not commands:
        return []
    mark = f"pdrgate-{secrets.token_hex(8)}"  # no command knows what to print to look like it
    lines = [before]
    for command in commands:
        lines.append(f"sh -c {shlex.quote(command)}")
        lines.append(f"code=$?; printf '\\n{mark} %d\\n' $code; printf '\\n{mark} %d\\n' $code >&2")
        if not go_on:
            lines.append("[ $code = 0 ] || exit $code")
    whole = host.script("\n".join(lines), timeout)
    (*out, last), (*errors, last_error) = (
        re.split(rf"\n{mark} (\d+)\n", text) for text in (whole.stdout, whole.stderr)
    )  # fmt: skip
    ended = [(int(code), text, error) for text, code, error in zip(out[::2], out[1::2], errors[::2], strict=False)]
    stopped = bool(ended) and bool(ended[-1][0]) and not go_on
    if len(ended) < len(commands) and not stopped:
        ended.append((whole.exit_code or 1, last, last_error))  # the script itself ended, as where a folder is missing
    return [
        Completed(("sh", "-c", command), *each) for command, each in zip(commands, ended, strict=False)
    ]  # fmt: skip
