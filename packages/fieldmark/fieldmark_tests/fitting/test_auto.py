"""`fit --method auto`, on small photos whose features are quickly made."""

from __future__ import annotations

import csv
import json
import wave
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.fitting import Auto, auto, candidates
from fieldmark.fitting.auto_table import LearningGain, estimate_of, learning_gain
from fieldmark.fitting.candidates import Candidate, SearchCircumstances, candidates_for
from fieldmark.fitting.chains import Chain, read_chain
from fieldmark.fitting.place_folds import DISTANCE, rule_like_test, some_places
from fieldmark.fitting.train_folds import HeldOutFold, TrainFolds
from fieldmark.registry import Registry
from fieldmark.runs.predictions import read_predictions
from fieldmark.runs.provenance import Run
from fieldmark.views.open_benchmark import open_benchmark, open_release

SMALL = {"size": 32}


def few_candidates(there):
    """Two heads on small features, one that knows nothing, and one for two domains, which are not there."""
    yield Candidate(Chain("frequent", {}), "none")
    yield Candidate(Chain("centroid", SMALL), "small")
    yield Candidate(Chain("lda", SMALL), "small")
    yield Candidate(Chain("align", SMALL), "two domains")


@pytest.fixture
def few(monkeypatch):
    entries = {"photo-codes": (f"{__name__}:few_candidates", "")}
    monkeypatch.setattr(candidates, "QUESTIONS", Registry("question", entries))


@pytest.fixture
def release(make_release):
    return make_release(flat=True, per_class=12)


def searched(root, out, **settings):
    told: list[str] = []
    result = fieldmark.fit(
        "folder", root, "auto", out, auto=Auto(folds=3, tell=told.append, **settings), overwrite=True
    )
    return result, told


def test_auto_fits_what_is_best_and_says_what_it_tried(few, release, tmp_path):
    result, told = searched(release, tmp_path / "run", minutes=5)
    with (tmp_path / "run" / "auto.csv").open(encoding="utf-8") as file:
        rows = {row["chain"]: row for row in csv.DictReader(file)}
    assert rows["frequent"]["folds"] == "3" and float(rows["frequent"]["weight"]) < 0.2
    assert float(rows["centroid:size=32"]["score"]) > float(rows["frequent"]["score"])
    assert "domain" in rows["align:size=32"]["why_not"]
    assert result.scorecard.metrics["top_1"].value > 0.9
    assert any("best so far" in line for line in told) and "chosen" in told[-1]
    assert any("auto tried 3 of 4 chains" in remark for remark in result.run.remarks)
    about = json.loads((tmp_path / "run" / "auto.json").read_text())
    assert [one["seconds"] for one in about["curve"]] == sorted(one["seconds"] for one in about["curve"])
    assert about["estimate"]["test_units"] == result.scorecard.units
    assert not (tmp_path / "run.search").exists()


def test_what_auto_chose_can_be_fitted_again_by_its_file(few, release, tmp_path):
    result, _ = searched(release, tmp_path / "run", minutes=5, single=True)
    chain = read_chain(tmp_path / "run" / "chain.json")
    assert chain.method in ("centroid", "lda")
    again = fieldmark.fit("folder", release, str(tmp_path / "run" / "chain.json"), tmp_path / "again")
    assert again.scorecard.metrics == result.scorecard.metrics


def test_an_interrupt_keeps_the_best_so_far_and_the_same_command_goes_on(few, release, tmp_path, monkeypatch):
    fits, whole = [], HeldOutFold.answer

    def interrupted(self, opened):
        if len(fits) == 2:
            raise KeyboardInterrupt
        fits.append(self.path)
        whole(self, opened)

    monkeypatch.setattr(HeldOutFold, "answer", interrupted)
    result, told = searched(release, tmp_path / "run", minutes=5)
    assert any("Interrupted" in line for line in told)
    assert result.run.method in ("centroid", "frequent") and "interrupted" in " ".join(result.run.remarks)

    done = list(fits)
    monkeypatch.setattr(HeldOutFold, "answer", lambda self, opened: whole(self, opened) or fits.append(self.path))
    searched(release, tmp_path / "run", minutes=5)
    # Three chains on three folds, and the one that was chosen on half of what each fold learns from.
    assert len(fits) == len(set(fits)) == 12 and fits[:2] == done


