"""The command ``pdrgate``: parses, calls a floor, prints. Errors are one line on stderr; exit codes as in errors.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pdrgate import __version__
from pdrgate.errors import EXIT_FAULT, EXIT_USAGE, PdrGateError, UnitError
from pdrgate.units import Ratio

# numpy costs more to start than all of the rest: commands import what computes only when they run.


class RatioType(click.ParamType[Ratio]):
    """``0.5%`` or ``0.005``; at least 0 and below 1."""

    name = "ratio"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Ratio:
        """Parse what the command line says; a usage error when it is no ratio in [0, 1)."""
        try:
            ratio = Ratio.parse(value)
        except UnitError as error:
            self.fail(str(error), param, ctx)
        if not 0 <= ratio < 1:
            self.fail(f"{value!r} must be at least 0 and below 100%", param, ctx)
        return ratio


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="pdrgate", message="%(prog)s %(version)s")
def cli(debug: bool) -> None:
    """Decide whether a kernel's packet data path is as fast as it was.

    Exit codes: 0 passes, 1 fails because of the SUT, 2 a file or the testbed is at fault, 64 a usage error.
    """


@cli.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--reading",
    type=click.Choice(["strict", "tolerant", "published"]),
    default="strict",
    show_default=True,
    help="How PASTRAMI's entry into saturation is read: the paper's text, what the authors meant, what they published.",
)
@click.option("--loss", type=RatioType(), default="0.5%", show_default=True, help="The PLR that defines the PDR.")
@click.option("--eta", type=RatioType(), default="0.1", show_default=True, help="A TIR below this is saturation.")
def assess(files: tuple[Path, ...], form: str, reading: str, loss: Ratio, eta: Ratio) -> int:
    """Say whether the PDR in each FILE can be trusted.

    FILE is a trials.jsonl of pdrgate, a result file of PASTRAMI, or a directory: all *.txt and trials.jsonl below it.

    Exits with 0 when every experiment is STABLE, with 1 when one is not, with 2 when a FILE is no trials or the
    generator was the limit.
    """
    import json

    from pdrgate.stability import Reading, assess, expand, read_experiments
    from pdrgate.stability.text import render

    assessments = [
        assess(
            experiment.trials,
            reading=Reading(reading),
            plr_threshold=loss,
            eta=eta,
            source=experiment.source,
            notes=experiment.notes,
        )
        for path in expand(files)
        for experiment in read_experiments(path)
    ]
    if form == "json":
        click.echo(json.dumps({"experiments": [found.to_dict() for found in assessments]}, indent=1, allow_nan=False))
    else:
        click.echo(render(assessments))
    return max(found.verdict.exit_code for found in assessments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    debug = False
    try:
        with cli.make_context("pdrgate", list(sys.argv[1:] if arguments is None else arguments)) as context:
            debug = context.params["debug"]
            code = cli.invoke(context)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "pdrgate"
        return _complain(f"{error.format_message().rstrip('.')}; see '{where} --help'", EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader has gone (| head): nothing to complain about, and no second error on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAULT
    except PdrGateError as error:
        if debug:
            raise
        return _complain(str(error), error.exit_code)
    except Exception as error:
        if debug:
            raise
        return _complain(f"internal error: {type(error).__name__}: {error}; run again with --debug", EXIT_FAULT)


def _complain(message: str, code: int) -> int:
    click.echo(f"pdrgate: {' '.join(message.split())}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
