"""Where a run comes from."""

from __future__ import annotations

from fieldmark.reports.section import Context
from fieldmark.reports.sections import origin


def test_the_origin_tells_what_the_run_file_says(context: Context) -> None:
    facts = dict(origin.facts(context.first))
    assert facts["Options"] == "pen = blue"
    assert facts["Digest of the data"] == context.first.run.data_digest
    assert facts["Phases"] == "fit 1.50 s"
    assert facts["Data"] == "release"
