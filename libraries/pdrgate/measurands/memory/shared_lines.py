"""What several CPUs do to each other for a packet: lines that more than one touches, and interrupts between them."""

from __future__ import annotations

from typing import Final

from pdrgate.measurands.description import Rule, TolerancesAsked
from pdrgate.measurands.functions.more_by_function import counted_by_function
from pdrgate.measurands.measurand import BuildSeen, OnRequest
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.results.model import ChangeResult, Findings, MemoryResult

_BY_CHANCE = "it depends on when the CPUs meet"


class OfSeveralCpus(OnRequest, OfMemory):
    """A measurand of a guest of several CPUs. One such guest is started for each build, besides the boots of pairs."""

    @staticmethod
    def seen(findings: Findings) -> MemoryResult | None:
        return findings.several_cpus


class SharedLines(OfSeveralCpus):
    """Lines that another CPU touched shortly before, one of the two writing: hardware moves them between cores."""

    counted = "shared"
    least = 0.8
    of_lines = True
    about = counted_by_function(
        "shared lines", "shared_lines",
        "cache lines of a packet that another CPU touched shortly before, one of the two writing",
        "touches {} {} lines that another CPU uses", 0.1,
        slows="A line that several CPUs use moves between them, which is slow where several handle packets.",
    )  # fmt: skip


class FalselySharedLines(OfSeveralCpus):
    """Shared lines of which each CPU touches other bytes."""

    counted = "falsely_shared"
    least = 0.5
    about = counted_by_function(
        "falsely shared lines", "falsely_shared_lines", "shared lines of which the CPUs touch other bytes",
        "touches {} {} lines that CPUs share falsely", 0.1, rule=Rule.REPORT_ONLY,
    )  # fmt: skip

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        return None  # they are among the shared lines


class InterprocessorInterrupts(OfSeveralCpus):
    """Interrupts that one CPU has sent to another."""

    counted = "ipis"
    least = 0.5
    about = counted_by_function(
        "interprocessor interrupts", "ipis", "interrupts that one of the SUT's CPUs sends another for a packet",
        "takes {} {} interprocessor interrupts", 0.1, unit="IPIs", rule=Rule.REPORT_ONLY, report_only=_BY_CHANCE,
    )  # fmt: skip


class Wakeups(OfSeveralCpus):
    """Tasks that are woken, on whichever CPU."""

    counted = "wakeups"
    least = 0.5
    about = counted_by_function(
        "wakeups", "wakeups", "tasks that the SUT's kernel wakes for a packet", "wakes {} {} tasks", 0.1,
        rule=Rule.REPORT_ONLY, report_only=_BY_CHANCE,
    )  # fmt: skip


class LockWaits(OfSeveralCpus):
    """Instructions of a CPU that waits for a lock, which another one holds."""

    counted = "waited"
    least = 100.0
    about = counted_by_function(
        "waiting for locks", "lock_wait_instructions",
        "instructions of the SUT's CPUs for a packet while they wait for a lock",
        "waits {} {} instructions for locks", 0.1, unit="instructions of waiting", rule=Rule.REPORT_ONLY,
        report_only=_BY_CHANCE,
    )  # fmt: skip


OF_SEVERAL_CPUS: Final[tuple[type[OfSeveralCpus], ...]] = (
    SharedLines, FalselySharedLines, InterprocessorInterrupts, Wakeups, LockWaits,
)  # fmt: skip
"""Measurands with values from trials on several CPUs."""
