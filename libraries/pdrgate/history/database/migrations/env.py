"""What Alembic runs to bring a history up to date: in the transaction of whoever opens it."""

from alembic import context

from pdrgate.history.database.tables import Base
from pdrgate.history.database.version import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
