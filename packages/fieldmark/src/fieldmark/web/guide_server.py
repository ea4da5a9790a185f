"""A field guide handed out for a try: static files, compressed ones where the browser takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from fieldmark.errors import InputError

TYPES: Final = {
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".onnx": "application/octet-stream",
    ".bin": "application/octet-stream",
}
# Without the last three a browser gives no threads; the guide states the same policy in its pages.
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
}


class GuideFiles(StaticFiles):
    """The files of a guide."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file, from its compressed copy where there is one and the browser takes it."""
        wanted = "index.html" if path in (".", "") else path
        packed = "gzip" in Headers(scope=scope).get("accept-encoding", "") and not wanted.endswith(".gz")
        response = await self._packed(wanted, scope) if packed else None
        if response is None:
            response = await super().get_response(wanted, scope)
        kind = TYPES.get(Path(wanted).suffix)
        if kind is not None:
            response.headers["content-type"] = kind
        response.headers["vary"] = "accept-encoding"
        response.headers.update(HEADERS)
        return response

    async def _packed(self, path: str, scope: Scope) -> Response | None:
        try:
            response = await super().get_response(f"{path}.gz", scope)
        except HTTPException:
            return None
        if response.status_code == 200:
            response.headers["content-encoding"] = "gzip"
            kinds = {".html": "text/html; charset=utf-8", ".css": "text/css", ".json": "application/json"}
            response.headers["content-type"] = kinds.get(Path(path).suffix, "image/svg+xml")
        return response


def guide_app(folder: Path) -> Starlette:
    """An application that hands out a guide.

    Raises:
        InputError: When the folder holds none.
    """
    for name in ("index.html", "files.json", "network.onnx"):
        if not (folder / name).is_file():
            raise InputError(
                folder,
                found=f"no {name}",
                expected="a field guide",
                hint="Make one: fieldmark export app MODEL --out GUIDE.",
            )
    return Starlette(routes=[Mount("/", GuideFiles(directory=folder))])
