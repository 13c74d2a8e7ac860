"""The command ``pdrgate``: its commands, and what becomes of errors: one line on stderr, exit codes as in errors.py."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from pdrgate import __version__
from pdrgate.cli.affected import affected
from pdrgate.cli.assess import assess
from pdrgate.cli.bisect import bisect
from pdrgate.cli.build import build_kernel
from pdrgate.cli.calibrate import calibrate
from pdrgate.cli.compare import compare
from pdrgate.cli.doctor import doctor
from pdrgate.cli.fetch import fetch
from pdrgate.cli.gate import gate
from pdrgate.cli.history import history
from pdrgate.cli.loads import loads
from pdrgate.cli.merge import merge
from pdrgate.cli.notify import notify
from pdrgate.cli.report import report
from pdrgate.cli.restore import restore
from pdrgate.cli.trend import trend
from pdrgate.this_process.interruption import Interruption, interrupted_code
from pdrgate.this_process.streams import outlives_its_reader
from pdrgate.values.errors import EXIT_FAULT, EXIT_PASS, EXIT_STOP, EXIT_UNTESTABLE, EXIT_USAGE, HeldError, PdrGateError

_COMPLETION = "_PDRGATE_COMPLETE"
"""What a shell asks with for completions, as click names it."""
_PASSWORD = re.compile(r"(://[^/@\s:]*:)[^\s]*@")
"""A password in a URL; what an error quotes of the command line may be one that stands where none belongs."""
_LOOP = re.compile(r"Symlink loop from '(.*)'", re.DOTALL)
"""What Python, before 3.13, says of links that lead to one another."""
_SHOWN = 200
"""Characters of a file's name, in an error."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="pdrgate", message="%(prog)s %(version)s")
def cli(debug: bool) -> None:
    """Decide whether a kernel's packet data path is as fast as it was.

    Exit codes: 0 passes, 1 fails because of the SUT, 2 a file or the testbed is at fault, 3 undecided, 64 a usage
    error.
    """


_COMMANDS = (
    gate, doctor, calibrate, bisect, affected, loads, build_kernel, restore, assess, compare, report, merge, history,
    fetch, trend, notify,
)  # fmt: skip
for _command in _COMMANDS:
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with outlives_its_reader("stderr"), outlives_its_reader("stdout") as why_lost:
        code = _code(words)
        if code == EXIT_PASS and (why := why_lost()):
            told = f"standard output cannot be written: {why}; make room there, or write elsewhere, and run again"
            return _complain(told, _for_bisect(words, EXIT_FAULT))
        return code


def _code(words: Sequence[str]) -> int:
    """The exit code of a command line that was run."""
    if (instruction := os.environ.get(_COMPLETION)) is not None:
        return shell_complete(cli, {}, "pdrgate", _COMPLETION, instruction)
    debug = False
    try:
        with cli.make_context("pdrgate", list(words)) as context:
            debug = context.params["debug"]
            code = cli.invoke(context)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.UsageError as error:
        if isinstance(error, click.NoSuchOption) and (instead := _as_key(error)):
            return _complain(instead, _for_bisect(words, EXIT_USAGE))
        where = error.ctx.command_path if error.ctx else "pdrgate"
        why = _PASSWORD.sub(r"\1…@", error.format_message())
        told = f"{why.rstrip('.')}; see '{where} --help'"
        return _complain(told, _for_bisect(words, EXIT_USAGE))
    except Interruption as interruption:
        return _complain(str(interruption), interruption.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", interrupted_code())
    except PdrGateError as error:
        if debug:
            raise
        stops = isinstance(error, HeldError) and _is_bisect(words)
        return _complain(str(error), EXIT_STOP if stops else _for_bisect(words, error.exit_code))
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            # What is done with a file says what to do instead; here are left files that cannot even be looked at.
            told = f"{_brief(error.filename)}: {error.strerror}; name another, or run as who may use it"
            return _complain(told, _for_bisect(words, EXIT_FAULT))
        if isinstance(error, FileNotFoundError) and error.filename is None:  # os.getcwd
            told = "the folder that it was started in is gone; change to one that is there (cd), and run again"
            return _complain(told, _for_bisect(words, EXIT_FAULT))
        if isinstance(error, RuntimeError) and (loop := _LOOP.fullmatch(str(error))):
            told = f"{_brief(loop[1])}: is a link that leads back to itself; name another"
            return _complain(told, _for_bisect(words, EXIT_FAULT))
        told = f"internal error: {type(error).__name__}: {error}; run again with --debug"
        return _complain(told, _for_bisect(words, EXIT_FAULT))


def _as_key(error: click.NoSuchOption) -> str:
    """What to write in place of an option that is a key of ``--set``; empty where it is none."""
    from pdrgate.gate.run.run_settings import keys

    name = error.option_name.removeprefix("--").replace("-", "_").lower()
    opts = {opt for one in error.ctx.command.params for opt in one.opts} if error.ctx is not None else {}
    near = difflib.get_close_matches(name, keys(), 1, 0.85) if "--set" in opts else []
    near = [key for key in near if key == name or f"--{key}" not in opts]
    return f"there is no option {error.option_name}; write --set {near[0]}=VALUE" if near else ""


def _brief(name: object) -> str:
    text = os.fsdecode(name) if isinstance(name, str | bytes) else str(name)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_bisect(words: Sequence[str]) -> bool:
    return "--bisect" in words


def _for_bisect(words: Sequence[str], code: int) -> int:
    """The exit code for git bisect: any other code of an error would be a bad build there. A wrong command line stops
    it."""
    if not _is_bisect(words):
        return code
    return EXIT_STOP if code == EXIT_USAGE else EXIT_UNTESTABLE


def _complain(message: str, code: int) -> int:
    click.echo(f"pdrgate: {' '.join(message.split())}", err=True)
    return code
