"""Pictures of the platform for the documentation: `python -m fieldmark_challenge_tests.pages docs/images`.

A simulated challenge is hosted with a past, and a browser without JavaScript looks at it.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests import soundscape_runs
from fieldmark_tests.system_programs import CHROMIUM

PORT = 8765
SKILLS = {
    "Warblers": [0.5, 0.7, 0.95, 1.0],
    "Night herons": [0.3, 0.8, 0.93],
    "Ravens of Ithaca": [0.6, 0.9],
    "Dippers": [0.35, 0.55, 0.62, 0.6],
    "Lone swift": [0.15, 0.4],
    "Wrens and friends": [0.1, 0.2],
    "baseline: BirdNET": [0.55],
    "baseline: most frequent": [0.0],
}
BROKEN = "SIE000;00:00:00-00:00:05;amerob;0.9\nSIE000;00:00:00-00:00:07;blujay;0.8\nSIE001;00:00:05-00:00:10;dodo;1.7\n"
# name, who looks, path, width, height of the picture, dark
PICTURES = (
    ("challenge-board", "Warblers", "/c/dawn-chorus/board", 1100, 1180, False),
    ("challenge-board-dark", "Warblers", "/c/dawn-chorus/board", 1100, 2080, True),
    ("challenge-board-phone", "Warblers", "/c/dawn-chorus/board", 390, 1180, False),
    ("challenge-compare", "Warblers", "/c/dawn-chorus/compare?first=4&second=9", 1100, 1330, False),
    ("challenge-planner", "admin", "/c/dawn-chorus/organize/plan", 1100, 1060, False),
    ("challenge-organize", "admin", "/c/dawn-chorus/organize", 1100, 1000, False),
    ("challenge-overview-phone", "Warblers", "/c/dawn-chorus", 390, 1180, True),
)


def host(folder: Path) -> None:
    """Serves the simulated challenge from a thread of its own."""
    database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    database.migrate()
    storage = Storage(folder / "files")
    admin = accounts.register(database, "admin", "admin@example.org", soundscape_runs.PASSWORD, role="admin")
    start = dt.datetime.now(dt.UTC) - dt.timedelta(days=60)
    soundscape_runs.host(database, storage, admin, folder, SKILLS, per_site=50, start=start)
    server = uvicorn.Server(uvicorn.Config(create_app(database, storage), port=PORT, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)


def sign_in(browser: Any, name: str) -> Any:
    """The cookies of somebody who signed in."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{PORT}")
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Name or e-mail").fill(name)
    page.get_by_label("Password").fill(soundscape_runs.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    return context.storage_state()


def open_page(browser: Any, state: Any, width: int, dark: bool) -> Any:
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{PORT}",
        storage_state=state,
        java_script_enabled=False,
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
    )
    return context.new_page()


def keep(page: Any, path: Path, width: int, height: int) -> None:
    """The upper part of a page, with few colors so that it stays small."""
    page.screenshot(path=path, full_page=True)
    with Image.open(path) as picture:
        cut = picture.convert("RGB").crop((0, 0, width, min(height, picture.height)))
    cut.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


def main(out: Path) -> None:
    """Takes all pictures."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        host(Path(name))
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        states = {who: sign_in(browser, who) for who in ("Warblers", "admin")}
        for title, who, path, width, height, dark in PICTURES:
            page = open_page(browser, states[who], width, dark)
            page.goto(path)
            keep(page, out / f"{title}.png", width, height)
        page = open_page(browser, states["Warblers"], 1100, dark=False)
        page.goto("/c/dawn-chorus/submit")
        broken = Path(name) / "run.csv"
        broken.write_text(BROKEN)
        page.get_by_label("Run file").set_input_files(broken)
        page.get_by_label("Title").fill("run 5")
        page.get_by_label("None was used").check()
        page.get_by_role("button", name="Submit").click()
        keep(page, out / "challenge-refused.png", 1100, 900)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
