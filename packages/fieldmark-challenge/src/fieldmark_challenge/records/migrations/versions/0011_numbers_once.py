"""Numbers of rows that are never given twice, tokens of claims that nobody guesses, and when programs saw hidden items.

SQLite gives the number of a deleted row to the next one unless a table says AUTOINCREMENT, which only a new table can.
So each is made anew from its own text, with all its constraints, and its rows are copied.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NUMBERED = "\tid INTEGER NOT NULL,"
ONCE = "\tid INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,"
CLAIMED = ("submissions", "programs", "outgoing_mails")


def upgrade() -> None:
    """Brings the tables to this version."""
    op.add_column("programs", sa.Column("ran_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("ix_submissions_user_id", "submissions", ["user_id"])
    op.execute("UPDATE programs SET ran_at = started_at WHERE submission_id IS NOT NULL")
    if op.get_bind().dialect.name == "sqlite":
        _number_once()
        return
    for table in CLAIMED:
        op.alter_column(table, "fence", type_=sa.BigInteger(), existing_nullable=False)


def downgrade() -> None:
    """Brings them back to the version before; numbers stay as they are, and wide enough."""
    op.drop_index("ix_submissions_user_id", "submissions")
    op.drop_column("programs", "ran_at")


def _number_once() -> None:
    found = op.get_bind().exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'").all()
    for name, text in found:
        own = f"CONSTRAINT pk_{name} PRIMARY KEY (id), "
        if NUMBERED not in text or own not in text:
            continue
        rest = op.get_bind().exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
            (name,),
        )
        again = [row[0] for row in rest]
        columns = text[text.index("(") :].replace(NUMBERED, ONCE, 1).replace(own, "", 1)
        columns = columns.replace("\tfence INTEGER", "\tfence BIGINT")
        op.execute(sa.text(f"CREATE TABLE {name}_once {columns}".replace(":", "\\:")))
        op.execute(f"INSERT INTO {name}_once SELECT * FROM {name}")
        op.execute(f"DROP TABLE {name}")
        op.execute(f"ALTER TABLE {name}_once RENAME TO {name}")
        for statement in again:
            op.execute(sa.text(statement.replace(":", "\\:")))
