"""``pdrgate build``: the kernel of a revision, for a machine that measures it."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import PathType, note
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS


@click.command("build")
@click.argument("named", metavar="TREE@REV")
@click.option("--config", metavar="FILE", type=PathType(), help="A .config.  [default: what guests and paths need]")
@click.option("--arch", metavar="NAME", default="", help="amd64 or arm64.  [default: as .config, or this machine]")
@click.option("--into", metavar="FOLDER", default="kernel", show_default=True, type=PathType())
def build_kernel(named: str, config: Path | None, arch: str, into: Path) -> int:
    """Compile the kernel of TREE@REV, and put it into FOLDER, which --kernel takes on any machine.

    TREE@REV is what the gate's --kernel takes. Nothing is measured, and no root is needed: a pipeline compiles a change
    on another machine than the one that judges it. FOLDER is made, or must be empty.

    Prints the folder. Exits with 1 when it does not compile, and with 2 when it cannot be tried.
    """
    from pdrgate.builds.git_tree.revision import revision
    from pdrgate.builds.git_tree.tree_build import DoesNotCompileError, built, put_into
    from pdrgate.builds.named_build import known_architecture

    try:
        put_into(into, built(revision(named), config, None, note, known_architecture(arch) if arch else None))
    except DoesNotCompileError as error:
        click.echo(f"pdrgate: {error}", err=True)
        return EXIT_FAIL
    click.echo(str(into))
    return EXIT_PASS
