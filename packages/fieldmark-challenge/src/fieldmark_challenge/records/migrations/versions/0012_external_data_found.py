"""Which external data were found behind a run, beside those that its team declared."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Brings the tables to this version."""
    op.add_column("submissions", sa.Column("external_found", sa.String(1000), nullable=False, server_default=""))


def downgrade() -> None:
    """Brings them back to the version before."""
    op.drop_column("submissions", "external_found")
