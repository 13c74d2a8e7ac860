"""A variable file for Robot: the options of a run, each a variable of its name and of its type.

``resources/gate.resource`` imports it for what the options are by themselves. `pdrgate.launch.running` hands it the
folder of a run, whose options then go before those that a suite sets.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pdrgate.gate.run.declaration import By, declarations
from pdrgate.gate.run.options import Options, RunOptions
from pdrgate.this_process.own_files import PACKAGE, found

_SCHEME, _TRAFFIC = "file://", "traffic="


def variable_file(folder: Path) -> str:
    """What Robot's ``--variablefile`` takes for the options in the folder of a run."""
    # Robot separates arguments by what comes first, a colon or a semicolon; a URI has neither within its path.
    return f"{__name__};{folder.resolve().as_uri()}"


def get_variables(run: str = "") -> dict[str, Any]:
    """Called by Robot; ``run`` is the URI of a run's folder. Without one, options of a session stay unset: the
    testbed's file may say them.

    Raises:
        DataError: the folder keeps no options.
    """
    known = {name: one for name, one in declarations(RunOptions).items() if By.VARIABLE in one.said.by}
    if run:
        options = _anywhere(RunOptions.of_run(Path(unquote(run.removeprefix(_SCHEME)))))
    else:
        options = RunOptions(testbed=PACKAGE / "resources/testbeds/steady-guest.yaml")
        known = {name: one for name, one in known.items() if name not in declarations(Options)}
    return {one.variable: getattr(options, name) for name, one in known.items()}


def _anywhere(options: RunOptions) -> RunOptions:
    """Options with absolute paths: a suite may lie in any folder."""
    from pdrgate.builds.kernel_build import absolute
    from pdrgate.gate.run.scenario_file import files_beside
    from pdrgate.gate.verdicts.baseline import name_in_history
    from pdrgate.traffic.chosen.traffic_words import from_anywhere

    baseline = options.baseline
    return dataclasses.replace(
        options,
        testbed=found(options.testbed).resolve(),
        baseline=baseline if baseline is None or name_in_history(baseline) else baseline.resolve(),
        scenario_file=options.scenario_file.resolve() if options.scenario_file else None,
        kernel=absolute(options.kernel),
        bpf=absolute(options.bpf),
        against=absolute(options.against),
        changes=tuple(
            f"{_TRAFFIC}{from_anywhere(one.removeprefix(_TRAFFIC))}" if one.startswith(_TRAFFIC) else one
            for one in options.changes
        ),
        **files_beside(
            Path.cwd(), {name: getattr(options, name) for name in ("replaces", "maps", "rodata", "packets")}
        ),
        history=options.history.absolute() if options.history else None,
    )
