"""Whether packets come back as they must: what was seen of a build's frames, and what that says of two builds.

Of what a path of pdrgate's own makes of a frame each byte is known. What a user's own program does, nobody but its
other build knows: there a frame must not contradict itself, and both builds must do the same to it. A router is the
common measure: what a build does otherwise than one is compared, not the frames, for addresses and ports are others in
each boot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pdrgate.data_paths.catalogue import DataPath
from pdrgate.gate.sut.alike_packets import LEFT_BY, OTHER_PORT, SAME_PORT, PacketsMade, compared_packets, first_unlike
from pdrgate.record.fate import Fate
from pdrgate.record.trial import CarriedFrame, Trial
from pdrgate.results.model import ForwardedFrameResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.traffic.frame_fields import Difference, frame_differences, frame_in_words, frames_side_by_side

_KEPT = 2
"""Frames of a trial, and of a build, that are kept where they are not a router's."""
_RETURNED = 0.01
"""Part of the packets that may come back on the port that they were sent from: a switch may flood some."""
_COMPARED = frozenset({
    "frame length", "EtherType", "hop limit", "time to live", "next header", "protocol", "payload length",
    "total length", "type of service", "segments left", "UDP length",
})  # fmt: skip
"""Fields whose value is compared between builds. Of others, such as addresses, only whether they were changed: what
they are changed to may depend on the flow, and on the boot."""

_BACK = "sends {} back on the port that they came from"
_ASTRAY: Mapping[Fate, str] = {
    "forwarded": _BACK, "passed": _BACK, "handled": _BACK, "delivered": _BACK,
    "returned": "sends {} out of the other port", "dropped": "lets {} leave",
}  # fmt: skip
"""What a SUT does that sends packets out of a port that does not count."""

_CHANCE = 1e-4
"""Largest chance of not having seen what a build does to some of its frames."""

Trait = tuple[str, str]
"""The name of a field that is not a router's, and its value where that is compared."""


@dataclass(frozen=True, slots=True)
class ComparedFrame:
    """A frame that came back beside what a path of its name makes of it."""

    direction: int
    sent: bytes
    must_be: bytes
    got: bytes
    differences: tuple[Difference, ...]
    returned: bool = False

    @property
    def port(self) -> str:
        """The port that it came out of, in words."""
        return SAME_PORT if self.returned else OTHER_PORT

    def result(self, side: Side | None, build: str) -> ForwardedFrameResult:
        """The frame as an entry of result.json."""
        return ForwardedFrameResult(
            side=side, build=build, direction=self.direction, sent=self.sent.hex(), must_be=self.must_be.hex(),
            got=self.got.hex(), differences=tuple(map(str, self.differences)),
        )  # fmt: skip


