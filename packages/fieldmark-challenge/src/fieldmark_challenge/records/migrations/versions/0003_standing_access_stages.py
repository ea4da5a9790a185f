"""Standing of teams and runs, who may take part, stages, announcements, and the metric that decides."""

from __future__ import annotations

import json
import math
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NEW_TABLES = ("classrooms", "announcements", "stage_teams", "stages", "merge_offers", "entry_codes", "admissions")
STANDING = ("standing", "standing_reason", "standing_at")


def upgrade() -> None:
    """Brings the tables to this version."""
    # Not in a batch, which may make a table anew and take along what belongs to its rows.
    op.add_column("users", _moment("deleted_at", nullable=True))
    op.add_column("users", sa.Column("past_mark", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_users_past_mark"), "users", ["past_mark"], unique=False)
    op.add_column("challenges", sa.Column("metric", sa.String(length=64), nullable=False, server_default=""))
    op.add_column("challenges", sa.Column("access", sa.String(length=16), nullable=False, server_default="open"))
    op.add_column("challenges", sa.Column("merging", sa.Boolean(), nullable=False, server_default=sa.false()))
    for name in ("teams", "submissions"):
        op.add_column(name, sa.Column("standing", sa.String(length=16), nullable=False, server_default=""))
        op.add_column(name, sa.Column("standing_reason", sa.String(length=500), nullable=False, server_default=""))
        op.add_column(name, _moment("standing_at", nullable=True))
    op.add_column("memberships", _moment("left_at", nullable=True))
    _make_entrances()
    _make_stages()
    _make_news()
    fill(op.get_bind())


def _make_entrances() -> None:
    op.create_table(
        "admissions",
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        _moment("changed_at"),
        sa.CheckConstraint("state IN ('asked', 'admitted', 'refused')", name=op.f("ck_admissions_state")),
        _refers("admissions", "challenge_id", "challenges", ondelete="CASCADE"),
        _refers("admissions", "user_id", "users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("challenge_id", "user_id", name=op.f("pk_admissions")),
    )
    _indexed("admissions", "user_id")
    op.create_table(
        "entry_codes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("shown", sa.String(length=16), nullable=False),
        sa.Column("note", sa.String(length=200), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.Integer(), nullable=False),
        _moment("created_at"),
        _moment("expires_at"),
        _moment("revoked_at", nullable=True),
        _refers("entry_codes", "challenge_id", "challenges", ondelete="CASCADE"),
        _refers("entry_codes", "created_by", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entry_codes")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_entry_codes_code_hash")),
    )
    _indexed("entry_codes", "challenge_id")


def _make_stages() -> None:
    op.create_table(
        "merge_offers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("into_id", sa.Integer(), nullable=False),
        sa.Column("made_by", sa.Integer(), nullable=False),
        _moment("made_at"),
        _moment("settled_at", nullable=True),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        _refers("merge_offers", "team_id", "teams", ondelete="CASCADE"),
        _refers("merge_offers", "into_id", "teams", ondelete="CASCADE"),
        _refers("merge_offers", "made_by", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merge_offers")),
    )
    _indexed("merge_offers", "team_id", "into_id")
    op.create_table(
        "stages",
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("first_id", sa.Integer(), nullable=False),
        sa.Column("entry", sa.String(length=16), nullable=False),
        sa.Column("top", sa.Integer(), nullable=True),
        sa.CheckConstraint("entry IN ('all', 'final', 'top')", name=op.f("ck_stages_entry")),
        _refers("stages", "challenge_id", "challenges", ondelete="CASCADE"),
        _refers("stages", "first_id", "challenges", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("challenge_id", name=op.f("pk_stages")),
    )
    _indexed("stages", "first_id")
    op.create_table(
        "stage_teams",
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("first_team_id", sa.Integer(), nullable=False),
        _refers("stage_teams", "team_id", "teams", ondelete="CASCADE"),
        _refers("stage_teams", "first_team_id", "teams", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("team_id", name=op.f("pk_stage_teams")),
    )
    _indexed("stage_teams", "first_team_id")


def _make_news() -> None:
    op.create_table(
        "announcements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        _moment("created_at"),
        _refers("announcements", "challenge_id", "challenges", ondelete="CASCADE"),
        _refers("announcements", "author_id", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcements")),
    )
    _indexed("announcements", "challenge_id")
    op.create_table(
        "classrooms",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("network", sa.String(length=64), nullable=False),
        sa.Column("note", sa.String(length=200), nullable=False),
        sa.Column("created_by", sa.Integer(), nullable=False),
        _moment("created_at"),
        _moment("ends_at"),
        _refers("classrooms", "created_by", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_classrooms")),
    )


def fill(connection: sa.Connection) -> None:
    """Notes the metric that each challenge was decided by so far.

    Its stored scores tell it: the metric whose value stands as the score. Only where there are none is it the one that
    the benchmark names now.
    """
    from fieldmark.benchmarks import BENCHMARKS

    meta = sa.MetaData()
    meta.reflect(connection, only=("challenges", "submissions", "scores"))
    challenges, runs, scores = (meta.tables[name] for name in ("challenges", "submissions", "scores"))
    for row in connection.execute(sa.select(challenges.c.id, challenges.c.benchmark)).all():
        scored = sa.select(scores.c.value, scores.c.card).join(runs, runs.c.id == scores.c.submission_id)
        found = connection.execute(scored.where(runs.c.challenge_id == row.id).limit(20)).all()
        now = BENCHMARKS[row.benchmark].task.deciding.name if row.benchmark in BENCHMARKS else ""
        metric = deciding_of([(one.value, one.card) for one in found], now)
        connection.execute(challenges.update().where(challenges.c.id == row.id).values(metric=metric))


def deciding_of(scored: list[tuple[float, Any]], now: str) -> str:
    """The metric that all stored scores are of; of several, the one that the benchmark names now if it is among them.

    >>> deciding_of([(0.5, {"metrics": {"a": {"value": 0.5}, "b": {"value": 0.7}}})], "b")
    'a'
    """
    fitting: list[str] | None = None
    for value, card in scored:
        metrics = (json.loads(card) if isinstance(card, str) else card)["metrics"]
        equal = [name for name, score in metrics.items() if _same(score["value"], value)]
        fitting = equal if fitting is None else [name for name in fitting if name in equal]
    if not fitting or now in fitting:
        return now
    return fitting[0]


def _same(first: float | None, second: float) -> bool:
    return first is not None and math.isclose(first, second, rel_tol=1e-12, abs_tol=0)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _refers(table: str, column: str, to: str, *, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{to}")
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=name, ondelete=ondelete)


def _indexed(table: str, *columns: str) -> None:
    for column in columns:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column], unique=False)


def downgrade() -> None:
    """Brings them back to the version before."""
    for name in NEW_TABLES:
        op.drop_table(name)
    op.drop_index(op.f("ix_users_past_mark"), table_name="users")
    dropped = {"users": ("past_mark", "deleted_at"), "challenges": ("metric", "access", "merging")}
    dropped |= {"memberships": ("left_at",), "teams": STANDING, "submissions": STANDING}
    for table, columns in dropped.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
