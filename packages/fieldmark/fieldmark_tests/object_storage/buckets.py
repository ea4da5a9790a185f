"""Where the tests put releases: the memory of this process, and a bucket of an S3-compatible server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

ACCOUNT = "123456789012"


@dataclass(frozen=True)
class Bucket:
    """A bucket of the server; it is filled without it, so that a test pays only for what it reads."""

    name: str

    def fill(self, folder: Path, prefix: str) -> str:
        """Puts the files of a folder into the bucket, and returns their address."""
        from moto.s3.models import s3_backends

        backend: Any = s3_backends[ACCOUNT]["aws"]
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                backend.put_object(self.name, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        return f"s3://{self.name}/{prefix}"

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The requests that the server answers meanwhile, as it logs them."""
        requests: list[str] = []

        class Noting(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                requests.append(record.getMessage())

        log, noting = logging.getLogger("werkzeug"), Noting()
        level = log.level
        log.addHandler(noting)
        log.setLevel(logging.INFO)
        try:
            yield requests
        finally:
            log.removeHandler(noting)
            log.setLevel(level)


def in_memory(folder: Path, name: str) -> str:
    """Puts the files of a folder into the memory of this process, and returns their address."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    fsspec.filesystem("memory").pipe(
        {f"/{name}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}
    )
    return f"memory://{name}"
