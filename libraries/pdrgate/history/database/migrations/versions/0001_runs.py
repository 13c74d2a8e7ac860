"""Runs, what they measured, and on what."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "environments",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("entries", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "fingerprints",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("entries", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.Column("pdrgate", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("testbed", sa.Text(), nullable=False),
        sa.Column("testbed_kind", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    op.create_index("runs_by_name", "runs", ["name", "started"], unique=False)
    op.create_index("runs_by_time", "runs", ["started"], unique=False)
    op.create_table(
        "results",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_results_run_id"), "results", ["run_id"], unique=False)
    op.create_index("results_by_scenario", "results", ["scenario", "started"], unique=False)
    op.create_index("results_by_time", "results", ["started"], unique=False)
    op.create_index("results_by_verdict", "results", ["verdict", "started"], unique=False)
    op.create_table(
        "trials",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("build", sa.Text(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("pair", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("goal", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("intended_load", sa.Double(), nullable=False),
        sa.Column("intended_duration", sa.Double(), nullable=False),
        sa.Column("offered", sa.BigInteger(), nullable=False),
        sa.Column("forwarded", sa.BigInteger(), nullable=False),
        sa.Column("drained", sa.BigInteger(), nullable=False),
        sa.Column("unsent", sa.BigInteger(), nullable=False),
        sa.Column("refused", sa.BigInteger(), nullable=False),
        sa.Column("stray", sa.BigInteger(), nullable=False),
        sa.Column("sending_time", sa.Double(), nullable=False),
        sa.Column("under_way", sa.JSON(), nullable=False),
        sa.Column("latency", sa.JSON(), nullable=True),
        sa.Column("counted", sa.Double(), nullable=False),
        sa.Column("disturbed", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("trials_by_run", "trials", ["run_id", "scenario"], unique=False)
    op.create_table(
        "changes",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("measurand", sa.Text(), nullable=False),
        sa.Column("against", sa.Text(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("change", sa.Double(), nullable=False),
        sa.Column("lower", sa.Double(), nullable=False),
        sa.Column("upper", sa.Double(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("tolerance", sa.Double(), nullable=False),
        sa.Column("pairs", sa.Integer(), nullable=False),
        sa.Column("deviation", sa.Double(), nullable=True),
        sa.Column("resolves", sa.Double(), nullable=True),
        sa.Column("slower", sa.Double(), nullable=True),
        sa.Column("faster", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result_id", "measurand"),
    )
    op.create_table(
        "sides",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("build", sa.Text(), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("environment", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["environment"],
            ["environments.digest"],
        ),
        sa.ForeignKeyConstraint(
            ["fingerprint"],
            ["fingerprints.digest"],
        ),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_sides_result_id"), "sides", ["result_id"], unique=False)
    op.create_index("sides_by_build", "sides", ["build", "series"], unique=False)
    op.create_index("sides_by_kernel", "sides", ["kernel", "started"], unique=False)
    op.create_index("sides_by_label", "sides", ["label", "started"], unique=False)
    op.create_index("sides_by_series", "sides", ["series", "started"], unique=False)
    op.create_table(
        "boots",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("side_id", sa.Integer(), nullable=False),
        sa.Column("pair", sa.Integer(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.Column("complaints", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["side_id"], ["sides.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_boots_side_id"), "boots", ["side_id"], unique=False)
    op.create_table(
        "costs",
        sa.Column("side_id", sa.Integer(), nullable=False),
        sa.Column("instructions", sa.Double(), nullable=False),
        sa.Column("batch", sa.Double(), nullable=True),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("lossless_load", sa.Double(), nullable=True),
        sa.Column("lossless_instructions", sa.Double(), nullable=True),
        sa.Column("lossless_batch", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["side_id"], ["sides.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("side_id"),
    )
    op.create_table(
        "functions",
        sa.Column("side_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("instructions", sa.Double(), nullable=False),
        sa.Column("calls", sa.Double(), nullable=False),
        sa.Column("deviation", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["side_id"], ["sides.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("side_id", "name"),
    )
    op.create_table(
        "measurands",
        sa.Column("side_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("better", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("lower", sa.Double(), nullable=True),
        sa.Column("upper", sa.Double(), nullable=True),
        sa.Column("samples", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["side_id"], ["sides.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("side_id", "name"),
    )
