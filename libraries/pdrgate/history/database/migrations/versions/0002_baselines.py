"""Names for builds, and what pairs of equal builds deviate by."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "pins",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("build", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("pinned", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "build"),
    )
    op.create_table(
        "noise",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("measurand", sa.Text(), nullable=False),
        sa.Column("measured", sa.Double(), nullable=False),
        sa.Column("pairs", sa.Integer(), nullable=False),
        sa.Column("deviation", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("noise_by_series", "noise", ["series", "measurand", "measured"], unique=False)
