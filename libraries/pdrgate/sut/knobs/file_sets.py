"""Settings that are several files, one for each queue, interrupt or CPU: read with one command, written one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pdrgate.errors import TestbedError
from pdrgate.sut.host import Host, read_files


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
    """Write the files whose contents differ from what is wanted, then read all of them back.

    Args:
        wanted: values by name; names without a path are left out.
        what: the setting in words, for errors.
        means: the value that a file's text stands for.
        kernel: the text to write for a value.

    Raises:
        TestbedError: the kernel refuses one, or keeps another value.
    """
    concerned = {name: path for name, path in paths.items() if name in wanted}
    for name, text in read_set(host, concerned).items():
        if means(text) != wanted[name]:
            host.write(concerned[name], f"{kernel(wanted[name])}\n")
    for name, text in read_set(host, concerned).items():
        if (back := means(text)) != wanted[name]:
            raise TestbedError(
                f"wrote {kernel(wanted[name])} to {concerned[name]} on {host.name}, but it reads back {back}; does the "
                f"kernel or the driver bound {what}, or does a service set it?"
            )
