"""Settings that are several files, one for each queue, interrupt or CPU: read with one command, written one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from pdrgate.hosts.host import Host, read_files
from pdrgate.knobs.knob import ANY
from pdrgate.knobs.set_knob import SetKnob
from pdrgate.knobs.states import includes, mixture, parse_state, state_text
from pdrgate.values.errors import TestbedError


class FileSetKnob(SetKnob):
    """Common part of the knobs whose state is a file for each part. A subclass names the files and their wanted values.

    A value is either a state, ``part=value part=value``, or a wish that `_parts` spells out for the parts there are.
    """

    __slots__ = ()

    def read(self, host: Host) -> str:
        return state_text({name: self._means(text) for name, text in read_set(host, self._paths(host)).items()})

    def holds(self, actual: str, wanted: str) -> bool:
        have = parse_state(actual)
        return includes(have, self._parts(wanted, have))

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        have = parse_state(actual)
        return wanted != ANY and mixture(have, parse_state(old), self._parts(wanted, have))

    def _set(self, host: Host, wanted: str) -> None:
        paths = self._paths(host)
        write_set(host, paths, self._parts(wanted, paths), what=self._what(), means=self._means, kernel=self._kernel)

    @abstractmethod
    def _paths(self, host: Host) -> dict[str, str]:
        """The file of each part, by the part's name in a state."""

    @abstractmethod
    def _parts(self, wanted: str, names: Mapping[str, str]) -> dict[str, str]:
        """Values that a wish sets, by part, for the parts that there are; without the parts that it leaves alone."""

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


def write_set(
    host: Host,
    paths: Mapping[str, str],
    wanted: Mapping[str, str],
    *,
    what: str,
    means: Callable[[str], str],
    kernel: Callable[[str], str] = str,
) -> None:
    """Write the files whose contents differ from what is wanted, and if there were any, read all of them back.

    Args:
        wanted: values by name; names without a path are left out.
        what: the setting in words, for errors.
        means: the value that a file's text stands for.
        kernel: the text to write for a value.

    Raises:
        TestbedError: the kernel refuses one, or keeps another value.
    """
    concerned = {name: path for name, path in paths.items() if name in wanted}
    others = [name for name, text in read_set(host, concerned).items() if means(text) != wanted[name]]
    for name in others:
        host.write(concerned[name], f"{kernel(wanted[name])}\n")
    for name, text in read_set(host, concerned).items() if others else ():
        if (back := means(text)) != wanted[name]:
            raise TestbedError(
                f"wrote {kernel(wanted[name])} to {concerned[name]} on {host.name}, but it reads back {back}; does the "
                f"kernel or the driver bound {what}, or does a service set it?"
            )
