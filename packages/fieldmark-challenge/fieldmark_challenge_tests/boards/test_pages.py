"""The pages of a board."""

from __future__ import annotations

from starlette.testclient import TestClient

from fieldmark.scoring.measurement import FEW_UNITS_CAUTION
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import Platform, run_text


def test_the_caution_about_few_units_stands_on_the_board(small_platform: Platform):
    platform = small_platform
    platform.hand_in(platform.captain("ada"), run_text(right=40))
    truth = platform.storage.fetch_folder(platform.challenge.truth_path, platform.folder / "truth")
    (platform.folder / "run.csv").write_text(run_text(right=40))
    cards = score_parts("folder", platform.folder / "run.csv", truth_files(truth))
    assert cards["public"].units < 20
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards)
    client = TestClient(create_app(platform.database, platform.storage))
    assert FEW_UNITS_CAUTION.split("{}")[1] in client.get(f"/c/{platform.challenge.slug}/board").text
