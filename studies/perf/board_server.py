"""`python -m studies.perf.board_server FOLDER PORT`: the platform of a folder in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn

from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app


def main() -> None:
    """Serves until it is ended."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    app = create_app(database, Storage(folder / "files"))
    uvicorn.run(app, port=port, log_level="critical")


if __name__ == "__main__":
    main()
