"""Power knobs of the CPUs: frequency governor, idle states, turbo, threads of one core."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.knobs.file_set_knob import FileSetKnob, read_set
from pdrgate.knobs.knob import ANY, Knob, parse_state
from pdrgate.values.errors import TestbedError

_CPU = "/sys/devices/system/cpu"
_SMT = f"{_CPU}/smt/control"
_NO_SMT = ("notsupported", "notimplemented")


@dataclass(frozen=True, slots=True)
class Governor(FileSetKnob):
    """The frequency governor of all CPUs: ``performance``, ``powersave``, ``schedutil``…"""

    kind = "governor"

    value: str

    def describe(self) -> str:
        return f"CPU frequency governor: {self.value}"

    def lacking(self, host: Host) -> str | None:
        paths = self._paths(host)
        if not paths:
            return f"{host.name} has no CPU frequency governor: its CPUs or its hypervisor do without"
        choices = read_set(host, {name: f"{_CPU}/cpufreq/{name}/scaling_available_governors" for name in paths})
        for name, governors in choices.items():
            if self.value != ANY and self.value not in governors.split():
                return f"{host.name} has no frequency governor {self.value} for {name}, only {governors}"
        return None

    def gone(self, host: Host) -> bool:
        return not self._paths(host)

    def _paths(self, host: Host) -> dict[str, str]:
        names = sorted(name for name in _listed(host, f"{_CPU}/cpufreq") if name.startswith("policy"))
        return {name: f"{_CPU}/cpufreq/{name}/scaling_governor" for name in names}

    def _parts(self, wanted: str, names: Mapping[str, str]) -> dict[str, str]:
        if wanted == ANY:
            return {}
        return parse_state(wanted) if "=" in wanted else dict.fromkeys(names, wanted)

    def _what(self) -> str:
        return "the governor"


@dataclass(frozen=True, slots=True)
class IdleLatency(FileSetKnob):
    """Idle states that CPUs may enter: those that they leave within ``value`` microseconds.

    The parts of a state are ``cpuN/stateM@LATENCY=DISABLED``.
    """

    kind = "idle-latency"

    value: str

    def describe(self) -> str:
        at_most = self.value.removeprefix("latency<=")
        return f"idle states: those left within {at_most} us" if at_most != self.value else f"idle states {self.value}"

    def lacking(self, host: Host) -> str | None:
        return None if self._paths(host) else f"{host.name} has no CPU idle states to choose from"

    def gone(self, host: Host) -> bool:
        return not self._paths(host)

    def _paths(self, host: Host) -> dict[str, str]:
        found = host.run("sh", "-c", f"echo {_CPU}/cpu[0-9]*/cpuidle/state*/latency").stdout.split()
        latencies = read_set(host, {path: path for path in sorted(found)})
        paths = {}
        for path, latency in latencies.items():
            match = re.search(r"/(cpu\d+)/cpuidle/(state\d+)/latency$", path)
            if match:
                paths[f"{match[1]}/{match[2]}@{latency}"] = path.removesuffix("latency") + "disable"
        return paths

    def _parts(self, wanted: str, names: Mapping[str, str]) -> dict[str, str]:
        if wanted == ANY:
            return {}
        limit = wanted.removeprefix("latency<=")
        if limit == wanted:
            return parse_state(wanted)
        return {name: str(int(int(name.rpartition("@")[2]) > int(limit))) for name in names}

    def _what(self) -> str:
        return "an idle state"


def idle_latency(microseconds: int) -> IdleLatency:
    """Only idle states that a CPU leaves within ``microseconds``; 0 leaves polling alone."""
    return IdleLatency(f"latency<={microseconds}")


@dataclass(frozen=True, slots=True)
class Turbo(Knob):
    """Whether CPUs may run above their nominal frequency: ``on`` or ``off``, of all of them."""

    kind = "turbo"

    value: str

    def describe(self) -> str:
        return f"turbo: {self.value}"

    def lacking(self, host: Host) -> str | None:
        return f"{host.name} has no switch for turbo (no_turbo or boost)" if self.gone(host) else None

    def gone(self, host: Host) -> bool:
        return self._switch(host) is None

    def read(self, host: Host) -> str:
        path, on = self._present(host)
        return "on" if host.read(path).strip() == on else "off"

    def _set(self, host: Host, wanted: str) -> None:
        path, on = self._present(host)
        host.write(path, f"{int((wanted == 'on') == (on == '1'))}\n")
        if (back := self.read(host)) != wanted:
            raise TestbedError(f"switched turbo {wanted} on {host.name}, but {path} says {back}; does its BIOS forbid?")

    def _present(self, host: Host) -> tuple[str, str]:
        switch = self._switch(host)
        if switch is None:
            raise TestbedError(f"{host.name} has no switch for turbo any more; has its frequency driver changed?")
        return switch

    def _switch(self, host: Host) -> tuple[str, str] | None:
        """The file, and what it holds when turbo is on."""
        for path, on in ((f"{_CPU}/intel_pstate/no_turbo", "0"), (f"{_CPU}/cpufreq/boost", "1")):
            if host.exists(path):
                return path, on
        return None


@dataclass(frozen=True, slots=True)
class Smt(Knob):
    """Whether cores run several threads: ``on`` or ``off``. A machine that cannot do it has it off."""

    kind = "smt"

    value: str

    def describe(self) -> str:
        return f"SMT: {self.value}"

    def lacking(self, host: Host) -> str | None:
        now = host.read(_SMT).strip() if host.exists(_SMT) else _NO_SMT[0]
        if self.holds(now, self.value):
            return None
        if now in ("on", "off"):
            return None
        return f"SMT of {host.name} is {now} and cannot be switched {self.value}"

    def gone(self, host: Host) -> bool:
        return not host.exists(_SMT)

    def read(self, host: Host) -> str:
        return host.read(_SMT).strip() if host.exists(_SMT) else _NO_SMT[0]

    def holds(self, actual: str, wanted: str) -> bool:
        return actual == wanted or (wanted == "off" and actual in (*_NO_SMT, "forceoff"))

    def _set(self, host: Host, wanted: str) -> None:
        if self.holds(self.read(host), wanted):
            return
        host.write(_SMT, f"{wanted}\n")
        if not self.holds(back := self.read(host), wanted):
            raise TestbedError(f"switched SMT {wanted} on {host.name}, but it reads back {back}; does its BIOS forbid?")


def _listed(host: Host, folder: str) -> list[str]:
    return host.run("ls", folder, check=False).stdout.split()
