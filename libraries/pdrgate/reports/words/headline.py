"""The first line of every report: one sentence that says what got slower, by how much and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pdrgate.measurands import described, told_once
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.replication.samples import gravest_change
from pdrgate.reports.words.aside_words import acknowledged_lines, acknowledged_ways, left_out_lines, left_out_ways
from pdrgate.reports.words.common_cause import CommonCause, common_cause
from pdrgate.reports.words.measurands import change_told, in_functions, more_told, tolerance_told
from pdrgate.reports.words.next_command import next_commands
from pdrgate.reports.words.path_table import is_path, is_portfolio, path_lines
from pdrgate.reports.words.selection_words import selection_headline, selection_lines
from pdrgate.results.model import ChangeResult, RunResult, ScenarioResult
from pdrgate.results.verdict import INTERRUPTED, PROGRAMS_DIFFER, Verdict
from pdrgate.values.printable import printable

HEADLINE_LENGTH = 160
"""Characters of a headline, its verdict included."""
_WHERE = 48
"""Characters of the name of a path or scenario in it."""
_KNOWN = 40
"""Characters by which a clause is known again, however it goes on."""
_BARE = re.compile(r"[^:()]+ [-+]\d+(\.\d+)? %")
"""A measurand and its change, and no more."""
_NOTICE = "notice: "
_ALSO = re.compile(r"(another function is|\d+ other functions are) called ")
"""How a notice goes on."""
_LEADS = {Verdict.REGRESSION: "slower", Verdict.IMPROVEMENT: "faster"}
_TELLS_HOW_ON = frozenset({
    Verdict.UNSTABLE, Verdict.CRASH, Verdict.ERROR, Verdict.DISTURBED, Verdict.GENERATOR_LIMITED, Verdict.NO_BASELINE
})  # fmt: skip
"""Verdicts whose reason goes on with what to do next."""
_CANNOT = "The build is at fault: the baseline does what it does not."
_FAULTS = {
    Verdict.REGRESSION: "The build is at fault: the change is larger than what equal builds differ by here.",
    Verdict.CRASH: "The build is at fault: it fails where the baseline does not.",
    Verdict.UNSTABLE: "The numbers cannot be trusted: what was measured does not repeat, or not fit together.",
    Verdict.INCONCLUSIVE: "Neither build nor machine is at fault: what was measured does not decide.",
    Verdict.DISTURBED: "The machine is at fault, not the build.",
    Verdict.GENERATOR_LIMITED: "The testbed is at fault, not the build.",
    Verdict.ASSERTION_FAILED: "A requirement of the suite's own is not met: by the build, or it asks for too much.",
    Verdict.ERROR: "The testbed, a tool or what both builds share is at fault, not the change.",
}


def headline(result: RunResult) -> str:
    """First line of a report: ``REGRESSION: a packet costs 8.3 % more instructions (+7.5 to +9.1 %) on NAT, most of it
    in dst_release (+91)``.

    Where there are several scenarios, it has the worst of the gravest, after how many of them there are. Paths that
    were left out, and those that are acknowledged, stand at its end, whatever else has no room then.
    """
    last = [f"{known}{left}" for known in acknowledged_ways(result) for left in left_out_ways(result)]
    counting = tuple(one for one in result.scenarios if not one.details.acknowledged)
    line = _headline(replace(result, scenarios=counting), HEADLINE_LENGTH - min(map(len, last)))
    return _room(line, last)


def _headline(result: RunResult, room: int) -> str:
    if selected := selection_headline(result):
        return fitted(f"{result.verdict}: ", selected, room=room)
    decisive = decisive_scenario(result.scenarios)
    if decisive is None or decisive.verdict is not result.verdict or decisive.reason != result.reason:
        # Whoever made the result had more to say than one scenario has, such as on which machine it was.
        first, *parts = _split(result.reason)
        return fitted(f"{result.verdict}: ", (first, _unbracketed(first)), [f"; {one}" for one in parts], room)
    if len(result.scenarios) == 1:
        return scenario_headline(decisive, room)
    if not is_portfolio(result):
        number = sum(one.verdict is result.verdict for one in result.scenarios)
        return _of_several(decisive, number, len(result.scenarios), "scenario", room)
    lines = path_lines(result)
    number = sum(one.verdict is result.verdict for one in lines)
    if result.verdict is Verdict.PASS and lines[0].change and all(one.verdict.passes for one in lines):
        slowest = next(one for one in lines if one.verdict is result.verdict)
        faster = [where(result.scenarios[one.number]) for one in lines if one.verdict is Verdict.IMPROVEMENT]
        line = f"none of {len(lines)} paths got slower"
        sure = next((one for one in lines if one.is_sure and one.verdict is result.verdict), None)
        if sure is not None:
            line += f"; the most, {where(result.scenarios[sure.number])}: {sure.change}"
        elif not faster:
            line = f"no change on {len(lines)} paths; at most {slowest.change}"
        return fitted(
            f"{result.verdict}: ",
            line,
            [f"; {one} got faster" for one in faster],
            room,
        )
    if number:
        decisive = result.scenarios[lines[0].number]
    paths = [result.scenarios[one.number] for one in lines]
    cause = common_cause(paths) if result.verdict is Verdict.REGRESSION else None
    return _of_several(decisive, number, len(lines), "path", room, cause)


def scenario_headline(scenario: ScenarioResult, room: int = HEADLINE_LENGTH) -> str:
    """First line of a report on one scenario alone; see `headline`."""
    first, *parts = _parts(scenario)
    return fitted(f"{scenario.verdict}: ", first, parts, room)


def scenario_in_lines(scenario: ScenarioResult) -> str:
    """The headline of a scenario, and below it, a line each, the clauses of its reason that the headline leaves out."""
    line = scenario_headline(scenario)
    return "\n".join(filter(None, (line, scenario_fault(scenario), *_unsaid(line, scenario.reason))))


def lines_below(result: RunResult) -> list[str]:
    """Sentences that stand below the headline: who is at fault, what to do next, what is acknowledged or was left
    out, and which paths were selected."""
    fault = filter(None, (fault_in_words(result),))
    besides = (*acknowledged_lines(result), *left_out_lines(result), *selection_lines(result))
    return [*fault, *map(printable, next_commands(result)), *besides]


def fault_in_words(result: RunResult) -> str:
    """Whether build or machine is at fault; empty where nothing is."""
    return _fault(result.verdict, result.reason, result.scenarios)


def scenario_fault(scenario: ScenarioResult) -> str:
    """Whether build or machine is at fault in one scenario alone; empty where nothing is."""
    return _fault(scenario.verdict, scenario.reason, (scenario,))


def _fault(verdict: Verdict, reason: str, scenarios: Sequence[ScenarioResult]) -> str:
    if verdict is Verdict.REGRESSION and scenarios and not any(map(rests_on_a_change, scenarios)):
        return _CANNOT
    fault = "" if reason.startswith(INTERRUPTED) else _FAULTS.get(verdict, "")
    return " ".join(filter(None, (fault, _why_slower(scenarios) if fault else "")))


def _why_slower(scenarios: Sequence[ScenarioResult]) -> str:
    """Why a REGRESSION is slower, where nothing that was timed is, nor the cost; empty of all else."""
    changes = [
        one
        for scenario in scenarios
        if scenario.verdict is Verdict.REGRESSION and scenario.comparison is not None
        for one in told_once(scenario.comparison.changes)
        if one.verdict is Verdict.REGRESSION
    ]
    why = {one.measurand: described(one.measurand, one.unit, one.better).slows for one in changes}
    return why[gravest_change(changes).measurand] if changes and all(why.values()) else ""


def rests_on_a_change(scenario: ScenarioResult) -> bool:
    """Whether the table of its changes shows all that its verdict rests on."""
    return _change(scenario) is not None


def builds_compared(result: RunResult) -> list[str]:
    """The candidate and the baseline, where all scenarios compare the same two builds; else nothing."""
    found = {
        tuple(side.build for side in sorted(one.builds.sides, key=lambda side: side.side, reverse=True))
        for one in result.scenarios
        if one.builds.sides
    }
    return list(found.pop()) if len(found) == 1 else []


def left_out(line: str, reason: str) -> list[str]:
    """The clauses of a reason that stand neither in its headline nor in the table of changes."""
    return [one for one in _unsaid(line, reason) if not _BARE.fullmatch(one)]


def fitted(
    begin: str, first: str | Sequence[str], parts: Iterable[str | Sequence[str]] = (), room: int = HEADLINE_LENGTH
) -> str:
    """Line with as many parts as have room, in their order. The first is cut where it has none, at the end of a word.

    Each part is a text, or several ways to say the same, of which the first that fits is taken.

    Args:
        room: characters for all of it.
    """
    line = _room(begin, first, room) or _line(begin + _ways(first)[-1])
    if len(line) > room:
        return f"{line[: room - 1].rsplit(' ', 1)[0].rstrip(' ,;:')}…"
    for part in parts:
        line = _room(line, part, room) or line
    return line


def _unsaid(line: str, reason: str) -> list[str]:
    whole = not line.endswith("…")
    return [
        one
        for one in _split(reason)
        if one not in line
        and (_pathless(one) != one or not (whole and one[:_KNOWN] in line and _unbracketed(one) not in line))
    ]


def _unbracketed(clause: str) -> str:
    """A clause without what stands in brackets: details, which a line that is full has no room for."""
    return re.sub(r" \([^()]*\)", "", clause)


def _pathless(clause: str) -> str:
    """A clause without the path that it ends with, which may be longer than a line."""
    return re.sub(r"(?<=--baseline) \S+$", "", clause)


def _unnamed(clause: str, scenario: ScenarioResult) -> str:
    """A clause without the builds' names. The clause says which side it is of, and the next line names the builds."""
    for side in scenario.builds.sides:
        clause = re.sub(rf"(\b\w+:)?{re.escape(_unbracketed(_line(side.build)))}(: | )", "", clause)
    return clause


