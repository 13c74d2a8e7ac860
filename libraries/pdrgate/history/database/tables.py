"""The tables of the history, as this version of pdrgate makes them.

Loads and rates are packets/s, ratios and changes are fractions, times are seconds, moments seconds of the epoch. NULL
is what is not known.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, Double, ForeignKey, Index, Integer, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Words(TypeDecorator[str]):
    """Text as a kernel's console or a person's file name may have it; what no database takes is replaced by U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """NUL and halves of surrogate pairs are no text to PostgreSQL, the latter none to SQLite either."""
        if value is None:
            return None
        return value.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class Base(DeclarativeBase):
    """The base of all tables."""

    type_annotation_map = {  # noqa: RUF012  # SQLAlchemy reads it once
        str: Words(),
        float: Double(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(none_as_null=True),
    }


_Number = BigInteger().with_variant(Integer, "sqlite")
"""A key that counts; SQLite counts by itself in an INTEGER only."""


class RunRow(Base):
    """A run of the gate, or a file of trials that is no run's."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    """Stable key of the run, unique in the history. It stays when the run is resumed or its folder is moved."""
    content: Mapped[str]
    """Digest of the files that it was imported from."""
    name: Mapped[str]
    source: Mapped[str]
    """The folder or file that it was imported from."""
    started: Mapped[float]
    finished: Mapped[float | None]
    pdrgate: Mapped[str]
    profile: Mapped[str]
    testbed: Mapped[str]
    testbed_kind: Mapped[str]
    verdict: Mapped[str | None]
    """The verdict; None for a file of trials."""
    reason: Mapped[str]
    command: Mapped[str]

    __table_args__ = (Index("runs_by_name", "name", "started"), Index("runs_by_time", "started"))


class FingerprintRow(Base):
    """A fingerprint; the digests are those of `pdrgate.results.fingerprint`."""

    __tablename__ = "fingerprints"

    digest: Mapped[str] = mapped_column(primary_key=True)
    entries: Mapped[dict[str, Any]]


class EnvironmentRow(Base):
    """Description of a SUT, without the entries that vary from boot to boot."""

    __tablename__ = "environments"

    digest: Mapped[str] = mapped_column(primary_key=True)
    entries: Mapped[dict[str, Any]]


class ResultRow(Base):
    """A scenario of a run."""

    __tablename__ = "results"

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    scenario: Mapped[str]
    title: Mapped[str]
    verdict: Mapped[str | None]
    """The verdict; None where trials were imported that nobody judged."""
    reason: Mapped[str]
    started: Mapped[float]
    """The time when the result's run began."""
    trials: Mapped[int]

    __table_args__ = (
        Index("results_by_time", "started"),
        Index("results_by_scenario", "scenario", "started"),
        Index("results_by_verdict", "verdict", "started"),
    )


class SideRow(Base):
    """A build that was measured in a scenario: the only one, or one of the two of a comparison."""

    __tablename__ = "sides"

    id: Mapped[int] = mapped_column(primary_key=True)
    result_id: Mapped[int] = mapped_column(ForeignKey("results.id", ondelete="CASCADE"), index=True)
    side: Mapped[str]
    """``baseline``, ``candidate``, or empty for the only one."""
    label: Mapped[str]
    """What a person called the build; empty where nobody did."""
    kernel: Mapped[str]
    """Release of the kernel."""
    build: Mapped[str]
    """The build's digest; empty where there is no fingerprint."""
    series: Mapped[str]
    """The digest of what builds are compared on; empty where there is no fingerprint."""
    started: Mapped[float]
    """The time when the side's run began."""
    fingerprint: Mapped[str | None] = mapped_column(ForeignKey("fingerprints.digest"))
    environment: Mapped[str | None] = mapped_column(ForeignKey("environments.digest"))
    cost: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """What a packet cost under the build, in instructions, with each function's part; see `CostResult`."""

    __table_args__ = (
        Index("sides_by_series", "series", "started"),
        Index("sides_by_build", "build", "series"),
        Index("sides_by_kernel", "kernel", "started"),
        Index("sides_by_label", "label", "started"),
    )


class MeasurandRow(Base):
    """A measurand of one build in a scenario, with its 95 % interval."""

    __tablename__ = "measurands"

    side_id: Mapped[int] = mapped_column(ForeignKey("sides.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    unit: Mapped[str]
    better: Mapped[str]
    value: Mapped[float]
    lower: Mapped[float | None]
    upper: Mapped[float | None]
    samples: Mapped[list[Any]]
    """The samples: one for each repeat, or for each boot where builds were compared."""


class BootRow(Base):
    """A boot of a build. The two boots of a pair have its number."""

    __tablename__ = "boots"

    id: Mapped[int] = mapped_column(primary_key=True)
    side_id: Mapped[int] = mapped_column(ForeignKey("sides.id", ondelete="CASCADE"), index=True)
    pair: Mapped[int]
    """0 where there are no pairs."""
    boot: Mapped[str]
    kernel: Mapped[str]
    values: Mapped[dict[str, Any]]
    """The boot's values, by measurand."""
    failure: Mapped[str]
    complaints: Mapped[list[Any]]


class ChangeRow(Base):
    """How a measurand of a scenario changed against its baseline."""

    __tablename__ = "changes"

    result_id: Mapped[int] = mapped_column(ForeignKey("results.id", ondelete="CASCADE"), primary_key=True)
    measurand: Mapped[str] = mapped_column(primary_key=True)
    against: Mapped[str]
    """The file, the build or the baseline that was compared with."""
    accepted: Mapped[bool]
    """Whether the verdict rests on it."""
    verdict: Mapped[str]
    change: Mapped[float]
    lower: Mapped[float]
    upper: Mapped[float]
    confidence: Mapped[float]
    tolerance: Mapped[float]
    pairs: Mapped[int]
    """0 where no pairs were measured; then the rest is not known."""
    deviation: Mapped[float | None]
    """The standard deviation of the logs of the pairs' ratios."""
    resolves: Mapped[float | None]
    slower: Mapped[float | None]
    """The evidence, as logs of odds."""
    faster: Mapped[float | None]


class TrialRow(Base):
    """A trial, with the names of `pdrgate.record.trial.Trial`. Counters, functions and test stay in trials.jsonl."""

    __tablename__ = "trials"

    id: Mapped[int] = mapped_column(_Number, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    scenario: Mapped[str]
    fingerprint: Mapped[str]
    side: Mapped[str]
    build: Mapped[str]
    boot: Mapped[str]
    pair: Mapped[int]
    repeat: Mapped[int]
    goal: Mapped[str]
    phase: Mapped[str]
    started: Mapped[float]
    intended_load: Mapped[float]
    intended_duration: Mapped[float]
    offered: Mapped[int] = mapped_column(BigInteger)
    forwarded: Mapped[int] = mapped_column(BigInteger)
    drained: Mapped[int] = mapped_column(BigInteger)
    unsent: Mapped[int] = mapped_column(BigInteger)
    refused: Mapped[int] = mapped_column(BigInteger)
    stray: Mapped[int] = mapped_column(BigInteger)
    sending_time: Mapped[float]
    under_way: Mapped[list[Any]]
    latency: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    counted: Mapped[float]
    disturbed: Mapped[str]

    __table_args__ = (Index("trials_by_run", "run_id", "scenario"),)


class PinRow(Base):
    """A build that a name stands for. Several, where a run measured several, one a testbed for instance."""

    __tablename__ = "pins"

    name: Mapped[str] = mapped_column(primary_key=True)
    build: Mapped[str] = mapped_column(primary_key=True)
    """The digest of the build."""
    label: Mapped[str]
    """The build's name, as a person knows it."""
    run: Mapped[str]
    """The run that was named."""
    pinned: Mapped[float]


class ExperienceRow(Base):
    """What a run leaves for the next ones: see `pdrgate.history.database.experience`."""

    __tablename__ = "experience"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    """The digest of kind, subject and content: what is put in twice is there once."""
    kind: Mapped[str]
    """``noise``, ``try`` or ``code``."""
    subject: Mapped[str]
    """The digest of what it is of: a testbed with its conditions, two builds that were compared, or a kernel."""
    moment: Mapped[float]
    """The time when it was measured, or ended."""
    content: Mapped[str]
    """What is kept, as one text of JSON: hundreds of observations are read at once."""

    __table_args__ = (Index("experience_by_subject", "kind", "subject", "moment"),)


class ReportedRow(Base):
    """A change that was reported by one channel, and that stands: see `pdrgate.news.standing.StandingChange`."""

    __tablename__ = "reported"

    channel: Mapped[str] = mapped_column(primary_key=True)
    series: Mapped[str] = mapped_column(primary_key=True)
    """What the runs are of, such as ``nightly``."""
    scenario: Mapped[str] = mapped_column(primary_key=True)
    change: Mapped[str]
    """The change, as JSON."""
