"""Runs pdrgate's command line with a simulated SUT in place of every testbed. NOT a measurement of anything: it is for
testing what the gate makes of curves that are known.

    python tests/acceptance/simulation.py '{"saturation": 1e6, "noise": 0.002}' gate --output FOLDER …
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import tempfile
from pathlib import Path

import pdrgate.keywords.testbed as keywords
from pdrgate.cli import main
from pdrgate.gate.run import Run
from pdrgate.sut.datapath import Hop
from pdrgate.telemetry.environment import Environment
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.simulated import Behaviour, Ceiling, IdealCurve, SimulatedSut
from pdrgate.trial import Trial


@dataclasses.dataclass(frozen=True)
class Simulation:
    """What the SUT is like: loads in packets/s, the rest relative."""

    saturation: float = 1e6
    noise: float = 0.002
    modes: tuple[float, ...] = (1.0,)
    drift: float = 0.0
    ceiling: float = 4e6
    seed: int = 1
    kernel: str = "6.1.0-simulated"
    fails_at: int = 0
    """Trial at which the generator dies; 0 means never."""


class SimulatedGenerator:
    """A `Generator` whose trials take no time."""

    def __init__(self, simulation: Simulation) -> None:
        self._fails_at = simulation.fails_at
        self._sut = SimulatedSut(
            IdealCurve(simulation.saturation),
            Behaviour(noise=simulation.noise, modes=simulation.modes, drift=simulation.drift),
            seed=simulation.seed,
            ceiling=Ceiling(simulation.ceiling),
        )

    def describe(self) -> dict[str, str]:
        return {"name": "simulated", "engine": "none", "chosen": "a test asked for it"}

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        self._fails_at -= 1
        if self._fails_at == 0:
            from pdrgate.errors import GeneratorError

            raise GeneratorError("the traffic generator has ended (exit code -9); run again")
        return self._sut.measure(load, duration)

    def close(self) -> None:
        pass


class SimulatedTestbed:
    """A `Testbed` without a host."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.hops: tuple[Hop, ...] = ()
        self.boot = "00000000"

    def sentence(self) -> str:
        return "a simulated SUT: no packet is sent"

    def describe(self) -> dict[str, str]:
        return {"hops": "0"}

    def environment(self) -> Environment:
        return Environment(kernel_release=self._simulation.kernel, cpu_model="none")

    def counters(self) -> dict[str, int]:
        return {}

    def set_buffer(self, packets: int) -> None:
        pass

    def pin(self, pinning: str) -> None:
        pass

    def generator(self, family: int) -> SimulatedGenerator:
        return SimulatedGenerator(self._simulation)

    def close(self) -> None:
        pass


if __name__ == "__main__":
    wanted = Simulation(**json.loads(sys.argv[1]))
    with tempfile.TemporaryDirectory() as state:
        keywords.Run = functools.partial(  # type: ignore[misc,assignment]
            Run, opener=lambda config, journal: SimulatedTestbed(wanted), state=Path(state)
        )
        code = main(sys.argv[2:])
    sys.exit(code)
