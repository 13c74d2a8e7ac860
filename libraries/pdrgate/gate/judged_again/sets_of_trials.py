"""Files hold trials of several scenarios, runs and builds: those of one each are chosen and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pdrgate.gate.run.run_record import read_fingerprints
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.stability import expand
from pdrgate.stability.experiments import comparisons, goal_of, without_goal
from pdrgate.stability.throughput_increase import DEFAULT_PLR_THRESHOLD
from pdrgate.stability.trial_files import read_file
from pdrgate.values.errors import DataError
from pdrgate.values.units import Ratio

_SHOWN = 6
_NAMELESS = "one without a name"


@dataclass(frozen=True, slots=True)
class WantedSet:
    """What a person says of the set that is meant, where a file holds several."""

    scenario: str = ""
    build: str = ""
    """A build: the comparison that is meant has it on either side."""
    test: str = ""
    """Name of the test that asked for it, with or without its suites."""


@dataclass(frozen=True, slots=True)
class StoredSet:
    """What one file holds of one scenario: of a single SUT, or of one comparison of builds."""

    path: Path
    """The path as a person named it."""
    file: Path
    """The file that was read: the path, or below it."""
    scenario: str
    builds: Mapping[str, str]
    """The builds by side, where builds were compared."""
    trials: tuple[Trial, ...] = ()
    """Trials of both sides."""
    published: bool = False

    @property
    def closed_loop(self) -> bool:
        """The kind of its trials, see `Trial.closed_loop`."""
        return any(trial.closed_loop for trial in self.trials)

    @property
    def tells_scenario(self) -> bool:
        """Whether it was written down what was measured, and not guessed."""
        return bool(self.scenario) and not self.published

    @property
    def tests(self) -> tuple[str, ...]:
        """Long names of the tests that asked for it; a comparison of builds has one.

        Empty where no trial names its test.
        """
        return tuple(dict.fromkeys(one.belonging.test for one in self.trials if one.belonging.test))

    @property
    def in_words(self) -> str:
        """Clause on the builds, which distinguishes it from other sets of its scenario."""
        if not self.builds:
            return "no comparison of builds"
        return f"{self.builds.get('candidate', 'nothing yet')} against {self.builds.get('baseline', 'nothing yet')}"

    def fingerprint(self, one: Trial) -> Mapping[str, str]:
        """What a trial was made under, as its run has it; empty where it lies in no run. Raises DataError."""
        return read_fingerprints(self.file.parent).get(one.belonging.fingerprint, {})

    @property
    def looked(self) -> bool:
        """Whether the generator looked at what was under way."""
        return any(trial.under_way for trial in self.trials)

    def of(self, side: Side) -> list[Trial]:
        """One side's trials of a comparison of builds; else all. Raises DataError when there is none."""
        own = [one for one in self.trials if one.belonging.side == side] if self.builds else list(self.trials)
        what = "transfers" if self.closed_loop else "trials"
        if not own:
            raise DataError(
                f"{self.path} holds {what} of a build comparison, and none of its {side}; name the whole file"
            )
        if len(made_under := dict.fromkeys(one.belonging.fingerprint for one in own)) > 1:
            known = read_fingerprints(self.file.parent)
            told = [f"{one} of kernel {known.get(one, {}).get('kernel', 'unknown')}" for one in made_under]
            raise DataError(
                f"{self.path} holds {what} that were made under {len(told)} fingerprints ({_listed(told)}); put the "
                "lines of one of them into a file of its own"
            )
        return own


def stored_set(path: Path, asked: WantedSet, report: Callable[[str], None]) -> StoredSet:
    """What is meant of all that lies at ``path``.

    Args:
        report: gets a sentence on each file that is left out, see `expand`.

    Raises:
        DataError: nothing there is meant, or several things are; the message names them and says how to choose.
    """
    found = [one for file in expand([path], report) for one in _sets(path, file)]
    if asked.test:
        held = _listed([test for one in found for test in one.tests or (_NAMELESS,)])
        found = [left for one in found if (left := _of_test(one, asked.test)) is not None]
        if not found:
            raise DataError(
                f"{path} holds nothing of the test {asked.test}, but of {held}; name one of these with --test"
            )
    if asked.scenario:
        held = _listed([one.scenario or _NAMELESS for one in found])
        found = [one for one in found if one.scenario == asked.scenario or not one.tells_scenario]
        if not found:
            raise DataError(
                f"{path} holds nothing of the scenario {asked.scenario}, but of {held}; name one "
                "of these with --scenario"
            )
    if asked.build and any(one.builds for one in found):
        held = _listed([one.in_words for one in found])
        found = [one for one in found if asked.build in one.builds.values()]
        if not found:
            raise DataError(
                f"{path} holds no comparison of the build {asked.build}, but {held}; name another with --build"
            )
    if len(scenarios := dict.fromkeys(one.scenario or _NAMELESS for one in found)) > 1:
        kinds = ["trials"] * any(not one.closed_loop for one in found)
        kinds += ["transfers"] * any(one.closed_loop for one in found)
        how = "choose one with --scenario" if all(one.tells_scenario for one in found) else "name one file"
        raise DataError(
            f"{path} holds {' and '.join(kinds)} of {len(scenarios)} scenarios ({_listed(scenarios)}); {how}"
        )
    if len(files := dict.fromkeys(one.file for one in found)) > 1:
        choices = [f"{file}: {_listed(one.in_words for one in found if one.file == file)}" for file in files]
        raise DataError(f"{path} holds {len(files)} runs ({_listed(choices)}); name one of them")
    if len(found) > 1:
        counts = Counter(one.in_words for one in found)
        tests = list(dict.fromkeys(test for one in found for test in one.tests))
        choices = [f"{words}, {count} times" if count > 1 else words for words, count in counts.items()]
        how = "put the lines of one of them into a file of its own"
        if len(counts) > 1:
            how = "choose one with --build"
        elif len(tests) == len(found):
            choices, how = [f"{next(iter(counts))} by the tests {_listed(tests)}"], "choose one with --test"
        raise DataError(f"{path} holds {len(found)} measurements of one scenario ({_listed(choices)}); {how}")
    return found[0]


