"""Fingerprints: what must be equal for two results to be comparable, and what distinguishes two builds.

A fingerprint is a mapping of texts. `pdrgate.gate.sut.fingerprinting` makes it of what a run finds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

UNKNOWN = "unknown"
"""Value of an entry that the host does not report. Two unknown values are equal."""

OF_THE_KERNEL = frozenset({"kernel", "kernel_version", "config"})
"""The entries that say which build was measured."""

OF_THE_PROGRAM = "program"
"""The entry that says which eBPF program of its own a scenario was measured with: a build, too."""

PROGRAM_MODE = "data_path_mode"
"""The entry of data paths that an eBPF program forwards on."""

CHOSEN_BY_KERNEL = frozenset({"mitigations", "clocksource", "frequency_driver", "idle_driver", "offloads", "sysctls"})
"""Entries that a build has a say in: how it names its mitigations, and its defaults for what nobody sets."""

SET_BY_OPERATOR = frozenset({"cmdline", "governor", "turbo", "smt", "microcode", "drivers", "firmware", "mtu"})
"""Entries that a machine has whatever build it runs."""


def digest(fingerprint: Mapping[str, str]) -> str:
    """Digest of a fingerprint, twelve hexadecimal digits."""
    entries = "\n".join(f"{key}={value}" for key, value in sorted(fingerprint.items()))
    return hashlib.sha256(entries.encode()).hexdigest()[:12]


def series(fingerprint: Mapping[str, str]) -> str:
    """The digest of all that no build has a say in: results that share it differ by their builds alone.

    It is what a history follows over builds. `may_differ` is looser where one of two fingerprints lacks a setting: such
    results are comparable when somebody names one of them, and are no series.
    """
    return digest(conditions(fingerprint))


def conditions(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """The entries that make a testbed and a question what they are, whatever build is measured."""
    of_builds = OF_THE_KERNEL | CHOSEN_BY_KERNEL | {OF_THE_PROGRAM}
    return {key: value for key, value in fingerprint.items() if key not in of_builds}


def build_digest(fingerprint: Mapping[str, str], label: str = "") -> str:
    """The digest of the build that a fingerprint was taken of.

    Args:
        label: what a person called the build. It counts where an eBPF program carries the packets and the fingerprint
            does not identify the program.
    """
    kernel = {key: fingerprint.get(key, UNKNOWN) for key in OF_THE_KERNEL}
    if OF_THE_PROGRAM in fingerprint:
        return digest(kernel | {"program": fingerprint[OF_THE_PROGRAM]})
    return digest(kernel | ({"program": label} if PROGRAM_MODE in fingerprint else {}))


def may_differ(theirs: Mapping[str, str], ours: Mapping[str, str]) -> frozenset[str]:
    """The entries that do not keep a result from being compared with a baseline that was named.

    The kernel may differ, for that is the test, and a scenario's own eBPF program, for so may that be; with the kernel,
    what a build has a say in. Of one and the same kernel, though, other mitigations or offloads are somebody's doing
    and no build's. What one of two kernels does not report of the machine's settings may differ unseen; the comparison
    lists it.
    """
    unreported = (CHOSEN_BY_KERNEL | SET_BY_OPERATOR) - theirs.keys()
    builds = OF_THE_KERNEL | {OF_THE_PROGRAM}
    if all(theirs.get(key) == ours.get(key) for key in OF_THE_KERNEL):
        return builds | unreported
    silent = {key for key in SET_BY_OPERATOR if UNKNOWN in (theirs.get(key), ours.get(key))}
    return builds | unreported | CHOSEN_BY_KERNEL | silent


def differences_of(
    theirs: Mapping[str, str], ours: Mapping[str, str], missing: str, but: frozenset[str] = frozenset()
) -> list[str]:
    """Entries in which two fingerprints differ, in words.

    Args:
        missing: the word for the value of an entry that one of them lacks.
        but: entries that do not count.
    """
    found = []
    for key in sorted((theirs.keys() | ours.keys()) - but):
        if theirs.get(key) != ours.get(key):
            there, here = difference(theirs.get(key, missing), ours.get(key, missing))
            found.append(f"{key} {there} there, {here} here")
    return found


def difference(theirs: str, ours: str) -> tuple[str, str]:
    """Two values of an entry without the parts that they have in common, where they are lists of parts."""
    one, other = theirs.split("; "), ours.split("; ")
    if max(len(one), len(other)) < 2:
        return theirs, ours
    return (
        "; ".join(part for part in one if part not in other) or "nothing more",
        "; ".join(part for part in other if part not in one) or "nothing more",
    )
