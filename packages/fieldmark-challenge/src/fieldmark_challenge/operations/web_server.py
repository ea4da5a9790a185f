"""The server of pages and API, which ends in order: it takes no more requests, and answers those it has."""

from __future__ import annotations

from types import FrameType

import uvicorn

from fieldmark_challenge.operations.shutdown import Stopping


class WebServer(uvicorn.Server):
    """A server whose first signal begins the end and whose second one, whichever it is, ends at once."""

    def __init__(self, config: uvicorn.Config, stopping: Stopping) -> None:
        super().__init__(config)
        self.stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Notes a signal. It is not raised again at the end, so that what is open is closed."""
        self.stopping.on_signal()
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
