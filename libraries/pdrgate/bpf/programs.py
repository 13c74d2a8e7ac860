"""Loading eBPF programs on a host, with a loader of our own on libbpf, and reading what their maps hold.

A program is pinned only until it is attached: from then on the interface keeps it, and it ends with it. Links
are pinned as long as the program is to be at its hook. Pins are in a bpffs of their own, which libbpf takes for
/sys/fs/bpf: maps that an object has pinned by name are neither those of another build nor the host's, and are gone with
it.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pdrgate.bpf.filling import SUT_NAMES, dispatcher_orders, orders
from pdrgate.bpf.missing_functions import since_when
from pdrgate.bpf.old_maps import content_of
from pdrgate.bpf.struct_ops import without_links
from pdrgate.builds.bpf_build import BpfBuild, BpfRefusedError
from pdrgate.hosts.answers import understood
from pdrgate.hosts.host import CommandError, Completed, Host
from pdrgate.hosts.piped_program import sent
from pdrgate.traffic import native
from pdrgate.values.errors import TestbedError

_TIMEOUT = 60.0
"""Seconds: the verifier of an emulated guest takes its time."""
_LOG_LINES = 3
_KERNEL_SAYS = "Kernel error message: "
_OWN_WORDS = "pdrgate: "
_NO_MAP = "failed to create"
_NO_TYPE = "missing BPF prog type"
"""What libbpf prints of a section that it does not know."""
_NO_REASON = re.compile(r"libbpf: (failed to load (object|program)\b|elf: skipping |.*[Rr]etrying without)")
"""Lines of libbpf's that give no reason."""

XdpMode = Literal["native", "generic"]
_MODES = {"native": "xdpdrv", "generic": "xdpgeneric"}
_MODE_NUMBERS = {"native": 1, "generic": 2}


_LOAD = """\
mount --bind "$1" /sys/fs/bpf || exit 125
shift
exec "$@"
"""
_END_LINKS = """\
for pin in "$1"/tcx-* "$1"/link-*; do [ ! -e "$pin" ] || bpftool link detach pinned "$pin" || exit; done
for pin in "$1"/sock-*; do
    [ ! -e "$pin" ] || bpftool prog detach pinned "$pin" "${pin##*/sock-}" pinned "$1/sockmap" || exit
done
for pin in "$1"/ops-*; do [ ! -e "$pin" ] || bpftool map delete pinned "$pin" key 0 0 0 0 || exit; done
"""
_NOT_STARTED = (125, 126, 127)
"""Exit codes of what never came to load anything."""
_NOT_ATTACHED = 3
"""The loader's exit code for a program that loads, and that no link attaches."""
_PIN = "program"
"""The name that the loader pins the program by."""


@dataclass(frozen=True, slots=True)
class BpfMap:
    """A map that a host's kernel has."""

    number: int
    """The kernel's id of it."""
    kind: str
    """The kind, as bpftool calls it: ``percpu_array``, ``hash``."""
    key_size: int
    value_size: int
    entries: int = 0
    memory: int = 0
    """Bytes, as the kernel accounts for it."""
    empty: bool = False
    """Whether the map had no element once the program was loaded; an array of numbers always has some."""


@dataclass(frozen=True, slots=True)
class LoadCost:
    """The cost of having a program in the kernel, as the kernel reports it after loading; 0 if it does not."""

    processed: int = 0
    """Instructions that the verifier went through, over all ways through the program."""
    states: int = 0
    """States that the verifier kept."""
    jited: int = 0
    """Bytes of machine code."""
    memory: int = 0
    """Bytes of all its maps."""

    def by_name(self) -> dict[str, int]:
        """The costs by the names that trials store them under."""
        return {"verified": self.processed, "states": self.states, "jited": self.jited, "memory": self.memory}

    def __str__(self) -> str:
        return load_in_words(self.by_name())


_LOAD_WORDS = {
    "verified": "{} verified instructions", "states": "{} states", "jited": "{} bytes of machine code",
    "memory": "{} bytes of maps",
}  # fmt: skip
"""Text of each cost of a load, by the name that trials store it under."""


def load_in_words(costs: Mapping[str, int]) -> str:
    """The costs of a load for a person, without those that the kernel does not report."""
    return ", ".join(text.format(costs[name]) for name, text in _LOAD_WORDS.items() if costs.get(name))


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """Program that a host's kernel has accepted.

    If the build replaces a function of a dispatcher, number and pin are the dispatcher's, which ports run. Maps and
    cost are the build's.
    """

    host: Host
    build: BpfBuild
    number: int
    """The kernel's id of it."""
    pin: str
    """Path of its pin while `loaded` is open."""
    maps: Mapping[str, BpfMap] = field(default_factory=dict)
    """The maps by name, of which the kernel keeps 15 letters."""
    cost: LoadCost = LoadCost()
    keeper: int = 0
    """Process that holds its tables of programs and what it replaces, which would be empty otherwise; 0 for none."""

    def leave(self) -> None:
        """End the keeper, once the program is detached. Calling it twice is harmless."""
        if self.keeper:
            self.host.run("kill", str(self.keeper), check=False)

    def fill(self, name: str, key: bytes, value: bytes) -> None:
        """Set an element of a map. Raises CommandError."""
        words = ("key", "hex", *_hex(key), "value", "hex", *_hex(value))
        self.host.run("bpftool", "map", "update", "id", str(self.maps[name].number), *words)


