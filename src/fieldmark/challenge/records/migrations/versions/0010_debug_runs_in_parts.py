"""Which debug run an upload that came in parts has become."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

REFERS = "fk_partial_uploads_program_id_programs"


def upgrade() -> None:
    """Brings the tables to this version."""
    # Both databases understand this. Alembic would copy the table on SQLite, and dropping the old one takes the parts
    # of uploads under way with it.
    column = f"program_id INTEGER CONSTRAINT {REFERS} REFERENCES programs (id) ON DELETE CASCADE"
    op.execute(f"ALTER TABLE partial_uploads ADD COLUMN {column}")


def downgrade() -> None:
    """Brings them back to the version before; uploads are forgotten, and people send them again."""
    op.execute("DELETE FROM upload_parts")
    op.execute("DELETE FROM partial_uploads")
    with op.batch_alter_table("partial_uploads") as batch_op:
        batch_op.drop_column("program_id")