def test_no_candidate_is_begun_when_the_minutes_are_spent(few, release, tmp_path):
    result, _ = searched(release, tmp_path / "run", minutes=0.001)
    about = json.loads((tmp_path / "run" / "auto.json").read_text())
    tried = {one["chain"]: one for one in about["tried"]}
    assert tried["frequent"]["folds"] >= 1
    assert tried["lda:size=32"]["why_not"]
    assert result.run.method == "frequent"


def test_features_are_begun_late_where_folds_are_quick_and_not_where_they_are_slow(few, release, tmp_path, monkeypatch):
    """After two thirds of the time."""
    begun = {}
    for name, seconds in (("quick", 0.01), ("slow", 60.0)):
        monkeypatch.setattr(auto.ChainResult, "seconds_of_a_fold", lambda _, seconds=seconds: seconds)
        late = property(lambda self: 400.0 if self.entrants else 0.0)
        monkeypatch.setattr(auto.AutoSearch, "elapsed", late)
        searched(release, tmp_path / name, minutes=10)
        about = json.loads((tmp_path / name / "auto.json").read_text())
        begun[name] = {one["chain"] for one in about["tried"] if one["folds"]}
    assert begun == {"quick": {"frequent", "centroid:size=32", "lda:size=32"}, "slow": {"frequent"}}


def test_a_fold_is_never_measured_by_what_was_chosen_with_it(few, release, tmp_path, monkeypatch):
    chosen_on, whole = [], auto.AutoSearch.choose

    def noted(self, folds):
        chosen_on.append(tuple(folds))
        return whole(self, folds)

    monkeypatch.setattr(auto.AutoSearch, "choose", noted)
    searched(release, tmp_path / "run", minutes=5)
    assert chosen_on == [(0, 1, 2), (1, 2), (0, 2), (0, 1)]


def test_the_estimate_has_the_error_of_the_test_in_its_interval(few, release, tmp_path):
    result, _ = searched(release, tmp_path / "run", minutes=5)
    metric = fieldmark.benchmark("folder").task.metrics[0]
    card = card_of(result, metric, np.random.default_rng(0).normal(0.5, 0.2, 40))
    alone, small, large = (estimate_of(card, metric, units) for units in (None, 10, 10_000))
    widths = [one.high - one.low for one in (alone, large, small)]
    assert widths == sorted(widths) and widths[2] > 1.9 * widths[0]
    assert estimate_of(card_of(result, metric, [0.9, 1.0, 1.1]), metric, 3).high == 1.0


def test_where_the_release_has_a_val_it_says_what_to_expect_of_test(few, make_release, tmp_path):
    result, _ = searched(make_release(per_class=12), tmp_path / "run", minutes=5)
    estimate = json.loads((tmp_path / "run" / "auto.json").read_text())["estimate"]
    val = json.loads((tmp_path / "run" / "scorecard-val.json").read_text())
    assert estimate["on"] == "val" and estimate["value"] == val["metrics"]["macro_f1_all"]["value"]
    assert any("from val" in remark for remark in result.run.remarks)


def card_of(result, metric, pseudo):
    """A scorecard with these pseudo-values and their mean."""
    card, values = result.scorecard, np.asarray(pseudo)
    scored = {metric.name: replace(card.metrics[metric.name], value=float(values.mean()))}
    return replace(card, metrics=scored, pseudo={metric.name: values})


def test_the_gain_of_more_photos_follows_the_power_law_of_the_error(few, release, tmp_path):
    result, _ = searched(release, tmp_path / "run", minutes=5)
    metric = fieldmark.benchmark("folder").task.metrics[0]
    rng = np.random.default_rng(0)
    errors = {items: 2.0 * items**-0.5 for items in (40, 80, 100)}  # .32, .22, .2
    more, less = (card_of(result, metric, 1 - errors[items] + rng.normal(0, 1e-9, 50)) for items in (80, 40))
    gain = learning_gain(more, less, metric, (80, 40, 100))
    assert gain.value == pytest.approx(errors[80] - errors[100], abs=1e-6) and gain.error < 1e-6
    assert learning_gain(less, more, metric, (80, 40, 100)).value == 0
    estimate = estimate_of(more, metric, None, gain)
    assert estimate.value == pytest.approx(1 - errors[100], abs=1e-6) and estimate.gain == gain.value
    wide = estimate_of(more, metric, None, LearningGain(gain.value, 0.05))
    assert wide.high - wide.low > 0.19


@pytest.mark.parametrize("given", [{"settings": {"size": 32}}, {"search": fieldmark.fitting.Search({})}])
def test_auto_refuses_what_it_chooses_itself(given, release, tmp_path):
    with pytest.raises(MisuseError, match="auto chooses"):
        fieldmark.fit("folder", release, "auto", tmp_path / "run", **given)