def _room(line: str, part: str | Sequence[str], room: int = HEADLINE_LENGTH) -> str:
    """A line with one more part, in the first way to say it that fits; empty where none does."""
    return next((whole for one in _ways(part) if len(whole := _line(line + one)) <= room), "")


def _ways(part: str | Sequence[str]) -> Sequence[str]:
    return (part,) if isinstance(part, str) else part


def where(scenario: ScenarioResult) -> str:
    """What a reader calls it: of a path its test's name, else the data path."""
    called = is_path(scenario) or (scenario.comparison is None and scenario.label == scenario.origin.test)
    line = _line(scenario.origin.test if called else scenario.title.partition(", ")[0])
    return line if len(line) <= _WHERE else f"{line[: _WHERE - 1]}…"


def _of_several(
    scenario: ScenarioResult, number: int, of: int, what: str, room: int, cause: CommonCause | None = None
) -> str:
    """How many there are, the cause that they have in common, and the worst of them."""
    all_ = "both" if of == 2 else f"all {of}"
    many = f"{number} of {of} {what}s" if number < of else f"{all_} {what}s"
    first, *parts = _parts(scenario, placed=False)
    slower = " got slower" if scenario.verdict is Verdict.REGRESSION and _change(scenario) is not None else ""
    most = " most" if slower and number > 1 else ""
    if cause is not None and cause.paths == number:
        many, slower = f"{cause} on {many}", ""
    elif cause is not None:
        slower += f", {cause.paths} of them by {cause}"
    return fitted(f"{scenario.verdict}: {many}{slower}, {where(scenario)}{most}: ", first, parts, room)


