from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.main import app
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting import answer_test, prepare, with_features
from fieldmark.questions.targets import LabelTargets
from fieldmark.suites.episodes import MethodEntry, draw_photos, run_episodes
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.views.parts import Part

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}
ENTRIES = (
    MethodEntry("centroid", "centroid", LITTLE),
    MethodEntry("1-NN", "knn", {**LITTLE, "k": 1, "vote": "majority"}),
    MethodEntry("em", "em", LITTLE),
)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    from fieldmark_tests.fixtures import COLORS, save_photo

    root = tmp_path_factory.mktemp("episodes") / "photos"
    for number, (label, color) in enumerate(COLORS.items()):
        for photo in range(12):
            where = ("train", "val", "test")[photo % 3] if photo < 9 else "train"
            near = tuple(int(0.3 * channel + 90) for channel in color)
            save_photo(root / where / label / f"{number}-{photo}.jpg", near, 100 * number + photo)
    return root


@pytest.fixture(scope="module")
def episodes(release, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return run_episodes("folder", release, ENTRIES, out, shots=(1, 3), draws=4), out


def test_every_entry_is_scored_for_every_number_of_photos_and_draw(episodes):
    found, out = episodes
    data = json.loads((out / "episodes.json").read_text())
    assert data == json.loads(json.dumps(found.to_json()))
    assert data["train_photos"] == {"1": 3, "3": 9} and data["test_items"] == 9 and data["val_photos"] == 9
    for row in data["rows"]:
        for shots in ("1", "3"):
            spread = row["shots"][shots]["top_1"]
            assert len(spread["values"]) == 4 and spread["mean"] == pytest.approx(np.mean(spread["values"]), abs=1e-5)


def test_a_fine_tuned_backbone_is_named_and_episodes_are_run_anew_when_it_is_trained_anew(release, tmp_path):
    small = {"recipe": "scratch", "size": 32, "epochs": 1, "batch": 4, "workers": 1}
    entry = MethodEntry("centroid", "centroid", {"backbone": str(tmp_path / "backbone")})
    fieldmark.fit("folder", release, "finetune", tmp_path / "backbone", settings=small)
    weights = tmp_path / "backbone/model/weights.safetensors"
    for times in (1, 2):
        found = run_episodes("folder", release, [entry], tmp_path / "out", shots=(1,), draws=1)
        assert "fine-tuned on train of folder (version 2, seed 0)" in found.facts["remarks"][0]
        assert len(list((tmp_path / "out" / "draws").iterdir())) == times
        arrays = load_file(weights)
        save_file(arrays | {"conv1.0.weight": 1.5 * arrays["conv1.0.weight"]}, weights)


def test_photos_are_taken_at_three_scales_in_second_order_unless_features_are_named(release, tmp_path):
    entries = [
        MethodEntry("usual", "centroid", {"size": 64}),
        MethodEntry("plain", "centroid", {"size": 64, "output": "features"}),
        MethodEntry("flips", "centroid", {"size": 64, "views": "flips"}),
        MethodEntry("another network", "centroid", LITTLE),
    ]
    found = run_episodes("folder", release, entries, tmp_path, shots=(1,), draws=1)
    settings = [row["settings"] for row in found.to_json()["rows"]]
    assert settings[0] == {"size": 64, "output": "second-order", "views": "scales"}
    assert settings[1:] == [dict(entry.settings) for entry in entries[1:]]


def test_second_order_features_have_axes_from_drawn_photos_and_those_of_a_fit_though_photos_are_looked_at_once(
    release, tmp_path, monkeypatch
):
    from fieldmark.models.supply import channel_axes, sources

    settings = {"size": 64, "output": "second-order", "views": "flips"}
    learned_from, seen, plain, looks = [], [], sources.axes_of_train, channel_axes.WithMaps.__call__

    def counted(backbone, train, *rest):
        learned_from.append(train)
        return plain(backbone, train, *rest)

    monkeypatch.setattr(sources, "axes_of_train", counted)
    monkeypatch.setattr(
        channel_axes.WithMaps, "__call__", lambda own, photos: (seen.append(len(photos)), looks(own, photos))[1]
    )
    opened = open_benchmark(BENCHMARKS["folder"], open_release(BENCHMARKS["folder"], release))
    configured = prepare("centroid", settings, BENCHMARKS["folder"].task, [])
    kept = configured.supply(opened.dataset.inputs_by_name, opened.dataset.main_input.extractor).keeping_maps()
    for rows in (slice(0, 4), slice(2, 9)):
        view = replace(opened.view, train=opened.view.train.take(np.arange(18)[rows]))
        drawn = replace(opened, view=view)
        expected = with_features(drawn, configured, tmp_path / "fit").test.features["photo"]
        given = with_features(drawn, configured, tmp_path / "episodes", kept).test.features["photo"]
        np.testing.assert_allclose(given, expected, atol=5e-3)
    entry = MethodEntry("second order", "centroid", settings)
    seen.clear(), learned_from.clear()
    run_episodes("folder", release, [entry], tmp_path, shots=(1, 3), draws=2)
    assert sorted(map(len, learned_from)) == [3, 3, 9, 9] and sum(seen) <= 2 * 36


def test_the_interval_over_draws_is_the_t_interval_of_their_mean(episodes):
    from scipy import stats

    found, _ = episodes
    for spread in found.spreads.values():
        values = np.array(spread.values)
        if values.std() > 0:
            low, high = stats.t.interval(0.95, 3, values.mean(), values.std(ddof=1) / 2)
            assert spread.draws == pytest.approx((low, high), abs=1e-4)
        else:
            assert spread.draws is None


def test_what_sees_the_test_set_is_marked(episodes):
    found, _ = episodes
    assert [row[0] for row in found.table("top_1")] == ["centroid", "1-NN", "em (sees the test set)"]
    assert [row["sees"] for row in found.to_json()["rows"]] == ["item", "item", "test set"]


def test_what_is_finished_is_not_fitted_again_and_other_settings_are(episodes, release, monkeypatch):
    found, out = episodes
    fitted = []

    def count(opened, view, method, steps):
        fitted.append(method)
        return answer_test(opened, view, method, steps)

    monkeypatch.setattr("fieldmark.suites.episodes.answer_test", count)
    assert run_episodes("folder", release, ENTRIES, out, shots=(1, 3), draws=4).spreads == found.spreads
    assert not fitted
    run_episodes("folder", release, ENTRIES[:1], out, shots=(1, 3), draws=5)
    assert len(fitted) == 2  # the fifth draw, for one and for three photos
    run_episodes(
        "folder",
        release,
        [MethodEntry("centroid", "centroid", {**LITTLE, "lengths": "given"})],
        out,
        shots=(1,),
        draws=1,
    )
    assert len(fitted) == 3


def observed(counts: dict[int, list[int]]) -> Part:
    """Photos of each class by observation: `{class: [photos of its observations]}`."""
    rows = [
        (code, f"{code}-{number}") for code, sizes in counts.items() for number, n in enumerate(sizes) for _ in range(n)
    ]
    items = pl.DataFrame(
        {"item_id": [str(row) for row in range(len(rows))], "observation_id": [name for _, name in rows]}
    )
    return Part(items, LabelTargets(np.array([code for code, _ in rows], dtype=np.int32)))


def test_photos_are_drawn_from_as_many_observations_as_there_are():
    train = observed({0: [5, 5, 5, 1], 1: [9], 2: [1, 1]})
    for draw in range(20):
        rows = draw_photos(train, 4, [0, draw])
        names = train.items["observation_id"].to_numpy()[rows]
        truth = train.truth[rows]
        assert len(set(rows)) == len(rows) and np.bincount(truth).tolist() == [4, 4, 2]
        assert len(set(names[truth == 0])) == 4 and len(set(names[truth == 2])) == 2


def test_fewer_photos_are_a_part_of_more_and_draws_differ():
    train = observed({0: [2] * 10, 1: [1] * 20})
    one, four, other = draw_photos(train, 1, [0, 0]), draw_photos(train, 4, [0, 0]), draw_photos(train, 4, [0, 1])
    assert set(one) < set(four) and set(four) != set(other)


def test_what_cannot_be_run_is_refused_before_anything_is_read(release, tmp_path):
    with pytest.raises(MisuseError, match=r"'em' is shown test set .* the task allows item or unit or past"):
        run_episodes("fungitastic/temporal", tmp_path / "nowhere", [MethodEntry("em", "em")], tmp_path / "out")
    with pytest.raises(MisuseError, match="each named once"):
        run_episodes("folder", release, [ENTRIES[0], ENTRIES[0]], tmp_path / "out")
    with pytest.raises(MisuseError, match="at least one draw"):
        run_episodes("folder", release, ENTRIES, tmp_path / "out", draws=0)


def test_without_labels_for_test_there_is_nothing_to_score(make_release, tmp_path):
    import shutil

    root = make_release()
    shutil.rmtree(root / "test")
    with pytest.raises(InputError, match="found no labels for test"):
        run_episodes("folder", root, ENTRIES, tmp_path / "out")


def test_episodes_from_the_shell_write_a_table_and_a_plot(release, tmp_path):
    settings = [word for key, value in LITTLE.items() for word in ("--set", f"{key}={value}")]
    command = [
        "episodes",
        "folder",
        "--data",
        str(release),
        "--method",
        "centroid",
        "--method",
        "knn:k=1,vote=majority",
    ]
    done = CliRunner().invoke(
        app,
        [*command, *settings, "--shots", "1,2", "--draws", "2", "--metric", "top_1", "--out", str(tmp_path / "out")],
    )
    assert done.exit_code == 0, done.output
    assert "knn:k=1,vote=majority" in done.stdout and "mean of 2 draws" in done.stdout
    assert (tmp_path / "out" / "shots.png").read_bytes().startswith(b"\x89PNG")
    data = json.loads((tmp_path / "out" / "episodes.json").read_text())
    assert data["rows"][1]["settings"]["vote"] == "majority" and data["simulated"] is False
