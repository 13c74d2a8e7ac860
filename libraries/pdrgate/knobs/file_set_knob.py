"""Settings that are several files, one for each queue, interrupt or CPU: read with one command, written one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from pdrgate.hosts.host import Host, read_files
from pdrgate.knobs.knob import KnobOfParts, state_text
from pdrgate.values.errors import TestbedError


class FileSetKnob(KnobOfParts):
    """Common part of the knobs whose state is a file for each part. A subclass names the files and their wanted values.

    A value is either a state, ``part=value part=value``, or a wish that `_parts` spells out for the parts there are.
    """

    __slots__ = ()

    def read(self, host: Host) -> str:
        return state_text({name: self._means(text) for name, text in read_set(host, self._paths(host)).items()})

    def _set(self, host: Host, wanted: str) -> None:
        paths = self._paths(host)
        parts = {name: value for name, value in self._parts(wanted, paths).items() if name in paths}
        concerned = {name: paths[name] for name in parts}
        others = [name for name, text in read_set(host, concerned).items() if self._means(text) != parts[name]]
        for name in others:
            host.write(concerned[name], f"{self._kernel(parts[name])}\n")
        for name, text in read_set(host, concerned).items() if others else ():
            if (back := self._means(text)) != parts[name]:
                raise TestbedError(
                    f"wrote {self._kernel(parts[name])} to {concerned[name]} on {host.name}, but it reads back {back}; "
                    f"does the kernel or the driver bound {self._what()}, or does a service set it?"
                )

    @abstractmethod
    def _paths(self, host: Host) -> dict[str, str]:
        """The file of each part, by the part's name in a state."""

    @abstractmethod
    def _what(self) -> str:
        """The setting in words, for errors."""

    def _means(self, text: str) -> str:
        """The value that a file's text stands for."""
        return text

    def _kernel(self, value: str) -> str:
        """The text to write for a value."""
        return value


def read_set(host: Host, paths: Mapping[str, str]) -> dict[str, str]:
    """The texts of the files, by the names of their paths; without those that cannot be read."""
    if not paths:
        return {}
    texts = read_files(host, paths.values())
    # Empty is what tail shows of a file that can be opened and not read, as xps_cpus of a device with one queue.
    return {name: texts[path].strip() for name, path in paths.items() if texts.get(path, "").strip()}
