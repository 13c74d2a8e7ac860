"""What several CPUs do to each other for a packet: lines that more than one touches, and interrupts between them."""

from __future__ import annotations

from typing import ClassVar, Final, Self

from pdrgate.measurands.description import Description, Rule, Tolerance, TolerancesAsked
from pdrgate.measurands.functions.more_by_function import more_by_function
from pdrgate.measurands.measurand import Setting
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.self_described import BuildSeen
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.results.model import ChangeResult, Findings, MemoryResult

_BY_CHANCE = "it depends on when the CPUs meet"


class OfSeveralCpus(OfMemory):
    """A measurand of a guest of several CPUs. One such guest is started for each build, besides the boots of pairs."""

    __slots__ = ()

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return None

    @staticmethod
    def seen(findings: Findings) -> MemoryResult | None:
        return findings.several_cpus


class SharedLines(OfSeveralCpus):
    """Lines that another CPU touched shortly before, one of the two writing: hardware moves them between cores."""

    __slots__ = ()
    counted = "shared"
    least = 0.8
    of_lines = True
    about: ClassVar[Description] = Description(
        "shared lines", Unit("shared lines/packet", metric="shared_lines_per_packet", prefixed=False), "lower",
        "cache lines of a packet that another CPU touched shortly before, one of the two writing",
        rule=Rule.SURE, tolerance=Tolerance(0.1, ""),
        sentence=more_by_function("touches {} {} lines that another CPU uses"),
        slows="A line that several CPUs use moves between them, which is slow where several handle packets.",
    )  # fmt: skip


class FalselySharedLines(OfSeveralCpus):
    """Shared lines of which each CPU touches other bytes."""

    __slots__ = ()
    counted = "falsely_shared"
    least = 0.5
    about: ClassVar[Description] = Description(
        "falsely shared lines", Unit("falsely shared lines/packet", metric="falsely_shared_lines_per_packet",
        prefixed=False), "lower", "shared lines of which the CPUs touch other bytes", rule=Rule.REPORT_ONLY,
        tolerance=Tolerance(0.1, ""), sentence=more_by_function("touches {} {} lines that CPUs share falsely"),
    )  # fmt: skip

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        return None  # they are among the shared lines


class InterprocessorInterrupts(OfSeveralCpus):
    """Interrupts that one CPU has sent to another."""

    __slots__ = ()
    counted = "ipis"
    least = 0.5
    about: ClassVar[Description] = Description(
        "interprocessor interrupts", Unit("IPIs/packet", metric="ipis_per_packet", prefixed=False), "lower",
        "interrupts that one of the SUT's CPUs sends another for a packet", rule=Rule.REPORT_ONLY,
        tolerance=Tolerance(0.1, ""), sentence=more_by_function("takes {} {} interprocessor interrupts"),
        report_only=_BY_CHANCE,
    )  # fmt: skip


class Wakeups(OfSeveralCpus):
    """Tasks that are woken, on whichever CPU."""

    __slots__ = ()
    counted = "wakeups"
    least = 0.5
    about: ClassVar[Description] = Description(
        "wakeups", Unit("wakeups/packet", metric="wakeups_per_packet", prefixed=False), "lower",
        "tasks that the SUT's kernel wakes for a packet", rule=Rule.REPORT_ONLY,
        tolerance=Tolerance(0.1, ""), sentence=more_by_function("wakes {} {} tasks"), report_only=_BY_CHANCE,
    )  # fmt: skip


class LockWaits(OfSeveralCpus):
    """Instructions of a CPU that waits for a lock, which another one holds."""

    __slots__ = ()
    counted = "waited"
    least = 100.0
    about: ClassVar[Description] = Description(
        "waiting for locks", Unit("instructions of waiting/packet", metric="lock_wait_instructions_per_packet",
        prefixed=False), "lower", "instructions of the SUT's CPUs for a packet while they wait for a lock",
        rule=Rule.REPORT_ONLY, tolerance=Tolerance(0.1, ""),
        sentence=more_by_function("waits {} {} instructions for locks"), report_only=_BY_CHANCE,
    )  # fmt: skip


OF_SEVERAL_CPUS: Final[tuple[type[OfSeveralCpus], ...]] = (
    SharedLines, FalselySharedLines, InterprocessorInterrupts, Wakeups, LockWaits,
)  # fmt: skip
"""Measurands with values from trials on several CPUs."""
