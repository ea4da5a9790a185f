from __future__ import annotations

from pathlib import Path

from fieldmark.releases import release_of
from fieldmark.releases.checks import CHECKS
from fieldmark_tests.fixtures import save_photo
from fieldmark_tests.places import GOLDEN

HERE = GOLDEN / "occurrences"


def found(root: Path, **options) -> dict[str, tuple[str, int, tuple[str, ...]]]:
    report = CHECKS["occurrences"](release_of("occurrences", root), **options)
    return {problem.what: (problem.severity, problem.times, problem.places) for problem in report.problems}


def test_bad_rows_are_listed_and_counted_with_their_lines(run_main):
    code, out, _ = run_main("check", "occurrences", HERE / "archive")
    assert code == 1
    for line in (
        "all                7       0        3",
        "places             5       0        3",
        "error: coordinates are out of range and left empty (1)\n    occurrence-south.csv, line 2: 91.5, 200.0",
        "which stands for nothing; both are left empty (1)\n    occurrence-south.csv, line 3: 0, 0",
        "occurrence-south.csv, line 2: 2021-02-30",
        "warning: has a rank that is not known, and is named all the same (1)\n    occurrence-south.csv, line 4: grex",
        "note: a date is known to the month or year only (3)\n    occurrence-north.csv, line 4: 2021-10",
        "note: is not identified to species, and so has no label (1)\n    occurrence-north.csv, line 5: Alba",
    ):
        assert line in out, line


def test_a_sound_table_has_notes_and_exit_code_0(run_main):
    code, out, _ = run_main("check", "occurrences", HERE / "inaturalist.csv")
    assert code == 0 and "note: read as an iNaturalist export" in out and "error:" not in out
    assert "note: 3 photos have an address and no file here" in out


def test_swapped_coordinates_are_told_by_the_others_of_their_country(tmp_path):
    rows = [f"{one},Alba alba,{56 + one / 10},{10 + one / 10},DK" for one in range(6)]
    rows += ["6,Alba alba,10.2,56.3,DK", "7,Alba alba,70.0,-50.0,DK", "8,Alba alba,10.2,56.3,XX"]
    (tmp_path / "a.csv").write_text("id,species,lat,lon,country\n" + "\n".join(rows) + "\n")
    what = "latitude and longitude look swapped, by the others of its country"
    assert found(tmp_path)[what] == ("warning", 1, ("a.csv, line 8: 10.2, 56.3",))


def test_ranks_that_contradict_each_other_are_listed_and_the_majority_counts(tmp_path):
    rows = "1,Alba alba,Albaceae\n2,Alba alba,Albaceae\n3,Alba alba,Rubraceae\n"
    (tmp_path / "a.csv").write_text("id,species,family\n" + rows)
    what = "gives a label another family than most of its rows, which count"
    assert found(tmp_path)[what] == ("warning", 1, ("a.csv, line 4: Alba alba in Rubraceae",))


def test_photos_that_are_broken_or_copies_are_listed(tmp_path):
    (tmp_path / "a.csv").write_text("id,species\n1,Alba alba\n2,Alba nigra\n3,Alba nigra\n")
    for name in ("1.jpg", "2.jpg"):
        save_photo(tmp_path / "photos" / name, (9, 9, 9), 1)
    (tmp_path / "photos" / "3.jpg").write_bytes(b"no photo")
    problems = found(tmp_path, media=True)
    assert problems["the same photo has two labels"][2] == ("photos/1.jpg and photos/2.jpg",)
    assert problems["a photo cannot be read"] == ("error", 1, ("photos/3.jpg: 8 bytes that are not a photo",))
