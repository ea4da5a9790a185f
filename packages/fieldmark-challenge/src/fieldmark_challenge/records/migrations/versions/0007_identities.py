"""Identities at providers that open accounts, and attempts to sign in there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Brings the tables to this version."""
    op.create_table(
        "linked_identities",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("issuer", sa.String(length=200), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("shown", sa.String(length=100), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_linked_identities_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_linked_identities")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_linked_identities_issuer_subject")),
    )
    op.create_index(op.f("ix_linked_identities_user_id"), "linked_identities", ["user_id"])
    op.create_table(
        "sign_on_attempts",
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("browser_hash", sa.String(length=64), nullable=False),
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("target", sa.String(length=300), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_sign_on_attempts_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_sign_on_attempts")),
    )
    op.create_index(op.f("ix_sign_on_attempts_expires_at"), "sign_on_attempts", ["expires_at"])


def downgrade() -> None:
    """Brings them back to the version before."""
    op.drop_table("sign_on_attempts")
    op.drop_table("linked_identities")
