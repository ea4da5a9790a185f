"""What each worker that leaves signs of life does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Brings the tables to this version."""
    op.add_column("worker_signs", sa.Column("lane", sa.String(length=16), nullable=False, server_default="score"))


def downgrade() -> None:
    """Brings them back to the version before."""
    with op.batch_alter_table("worker_signs") as batch_op:
        batch_op.drop_column("lane")
