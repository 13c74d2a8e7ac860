"""What boots came to, as noise.jsonl has it: a floor needs each of them. The table before was never written to."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_index("noise_by_series", table_name="noise")
    op.drop_table("noise")
    op.create_table(
        "noise",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("testbed", sa.Text(), nullable=False),
        sa.Column("measured", sa.Double(), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("boots", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    op.create_index("noise_by_testbed", "noise", ["testbed", "measured"], unique=False)
