"""The heartbeats on the CPUs of this machine that forward."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.observers.heartbeat import PERIOD, Heartbeat, HeartbeatObserver
from pdrgate.observers.watching import Observer
from pdrgate.values.errors import TestbedError


class HeartbeatWatch:
    """A testbed's heartbeats: begun on a CPU when it first forwards; those of CPUs that no longer do stay, and wait."""

    def __init__(self) -> None:
        self._heartbeats: dict[int, Heartbeat] = {}
        self.missing = ""
        """Why there are none, in a sentence; empty while there may be."""

    def observers(self, cpus: Sequence[int], *, shared: bool = False) -> tuple[Observer, ...]:
        """Observers of a trial on these CPUs; empty if no heartbeat can be: a container may have no real-time
        threads."""
        try:
            for cpu in () if self.missing else cpus:
                if cpu not in self._heartbeats:
                    self._heartbeats[cpu] = Heartbeat(cpu)
        except TestbedError as error:
            self.missing = f"{error}; whether the machine disturbs a trial is not seen"
        if self.missing:
            return ()
        return (HeartbeatObserver([self._heartbeats[cpu] for cpu in cpus], shared=shared),)

    def describe(self) -> dict[str, str]:
        """Properties that results need in common to be comparable: a heartbeat takes its share of the CPU, little as
        that is."""
        return {} if self.missing else {"heartbeat": PERIOD}

    def close(self) -> None:
        """End the heartbeats. Calling it twice is harmless."""
        for heartbeat in self._heartbeats.values():
            heartbeat.close()
