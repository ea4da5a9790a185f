"""Which debug run an upload that came in parts has become."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

REFERS = "fk_partial_uploads_program_id_programs"


def upgrade() -> None:
    """Brings the tables to this version."""
    # SQLite makes the table anew, and dropping the old one takes the parts of uploads under way with it.
    copied = op.get_bind().dialect.name == "sqlite"
    if copied:
        op.execute("CREATE TEMPORARY TABLE kept_parts AS SELECT * FROM upload_parts")
    with op.batch_alter_table("partial_uploads") as batch_op:
        batch_op.add_column(sa.Column("program_id", sa.Integer(), nullable=True))
        batch_op.create_foreign_key(REFERS, "programs", ["program_id"], ["id"], ondelete="CASCADE")
    if copied:
        op.execute("INSERT OR IGNORE INTO upload_parts SELECT * FROM kept_parts")
        op.execute("DROP TABLE kept_parts")


def downgrade() -> None:
    """Brings them back to the version before; uploads are forgotten, and people send them again."""
    op.execute("DELETE FROM upload_parts")
    op.execute("DELETE FROM partial_uploads")
    with op.batch_alter_table("partial_uploads") as batch_op:
        batch_op.drop_column("program_id")
