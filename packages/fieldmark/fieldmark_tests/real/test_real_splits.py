"""Splits of real tables: specimens, sites, copies and places."""

from __future__ import annotations

from fieldmark.views.split_tables import Columns, split_table


def test_specimens_of_amanita_are_cut_by_site_and_a_draw_row_by_row_would_part_them(real_data):
    table = real_data / "fungi_amanita" / "images_with_metadata.csv"
    columns = Columns(unit="specimen_id", label="species", file="file", lon="long")
    for by in ("site", "unit", "block:5000"):
        result = split_table(table, by, folds=5, columns=columns)
        assert all(one.shared == 0 for one in result.shared)
        specimens = next(one for one in result.by_rows if one.what == "specimen")
        assert specimens.shared > specimens.total / 2
    assert max(result.rows.values()) - min(result.rows.values()) < 40


def test_occurrences_of_geolifeclef_are_cut_by_quadrat(real_data):
    table = real_data / "geolifeclef_2020" / "example_occurrences.csv"
    result = split_table(table, "block:5000", test=0.025, counted="groups", seed=1949)
    assert result.shared[0].shared == 0
    assert result.groups["test"] == round(0.025 * sum(result.groups.values()))
