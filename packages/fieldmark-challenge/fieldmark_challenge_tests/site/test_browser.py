"""A stranger at the platform: `fieldmark serve` in a process of its own, a real browser without JavaScript in front."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from fieldmark.masks.runlengths import MaskRow
from fieldmark.runs.masks import Masks
from fieldmark_tests.parted_truths import write_run, write_truth

PASSWORD = "amanita under birches"
# Nothing waits so long by itself: what is waited for comes, however busy the machine is, or a fault keeps it away.
LONG_S = 600


@dataclass
class Served:
    url: str
    admin_link: str
    folder: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`fieldmark serve` on a fresh folder."""
    folder = tmp_path_factory.mktemp("served")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from fieldmark.cli.main import main; main()", "serve"]
    started = time.monotonic()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--folder", str(folder / "platform"), "--port", str(port)], stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        while not _answers(url):
            assert process.poll() is None and time.monotonic() < started + LONG_S, (folder / "log").read_text()
            time.sleep(0.1)
        link = re.search(r"/reset/\S+", (folder / "log").read_text())
        assert link is not None
        yield Served(url, link.group(), folder / "platform")
    finally:
        process.terminate()
        process.wait(timeout=LONG_S)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    """A page without JavaScript; what the content-security policy blocks would show as an error."""
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    context.set_default_timeout(1000 * LONG_S)
    page = context.new_page()
    page.blocked = []
    page.on("console", lambda message: page.blocked.append(message.text) if "Policy" in message.text else None)
    yield page
    assert page.blocked == []
    context.close()


def until(is_there: Callable[[], object], look_again: Callable[[], object]) -> None:
    """Looks again until something is there."""
    deadline = time.monotonic() + LONG_S
    while not is_there():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.2)
        look_again()


def shoot(page: Any, name: str) -> None:
    """A picture of the page, where somebody asked for pictures."""
    if folder := os.environ.get("FIELDMARK_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_a_participant_registers_joins_stumbles_and_stands_on_the_board(page: Any, tmp_path: Path) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to content"
    page.get_by_role("link", name="Register").first.click()
    page.get_by_label("Name").fill("Mira Lund")
    page.get_by_label("E-mail").fill("mira@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Register").click()
    page.goto("/")
    page.get_by_role("link", name="Invented mushrooms").click()
    page.get_by_label("I have read the rules and accept them").check()
    page.get_by_role("button", name="Accept the rules").click()
    page.get_by_role("link", name="Form or join a team").click()
    page.get_by_label("Name of the team").fill("Spore print")
    page.get_by_role("button", name="Form the team").click()

    page.get_by_role("link", name="Data").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="sample_run.csv").click()
    good = tmp_path / "run.csv"
    download.value.save_as(good)
    lines = good.read_text().splitlines()
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join([*lines[:2], lines[2].split(",")[0] + ",Boletus nowhere", *lines[3:-1]]) + "\n")

    def hand_in(path: Path, title: str) -> None:
        page.get_by_role("link", name="Submit").click()
        page.get_by_label("Run file").set_input_files(path)
        page.get_by_label("Title").fill(title)
        page.get_by_label("Method").fill("The most frequent species, for every specimen.")
        page.get_by_label("None was used").check()
        page.get_by_role("button", name="Submit").click()

    hand_in(bad, "first try")
    alert = page.get_by_role("alert")
    assert "nothing was spent" in alert.inner_text()
    assert "line 3" in alert.inner_text() and "Boletus nowhere" in alert.inner_text()
    assert "20 of 20 today" in page.get_by_role("complementary").inner_text()
    shoot(page, "submit-refused")
    hand_in(good, "second try")
    # The page looks again by itself until the run is scored.
    page.get_by_role("heading", name="Public scores").wait_for()
    assert page.get_by_role("heading", name="Private scores").count() == 0
    shoot(page, "submission")

    page.get_by_role("link", name="Leaderboard", exact=True).click()
    # The simulated teams are scored after people.
    until(lambda: page.get_by_role("row").filter(has_text="Careful calipers").count(), page.reload)
    row = page.get_by_role("row").filter(has_text="Spore print")
    assert "your team" in row.inner_text()
    shoot(page, "board")
    page.get_by_role("link", name="Compare any two entries").click()

    def compare() -> None:
        rival = page.get_by_label("First").locator("option", has_text="Careful calipers").first
        page.get_by_label("First").select_option(value=rival.get_attribute("value"))
        page.get_by_label("Second").select_option(label="Spore print: second try")
        page.get_by_role("button", name="Compare").click()

    compare()
    # The rival's second run may be scored in between and take the place of the first.
    until(lambda: page.get_by_role("heading", level=2).count(), compare)
    assert "is better" in page.get_by_role("heading", level=2).first.inner_text()
    shoot(page, "compare")
    page.get_by_role("button", name="Sign out").click()
    assert page.get_by_role("link", name="Sign in").count()


def write_mask_truth(folder: Path, photos: int = 8) -> Masks:
    """Disks as wholes, their upper halves as caps; two photos of each observation."""
    lines, columns = np.indices((40, 60))
    rows = []
    for number in range(photos):
        body = np.hypot(lines - 18, columns - 20 - 2 * number) < 12
        rows.append((MaskRow.of("cap", body & (lines < 18)), MaskRow.of("fruiting_body", body)))
    masks = Masks(tuple(f"{number % 2}-{100 + number // 2}" for number in range(photos)), tuple(rows))
    folder.mkdir()
    masks.write(folder / "truth.parquet")
    return masks


