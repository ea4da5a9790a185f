"""An application that listens, in a thread of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI


@contextmanager
def listening(app: FastAPI, *, port: int = 0, patient: bool = True, **settings: Any) -> Iterator[int]:
    """Serves an application on a port, one of its own if none is given; yields the port.

    At the end a patient one answers what it was asked, any other one hangs up.
    """
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", **settings))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit, server.force_exit = True, not patient
        thread.join(30)
