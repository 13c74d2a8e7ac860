"""Tries of builds, as ledger.jsonl has them: where workers begin with empty folders, no retry is a fresh chance."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "tries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("compared", sa.Text(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    op.create_index("tries_by_compared", "tries", ["compared", "ended"], unique=False)
