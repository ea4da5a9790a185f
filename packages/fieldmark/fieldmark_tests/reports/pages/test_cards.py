"""Cards of observations: whatever is there is shown, and nothing that is broken stops the page."""

from __future__ import annotations

import base64
import json
import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.reports import report
from fieldmark.reports.charts.climographs import temperature, typical_year
from fieldmark.reports.pages.cards import (
    LONG_SIDE_PIXELS,
    best_answers,
    draw_observations,
    make_card,
    outline_colors,
    photo_picture,
    picture_from_above,
)
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS, reported
from fieldmark_tests.places import GOLDEN
from fieldmark_tests.reports.by_hand import FUNGI, MakeRelease, MakeRun, noisy

HERE = GOLDEN / "fungitastic-2025"
OBSERVATION = "4200000001"
PHOTO = f"0-{OBSERVATION}.JPG"


def pixels(uri: str) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(base64.b64decode(uri.partition(",")[2]))))


def gray_jpeg(width: int, height: int) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (width, height), (90, 90, 90)).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A hand-made FungiTastic whose only scored Mini photo has a mask of another size, a caption, climate and RGB."""
    root = tmp_path / "release"
    shutil.copytree(HERE, root)
    photo = root / "FungiTastic-Mini" / "test" / "300p" / PHOTO
    photo.parent.mkdir(parents=True)
    photo.write_bytes(gray_jpeg(40, 30))
    (root / "masks").mkdir()
    # The left half of a picture of 4 x 8 pixels, and the mark of a photo of spores.
    runs = [[0, *[4, 4] * 4, 0, 0, 4, 4], [32, 0, 0, 0, 0]]
    pl.DataFrame(
        {"file_name": [PHOTO] * 2, "label": ["cap", "microscopic"], "width": [8] * 2, "height": [4] * 2, "rle": runs}
    ).write_parquet(root / "masks" / "FungiTastic-Mini-TestMasks.parquet")
    (root / "captions" / "test").mkdir(parents=True)
    (root / "captions" / "test" / f"{PHOTO}.json").write_text(json.dumps("A <b>red</b> cap. " * 40))
    (root / "climaticData").mkdir()
    (root / "climaticData" / "FungiTastic-Climatic-Timeseries.csv").write_text(
        f"observationID,tas_2000_01,tas_2001_01,tas_2000_07,pr_2000_01\n{OBSERVATION},1.0,3.0,,80\n"
    )
    for band in ("RGB", "NIR"):
        (root / f"satellite_{band}").mkdir()
    Image.new("RGB", (16, 16), (10, 120, 30)).save(root / "satellite_RGB" / f"{OBSERVATION}.png")
    (root / "satellite_NIR" / f"{OBSERVATION}.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    return root


@pytest.fixture
def context(root: Path, make_run: MakeRun) -> Context:
    return load_context([make_run(root, noisy, benchmark="fungitastic-mini/closed")])


def test_a_card_gathers_all_modalities(context: Context) -> None:
    assert draw_observations(context) == [OBSERVATION]
    colors = outline_colors(context, [OBSERVATION])
    assert list(colors) == ["cap"]
    card = make_card(context, OBSERVATION, colors)
    assert card.title == "Amanita muscaria"
    assert card.lineage[-2:] == ("Amanitaceae", "Amanita")
    assert [(photo.microscopic, list(photo.parts)) for photo in card.photos] == [(True, ["cap"])]
    assert card.caption is not None and card.caption.startswith("A <b>red</b> cap.") and card.caption.endswith("…")
    assert [(title, picture is None) for title, picture in card.satellite] == [
        ("visible light", False), ("near infrared", True)
    ]  # fmt: skip
    assert card.climate is not None and "Temperature" in card.climate
    known = dict(card.facts)
    assert known["Date"] == "2023-09-01" and known["Place"] == "55.3°N 11.3°E (±5 m)"
    assert known["Region"] == "Sorø, Sjælland, DK" and known["Elevation"] == "20 m"
    assert known["Land cover"] == "deciduous broadleaf forest (class 4)"
    assert not {"Label", "Scientific name", "Month", "Observer"} & set(known)


def test_a_page_with_a_broken_picture_from_above_says_so_and_escapes_captions(root: Path, context: Context) -> None:
    html = SECTIONS["observations"].render(context)
    assert "cannot be read" in html and "microscope" in html
    assert "<b>" not in html and "A &lt;b&gt;red&lt;/b&gt; cap." in html
    assert str(root) not in html


def test_the_outline_of_a_mask_of_another_size_lies_where_it_belongs() -> None:
    mask = np.zeros((4, 8), dtype=bool)
    mask[:, :4] = True
    picture = photo_picture(gray_jpeg(40, 30), {"cap": mask}, {"cap": "#ff0000"})
    assert (picture.width, picture.height) == (LONG_SIDE_PIXELS, LONG_SIDE_PIXELS * 3 // 4)
    shown = pixels(picture.data).astype(int)
    red = (shown[..., 0] - shown[..., 1]) > 80
    middle = red[picture.height // 2]
    columns = np.flatnonzero(middle)
    assert len(columns) and abs(columns.mean() - picture.width / 2) < 6
    plain = pixels(photo_picture(gray_jpeg(40, 30)).data).astype(int)
    assert np.abs(plain - 90).max() < 6


@pytest.mark.parametrize(
    "shape", [(8, 8), (8, 8, 1), (8, 8, 2), (8, 8, 3), (8, 8, 6)], ids=lambda shape: "x".join(map(str, shape))
)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_pictures_from_above_of_any_kind_are_shown(shape: tuple[int, ...], dtype: type) -> None:
    assert pixels(picture_from_above(np.full(shape, 200, dtype=dtype)).data).shape == (8, 8, 3)


def test_what_is_not_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="not a picture"):
        picture_from_above(np.zeros((2, 2, 2, 2), dtype=np.uint8))


def test_a_typical_year_is_the_mean_over_the_years_and_passes_over_gaps() -> None:
    series = {(2000, 1): 2.0, (2001, 1): 4.0, (2000, 2): None, (2001, 2): float("nan"), (2000, 3): 5}
    year = typical_year(series)
    assert year is not None
    assert year[[0, 2]].tolist() == [3.0, 5.0] and np.isnan(year[[1, *range(3, 12)]]).all()
    assert typical_year({(2000, 1): None}) is None and typical_year({}) is None


@pytest.mark.parametrize(
    ("monthly", "expected"),
    [
        ({"tas": {(2000, 1): 4.0}}, 4.0),
        ({"tas": {(2000, 1): 277.15}}, 4.0),
        ({"tas": {(2000, 1): 2771.5}}, 4.0),
        ({"tasmin": {(2000, 1): 1.0}, "tasmax": {(2000, 1): 7.0}}, 4.0),
    ],
)
def test_temperatures_are_in_celsius_whatever_the_table_holds(monthly: dict, expected: float) -> None:
    means = temperature(monthly)
    assert means is not None and means[0] == pytest.approx(expected)


def test_answers_are_means_over_the_photos(make_release: MakeRelease, make_run: MakeRun) -> None:
    context = load_context([make_run(make_release(FUNGI, located=True), noisy)])
    observation = draw_observations(context)[0]
    rows = [row for row, name in enumerate(context.items["observation_id"]) if name == observation]
    scores = np.exp(context.predictions.scores[rows].astype(float))
    mean = (scores / scores.sum(axis=1, keepdims=True)).mean(axis=0)
    found = best_answers(context, rows)
    assert len(found) == 5
    for answer in found:
        assert answer.probability == pytest.approx(mean[context.labels.names.index(answer.title)], rel=1e-5)
    assert [answer.probability for answer in found] == sorted((a.probability for a in found), reverse=True)
    truth = context.labels.names[context.truth[rows[0]]]
    assert [answer.title for answer in found if answer.right] == [truth]


def test_cards_are_drawn_from_different_classes_and_the_same_each_time(
    make_release: MakeRelease, make_run: MakeRun
) -> None:
    context = load_context([make_run(make_release(FUNGI, located=True), noisy)])
    drawn = draw_observations(context)
    label_of = dict(context.items.select("observation_id", "label").iter_rows())
    assert len({label_of[name] for name in drawn}) == 3
    assert drawn == draw_observations(context)


def test_scores_that_only_rank_are_shown_without_probabilities(make_release: MakeRelease, make_run: MakeRun) -> None:
    context = load_context([make_run(make_release(FUNGI, located=True), noisy, scale="score")])
    assert all(answer.probability is None for answer in best_answers(context, [0, 1]))
    assert "mean over" not in SECTIONS["observations"].render(context)


def test_photos_alone_make_no_cards(make_release: MakeRelease, make_run: MakeRun) -> None:
    assert not SECTIONS["observations"].applies(load_context([make_run(make_release(FUNGI), noisy)]))


def test_unreadable_photos_leave_a_gap(context: Context, root: Path) -> None:
    (root / "FungiTastic-Mini" / "test" / "300p" / PHOTO).write_bytes(b"not a photo")
    assert "no photo" in SECTIONS["observations"].render(context)


def test_reported_results_are_folded_and_called_meaningless_on_worlds(
    root: Path, make_run: MakeRun, tmp_path: Path
) -> None:
    real = SECTIONS["reported"].render(load_context([make_run(root, noisy, benchmark="fungitastic-mini/closed")]))
    assert "<details>" not in real and "meaningless" not in real and "not computed here" in real
    (root / "WORLD.json").write_text(json.dumps({"fieldmark_world": 1, "simulated": True}))
    run = make_run(root, noisy, name="world", benchmark="fungitastic-mini/closed")
    context = load_context([run])
    simulated = SECTIONS["reported"].render(context)
    assert "is meaningless here" in simulated
    assert simulated.index("<details>") < simulated.index("<table")
    assert "BEiT" not in SECTIONS["scores"].render(context)
    assert "except those under “Reported in papers”" in report([run], tmp_path / "page.html").read_text(
        encoding="utf-8"
    )


def test_every_reported_value_stands_beside_its_source(root: Path, make_run: MakeRun) -> None:
    context = load_context([make_run(root, noisy, benchmark="fungitastic-mini/closed")])
    declared = context.opened.benchmark.reported
    found = reported.results(declared)
    told = {(result.what, source, *result.values.items()) for result in found for source in result.sources}
    assert told == {(one.what, one.source, *one.values.items()) for one in declared}
    html = SECTIONS["reported"].render(context)
    for result in found:
        for value in result.values.values():
            assert f"{100 * value:.1f}%" in html


def test_tables_that_disagree_are_marked_and_stand_together() -> None:
    found = reported.results(BENCHMARKS["fungitastic/closed"].reported)
    disputed = [result.what for result in found if result.disputed]
    assert len(disputed) == 6 and disputed[::2] == disputed[1::2]


def test_a_benchmark_without_reported_results_has_no_such_section(fungi: Path, make_run: MakeRun) -> None:
    assert not SECTIONS["reported"].applies(load_context([make_run(fungi, noisy)]))
