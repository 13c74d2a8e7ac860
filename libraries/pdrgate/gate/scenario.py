"""Scenarios: data path x pinning x buffer x frames x goal, everything that one PDR was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.errors import UsageError
from pdrgate.testbeds.protocol import PINNINGS, Pinning
from pdrgate.traffic.frames import Frames

DEFAULT_FLOWS = 256
DEFAULT_LOSS, DEFAULT_WIDTH = 0.005, 0.01


_WORDS: tuple[tuple[re.Pattern[str], str, Callable[[str], Any]], ...] = (
    (re.compile(r"(unpinned)"), "pinning", str),
    (re.compile(r"(\d)cpus?"), "pinning", lambda count: f"{count} cpu{'s' * (count != '1')}"),
    (re.compile(r"(\d+)"), "buffer", int),
    (re.compile(r"(imix)"), "frame_size", str),
    (re.compile(r"(\d+)B"), "frame_size", int),
    (re.compile(r"(bidirectional)"), "directions", lambda word: 2),
    (re.compile(r"(\d+)flows"), "flows", int),
    (re.compile(r"([\d.]+)probes"), "probe_rate", float),
    (re.compile(r"loss([\d.]+)"), "loss_ratio", lambda percent: float(percent) / 100),
    (re.compile(r"width([\d.]+)"), "width", lambda percent: float(percent) / 100),
)
"""The words of a scenario's name, what they say, and how they are read."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is measured.

    Raises:
        UsageError: a value does not exist; the message names those that do.
    """

    data_path: str = "ipv6-routing"
    pinning: Pinning = "1 cpu"
    buffer: int = 4096
    """Packets that wait at the SUT's receive side before they are dropped."""
    frame_size: int | Literal["imix"] = 64
    """Bytes with FCS; see `Frames.size` and `IMIX`."""
    flows: int = DEFAULT_FLOWS
    directions: Literal[1, 2] = 1
    probe_rate: float = 0.0
    """Latency probes per second."""
    loss_ratio: float = DEFAULT_LOSS
    """The PDR's goal: the load holds while no more than this is lost."""
    width: float | None = None
    """Relative width at which the search's bounds are close enough; None: as the profile has it."""

    def __post_init__(self) -> None:
        if self.data_path not in DATA_PATHS:
            raise UsageError(f"there is no data path {self.data_path!r}; there are {', '.join(DATA_PATHS)}")
        if self.pinning not in PINNINGS:
            raise UsageError(f"there is no pinning {self.pinning!r}; there are {', '.join(PINNINGS)}")
        if not 1 <= self.buffer <= 1_000_000:
            raise UsageError(f"a receive buffer of {self.buffer} packets makes no sense; use 512, 1000 or 4096")
        _ = self.frames  # its own checks

    @property
    def frames(self) -> Frames:
        """The frames of the scenario's trials."""
        return Frames(
            family=DATA_PATHS[self.data_path].family,
            size=64 if self.frame_size == "imix" else self.frame_size,
            imix=self.frame_size == "imix",
            flows=self.flows,
            directions=self.directions,
            probe_rate=self.probe_rate,
            segments=DATA_PATHS[self.data_path].segments,
        )

    @property
    def name(self) -> str:
        """A name for files, metrics and fingerprints, such as ``ipv6-routing-1cpu-4096-64B``.

        Other questions have other names: what is not as usual is in it.
        """
        words = [self.data_path, self.pinning.replace(" ", ""), str(self.buffer)]
        words.append("imix" if self.frame_size == "imix" else f"{self.frame_size}B")
        if self.directions == 2:
            words.append("bidirectional")
        if self.flows != DEFAULT_FLOWS:
            words.append(f"{self.flows}flows")
        if self.probe_rate:
            words.append(f"{self.probe_rate:g}probes")
        if self.loss_ratio != DEFAULT_LOSS:
            words.append(f"loss{100 * self.loss_ratio:g}")
        if self.width is not None and self.width != DEFAULT_WIDTH:
            words.append(f"width{100 * self.width:g}")
        return "-".join(words)

    @classmethod
    def named(cls, name: str) -> Scenario:
        """The scenario that has this `name`. Raises UsageError when there is none."""
        path = max((one for one in DATA_PATHS if name.startswith(f"{one}-")), key=len, default="")
        found: dict[str, Any] = {"data_path": path}
        for word in name.removeprefix(f"{path}-").split("-") if path else ():
            for pattern, key, read in _WORDS:
                if (match := pattern.fullmatch(word)) and key not in found:
                    found[key] = read(match[1])
                    break
        if path and "frame_size" in found and (scenario := cls(**found)).name == name:
            return scenario
        raise UsageError(f"there is no scenario {name!r}; take a name from a result, such as {cls().name}")

    @property
    def title(self) -> str:
        """The scenario in words."""
        more = ", both directions" if self.directions == 2 else ""
        if self.flows != DEFAULT_FLOWS:
            more += f", {self.flows} flows"
        if self.probe_rate:
            more += f", {self.probe_rate:g} probes/s"
        if self.loss_ratio != DEFAULT_LOSS:
            more += f", PDR at {self.loss_ratio:.3g} loss" if self.loss_ratio < 1e-4 else f", PDR@{self.loss_ratio:.2%}"
        return (
            f"{DATA_PATHS[self.data_path].title}, {self.pinning}, buffer {self.buffer} packets, "
            f"{'IMIX' if self.frame_size == 'imix' else f'{self.frame_size}-byte'} frames{more}"
        )