def circumstances(**changed):
    plain = {
        "medium": "photo",
        "shape": "codes",
        "unknown": False,
        "inputs": (),
        "unlabeled": False,
        "domains": False,
        "places": False,
        "deciding": "top_1",
        "gpu": False,
    }
    return SearchCircumstances(**{**plain, **changed})


@pytest.mark.parametrize(
    ("changed", "method"),
    [
        ({"inputs": ("date",)}, "fusion"),
        ({"domains": True}, "align"),
        ({"unlabeled": True}, "label-propagation"),
        ({"unlabeled": True, "coarse": True}, "prototypes-coarse"),
        ({"gpu": True}, "finetune"),
        ({"medium": "recording"}, "linear"),
        ({"medium": "", "shape": "pairs"}, "down-weighted-boosting"),
        ({"medium": "", "shape": "pairs", "presences": True, "labels": 9}, "deepmaxent"),
        ({"shape": "masks"}, "saliency"),
    ],
)
def test_candidates_follow_from_what_there_is(changed, method):
    assert method in {one.chain.method for one in candidates_for(circumstances(**changed))}
    if set(changed) & {"inputs", "domains", "unlabeled", "gpu"}:
        assert method not in {one.chain.method for one in candidates_for(circumstances())}


def test_where_some_species_have_sheets_only_whatever_ignores_them_is_left_out():
    tried = candidates_for(circumstances(domains=True, unseen=True))
    assert {one.chain.method for one in tried} == {"align"}
    assert len({one.group for one in tried}) == len(tried) >= 3


def test_species_with_sheets_only_are_noticed(make_release):
    root = make_release(per_class=8)
    folders = sorted((root / "train").iterdir())
    for folder in folders:
        for number, photo in enumerate(sorted(folder.iterdir())):
            domain = "photo" if number % 2 and folder != folders[0] else "herbarium"
            (root / "train" / domain / folder.name).mkdir(parents=True, exist_ok=True)
            photo.rename(root / "train" / domain / folder.name / photo.name)
        folder.rmdir()

    def found():
        opened = open_benchmark(BENCHMARKS["folder"], open_release(BENCHMARKS["folder"], root))
        return SearchCircumstances.of(opened)

    assert found().domains and found().unseen
    sheets = sorted((root / "train" / "herbarium" / folders[0].name).iterdir())
    (root / "train" / "photo" / folders[0].name).mkdir()
    sheets[0].rename(root / "train" / "photo" / folders[0].name / sheets[0].name)
    assert found().domains and not found().unseen


def test_another_package_may_add_candidates_to_a_question(monkeypatch):
    place = (f"{__name__}:few_candidates", "")
    monkeypatch.setattr(
        candidates, "QUESTIONS", Registry("question", {"photo-codes": place, "photo-codes.mine": place})
    )
    assert len(candidates_for(circumstances())) == 2 * len(list(few_candidates(circumstances())))
    assert candidates_for(circumstances(shape="pairs")) == []


def test_runs_of_auto_are_read_as_any_other(few, release, tmp_path):
    searched(release, tmp_path / "run", minutes=5, single=True)
    record = Run.read(tmp_path / "run").search
    assert record["chosen"]["chain"] in {"centroid:size=32", "lda:size=32"}
    assert fieldmark.load_model(tmp_path / "run").trained["chain"]["method"] in ("centroid", "lda")


def test_a_folder_of_recordings_is_searched_as_recordings(tmp_path):
    for number in range(12):
        path = tmp_path / "clips" / ("owl", "wren")[number % 2] / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(np.full(800, number, dtype="<i2").tobytes())
    benchmark = BENCHMARKS["folder"]
    opened = open_benchmark(benchmark, open_release(benchmark, tmp_path / "clips"))
    there = SearchCircumstances.of(opened)
    assert there.question == "recording-codes"
    assert {"centroid", "lda", "linear"} <= {one.chain.method for one in candidates_for(there)}


def few_place_candidates(there):
    """Two models of the environment, and what was found nearby."""
    yield Candidate(Chain("neighbors", {}), "places", in_ensemble=there.presences)
    yield Candidate(Chain("spline-logistic", {"least": 3}), "places")
    yield Candidate(Chain("random-forest", {"trees": 10, "least": 3}), "places")


@pytest.fixture
def few_for_places(monkeypatch):
    entries = {"place-pairs": (f"{__name__}:few_place_candidates", "")}
    monkeypatch.setattr(candidates, "QUESTIONS", Registry("question", entries))


