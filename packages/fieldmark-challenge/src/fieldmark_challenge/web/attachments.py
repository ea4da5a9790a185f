"""Stored files as answers: a browser keeps them and never shows them."""

from __future__ import annotations

import logging

from starlette.responses import Response, StreamingResponse

from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.records.storage import Storage

log = logging.getLogger(__name__)


def sent(storage: Storage, path: str, name: str, size: int) -> Response:
    """A stored file on its way to a browser, which keeps it and never shows it."""
    if not storage.exists(path):  # said before the answer has begun
        log.error("the file %s is missing from the store", path)
        raise NotThereError
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(size)}
    return StreamingResponse(storage.chunks(path), media_type="application/octet-stream", headers=headers)