def _parts(scenario: ScenarioResult, *, placed: bool = True) -> Sequence[str | Sequence[str]]:
    """What must be said, and what may be."""
    place = where(scenario) if placed else ""
    change = _change(scenario)
    if change is None or scenario.comparison is None:
        first, clauses = _clauses(scenario.reason, scenario.verdict)
        return (
            (first, *_undecided(scenario), _unbracketed(first), _unnamed(_unbracketed(first), scenario)),
            *([f", on {place}"] * bool(place and scenario.builds.sides and not clauses)),
            *clauses,
        )
    about = described(change.measurand, change.unit, change.better)
    lead = "" if about.sentence is not None and about.sentence.says_worse else f"{_LEADS[scenario.verdict]}: "
    functions = scenario.comparison.functions
    within = about.parts.within(change.candidate - change.baseline, functions) if about.parts is not None else ""
    others = [one for one in told_once(scenario.comparison.changes) if one.verdict is scenario.verdict]
    also = [f"; {one.measurand} {_brief(one)}" for one in others if one.measurand != change.measurand]
    brief = f"{change.measurand} {change_told(change)}"
    located = [f"{brief} {in_functions(change)}"] if change.parts else []
    said = (f"{lead}{about.told(change, ())}", *located, brief)
    return said, f" on {place}" * bool(place), *_functions(within), *also


