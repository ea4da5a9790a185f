"""What organizers take home: every submission with all its scores."""

from __future__ import annotations

import csv
import io

from fieldmark_challenge.challenges import exports
from fieldmark_challenge.records.schema import Challenge
from fieldmark_challenge.scoring import queue
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform


def test_exports_are_safe_in_a_spreadsheet_and_complete(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    texts = {"title": '=HYPERLINK("http://evil")', "method": "+1 line\nanother", "external_note": "@SUM(A1)"}
    platform.hand_in(ada, external_data=True, **texts)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    with platform.database.read() as session:
        rows = exports.export_rows(session, session.get_one(Challenge, platform.challenge.id))
    assert rows[0]["scores"]["private"]["macro_f1_all"]["value"] == 0.25 and rows[0]["final"]
    table = list(csv.DictReader(io.StringIO(exports.to_csv(rows))))
    assert table[0]["title"] == "'" + texts["title"] and table[0]["external_note"] == "'@SUM(A1)"
    assert float(table[0]["public_macro_f1_all_low"]) == 0.15
    for cell in table[0].values():
        assert not cell.startswith(("=", "+", "@", "\t", "-"))
