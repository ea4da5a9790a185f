"""How Alembic reaches the database: through the connection that `Database.migrate` hands over."""

from __future__ import annotations

from alembic import context

from fieldmark_challenge.records.schema import Base

# There is a configuration only while Alembic runs this file; whoever merely imports it changes nothing.
if hasattr(context, "config"):
    context.configure(
        connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
    )
    with context.begin_transaction():
        context.run_migrations()
