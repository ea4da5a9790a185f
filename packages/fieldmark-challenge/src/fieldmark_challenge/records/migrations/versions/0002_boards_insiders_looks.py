"""Stamps of boards, who has had access to a truth, and how names look."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from fieldmark_challenge.records.name_looks import look_of

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Brings the tables to this version."""
    op.create_table(
        "board_stamps",
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("stamp", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["challenge_id"],
            ["challenges.id"],
            name=op.f("fk_board_stamps_challenge_id_challenges"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("challenge_id", name=op.f("pk_board_stamps")),
    )
    op.create_table(
        "insiders",
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["challenge_id"], ["challenges.id"], name=op.f("fk_insiders_challenge_id_challenges"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_insiders_user_id_users"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("challenge_id", "user_id", name=op.f("pk_insiders")),
    )
    with op.batch_alter_table("insiders", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_insiders_user_id"), ["user_id"], unique=False)
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.add_column(sa.Column("name_look", sa.String(length=256), nullable=False, server_default=""))
        batch_op.create_index(batch_op.f("ix_users_name_look"), ["name_look"], unique=False)
    with op.batch_alter_table("teams", schema=None) as batch_op:
        batch_op.add_column(sa.Column("name_look", sa.String(length=256), nullable=False, server_default=""))
    fill(op.get_bind())


def fill(connection: sa.Connection) -> None:
    """Fills in what follows from what older tables know."""
    meta = sa.MetaData()
    names = ("users", "teams", "challenges", "organizers", "audit_events", "board_stamps", "insiders")
    meta.reflect(connection, only=names)
    users, teams, challenges, organizers, events, stamps, insiders = (meta.tables[name] for name in names)
    for table in (users, teams):
        for row in connection.execute(sa.select(table.c.id, table.c.name)).all():
            connection.execute(table.update().where(table.c.id == row.id).values(name_look=look_of(row.name)))
    owners = connection.execute(sa.select(challenges.c.id, challenges.c.owner_id)).all()
    for row in owners:
        connection.execute(stamps.insert().values(challenge_id=row.id, stamp=secrets.token_hex(12)))
    number_of = {row.name: row.id for row in connection.execute(sa.select(users.c.id, users.c.name))}
    had = {(row.id, row.owner_id) for row in owners}
    had |= {tuple(row) for row in connection.execute(sa.select(organizers.c.challenge_id, organizers.c.user_id))}
    told = sa.select(events.c.challenge_id, events.c.action, events.c.subject, events.c.details)
    for event in connection.execute(told.where(events.c.action.in_(("organizer.add", "account.role")))):
        user = number_of.get(event.subject)
        if user is None:
            continue
        if event.action == "organizer.add" and event.challenge_id is not None:
            had.add((event.challenge_id, user))
        elif event.action == "account.role" and (event.details or {}).get("before") == "admin":
            had |= {(row.id, user) for row in owners}
    for challenge_id, user_id in sorted(had):
        connection.execute(
            insiders.insert().values(challenge_id=challenge_id, user_id=user_id, since=datetime.now(UTC))
        )


def downgrade() -> None:
    """Brings them back to the version before."""
    # Not in a batch, which would make the tables anew and take along what belongs to them.
    op.execute("ALTER TABLE teams DROP COLUMN name_look")
    op.drop_index(op.f("ix_users_name_look"), table_name="users")
    op.execute("ALTER TABLE users DROP COLUMN name_look")
    op.drop_table("insiders")
    op.drop_table("board_stamps")