def test_masks_are_uploaded_scored_and_shown(page: Any, served: Served, tmp_path: Path, run_main: Any) -> None:
    true = write_mask_truth(tmp_path / "truth")
    name = "fungitastic-mini/segmentation"
    given = (
        "--truth",
        tmp_path / "truth/truth.parquet",
        "--public",
        0.5,
        "--seed",
        1,
        "--title",
        "Caps and bodies",
        "--publish",
        "--without-data",
    )
    code, _, said = run_main("challenge", "create", "caps", "--benchmark", name, *given, "--folder", served.folder)
    assert code == 0, said
    half = tuple((MaskRow.of("fruiting_body", rows[0].mask()),) for rows in true.rows)  # caps, taken for the whole
    Masks(true.items, half).write(tmp_path / "run.parquet")
    Masks(true.items[1:], half[1:]).write(tmp_path / "short.parquet")

    page.goto("/register")
    page.get_by_label("Name").fill("Asta Birk")
    page.get_by_label("E-mail").fill("asta@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Register").click()
    page.goto("/")
    page.get_by_role("link", name="Caps and bodies").click()
    page.get_by_label("I have read the rules and accept them").check()
    page.get_by_role("button", name="Accept the rules").click()
    page.get_by_role("link", name="Form or join a team").click()
    page.get_by_label("Name of the team").fill("Hats off")
    page.get_by_role("button", name="Form the team").click()
    page.get_by_role("link", name="Data").click()
    assert page.get_by_role("link", name="sample_run.parquet").count() == 1

    def hand_in(path: Path) -> None:
        page.get_by_role("link", name="Submit").click()
        assert "file_name, label, width, height, rle" in page.locator("main").inner_text()
        page.get_by_label("Run file").set_input_files(path)
        page.get_by_label("Title").fill(path.stem)
        page.get_by_label("Method").fill("Caps only.")
        page.get_by_label("None was used").check()
        page.get_by_role("button", name="Submit").click()

    hand_in(tmp_path / "short.parquet")
    assert "no mask for 1 of 8 photos" in page.get_by_role("alert").inner_text()
    hand_in(tmp_path / "run.parquet")
    page.get_by_role("heading", name="Public scores").wait_for()
    (share,) = {rows[0].area / rows[1].area for rows in true.rows}
    assert f"IoU primary metric\t{100 * share:.1f}" in page.locator("main").inner_text()
    shoot(page, "masks-submission")
    page.get_by_role("link", name="Leaderboard", exact=True).click()
    assert f"{100 * share:.1f}" in page.get_by_role("row").filter(has_text="Hats off").inner_text()
    shoot(page, "masks-board")


def test_an_organizer_creates_freezes_and_reveals(page: Any, served: Served, tmp_path: Path) -> None:
    truth = write_truth(tmp_path / "truth", public=None)
    run = write_run(tmp_path / "baseline.csv", truth, skill=0.6)
    page.goto(served.admin_link)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Set it").click()
    page.goto("/login")
    page.get_by_label("Name or e-mail").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Host one").click()
    page.get_by_label("Title").fill("Amanitas of the north")
    page.get_by_label("Short name", exact=True).fill("amanitas")
    page.get_by_label("Benchmark").select_option("folder")
    page.get_by_label("truth.csv").set_input_files(truth / "truth.csv")
    page.get_by_label("classes.csv").set_input_files(truth / "classes.csv")
    page.get_by_label("Public share of the units").fill("0.4")
    page.get_by_label("Opens (UTC)").fill("2026-01-01T00:00")
    page.get_by_label("Closes (UTC)").fill("2026-02-01T00:00")
    page.get_by_role("button", name="Create the challenge").click()
    assert "not published" in page.locator(".masthead").inner_text()
    if not page.url.endswith("/organize"):
        page.get_by_role("link", name="Organize").click()
    page.get_by_label("Title").last.fill("Sixty percent")
    page.get_by_label("Run file", exact=True).set_input_files(run)
    page.get_by_role("button", name="Add the baseline").click()
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("button", name="Freeze", exact=True).click()
    assert "board frozen" in page.locator(".masthead").inner_text()
    page.get_by_role("link", name="Planner").click()
    assert "Which differences can this test set separate?" in page.get_by_role("heading", level=1).inner_text()

    def reveal() -> None:  # it waits for the score of the baseline, and says so
        page.goto("/c/amanitas/organize")
        if page.get_by_role("button", name="Reveal").count():
            page.get_by_label("I am sure").check()
            page.get_by_role("button", name="Reveal").click()

    until(lambda: "results are out" in page.locator(".masthead").inner_text(), reveal)
    page.get_by_role("link", name="Leaderboard", exact=True).click()
    assert page.get_by_role("heading", level=1).inner_text() == "Private leaderboard"
    assert "Sixty percent" in page.get_by_role("table").inner_text()
    page.goto("/c/amanitas/organize/audit")
    assert "challenge.reveal" in page.get_by_role("table").inner_text()
