"""Real rows and tables of FungiTastic, and real records drawn by its rules."""

from __future__ import annotations

import csv
import datetime
import gzip

from fieldmark.exporting.fungitastic import draw_fungitastic
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.fungitastic import RENAMED, read_part
from fieldmark.splits.by_date import DateCut
from fieldmark.storage.release import Release


def test_real_rows_parse_without_loss(real_data):
    name = "FungiTastic-Mini-Train.sample10.csv"
    rows = read_part(Release(real_data / "fungitastic"), name).to_dicts()
    with (real_data / "fungitastic" / name).open(encoding="utf-8", newline="") as file:
        real = list(csv.DictReader(file))
    assert len(rows) == len(real) == 10
    for ours, theirs in zip(rows, real, strict=True):
        for column, text in theirs.items():
            value = ours[RENAMED.get(column, column)]
            if column == "metaSubstrate" and text == "jord":
                assert value == "soil"
            elif text == "":
                assert value is None
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                assert float(text) == value
            else:
                assert str(value) == text


def test_the_real_few_shot_tables_follow_the_rules_of_the_paper(real_data, tmp_path):
    folder = tmp_path / "metadata/FungiTastic-FewShot"
    folder.mkdir(parents=True)
    for path in (real_data / "fungitastic_fewshot").glob("*.csv.gz"):
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    report = CHECKS["fungitastic"](Release(tmp_path))
    assert report.sound, report.problems
    assert [part.found.observations for part in report.counts] == [4_293, 1_099, 999]
    train = folder / "FungiTastic-FewShot-Train.csv"
    train.write_text(train.read_text().replace("2021-01-24,", "2023-01-24,", 1))
    assert not CHECKS["fungitastic"](Release(tmp_path)).sound


def test_a_benchmark_is_drawn_from_the_real_records_of_amanita(real_data, tmp_path):
    cut = DateCut(datetime.date(2025, 7, 26), datetime.date(2025, 8, 17), None, few=3)
    table = real_data / "fungi_amanita" / "images_with_metadata.csv"
    drawn = draw_fungitastic(table, tmp_path / "amanita", cut)
    assert drawn.species == {"few-shot": 13, "known": 10, "unknown": 9}
    assert drawn.counts["FungiTastic-Train"] == {"observations": 39, "photos": 202, "species": 10}
    assert CHECKS["fungitastic"](Release(tmp_path / "amanita")).sound