def check_comparable(
    baseline: StoredSet,
    candidate: StoredSet,
    asked: WantedSet,
    report: Callable[[str], None],
    *,
    any_goal: bool = False,
) -> None:
    """Check that two sets answer one question, the one that was asked, and that their packets were counted alike.

    Args:
        asked: what either set was chosen by, as far as the set names it.
        report: gets a sentence where only the names of files say otherwise.
        any_goal: whether both are to be judged at a loss that they need not have been measured for.

    Raises:
        DataError: they do not, or were not.
    """
    if asked.build and not (baseline.builds or candidate.builds):
        raise DataError(f"{baseline.path} and {candidate.path} hold no comparison of builds; leave --build out")
    if asked.test and not (baseline.tests or candidate.tests):
        raise DataError(f"{baseline.path} and {candidate.path} do not tell their tests; leave --test out")
    if asked.scenario and not (baseline.tells_scenario or candidate.tells_scenario):
        raise DataError(f"{baseline.path} and {candidate.path} do not tell their scenario; leave --scenario out")
    if baseline.closed_loop != candidate.closed_loop:
        loops, trials = (baseline, candidate) if baseline.closed_loop else (candidate, baseline)
        raise DataError(f"{loops.path} holds transfers and {trials.path} trials; name two runs of one scenario")
    theirs, ours = baseline.scenario, candidate.scenario
    if baseline.tells_scenario and candidate.tells_scenario:
        if without_goal(theirs) != without_goal(ours):
            raise DataError(
                f"{baseline.path} is of the scenario {theirs} and {candidate.path} of {ours}; name two runs of one"
            )
        if theirs != ours and not any_goal:
            raise DataError(
                f"{baseline.path} was measured for a PDR at {Ratio(goal_of(theirs))} loss ({theirs}) and "
                f"{candidate.path} at {Ratio(goal_of(ours))} ({ours}); say with --loss at which both are judged"
            )
    elif theirs and ours and theirs != ours:
        report(f"by the names of the files {baseline.path} is of {theirs}, and {candidate.path} of {ours}")
    if not (baseline.published or candidate.published or baseline.closed_loop):
        _check_counting(baseline, candidate)


def _check_counting(baseline: StoredSet, candidate: StoredSet) -> None:
    methods = [one.fingerprint(one.trials[0]).get("method", "") for one in (baseline, candidate)]
    if all(methods) and methods[0] != methods[1]:
        raise DataError(
            f"{baseline.path} and {candidate.path} were measured by two versions of pdrgate, of which one counts rates "
            "otherwise; measure the older one anew"
        )
    if baseline.looked != candidate.looked:
        seen, unseen = (baseline, candidate) if baseline.looked else (candidate, baseline)
        raise DataError(
            f"trials of {seen.path} tell what was under way while they were sent, and those of {unseen.path} do not: "
            "their loads were judged otherwise; measure both by one version of pdrgate and one generator"
        )


def goal_of_sets(sets: Iterable[StoredSet]) -> float:
    """The loss ratio that sets were measured for; the usual one of sets that do not name their scenario."""
    return next((goal_of(one.scenario) for one in sets if one.tells_scenario), DEFAULT_PLR_THRESHOLD)


def _sets(path: Path, file: Path) -> list[StoredSet]:
    """All of one file, in order of appearance."""
    read = read_file(file)
    return [
        StoredSet(path, file, scenario, builds, tuple(own), published=read.published)
        for scenario, builds, own in _told_apart(read.trials)
    ]


def _of_test(found: StoredSet, test: str) -> StoredSet | None:
    """Part of a set that a test asked for; all of it where no trial names its test; None where another one asked."""
    if not found.tests:
        return found
    asked = [one.belonging.test for one in found.trials]
    own = tuple(one for one, by in zip(found.trials, asked, strict=True) if by == test or by.endswith(f".{test}"))
    return replace(found, trials=own) if own else None


def _told_apart(made: Sequence[Trial]) -> list[tuple[str, dict[str, str], list[Trial]]]:
    """Trials by scenario and comparison of builds: the scenario, the builds by side, and all of it."""
    found: dict[tuple[str, int], list[Trial]] = {}
    for one, number in zip(made, comparisons(made), strict=True):
        found.setdefault((one.belonging.scenario, number), []).append(one)
    return [
        (scenario, {one.belonging.side: one.belonging.build for one in own} if number else {}, own)
        for (scenario, number), own in found.items()
    ]


def _listed(things: Iterable[str]) -> str:
    """Some of them, and how many more there are."""
    different = list(dict.fromkeys(things))
    return ", ".join(different[:_SHOWN]) + (f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else "")
