"""The environment a measurement was made in: what must be known of a host to compare its results with others."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pdrgate.sut.cpus import parse_cpu_list
from pdrgate.sut.host import Host, split_files

T = TypeVar("T")

_CPU = "/sys/devices/system/cpu"
_VULNERABILITIES = f"{_CPU}/vulnerabilities/"
_SCRIPT = f"""
printf '==> uname <==\\n'; uname -r; uname -v; uname -m
printf '\\n==> config <==\\n'
if [ -r "/boot/config-$(uname -r)" ]; then sha256sum <"/boot/config-$(uname -r)"
elif [ -r /proc/config.gz ]; then gzip -dc /proc/config.gz | sha256sum; fi
printf '\\n'
tail -v -n +1 /proc/cmdline /proc/cpuinfo /proc/meminfo /etc/os-release {_CPU}/online {_CPU}/smt/active \
    {_VULNERABILITIES}* {_CPU}/cpu[0-9]*/cpufreq/scaling_governor
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """One host at one time. What the host does not tell is None; nothing here is guessed."""

    kernel_release: str | None = None
    """As ``uname -r``."""
    kernel_version: str | None = None
    """As ``uname -v``: build number and date."""
    architecture: str | None = None
    config_sha256: str | None = None
    """Of the kernel's configuration text, from /boot or /proc/config.gz."""
    cmdline: str | None = None
    mitigations: dict[str, str] | None = None
    """By vulnerability, what the kernel does about it."""
    cpu_model: str | None = None
    cpus: int | None = None
    """CPUs online."""
    governor: str | None = None
    """Frequency governor; several, sorted, where the CPUs differ."""
    smt: bool | None = None
    """Whether threads of one core are in use."""
    hypervisor: bool | None = None
    """Whether the CPU says that it is virtual; only x86 tells."""
    memory_bytes: int | None = None
    distribution: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, fit for JSON."""
        return dataclasses.asdict(self)


def capture_environment(host: Host) -> Environment:
    """Ask ``host`` for its environment with one command. Raises HostError only when it cannot be asked at all."""
    return parse_environment(host.run("sh", "-c", _SCRIPT, check=False).stdout)


def parse_environment(text: str) -> Environment:
    """The environment told by files and answers headed as `tail -v` does; unreadable parts are None."""
    files = split_files(text)

    def told(path: str, read: Callable[[str], T]) -> T | None:
        """What ``read`` makes of the text; None without text, or when the text is not what it should be."""
        try:
            return read(files[path]) if files.get(path, "").strip() else None
        except (ValueError, IndexError, KeyError):
            return None

    mitigations = {
        path.removeprefix(_VULNERABILITIES): value.strip()
        for path, value in files.items()
        if path.startswith(_VULNERABILITIES)
    }
    governors = {value.strip() for path, value in files.items() if path.endswith("/scaling_governor")} - {""}
    return Environment(
        kernel_release=told("uname", lambda uname: uname.splitlines()[0]),
        kernel_version=told("uname", lambda uname: uname.splitlines()[1]),
        architecture=told("uname", lambda uname: uname.splitlines()[2]),
        config_sha256=told("config", lambda config: _matched(r"([0-9a-f]{64})", config)),
        cmdline=told("/proc/cmdline", str.strip),
        mitigations=mitigations or None,
        cpu_model=told("/proc/cpuinfo", lambda info: _matched(r"(?m)^model name\s*: (.+)", info)),
        cpus=told(f"{_CPU}/online", lambda online: len(parse_cpu_list(online))),
        governor=", ".join(sorted(governors)) or None,
        smt=told(f"{_CPU}/smt/active", lambda active: bool(int(active))),
        hypervisor=told("/proc/cpuinfo", lambda info: "hypervisor" in _matched(r"(?m)^flags\s*: (.+)", info).split()),
        memory_bytes=told("/proc/meminfo", lambda info: int(_matched(r"MemTotal:\s+(\d+) kB", info)) * 1024),
        distribution=told("/etc/os-release", lambda release: _matched(r'(?m)^PRETTY_NAME="?([^"\n]+)', release)),
    )


def _matched(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"no {pattern} in the text")
    return match[1].strip()
