"""Challenges that ask for programs: their tasks and phases, the programs, and the machines that run them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Brings the tables to this version."""
    op.create_table(
        "code_hosts",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("runner", sa.String(length=200), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_code_hosts")),
    )
    op.create_table(
        "code_tasks",
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("inputs_path", sa.String(length=300), nullable=False),
        sa.Column("inputs_sha256", sa.String(length=64), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("sample_path", sa.String(length=300), nullable=False),
        sa.Column("sample_sha256", sa.String(length=64), nullable=False),
        sa.Column("sample_items", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("processes", sa.Integer(), nullable=False),
        sa.Column("disk_mb", sa.Integer(), nullable=False),
        sa.Column("output_mb", sa.Integer(), nullable=False),
        sa.Column("archive_mb", sa.Integer(), nullable=False),
        sa.Column("debug_seconds", sa.Integer(), nullable=False),
        sa.Column("debug_hourly", sa.Integer(), nullable=False),
        sa.Column("show_output", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["challenge_id"], ["challenges.id"], name=op.f("fk_code_tasks_challenge_id_challenges"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("challenge_id", name=op.f("pk_code_tasks")),
    )
    op.create_table(
        "code_phases",
        sa.Column("phase_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["phase_id"], ["phases.id"], name=op.f("fk_code_phases_phase_id_phases"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("phase_id", name=op.f("pk_code_phases")),
    )
    op.create_table(
        "programs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("filename", sa.String(length=200), nullable=False),
        sa.Column("path", sa.String(length=300), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("log", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=100), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'refused', 'failed')", name=op.f("ck_programs_state")
        ),
        sa.ForeignKeyConstraint(
            ["challenge_id"], ["challenges.id"], name=op.f("fk_programs_challenge_id_challenges"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name=op.f("fk_programs_submission_id_submissions"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_programs_team_id_teams"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_programs_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_programs")),
        sa.UniqueConstraint("submission_id", name=op.f("uq_programs_submission_id")),
    )
    with op.batch_alter_table("programs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_programs_challenge_id"), ["challenge_id"], unique=False)
        batch_op.create_index("ix_programs_queue", ["state", "due_at", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_programs_team_id"), ["team_id"], unique=False)


def downgrade() -> None:
    """Brings them back to the version before."""
    for name in ("programs", "code_phases", "code_tasks", "code_hosts"):
        op.drop_table(name)
