"""Semi-iNat and Semi-Aves: the real taxonomy, annotations and solution."""

from __future__ import annotations

import polars as pl
import pytest

import fieldmark
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release

TABLE_1 = {
    "Mollusca": (11, 24), "Chordata": (113, 228), "Arthropoda": (301, 605), "Echinodermata": (4, 8),
    "Tracheophyta": (336, 674), "Bryophyta": (6, 12), "Basidiomycota": (29, 58), "Ascomycota": (10, 20),
}  # fmt: skip


def test_the_real_taxonomy_has_the_phyla_of_table_1(real_data):
    report = CHECKS["semi-inat-2021"](Release(real_data / "semi_inat_2021"))
    found = {one.part.removeprefix("species of "): one.found for one in report.counts if "species of" in one.part}
    assert {phylum: (one.classes, one.unknown_classes) for phylum, one in found.items()} == TABLE_1
    animals = [one.places for one in report.problems if "2439 animal species" in one.what]
    assert animals == [("here: 2,439 species, 1,294 of them animals",)]


def test_the_real_annotations_of_birds_are_what_table_2_says(real_data):
    report = CHECKS["semi-aves-2020"](Release(real_data / "semi_aves_2020"))
    counts = {one.part: (one.found.photos, one.found.classes) for one in report.counts}
    assert (counts["l_train"], counts["val"], counts["test"]) == ((3959, 200), (2000, 200), (8000, 200))
    assert [one for one in report.problems if one.severity != "note"] == []


@pytest.mark.parametrize("wrong", [1, 37])
def test_a_perturbed_solution_scores_exactly_what_was_perturbed(real_data, tmp_path, wrong):
    """Some rows name another class first; half of them name the true one second."""
    root = real_data / "semi_aves_2020"
    rows = pl.read_csv(root / "solution.csv", infer_schema=False).rows()
    lines = ["Id,Category"]
    for number, (one, label) in enumerate(rows):
        other = str((int(label) + 1) % 200)
        answer = label if number >= wrong else (f"{other} {label}" if number % 2 else other)
        lines.append(f"{one},{answer}")
    run = tmp_path / "run.csv"
    run.write_text("\n".join(lines) + "\n")
    card = fieldmark.score("semi-aves-2020", run, data=root)
    assert card.metrics["top_1"].value == 1 - wrong / 8000
    assert card.metrics["top_5"].value == 1 - (wrong - wrong // 2) / 8000
