from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import text

from fieldmark_challenge.records.database import MIGRATIONS
from fieldmark_challenge_tests.platform import Platform

UPLOAD = """
INSERT INTO partial_uploads (id, user_id, challenge_id, filename, size, sha256, received, created_at, expires_at)
VALUES ('u', :user, :challenge, 'run.csv', 10, 'x', 4, '2026-01-01 00:00:00', '2026-01-02 00:00:00')
"""


def test_uploads_under_way_survive_the_migration_that_lets_them_be_debug_runs(platform: Platform):
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with platform.database.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0009")
        connection.commit()
    with platform.database.engine.begin() as connection:
        connection.execute(text(UPLOAD), {"user": platform.admin.id, "challenge": platform.challenge.id})
        connection.execute(text("INSERT INTO upload_parts (upload_id, start, size, path) VALUES ('u', 0, 4, 'p')"))
    platform.database.migrate()
    with platform.database.engine.connect() as connection:
        assert connection.execute(text("SELECT received, program_id FROM partial_uploads")).all() == [(4, None)]
        assert connection.execute(text("SELECT upload_id, path FROM upload_parts")).all() == [("u", "p")]
