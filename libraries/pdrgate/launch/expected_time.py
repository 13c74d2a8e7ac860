"""How long several paths will take, by the runs that a history has of them."""

from __future__ import annotations

from statistics import median

from pdrgate.gate.run.options import RunOptions
from pdrgate.launch.shard import is_of_a_path, shard_of
from pdrgate.launch.suites import listed
from pdrgate.reports.words.durations import about
from pdrgate.values.errors import PdrGateError


def expected_time(options: RunOptions) -> str:
    """``72 paths, about 40 min by the last 3 runs``; empty for a single path."""
    if options.scenario_file is not None or not options.against:
        return ""
    mine = shard_of(options)
    number = sum(is_of_a_path(one) and one.longname in mine for one in listed(options.suites, options.patterns))
    if number < 2:
        return ""
    seconds = _seconds_a_path(options)
    if not seconds:
        return f"{number} paths; how long they take is known once the first one has ended"
    runs = f"the last {len(seconds)} runs" if len(seconds) > 1 else "the last run"
    return f"{number} paths, {about(number * median(seconds))} by {runs}"


def _seconds_a_path(options: RunOptions) -> list[float]:
    """What a path took in each of the last runs of several paths on this testbed; empty where nobody knows."""
    if options.history is None or (options.history.file is not None and not options.history.file.exists()):
        return []
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.queries import seconds_a_path

    try:
        with Database.open(options.history) as history, history.reading() as connection:
            return seconds_a_path(connection, options.testbed.stem, options.profile)
    except PdrGateError:
        return []  # the run itself reports what is wrong with it