def write_region(root, species):
    """Records that get warmer to the south, where each species has its own warmth, and background in between."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(45, 47, (2, 400)) * np.array([[1.0], [0.2]])
    warmth = 100 - 2 * lat
    number = np.clip((warmth - warmth.min()) / np.ptp(warmth) * species, 0, species - 1).astype(int)
    kept = rng.random(400) < (0.9 if species > 1 else (lat > 46.2) * 0.9)
    table = {"lat": lat[kept], "lon": lon[kept], "warmth": warmth[kept], "rain": rng.normal(size=kept.sum())}
    names = [f"Species {one}" for one in number[kept]]
    pl.DataFrame({"species": names, **table}).write_csv(root / "occurrences.csv")
    lat, lon = rng.uniform(45, 47, (2, 300)) * np.array([[1.0], [0.2]])
    background = {"lat": lat, "lon": lon, "warmth": 100 - 2 * lat, "rain": rng.normal(size=300)}
    pl.DataFrame(background).write_csv(root / "background.csv")
    (root / "occurrences.toml").write_text('environment = ["warmth", "rain"]\n')


# One species lives wherever its blocks are: there is hardly anything to tell.
@pytest.mark.parametrize(("species", "least"), [(1, 0.3), (6, 0.75)])
def test_records_of_presence_are_told_from_the_background_and_from_other_species(
    species, least, few_for_places, tmp_path, monkeypatch
):
    write_region(tmp_path, species)
    opened = open_benchmark(
        BENCHMARKS["occurrences/presence"], open_release(BENCHMARKS["occurrences/presence"], tmp_path)
    )
    asked_about, whole = [], HeldOutFold.answer

    def noted(self, opened):
        whole(self, opened)
        asked_about.append(read_predictions(self.path).items)

    monkeypatch.setattr(HeldOutFold, "answer", noted)
    run = tmp_path / "run"
    result = fieldmark.fit("occurrences/presence", tmp_path, "auto", run, auto=Auto(minutes=5, tell=lambda _: None))
    about = json.loads((run / "auto.json").read_text())
    tried = {one["chain"].partition(":")[0]: one["score"] for one in about["tried"]}
    assert tried["spline-logistic"] > least and about["estimate"]["value"] > least
    assert all(len(items) == len(set(items)) for items in asked_about)
    of_background = set(opened.view.unlabeled.item_ids)
    assert all(of_background & set(items) and set(items) - of_background for items in asked_about)
    if len(about["weights"]) > 1:
        assert result.run.method == "place-ensemble"
        assert len(set(about["weights"].values())) == 1


def test_places_are_held_out_with_the_background_around_them_as_test_is_drawn(tmp_path):
    write_region(tmp_path, 3)
    benchmark = BENCHMARKS["occurrences/presence"]
    opened = open_benchmark(benchmark, open_release(benchmark, tmp_path))
    assert rule_like_test(opened).startswith("cells:")
    train = TrainFolds(opened, 3, rule_like_test(opened), 0, None, tmp_path / "folds", True, True)
    view, region = opened.view, train.region
    rest, asked = region.held_out(*view.hold_out(train.numbers == 1), 1)
    assert not set(rest.unlabeled.item_ids) & set(asked.item_ids) and asked.targets is None
    assert len(rest.unlabeled) == (region.near != 1).sum() < len(view.unlabeled)
    assert len(train.truth.items) == len(train.asked_numbers) == len(view.train) + len(region.asked)


def test_folds_are_cut_by_distance_where_sites_are_given(tmp_path):
    write_region(tmp_path, 3)
    lat, lon = np.random.default_rng(1).uniform(45, 47, (2, 40)) * np.array([[1.0], [0.2]])
    table = {"site_id": range(40), "lat": lat, "lon": lon, "warmth": 100 - 2 * lat, "rain": lat}
    pl.DataFrame({**table, "Species 0": (lat > 46).astype(int)}).write_csv(tmp_path / "sites.csv")
    benchmark = BENCHMARKS["occurrences/presence"]
    opened = open_benchmark(benchmark, open_release(benchmark, tmp_path))
    assert rule_like_test(opened) == DISTANCE
    train = TrainFolds(opened, 3, DISTANCE, 0, None, tmp_path / "folds", True, True)
    assert set(train.numbers) == {0, 1, 2} and set(train.region.near) == {0, 1, 2}
    assert some_places(opened, 0) is opened
