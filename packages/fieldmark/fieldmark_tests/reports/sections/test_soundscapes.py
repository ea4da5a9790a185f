"""What a page about soundscapes promises."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

import fieldmark
from fieldmark.reports import report
from fieldmark.reports.detections import best_threshold, listen
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.pages.sounds import HIGHEST_HZ, Stretch, read_stretch, spectrogram
from fieldmark.reports.sections.sites import rows_of as site_rows
from fieldmark.reports.sections.soundscapes import STRETCH_S, strips
from fieldmark.reports.sections.species import rows_of as species_rows
from fieldmark.runs.label_scores import LabelScores
from fieldmark_tests.reports.pages.test_page import Page


@pytest.fixture(scope="module")
def run(bird_world, tmp_path_factory) -> Path:
    """A run that knows the truth but for a little noise; a run of `frequent` around it."""
    folder = tmp_path_factory.mktemp("runs") / "frequent"
    fieldmark.fit("birdclef-2020", bird_world, "frequent", folder)
    context = load_context([folder])
    rng = np.random.default_rng(0)
    for part, truth in context.opened.truth.items():
        marks = np.zeros((len(truth.items), len(context.labels)), dtype=np.float32)
        row_of = {item: row for row, item in enumerate(truth.items)}
        for item, label in truth.rows.iter_rows():
            marks[row_of[item], context.labels.code_of[label]] = 1
        scores = np.clip(0.6 * marks + rng.uniform(0, 0.55, marks.shape), 0, 1).astype(np.float32)
        predictions = LabelScores(truth.items, context.labels, scores, "score")
        predictions.write(folder / "predictions" / f"{part}.parquet")
    return folder


@pytest.fixture(scope="module")
def context(run):
    return load_context([run])


@pytest.fixture(scope="module")
def shown(context):
    return strips(context, listen(context))


@pytest.fixture(scope="module")
def html(run, tmp_path_factory) -> str:
    return report([run], tmp_path_factory.mktemp("page") / "page.html").read_text()


def test_the_page_shows_strips_with_players_and_leaves_out_what_needs_one_answer(html):
    page = Page(html)
    assert not page.misnested and not page.open
    players = [about for tag, about in page.tags if tag == "audio"]
    assert len(players) == 4 and all(about["src"].startswith("data:audio/mpeg;base64,") for about in players)
    sections = {about.get("id") for tag, about in page.tags if tag == "section"}
    assert sections == {"scores", "reported", "soundscapes", "sites", "species", "origin"}
    assert "http" not in " ".join(about.get("src") or "" for _, about in page.tags)
    assert "nothing here says how well a method does on real recordings" in html


def test_a_player_plays_the_stretch_that_is_shown(shown):
    strip = shown[0]
    sound, rate = soundfile.read(io.BytesIO(base64.b64decode(strip.clip.partition(",")[2])))
    assert len(sound) / rate == pytest.approx(strip.seconds, abs=0.2) and strip.seconds <= STRETCH_S
    assert 0.5 < np.abs(sound).max() <= 1.05


def test_the_same_run_gives_the_same_page(html, run, tmp_path):
    assert report([run], tmp_path / "again.html").read_text() == html


def test_strips_come_from_different_sites_while_there_are_any(shown):
    assert [strip.title[:3] for strip in shown] == ["GER", "HSN", "PER", "SSW"]


def test_bars_stand_where_truth_and_detections_are(shown):
    right = wrong = 0
    for strip in shown:
        for lane in strip.lanes:
            for bar in lane.bars:
                assert bar.x >= 190 and bar.x + bar.width <= 190 + 846 + 1
                right, wrong = right + (bar.kind == "right"), wrong + (bar.kind == "wrong")
    assert right > wrong


def test_the_threshold_comes_from_val(context):
    heard = listen(context)
    assert heard.chosen_on == "val" and 0.5 < heard.threshold <= 0.65


def test_the_best_threshold_has_the_best_f1_of_all():
    rng = np.random.default_rng(1)
    score, truth = rng.random((40, 5)).astype(np.float32).round(1), rng.random((40, 5)) < 0.3

    def f1(threshold):
        detected = (score >= threshold) & (score > 0)
        return 2 * (detected & truth).sum() / (detected.sum() + truth.sum())

    assert f1(best_threshold(score, truth)) == pytest.approx(max(f1(value) for value in np.unique(score)))
    assert best_threshold(np.zeros((2, 2), np.float32), truth[:2, :2]) == 0.5


def test_precision_and_recall_of_a_species_are_shares_of_segments(context):
    heard = listen(context)
    for row in species_rows(context, heard):
        code = context.labels.code_of[row.label]
        both = (heard.detected[:, code] & heard.truth[:, code]).sum()
        assert row.recall.value == pytest.approx(both / heard.truth[:, code].sum())
        if row.precision is not None:
            assert row.precision.value == pytest.approx(both / heard.detected[:, code].sum())
        assert row.recordings <= 8 and 0 <= row.average_precision <= 1


def test_sites_show_the_scores_of_the_scorecard(context):
    rows = site_rows(context)
    assert [row.site for row in rows] == ["GER", "HSN", "PER", "SSW"]
    assert all(row.scores == context.first.scorecard.groups["site"][row.site] for row in rows)
    assert sum(row.segments for row in rows) == len(context.items)


def test_a_run_that_owes_its_cmap_to_equal_scores_is_called_out(html):
    said = re.search(r"Equal scores\.</strong> frequent gives many segments the same score.* compare “(.*)”", html)
    assert said and f'<th scope="col" class="number">{said[1]}</th>' in html


def test_species_go_by_their_common_names(context):
    label, common = context.opened.dataset.taxa.select("label", "common_name").row(0)
    assert context.title(label) == common


def test_a_tone_stands_in_its_row_of_the_spectrogram():
    time = np.arange(32_000) / 32_000
    tone = np.where(time > 0.5, np.sin(2 * np.pi * 6000 * time), 0) + np.random.default_rng(0).normal(0, 0.01, 32_000)
    shades = spectrogram(Stretch(tone.astype(np.float32), 32_000), columns=200)
    assert shades.shape[1] == 200 and shades[:, 150].argmax() / shades.shape[0] == pytest.approx(
        6000 / HIGHEST_HZ, abs=0.02
    )
    assert shades[:, 150].max() > 0.9 and shades[:, 40].max() < 0.6


def test_a_file_that_is_no_recording_is_an_oserror():
    with pytest.raises(OSError, match=r"."):
        read_stretch(io.BytesIO(b"not a recording"), 0, 1)
