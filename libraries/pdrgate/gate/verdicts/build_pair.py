"""Whether two builds are a pair that differs by a change alone: their configurations, mitigations and CPUs.

A build of one's own beside the distribution's of the same version is faster by a third where it zeroes no buffers: that
is true, and no improvement of the code. What is compared is what each SUT reports of itself, so it is the same for a
package, a build tree and a kernel that keeps its configuration in its image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pdrgate.observers.build_options import OPTIONS, WORD, BuildOption, OptionKind
from pdrgate.results.build_differences import BuildDifference, differences_in_words, unknown_in_words
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement, Verdict

_NOT_SET = "n"
_NAMED = 2
"""Differences of a kind that a verdict's sentence names; the line beside it has more, and the table all."""
_CPU = {
    "cpu_model": BuildOption("model", OptionKind.CPU, "another CPU"),
    "microcode": BuildOption("microcode", OptionKind.CPU, "another revision of the CPU's microcode"),
}
_SPECULATION = "what the kernel does against it costs time in its entries, calls and returns"
_SPECTRE_V2 = re.compile(r"retpoline|ibrs|lfence", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BuildPair:
    """What two builds differ in beside their change, and of which of them the configuration is not known."""

    differences: tuple[BuildDifference, ...] = ()
    unknown: tuple[Side, ...] = ()

    @classmethod
    def of(cls, baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> BuildPair:
        """Differences that the environments of both SUTs show. One and the same kernel has equal configurations."""
        if not baseline or not candidate:
            return cls()
        found = sorted(
            (*_options(baseline, candidate), *_words(baseline, candidate), *_mitigations(baseline, candidate),
             *_cpus(baseline, candidate)),
            key=lambda one: (not one.weighty, list(OptionKind).index(OptionKind(one.kind))),
        )  # fmt: skip
        sides: tuple[tuple[Side, Mapping[str, Any]], ...] = (("baseline", baseline), ("candidate", candidate))
        same = all(baseline.get(key) == candidate.get(key) for key in ("kernel_release", "kernel_version"))
        unknown = () if same else tuple(side for side, one in sides if one.get("config_options") is None)
        return cls(tuple(found), unknown)

    def weighed(self, found: Judgement, *, allowed: bool) -> Judgement:
        """A verdict as it stands for such a pair: a faster build is no IMPROVEMENT where it may be spared other work.

        Args:
            allowed: whether such builds are compared all the same.
        """
        if found.verdict not in (Verdict.IMPROVEMENT, Verdict.REGRESSION):
            return found
        weighty = [one for one in self.differences if one.weighty]
        words = differences_in_words(weighty, _NAMED)
        if weighty and found.verdict is Verdict.IMPROVEMENT and not allowed:
            refused = f"not comparable: the builds differ by {words}; --set allow_config_differences=true compares them"
            return Judgement(Verdict.INCONCLUSIVE, refused).remarked(found.reason)
        unknown = unknown_in_words(self.unknown) if found.verdict is Verdict.IMPROVEMENT else ""
        return found.remarked(f"the builds differ by {words}" if weighty else "", unknown)


def _options(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[BuildDifference]:
    """Options that differ, in the order of the list; nothing where one configuration is not known."""
    theirs, ours = baseline.get("config_options"), candidate.get("config_options")
    if theirs is None or ours is None:
        return
    for one in OPTIONS:
        yield from _difference(one, theirs.get(one.name, _NOT_SET), ours.get(one.name, _NOT_SET))


def _words(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[BuildDifference]:
    """Words of the command line that set the same."""
    if baseline.get("cmdline") is None or candidate.get("cmdline") is None:
        return
    theirs, ours = (_told_words(str(one["cmdline"])) for one in (baseline, candidate))
    for one in dict.fromkeys(WORD.values()):
        yield from _difference(one, theirs.get(one.name, "not said"), ours.get(one.name, "not said"))


def _told_words(cmdline: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in cmdline.split())
    return {WORD[name].name: value or "said" for name, _, value in pairs if name in WORD}


def _mitigations(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[BuildDifference]:
    """Vulnerabilities against which one kernel does something and the other nothing, or something else.

    Each kernel has words of its own, and knows what was known when it was made.
    """
    theirs, ours = baseline.get("mitigations"), candidate.get("mitigations")
    if theirs is None or ours is None:
        return
    for name in sorted({*theirs, *ours}):
        there, here = str(theirs.get(name, "not known")), str(ours.get(name, "not known"))
        if _done(there) != _done(here):
            one = BuildOption(name, OptionKind.MITIGATIONS, _SPECULATION)
            yield from _difference(one, there.partition(";")[0], here.partition(";")[0])


def _done(text: str) -> str:
    """What is done about a vulnerability: nothing, or something, and of several ways against Spectre v2 which."""
    if "mitigation" not in text.lower():
        return ""
    way = _SPECTRE_V2.search(text.partition(";")[0])
    return way[0].lower() if way else "mitigated"


def _cpus(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[BuildDifference]:
    for key, one in _CPU.items():
        there, here = baseline.get(key), candidate.get(key)
        if there is not None and here is not None:
            yield from _difference(one, str(there), str(here))


def _difference(one: BuildOption, there: str, here: str) -> Iterator[BuildDifference]:
    if there != here:
        yield BuildDifference(
            kind=one.kind.value, name=one.name, baseline=there, candidate=here, why=one.why, weighty=one.kind.weighty
        )