@contextlib.contextmanager
def loaded(
    host: Host,
    build: BpfBuild,
    kind: str,
    names: Mapping[str, str] = SUT_NAMES,
    *,
    alike: bool = False,
    links: Sequence[str] = (),
) -> Iterator[LoadedProgram]:
    """Load a build's program and fill its maps. Within the context it is pinned, and can be attached.

    The caller that attaches it calls its `leave` when it is detached.

    Args:
        kind: libbpf's name of what it is loaded for: ``xdp``, ``xdp/cpumap``, ``classifier``; if empty, its section
            decides.
        names: names of the SUT with their values, for maps that hold them.
        alike: whether elements of hashes lie alike in each load, which attackers could make use of.
        links: orders of links that attach it within the context, such as ``tcx ingress 2`` (see bpf_load.c).

    Raises:
        TestbedError: no link attaches it, or a link does not end.
        BpfRefusedError: the host's kernel refuses it; the message ends with the verifier's last lines.
        CommandError: bpftool is not there, or the host mounts no bpffs.
    """
    mark = secrets.token_hex(4)
    folder, bpffs = f"/tmp/pdrgate-{mark}", f"/tmp/pdrgate-{mark}.bpf"
    with _bpffs(host, bpffs), _links(host, bpffs) if links else contextlib.nullcontext():
        try:
            host.run("mkdir", "-m", "700", folder)
            loader = sent(host, native.build().bpf_load, folder, "the loader of eBPF programs")
            read = content_of(build)
            host.put(f"{folder}/object", without_links(read) if build.kind == "struct_ops" else read)
            asked = orders(build, names) + ("unseeded\n" if alike else "") + "".join(f"{link}\n" for link in links)
            host.put(f"{folder}/orders", asked.encode())
            words = [loader, f"{folder}/object", build.program, "/sys/fs/bpf", kind, f"{folder}/orders"]
            if (outer := build.dispatcher) is not None:
                host.put(f"{folder}/dispatcher", content_of(outer.build))
                host.put(f"{folder}/dispatcher-orders", dispatcher_orders(build, outer.build, names).encode())
                words += (f"{folder}/dispatcher", outer.build.program, outer.function, f"{folder}/dispatcher-orders")
            load = ("sh", "-c", _LOAD, "sh", bpffs, *words)
            done = host.run("unshare", "-m", *load, timeout=_TIMEOUT, check=False)
        finally:
            host.run("rm", "-rf", folder, check=False)
        if done.exit_code in _NOT_STARTED:
            raise CommandError(host.name, "loading an eBPF program with unshare and mount", done)
        if done.exit_code == _NOT_ATTACHED:
            raise TestbedError(f"{host.name} attaches no program {build.program} ({build.section}): {_why(done)}")
        if done.exit_code:
            why = _why(done)
            if _NO_MAP in why:
                why += (
                    "; one that its own loader makes as large as a machine needs has its size from the file of maps: "
                )
                why += "NAME: {max_entries: 64}"
            elif _NO_TYPE in why:
                why += "; it is libbpf that does not know the section, whatever the kernel knows: --set attach=… says"
                why += " what the program is for, or install a newer libbpf-dev"
            raise BpfRefusedError(
                f"{build.path}: {host.name} refuses its program {build.program} ({build.section}): {why}"
                f"{since_when(done.stderr)}"
            )
        with understood(host.name):
            program = _reported(host, build, f"{bpffs}/{_PIN}", json.loads(done.stdout))
        yield program


def _reported(host: Host, build: BpfBuild, pin: str, answer: Mapping[str, Any]) -> LoadedProgram:
    """The program as the loader reports it. Raises ValueError or KeyError if a field is missing."""
    maps = {
        str(entry["name"] or entry["id"]): BpfMap(
            int(entry["id"]),
            str(entry["kind"]),
            int(entry["key"]),
            int(entry["value"]),
            int(entry["entries"]),
            int(entry["memory"]),
            bool(entry["empty"]),
        )
        for entry in answer["maps"]
    }
    program = answer["program"]
    memory = sum(entry.memory for entry in maps.values())
    cost = LoadCost(int(program["processed"]), int(program["states"]), int(program["jited"]), memory)
    return LoadedProgram(host, build, int(program["id"]), pin, maps, cost, int(answer["keeper"]))


@contextlib.contextmanager
def _bpffs(host: Host, folder: str) -> Iterator[None]:
    """A bpffs of one's own. Raises CommandError."""
    host.run("sh", "-c", 'mkdir -m 700 "$1" && mount -t bpf bpf "$1"', "sh", folder)
    with _ended_by(host, 'umount "$1" || umount -l "$1"; rmdir "$1"', folder, check=False):
        yield


