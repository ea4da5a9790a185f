"""A detector against a person's own annotations: one card, from tables of any tool."""

import csv
import json
import math

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.name_lists import KnownNames, NameFinder, read_thresholds
from fieldmark.metrics.sound_events import Matches
from fieldmark.scoring.sound_matching import MatchRule
from fieldmark.scoring.sound_thresholds import calibrations, promises, write_thresholds
from fieldmark.tables.labels import Labels

BIRDS = {"Turdus merula": "Eurasian Blackbird", "Parus major": "Great Tit"}


@pytest.fixture
def site(tmp_path):
    """Forty recordings of a minute: BirdNET-Analyzer heard blackbirds rightly and great tits wrongly half the time."""
    rng = np.random.default_rng(0)
    heard, noted = [], []
    for number in range(40):
        name = f"GARDEN{number % 4}_202405{number % 9 + 1:02d}_05{number:02d}00"
        for species, sure in (("Turdus merula", 1.0), ("Parus major", 0.5)):
            for start in rng.choice(20, 3, replace=False) * 3:
                heard.append(
                    [start, start + 3, species, BIRDS[species], round(rng.uniform(0.3, 0.99), 4), f"/sd/{name}.WAV"]
                )
                if rng.random() < sure:
                    noted.append([f"{name}.wav", start + 1, start + 2, BIRDS[species]])
    with (tmp_path / "BirdNET_CombinedTable.csv").open("w", newline="") as file:
        header = ["Start (s)", "End (s)", "Scientific name", "Common name", "Confidence", "File"]
        csv.writer(file).writerows([header, *heard])
    with (tmp_path / "mine.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["file", "start_s", "end_s", "label"], *noted])
    return tmp_path


def card_of(site, **options):
    options = {"listened": "recordings", **options}
    return fieldmark.detections(site / "BirdNET_CombinedTable.csv", site / "mine.csv", **options)


def test_names_are_joined_though_one_table_has_scientific_and_the_other_common_ones(site):
    card = card_of(site)
    assert {one.name for one in card.species} == set(BIRDS)
    assert {(one.given, one.how) for one in card.names} == {(common, "concept") for common in BIRDS.values()}


def test_precision_and_recall_are_those_counted_by_hand(site):
    card = card_of(site)
    of = {one.name: one for one in card.species}
    assert of["Turdus merula"].precision.value == 1.0 and of["Turdus merula"].recall.value == 1.0
    tits = of["Parus major"]
    assert tits.precision.value == pytest.approx(tits.positives / tits.answers)
    assert tits.precision.low < tits.precision.value < tits.precision.high
    assert sum(count for _, _, count in tits.calibration) == tits.answers
    assert json.loads(json.dumps(card.to_json()))["species"][0]["precision"]["value"] == 1.0


def test_what_changes_under_other_rules_is_one_table(site):
    rules = {one.rule: one for one in card_of(site).rules}
    assert {f"windows of {window} s, overlap {overlap} s" for window in (3, 5, 10) for overlap in (0, 0.5, 1)} <= set(
        rules
    )
    assert {"events, overlap 0 s", "events, overlap 0.5 s", "events, overlap 1 s", "recordings"} <= set(rules)
    assert rules["recordings"].precision > rules["windows of 3 s, overlap 0 s"].precision


def test_days_at_a_site_and_intervals_by_site_come_from_the_names_of_recordings(site):
    card = card_of(site, rule=MatchRule("site-day"), by="site")
    assert card.unit == "site" and card.units == 4 and card.items == 36


def test_nothing_is_scored_before_it_is_said_what_was_listened_to(site):
    with pytest.raises(MisuseError, match="not silence"):
        card_of(site, listened=None)
    spans = site / "listened.csv"
    spans.write_text("recording,start_s,end_s\nGARDEN0_20240501_050000,0,30\n")
    card = card_of(site, listened=spans)
    assert card.seconds == 30 and card.units == 1 and any("outside" in one for one in card.remarks)


def test_a_species_that_nobody_listened_for_is_not_wrong(site):
    only = [row for row in (site / "mine.csv").read_text().splitlines() if "Great Tit" not in row]
    (site / "mine.csv").write_text("\n".join(only) + "\n")
    assert [one.name for one in card_of(site).species] == ["Turdus merula"]
    complete = {one.name: one for one in card_of(site, complete=True).species}
    assert complete["Parus major"].precision.value == 0.0


def test_annotations_without_names_need_one(site):
    (site / "mine.csv").write_text("file,start_s,end_s,label\nGARDEN0_20240501_050000.wav,0,3,\n")
    with pytest.raises(InputError, match="--label"):
        card_of(site)
    assert card_of(site, label="Turdus merula").species[0].name == "Turdus merula"


def test_photos_of_megadetector_are_compared_as_a_whole(tmp_path):
    box = {"category": "1", "conf": 0.9, "bbox": [0, 0, 1, 1]}
    images = [{"file": f"{number}.jpg", "detections": [box] if number < 3 else []} for number in range(5)]
    document = {"images": images, "detection_categories": {"1": "animal"}}
    (tmp_path / "md.json").write_text(json.dumps(document))
    (tmp_path / "seen.csv").write_text("file,label\n0.jpg,animal\n1.jpg,animal\n4.jpg,animal\n")
    (tmp_path / "all.csv").write_text("recording\n" + "".join(f"{number}.jpg\n" for number in range(5)))
    asked = {"found": tmp_path / "md.json", "against": tmp_path / "seen.csv", "listened": tmp_path / "all.csv"}
    (animal,) = fieldmark.detections(**asked, rule=MatchRule("recording")).species
    assert (animal.answers, animal.positives) == (3, 3)
    assert animal.precision.value == animal.recall.value == pytest.approx(2 / 3)
    with pytest.raises(MisuseError, match="--rule recording"):
        fieldmark.detections(**asked)


def test_thresholds_are_given_where_annotations_show_them_and_else_the_reason(site):
    of = {one.name: one for one in card_of(site).thresholds}
    assert of["Turdus merula"].at_least is not None and of["Turdus merula"].pooled == 0
    assert of["Parus major"].at_least is None and "below the promise" in of["Parus major"].reason


def test_species_with_few_recordings_share_a_threshold_and_those_with_enough_never_do():
    def right(many, start):
        unit = np.arange(start, start + many)
        score = np.linspace(0.5, 0.9, many)
        return Matches(score, np.ones(many, dtype=bool), unit, score, unit)

    made = {
        one.name: one
        for one in promises({"a": right(20, 0), "b": right(20, 20), "c": right(40, 0)}, common={}, share=0.9, risk=0.05)
    }
    assert made["a"].at_least == made["b"].at_least == 0.5 and made["a"].pooled == 2
    assert made["c"].pooled == 0 and made["c"].at_least == 0.5
    alone = promises({"a": right(20, 0)}, common={}, share=0.9, risk=0.05)[0]
    assert alone.at_least is None and alone.more == 9


def test_tables_of_thresholds_are_read_by_identify_and_name_species_as_birdnet_does(site, tmp_path):
    card = card_of(site)
    write_thresholds(tmp_path / "out", card.thresholds, card.calibrated)
    finder = NameFinder(KnownNames(Labels(("Turdus merula",)), pl.DataFrame({"label": ["Turdus merula"]})))
    assert list(read_thresholds(tmp_path / "out" / "thresholds.csv", finder)) == [0]
    assert (tmp_path / "out" / "birdnet_species_list.txt").read_text() == "Turdus merula_Eurasian Blackbird\n"
    assert 0 < float((tmp_path / "out" / "birdnet_min_conf.txt").read_text()) < 1


def test_a_curve_of_few_answers_is_drawn_to_that_of_all_species():
    rng = np.random.default_rng(1)
    score = rng.uniform(0.05, 0.95, 2000)
    many = Matches(score, rng.random(2000) < score**2, np.arange(2000), score, np.arange(2000))
    one = Matches(np.array([0.5]), np.array([True]), np.array([0]), np.array([0.5]), np.array([0]))
    curves = {curve.name: curve for curve in calibrations({"many": many, "one": one})}

    def probability(curve, at):
        return 1 / (1 + math.exp(-(curve.slope * math.log(at / (1 - at)) + curve.offset)))

    assert probability(curves["many"], 0.5) == pytest.approx(0.25, abs=0.05)
    assert probability(curves["one"], 0.5) == pytest.approx(probability(curves[""], 0.5), abs=0.15)


def two_folders(tmp_path, annotated: str) -> dict:
    """`dawn.wav` in two folders, a blackbird heard in each, and one of them annotated by a table called after it."""
    rows = "".join(f"{place}/dawn.wav,3,6,Turdus merula,0.9\n" for place in ("wood", "field"))
    (tmp_path / "heard.csv").write_text("file,start_s,end_s,label,score\n" + rows)
    (tmp_path / annotated).mkdir(parents=True)
    table = "Selection\tBegin Time (s)\tEnd Time (s)\tSpecies\n1\t4.0\t5.0\tTurdus merula\n"
    (tmp_path / annotated / "dawn.Table.1.selections.txt").write_text(table)
    return {"found": tmp_path / "heard.csv", "against": tmp_path / annotated, "listened": "recordings"}


def test_recordings_of_one_name_are_told_apart_by_the_folders_of_their_annotations(tmp_path):
    card = fieldmark.detections(**two_folders(tmp_path, "wood"))
    assert card.together.recall.value == 1.0 and card.together.answers == 1


def test_annotations_that_do_not_say_which_of_two_recordings_they_are_about_are_refused(tmp_path):
    with pytest.raises(InputError, match="dawn: found a recording of this name in several folders"):
        fieldmark.detections(**two_folders(tmp_path, "noted"))


def test_detections_of_other_recordings_are_said_to_be_so(site):
    table = site / "mine.csv"
    table.write_text(table.read_text().replace("GARDEN", "PARK"))
    assert any("No detection is of an annotated recording" in one for one in card_of(site).remarks)


def test_a_card_is_a_table_in_a_shell_a_notebook_and_a_frame(site):
    card = card_of(site)
    assert "Turdus merula" in str(card) and len(repr(card)) < 1200
    assert "<td" in card._repr_html_() and "Parus major" in card._repr_html_()
    frame = card.to_frame()
    assert frame["name"].to_list() == [one.name for one in card.species]
    assert frame["recall"].to_list() == [one.recall.value for one in card.species]
