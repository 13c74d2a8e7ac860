"""The registry of data paths: those of `paths/`, each found by its file's being there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from pdrgate.builds.bpf_build import BpfBuild, bpf_build
from pdrgate.data_paths import paths
from pdrgate.data_paths.contract import NETWORKS, DataPath, Hop, Networks, Port, Station, segment
from pdrgate.data_paths.network_state import KnownNetworks
from pdrgate.data_paths.path_description import PathAsked, PathDescription
from pdrgate.data_paths.program_path import ProgramBefore
from pdrgate.data_paths.receivers import CALLS, MOST_RECEIVERS, Call, Receivers
from pdrgate.data_paths.set_up import SetUp
from pdrgate.data_paths.set_up_path import SetUpPath
from pdrgate.data_paths.standing_base import StandingBase
from pdrgate.data_paths.tcp_streams import CONTROLS, Buffers, StreamDirection, TcpStreams
from pdrgate.knobs import ChangeLog
from pdrgate.record.fate import Fate
from pdrgate.values.errors import TestbedError

__all__ = [
    "CALLS", "CONTROLS", "DATA_PATHS", "MOST_RECEIVERS", "NETWORKS", "UNDER_STEPS", "Buffers", "Call", "DataPath",
    "Hop", "Networks", "PathDescription", "Port", "Receivers", "SetUp", "Station", "StreamDirection", "TcpStreams",
    "data_path", "segment",
]  # fmt: skip


def _found() -> Iterator[PathDescription]:
    for module in sorted(one.name for one in iter_modules(paths.__path__)):
        yield from import_module(f"{paths.__name__}.{module}").PATHS


DATA_PATHS: dict[str, PathDescription] = {one.name: one for one in _found()}
"""Data paths by the names that suites may use."""


UNDER_STEPS = next(one.name for one in DATA_PATHS.values() if one.under_steps)
"""What a scenario's own steps stand on, where they name no other."""


def data_path(
    name: str,
    program: BpfBuild | Path | None = None,
    receivers: Receivers | None = None,
    streams: TcpStreams | None = None,
    changes: ChangeLog | None = None,
    *,
    fate: Fate = "forwarded",
    set_up: SetUp | None = None,
    stays: bool = True,
    networks: KnownNetworks | None = None,
    base: StandingBase | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> DataPath:
    """Make a new data path by its name.

    Args:
        program: an eBPF object, the build under test: it runs in place of pdrgate's own program, or before the path
            where that has none.
        receivers: who receives, where packets end at the SUT.
        streams: of TCP, where it talks that.
        fate: what counts as handled, where that makes a difference to how it is set up.
        changes: where what it sets of TCP is noted first, for no testbed knows of that; None: it ends with the hosts.
        set_up: what a user's own steps do on top of it.
        stays: whether the hosts outlive the path, so that what the steps made is taken away.
        networks: what these hosts have without any path, where that is known.
        base: what stands on these hosts; a path that does not stand on it finds it left.
        report: gets lines of what those steps printed.

    Raises:
        BpfBuildError: the object holds no program for this data path.
        TestbedError: there is no such data path, or a host does not let go of the base.
    """
    if name not in DATA_PATHS:
        raise TestbedError(f"there is no data path {name!r}; there are {', '.join(DATA_PATHS)}")
    path = DATA_PATHS[name]
    by_steps = set_up is not None and set_up.loads_program
    build = None if program is None else bpf_build(program, None if by_steps else path.program, by_steps=by_steps)
    own = build if path.program is not None and not by_steps else None
    if build is not None and build.kind == "struct_ops" and streams is not None and streams.sends:
        streams = replace(streams, congestion="")  # the SUT's own, which the program is
    made = path.make(PathAsked(own, receivers or Receivers(), streams or TcpStreams(), fate, changes))
    stands = path.under_steps and set_up is not None
    for sentence in base.leave() if base is not None and not stands else ():
        report(sentence)
    if set_up is not None:
        made = SetUpPath(
            made, set_up, networks=(networks or KnownNetworks()) if stays else None, base=base if stands else None,
            report=report, build=build if by_steps else None,
        )  # fmt: skip
    if build is None or by_steps or path.program is not None:
        return made
    return ProgramBefore(made, build, fate, disposable=changes is None)