def _links(host: Host, folder: str) -> contextlib.AbstractContextManager[None]:
    """End the links in a folder when the context ends. Otherwise they would end some time after they are unpinned."""
    return _ended_by(host, _END_LINKS, folder)


@contextlib.contextmanager
def _ended_by(host: Host, script: str, folder: str, *, check: bool = True) -> Iterator[None]:
    """Run a script when the context ends. After an error, or where nobody ended it, it may fail: its host is gone."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(TestbedError):
            host.run("sh", "-c", script, "sh", folder, check=False)
        raise
    host.run("sh", "-c", script, "sh", folder, check=check)


def counts(host: Host, number: int) -> list[int]:
    """The elements of a map of per-CPU 64-bit numbers, each summed over all CPUs.

    Raises:
        TestbedError: there is no such map on this host any more.
    """
    entries: list[dict[str, Any]] = host.run_json("bpftool", "-j", "map", "dump", "id", str(number))
    return [sum(_number(one["value"]) for one in entry["values"]) for entry in entries]


def _number(value: Sequence[str]) -> int:
    return int.from_bytes(bytes(int(byte, 16) for byte in value), "little")


def _hex(data: bytes) -> list[str]:
    return [f"{byte:02x}" for byte in data]


def _why(done: Completed) -> str:
    """The reason of a failed load: our loader's own line, else the verifier's last lines, else libbpf's first line that
    is no consequence of another, else bpftool's last."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if own := [line for line in lines if line.startswith(_OWN_WORDS)]:
        return own[0].removeprefix(_OWN_WORDS)
    begins = [at for at, line in enumerate(lines) if "BEGIN PROG LOAD LOG" in line]
    ends = [at for at, line in enumerate(lines) if "END PROG LOAD LOG" in line]
    if begins and ends and begins[-1] < ends[-1]:
        log = [line for line in lines[begins[-1] + 1 : ends[-1]] if not line.startswith(("processed ", ";"))]
        return "the verifier says: " + " | ".join(log[-_LOG_LINES:])
    for line in lines:
        if _KERNEL_SAYS in line:
            return line.partition(_KERNEL_SAYS)[2]
    if reasons := [line for line in lines if line.startswith("libbpf: ") and not _NO_REASON.search(line)]:
        return reasons[0].removeprefix("libbpf: ")
    reasons = [line for line in lines if not line.startswith("Error: failed to")] or lines
    return reasons[-1].removeprefix("libbpf: ").removeprefix("Error: ") if reasons else f"exit code {done.exit_code}"


def driver(host: Host, interface: str) -> str:
    """The driver of an interface, ``veth`` or ``virtio_net``. Raises TestbedError if ethtool names none."""
    for line in host.run("ethtool", "-i", interface).stdout.splitlines():
        if line.startswith("driver: "):
            return line.removeprefix("driver: ").strip()
    raise TestbedError(f"ethtool -i {interface} on {host.name} names no driver; is the interface still there?")


def attach_xdp(program: LoadedProgram, interface: str, mode: XdpMode) -> None:
    """Attach a program to an interface that has none, and read back that it is there.

    Raises:
        CommandError: the interface does not take the program in this mode.
        TestbedError: there is a program already, or what is read back is another.
    """
    host = program.host
    if (present := _attached_xdp(host, interface)) is not None:
        raise TestbedError(
            f"{interface} on {host.name} has an XDP program already (id {present[1]}); "
            f"take it off: ip link set {interface} xdp off"
        )
    host.run("bpftool", "net", "attach", _MODES[mode], "pinned", program.pin, "dev", interface)
    found = _attached_xdp(host, interface)
    if found != (_MODE_NUMBERS[mode], program.number):
        host.run("bpftool", "net", "detach", _MODES[mode], "dev", interface, check=False)
        raise TestbedError(
            f"attached XDP program {program.number} to {interface} on {host.name} in {mode} mode, but it reads back "
            f"{found and f'program {found[1]} in mode {found[0]}'}; does something there change it?"
        )


def detach_xdp(host: Host, interface: str, mode: XdpMode) -> None:
    """Take the XDP program off an interface. Raises TestbedError when it stays."""
    host.run("bpftool", "net", "detach", _MODES[mode], "dev", interface)
    if (left := _attached_xdp(host, interface)) is not None:
        raise TestbedError(f"took the XDP program off {interface} on {host.name}, but {left[1]} is there; take it off")


def refusal(error: CommandError) -> str:
    """Why an interface refused a program: the driver's words if it has any."""
    return _why(error.completed)


def _attached_xdp(host: Host, interface: str) -> tuple[int, int] | None:
    """Mode (IFLA_XDP_ATTACHED) and program id; None if no program is attached."""
    links: list[dict[str, Any]] = host.run_json("ip", "-j", "link", "show", "dev", interface)
    found = links[0].get("xdp") if links else None
    return (int(found["mode"]), int(found["prog"]["id"])) if found else None