@dataclass
class FramesSeen:
    """What was seen of the frames of one SUT, or of all boots of a build.

    Args:
        of_user: whether a program of the user's own forwards, so that a router is only the measure.
        alike: whether both builds must do the same to the same packet.
    """

    of_user: bool = False
    fate: Fate = "forwarded"
    looked_at: int = 0
    wrong: int = 0
    """Frames that are wrong by themselves, of those that were looked at."""
    offered: int = 0
    returned: int = 0
    traits: Counter[Trait] = field(default_factory=Counter)
    """What is done otherwise than a router does it, and to how many of the frames looked at."""
    examples: list[ComparedFrame] = field(default_factory=list)
    alike: bool = False
    made: PacketsMade = field(default_factory=PacketsMade)
    """What became of each packet, where that is compared."""

    def take(self, trial: Trial, path: DataPath) -> Trial:
        """Look at a trial's frames. Returns it with how many there were, and only those that are not a router's."""
        back, either = trial.aside.fate == "returned", trial.aside.fate == "handled"
        due = [frame for frame in trial.aside.frames if either or frame.returned == back]
        looked = [one for frame in due if (one := _compared(frame, path)) is not None]
        otherwise = [one for one in looked if one.differences]
        self.of_user, self.fate = path.of_user or back, trial.aside.fate
        self.looked_at += len(looked)
        self.wrong += sum(self._is_wrong(one) for one in otherwise)
        self.offered += trial.offered
        self.returned += trial.aside.returned
        for one in otherwise:
            self.traits.update({_trait(difference) for difference in one.differences})
        if either:
            self.traits.update((LEFT_BY, one.port) for one in looked)
        for one in looked if self.alike else ():
            self.made.take(one.sent, one.direction, one.differences, returned=one.returned)
        self._keep(otherwise)
        kept = [frame for frame in trial.aside.frames if frame not in due]
        kept += [CarriedFrame(one.direction, one.sent.hex(), one.got.hex()) for one in otherwise]
        return replace(trial, aside=replace(trial.aside, looked_at=len(looked), frames=tuple(kept[:_KEPT])))

    def add(self, other: FramesSeen) -> None:
        """Take what was seen of another boot of the same build."""
        self.of_user, self.fate = other.of_user, other.fate
        self.looked_at += other.looked_at
        self.wrong += other.wrong
        self.offered += other.offered
        self.returned += other.returned
        self.traits.update(other.traits)
        self.alike |= other.alike
        self.made.add(other.made)
        self._keep(other.examples)

    @property
    def fault(self) -> str:
        """What is wrong whoever forwards, as what the SUT does; empty where nothing is."""
        if self.returned > _RETURNED * self.offered:
            return _ASTRAY[self.fate].format(f"{self.returned} of {self.offered} packets")
        if not self.wrong:
            return ""
        worst = next((one for one in self.examples if self._is_wrong(one)), self.examples[0])
        return f"makes wrong frames, {self.wrong} of {self.looked_at} looked at: {_in_words(worst.differences)}"

    @property
    def other_fate(self) -> Fate | None:
        """The fate that nearly all packets had in place of the one that counts; None where they had none such."""
        if self.returned < (1.0 - _RETURNED) * self.offered:
            return None
        return {"forwarded": "returned", "returned": "forwarded"}.get(self.fate)  # type: ignore[return-value]

    @property
    def known(self) -> bool:
        """Whether any packet was offered, so that the frames show something."""
        return self.offered > 0

    def in_lines(self) -> Iterator[str]:
        """The examples: what was sent, what must have come and what came, with the differing bytes marked."""
        for one in self.examples:
            yield f"frame sent: {frame_in_words(one.sent)}"
            yield f"frame that came: {frame_in_words(one.got)}"
            yield from frames_side_by_side(one.must_be, one.got)

    def results(self, side: Side | None = None, build: str = "") -> tuple[ForwardedFrameResult, ...]:
        """The examples, as result.json has them."""
        return tuple(one.result(side, build) for one in self.examples)

    def _is_wrong(self, one: ComparedFrame) -> bool:
        of_user = self.of_user or one.returned  # what comes back no router has made
        return any(difference.broken or not of_user for difference in one.differences)

    def _keep(self, found: list[ComparedFrame]) -> None:
        """Keep frames that show something new, wrong ones first."""
        for one in sorted([*self.examples, *found], key=self._is_wrong, reverse=True):
            shown = {_trait(difference) for other in self.examples for difference in other.differences}
            if len(self.examples) < _KEPT and {_trait(difference) for difference in one.differences} - shown:
                self.examples.append(one)


class SeesFrames(Protocol):
    """A SUT whose frames are looked at."""

    frames: FramesSeen


def judged_with(
    seen: Mapping[Side, FramesSeen], suts: Iterable[tuple[Side, SeesFrames]], said: Callable[[str], None]
) -> Judgement | None:
    """Move what SUTs have seen to what is seen of their builds, and judge these; what speaks against one is said."""
    for side, sut in suts:
        seen[side].add(sut.frames)
        sut.frames = FramesSeen(alike=sut.frames.alike)
    found = judged_frames(seen)
    for side, build in seen.items() if found is not None else ():
        for line in build.in_lines():
            said(f"the {side}'s {line}")
    return found


