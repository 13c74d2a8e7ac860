"""Steps that put an eBPF program in the way of packets, or let sockets call it, by links that last until they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdrgate.bpf.programs import LoadedProgram, loaded
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.builds.program_hooks import Hook, hook_of
from pdrgate.data_paths.attached_programs import Sent, sut_names
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.cpu_groups import cgroup_root
from pdrgate.data_paths.steps import Step
from pdrgate.traffic.frames import MARKED_PORT
from pdrgate.values.errors import UsageError

_FAMILIES = (2, 10)
"""Numbers of both IP versions for netfilter (NFPROTO_IPV4, NFPROTO_IPV6): a path may carry either."""
_NETFILTER_HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
"""Hooks of netfilter in the order of their numbers (enum nf_inet_hooks)."""


class AttachedLinks(Step):
    """Links have a program of a build on a hop.

    Args:
        load_as: libbpf's name of what it is loaded for; empty: its section says that.
        links: returns orders of the links, see bpf_load.c. May raise TestbedError.
        attached: finishes what the program needs once it is attached.
    """

    def __init__(
        self,
        hop: Hop,
        build: BpfBuild,
        load_as: str,
        sent: Sent,
        links: Callable[[], Sequence[str]],
        attached: Callable[[LoadedProgram], None] = lambda program: None,
    ) -> None:
        self._hop = hop
        self._build = build
        self._load_as = load_as
        self._sent = sent
        self._links = links
        self._attached = attached

    def apply(self) -> None:
        host, names = self._hop.host, sut_names(self._hop)
        # Links last until the context ends.
        program = self._enter(loaded(host, self._build, self._load_as, names, links=self._links()))
        self._undo.append(program.leave)
        self._attached(program)
        self._sent.add(program)


def attached_to_hook(hop: Hop, build: BpfBuild, sent: Sent) -> AttachedLinks:
    """The step that has a build's program at the hook that its section names, on the whole of a hop.

    A program that chooses among receivers chooses from its table of sockets, which they are in. One that is attached to
    its table of sockets sees the TCP connections that come into it: the object's own program of sock_ops puts them
    there, or pdrgate's where it has none.
    """

    def links() -> Sequence[str]:
        match system_hook(build).place:
            case "netfilter":
                number = _NETFILTER_HOOKS.index(netfilter_hook(build))
                return [f"netfilter {family} {number}" for family in _FAMILIES]
            case "reuseport":
                return (f"reuseport {MARKED_PORT}",)
            case "sockets":
                return (f"sockets {cgroup_root(hop.host)}",)
            case "netns":
                return ("link /proc/self/ns/net",)
            case _:
                return (f"link {cgroup_root(hop.host)}",)

    return AttachedLinks(hop, build, build.load_as, sent, links)


def system_hook(build: BpfBuild) -> Hook:
    """The hook of a build that no port runs. Raises UsageError where its section names none."""
    found = hook_of(build.section.removeprefix("?"))
    if found is None:
        raise UsageError(f"{build.label}: its section {build.section} names no hook; name the section as libbpf does")
    return found


def netfilter_hook(build: BpfBuild) -> str:
    """The hook of netfilter that a build asks for, ``forward`` by default."""
    asked = build.setup.attach.removeprefix("nf-")
    return asked if asked in _NETFILTER_HOOKS else "forward"


def hook_words(build: BpfBuild) -> str:
    """The hook of a build that no port runs, in words: ``sockops``, ``netfilter forward``."""
    section = build.section.removeprefix("?")
    return f"netfilter {netfilter_hook(build)}" if system_hook(build).place == "netfilter" else section
