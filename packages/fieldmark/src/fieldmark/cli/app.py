"""`fieldmark app`: try a field guide on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("app", epilog="Example: `fieldmark app guide/ --port 8002`")(guide)


def guide(
    folder: Annotated[Path, typer.Argument(help="The folder that `fieldmark export app` wrote.")],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8002,
) -> None:
    """Serve a phone guide locally to try it out; any https server can host it for others."""
    from fieldmark.registry import require

    for module in ("starlette", "uvicorn"):
        require(module, "Serving a guide")
    from fieldmark.web.guide_server import guide_app
    from fieldmark.web.local_app import run_local_app

    made = guide_app(folder)
    here = "127.0.0.1" if host == "0.0.0.0" else host
    print(f"Guide: http://{here}:{port}/ (stop with Ctrl-C)", flush=True)
    if host not in ("127.0.0.1", "localhost", "::1"):
        print("note: other devices can use it offline only from an https address", flush=True)
    run_local_app(made, host=host, port=port)