def judged_frames(seen: Mapping[Side, FramesSeen]) -> Judgement | None:
    """What the frames of two builds say, before any speed is compared; None where they are as they must be."""
    baseline, candidate = seen["baseline"], seen["candidate"]
    if not (baseline.known and candidate.known):
        return None
    if candidate.fault and not baseline.fault:
        return Judgement(Verdict.REGRESSION, f"the candidate {candidate.fault}; the baseline does not")
    if candidate.fault:
        return Judgement(
            Verdict.ERROR,
            f"both builds are wrong: the candidate {candidate.fault}; if that is right, name its fate, such as "
            "--set fate=handled; summary.html has the frames",
        )
    if baseline.fault:
        return Judgement(
            Verdict.ERROR,
            f"the baseline {baseline.fault}, and the candidate does not: there is nothing to compare with",
        )
    alike = baseline.alike and candidate.alike
    if alike and (told := first_unlike(baseline.made, candidate.made)):
        return Judgement(Verdict.REGRESSION, f"packets do not leave alike: {told}")
    if baseline.of_user and (unlike := _only_of(baseline, candidate) | _only_of(candidate, baseline)):
        return Judgement(
            Verdict.REGRESSION,
            f"the candidate makes other frames than the baseline: {_unlike(unlike, baseline, candidate)}",
        )
    if alike and not compared_packets(baseline.made, candidate.made):
        return Judgement(
            Verdict.ERROR,
            "no packet was seen of both builds, so that nobody can tell whether they leave alike; send fewer flows",
        )
    return None


def _only_of(one: FramesSeen, other: FramesSeen) -> set[Trait]:
    """What one build does and the other does not, beyond what frames looked at can have missed by chance."""
    found = set()
    for trait, count in one.traits.items():
        share = count / (one.looked_at + 1)  # no more than is known: of one frame nothing is certain
        if not other.traits[trait] and (1.0 - share) ** other.looked_at < _CHANCE:
            found.add(trait)
    return found


def _compared(frame: CarriedFrame, path: DataPath) -> ComparedFrame | None:
    """The frame beside what must come out. Of one sent back nobody knows that: the measure is as it was sent."""
    sent, got = bytes.fromhex(frame.sent), bytes.fromhex(frame.got)
    must_be = sent if frame.returned else path.forwarded(sent, frame.direction)
    if must_be is None:
        return None
    return ComparedFrame(frame.direction, sent, must_be, got, frame_differences(must_be, got), frame.returned)


def _trait(difference: Difference) -> Trait:
    value = difference.got if difference.name in _COMPARED else ""
    return difference.name, value


def _in_words(found: tuple[Difference, ...]) -> str:
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}{more}"


def _unlike(unlike: set[Trait], baseline: FramesSeen, candidate: FramesSeen) -> str:
    """The first field in which two builds differ, in words."""
    names = sorted({name for name, _ in unlike}, key=lambda name: (name != LEFT_BY, name))
    shown = [
        (seen is candidate, difference)
        for seen in (candidate, baseline)
        for one in seen.examples
        for difference in one.differences
        if difference.name == names[0]
    ]
    more = f", and {len(names) - 1} more" if len(names) > 1 else ""
    if names[0] == LEFT_BY:
        ours, theirs = (OTHER_PORT if one.traits[LEFT_BY, OTHER_PORT] else SAME_PORT for one in (candidate, baseline))
        return f"{LEFT_BY} {ours}, the baseline's {theirs}{more}"
    if not shown:
        return f"{names[0]}{more}"
    of_candidate, first = shown[0]
    other = next((one.got for whose, one in shown if whose != of_candidate), first.must_be)
    ours, theirs = (first.got, other) if of_candidate else (other, first.got)
    return f"{names[0]} {ours}, the baseline's {theirs}{more}"
