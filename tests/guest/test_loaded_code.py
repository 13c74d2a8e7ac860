"""The names of a guest's code without /proc/kallsyms: modules' are those that the kernel itself gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering.loaded_code import LoadedCode
from pdrgate.guests.metering.meter import Executed
from pdrgate.guests.metering.static_data import StaticData
from pdrgate.guests.metering.symbols import KernelSymbol, parsed_data, symbols_behind
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.safety.journal import Journal

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


@pytest.fixture
def guest(booting: None, cloud: KernelBuild, tmp_path: Path) -> Iterator[Guest]:
    config = GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg")
    with Journal.begin(tmp_path / "state") as journal, Guest(cloud, config, journal, tmp_path / "consoles") as guest:
        guest.wait(180.0)
        yield guest


def executed_at(symbols: list[KernelSymbol]) -> Executed:
    """A block at the begin of each function."""
    ones = np.ones(len(symbols), dtype=np.uint64)
    return Executed(np.array([one.address for one in symbols], dtype=np.uint64), ones, ones)


def test_functions_have_the_kernels_own_names_whatever_is_loaded_later(guest: Guest) -> None:
    code = LoadedCode(guest, guest.build)
    assert code.naming(executed_at([])).function(symbols_behind(guest, "virtio_net")[0].address)
    guest.run("modprobe", "sch_netem")
    of_modules = [one for one in symbols_behind(guest) if not one.name.startswith("bpf_")]
    assert symbols_behind(guest, "sch_netem")
    ran = executed_at(of_modules)
    told = code.naming(ran)
    assert told.functions(ran) == told.with_more(of_modules).functions(ran)
    assert set(told.names(ran.address)) > {"netem_enqueue", "start_xmit"}

    # So have variables.
    lines = guest.run("cat", "/proc/kallsyms").stdout.splitlines()
    kernel = dict(variable for variable, module in parsed_data(lines) if module)
    known = StaticData.of(kernel.items())
    named = {
        name: (known.at(at), told.data.at(at)) for at, name in kernel.items() if name in ("netem_qdisc_ops", "napi_tx")
    }
    assert len(named) == 2
    assert all(ours == theirs for theirs, ours in named.values())
    for at, name in kernel.items():
        if not name.startswith("_"):  # what these note of themselves
            (theirs, _), ours = known.at(at) or ("", 0), told.data.at(at)
            assert (ours[0] if ours is not None else "") == theirs