def _brief(change: ChangeResult) -> str:
    return more_told(change) if change.parts else f"{100 * change.change:+z.1f} %"


def _undecided(scenario: ScenarioResult) -> Iterator[str]:
    """The change that an INCONCLUSIVE rests on, in brief."""
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    found = [one for one in told_once(changes) if one.verdict is scenario.verdict is Verdict.INCONCLUSIVE]
    if found:
        gravest = gravest_change(found)
        line = f"undecided: {gravest.measurand} {change_told(gravest)}"
        yield from (f"{line}, tolerance {tolerance_told(gravest)}", line)


def _functions(within: str) -> list[tuple[str, ...]]:
    """Clause on where a change lies, in two ways: with all functions, and with the first function alone."""
    lead, _, named = within.partition(" in ")
    first, *others = re.split(r"(?<=\)), ", named)
    return [(f", {lead} in {named}", *([f", most in {first}"] if others else []))] if named else []


def _change(scenario: ScenarioResult) -> ChangeResult | None:
    """The change that a REGRESSION or an IMPROVEMENT rests on; None of what was found otherwise."""
    if scenario.verdict not in _LEADS or scenario.comparison is None:
        return None
    found = [one for one in told_once(scenario.comparison.changes) if one.verdict is scenario.verdict]
    return gravest_change(found) if found else None


def _clauses(reason: str, verdict: Verdict) -> tuple[str, list[tuple[str, str]]]:
    """The first clause of a reason, and those after it that belong to its headline; a notice is not the first."""
    found = _split(reason)
    noticed = 0
    while noticed < len(found) and (found[noticed].startswith(_NOTICE) or (noticed and _ALSO.match(found[noticed]))):
        noticed += 1
    if noticed < len(found):
        found = [*found[noticed:], *found[:noticed]]
    further = [(part, _pathless(part)) for one in found[1:] for part in re.split(r"(?=, or )", f"; {one}")]
    if verdict not in _TELLS_HOW_ON:
        further = [one for one in further if one[0].startswith(f"; {PROGRAMS_DIFFER}")]
    return found[0], further


def _split(reason: str) -> list[str]:
    """Clauses; a semicolon in brackets ends none.

    A stranger's reason may be long: each bracket is looked for once.
    """
    line = _line(reason)
    clauses, begin, opening, closing = [], 0, 0, 0
    for found in re.finditer("; ", line):
        end = found.end()
        opening = line.find("(", end) if 0 <= opening < end else opening
        closing = line.find(")", end) if 0 <= closing < end else closing
        if closing < 0 or 0 <= opening < closing:
            clauses.append(line[begin : found.start()])
            begin = end
    return [*clauses, line[begin:]]


def _line(text: str) -> str:
    return printable(" ".join(text.split()))
