"""Purposes of programs that no port takes, by their sections, and what measures them all the same."""

from __future__ import annotations

from collections.abc import Collection

_ON_PACKETS = ("socket", "xdp/cpumap", "xdp/devmap", "xdp.frags/cpumap", "xdp.frags/devmap")
"""Sections whose programs BPF_PROG_RUN runs on a packet."""
_ELSEWHERE = (
    "fentry", "fexit", "fmod_ret", "kprobe", "kretprobe", "ksyscall", "kretsyscall", "uprobe", "uretprobe",
    "usdt", "tp", "tracepoint", "raw_tp", "raw_tracepoint", "tp_btf", "perf_event", "iter", "lsm", "lsm_cgroup",
    "cgroup", "syscall",
)  # fmt: skip
"""First parts of sections whose programs something else in the kernel calls."""
_INSTEAD = ("freplace",)
"""First parts of sections whose programs replace a function of another program."""


def measured_otherwise(sections: Collection[str]) -> str:
    """Advice on how to measure programs of these sections; empty if the kind of one of them is not known."""
    plain = {section.removeprefix("?") for section in sections}
    on_packets = {section for section in plain if _is(section, _ON_PACKETS)}
    elsewhere = {section for section in plain - on_packets if _is(section, _ELSEWHERE)}
    instead = {section for section in plain - on_packets - elsewhere if _is(section, _INSTEAD)}
    if plain - on_packets - elsewhere - instead:
        return ""
    advice = []
    if instead:
        advice.append(
            f"those in {', '.join(sorted(instead))} replace a function of a dispatcher: name that with --set replaces="
            "OBJECT:PROGRAM"
        )
    if on_packets:
        advice.append(f"--set packets=FILE runs those in {', '.join(sorted(on_packets))} on packets of a file")
    if elsewhere:
        advice.append(
            f"have a step of a scenario load those in {', '.join(sorted(elsewhere))}, as the file $BPF, and measure "
            "the path that calls them: --scenario FILE.yaml"
        )
    return "; ".join(advice)


def _is(section: str, known: Collection[str]) -> bool:
    """Whether a section, or what stands before a slash or a dot in it, is one of those."""
    first = section.partition("/")[0]
    return bool({section, "/".join(section.split("/")[:2]), first, first.partition(".")[0]} & set(known))
