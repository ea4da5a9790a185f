"""Uploads that come in parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

REFERS = {"user_id": "users", "challenge_id": "challenges", "submission_id": "submissions"}


def upgrade() -> None:
    """Brings the tables to this version."""
    op.create_table(
        "partial_uploads",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("filename", sa.String(length=200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("received >= 0 AND received <= size", name=op.f("ck_partial_uploads_received")),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{table}.id"], name=op.f(f"fk_partial_uploads_{column}_{table}"), ondelete="CASCADE"
            )
            for column, table in REFERS.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_partial_uploads")),
    )
    for column in ("user_id", "challenge_id", "expires_at"):
        op.create_index(op.f(f"ix_partial_uploads_{column}"), "partial_uploads", [column])
    op.create_table(
        "upload_parts",
        sa.Column("upload_id", sa.String(length=32), nullable=False),
        sa.Column("start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.String(length=300), nullable=False),
        sa.ForeignKeyConstraint(
            ["upload_id"],
            ["partial_uploads.id"],
            name=op.f("fk_upload_parts_upload_id_partial_uploads"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("upload_id", "start", name=op.f("pk_upload_parts")),
    )


def downgrade() -> None:
    """Brings them back to the version before."""
    op.drop_table("upload_parts")
    op.drop_table("partial_uploads")
