from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from PIL import Image

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting import Search
from fieldmark.fitting.harness import LARGEST_ERROR, largest_error, remarks_on_val
from fieldmark.fitting.search import parse_search
from fieldmark.methods.base import ON_BOTH, ON_TRAIN, ON_VAL, ChosenSetting, Fitted
from fieldmark.methods.frequent import Frequent
from fieldmark.methods.linear import Linear
from fieldmark.methods.ridge import Ridge
from fieldmark.registry import Registry
from fieldmark_tests.fixtures import COLORS

SITES = "file,observation,site\n"


def color_of(photo):
    """The class of a photo by its mean color."""
    with Image.open(io.BytesIO(photo)) as picture:
        mean = np.asarray(picture).mean(axis=(0, 1))
    return int(np.square(np.array(list(COLORS.values())) - mean).sum(axis=1).argmin())


@dataclass(frozen=True)
class ByColor(Frequent):
    """Answers by the color of a photo, which tells the class here, or by the opposite of it."""

    trust: float = -1.0
    slack: float = 0.0
    search_space: ClassVar = {"trust": (-1.0, 1.0, 2.0)}
    seen: ClassVar[list] = []
    stop_after: ClassVar[list] = []

    def fit(self, view):
        if ByColor.stop_after and len(ByColor.seen) >= ByColor.stop_after[0]:
            raise KeyboardInterrupt
        ByColor.seen.append((self.trust, view))
        return Fitted(self, {"labels": np.arange(len(view.labels))})

    def scores(self, arrays, part):
        code = np.array([color_of(part.media.read(media[0])) for media in part.items["media_ids"].to_list()])
        return (self.trust * (code[:, None] == arrays["labels"])).astype(np.float32)


@dataclass(frozen=True)
class ByColorWithMore(ByColor):
    """The same method in a later version, which has one more setting."""

    more: int = 0
    added_settings: ClassVar = ("more",)


def register(monkeypatch, method):
    """Makes a method the one that is called by-color."""
    entries = {"by-color": (f"{__name__}:{method.__name__}", "")}
    for place in ("fieldmark.fitting.configuration.METHODS", "fieldmark.models.model.METHODS"):
        monkeypatch.setattr(place, Registry("method", entries))


@pytest.fixture
def by_color(monkeypatch, tmp_path, make_release):
    """A release of three classes at five sites, and the method."""
    register(monkeypatch, ByColor)
    ByColor.seen.clear()
    ByColor.stop_after.clear()
    root = make_release(flat=True, per_class=15)
    lines = [
        f"{path.relative_to(root).as_posix()},{path.stem},s{int(path.stem.split('-')[1]) % 5}"
        for path in sorted(root.rglob("*.jpg"))
    ]
    (root / "observations.csv").write_text(SITES + "\n".join(lines) + "\n")
    return root


def search(root, out, **how):
    return fieldmark.fit("folder", root, "by-color", out, steps=["temperature"], **how)


def test_the_best_setting_on_held_out_items_is_chosen_and_the_first_among_equals(by_color, tmp_path):
    result = search(by_color, tmp_path / "run", search=Search({}, folds=3))
    assert result.run.options["trust"] == 1.0 and result.run.search["chosen"] == {"trust": 1.0}
    table = pl.read_csv(tmp_path / "run" / "search.csv")
    assert table["trust"].to_list() == [-1.0, 1.0, 2.0] and table["chosen"].to_list() == [False, True, False]
    assert table["macro_f1_all"].to_list() == [0.0, 1.0, 1.0]
    record = json.loads((tmp_path / "run" / "search.json").read_text())
    assert record["rows"][1]["trust"] == 1.0 and record["folds"] == 3 and record["metric"] == "macro_f1_all"
    assert any(
        "trust=1.0 was chosen by 3-fold cross-validation on train (by unit) among 3 trials" in remark
        for remark in result.run.remarks
    )
    assert not (tmp_path / "run.search").exists()
    assert fieldmark.load_model(tmp_path / "run").fitted.method.trust == 1.0


def test_a_search_sees_train_alone_and_every_item_of_it_is_held_out_once(by_color, tmp_path):
    search(by_color, tmp_path / "run", search=Search({"trust": ("1", "2")}, folds=4, by="site"))
    opened = [view for _, view in ByColor.seen[:4]]
    final = ByColor.seen[8][1]
    assert len(ByColor.seen) == 10  # two trials of four folds, the fit, and the fit to train and val
    name_of = {path.read_bytes(): path.name for path in by_color.rglob("*.jpg")}

    def names(part):
        return {name_of[part.media.read(media[0])] for media in part.items["media_ids"].to_list()}

    whole = names(final.train)
    held_out = [whole - names(view.train) for view in opened]
    assert set().union(*held_out) == whole and sum(map(len, held_out)) == len(whole)
    sites = [{int(item.split("-")[1].split(".")[0]) % 5 for item in out} for out in held_out]
    assert sum(len(own) for own in sites) == 5
    for view in opened:
        assert view.test is None and names(view.val) == names(final.val)


def test_an_interrupted_search_goes_on_where_it_stopped_and_chooses_the_same(by_color, tmp_path):
    how = Search({"trust": ("-1", "1", "2")}, folds=3)
    whole = search(by_color, tmp_path / "whole", search=how)
    ByColor.seen.clear()
    ByColor.stop_after.append(5)
    with pytest.raises(KeyboardInterrupt):
        search(by_color, tmp_path / "run", search=how)
    assert not (tmp_path / "run").exists() and (tmp_path / "run.search").is_dir()
    ByColor.stop_after.clear()
    ByColor.seen.clear()
    resumed = search(by_color, tmp_path / "run", search=how)
    assert len(ByColor.seen) == 9 - 5 + 2
    tables = [pl.read_csv(tmp_path / name / "search.csv").drop("seconds") for name in ("whole", "run")]
    assert tables[0].equals(tables[1]) and whole.run.options == resumed.run.options


def test_answers_of_other_data_or_settings_are_not_taken_over(by_color, tmp_path):
    how = Search({"trust": ("1", "2")}, folds=3)
    ByColor.stop_after.append(4)
    with pytest.raises(KeyboardInterrupt):
        search(by_color, tmp_path / "run", search=how)
    ByColor.stop_after.clear()
    ByColor.seen.clear()
    search(by_color, tmp_path / "run", search=how, settings={"slack": 0.5})
    assert len(ByColor.seen) == 6 + 2


@pytest.mark.parametrize(("settings", "left_to_fit"), [({}, 2), ({"more": 1}, 6)])
def test_trials_stay_valid_when_a_method_gets_a_setting_that_stays_at_its_default(
    by_color, tmp_path, monkeypatch, settings, left_to_fit
):
    how = Search({"trust": ("1", "2")}, folds=3)
    ByColor.stop_after.append(4)
    with pytest.raises(KeyboardInterrupt):
        search(by_color, tmp_path / "run", search=how)
    ByColor.stop_after.clear()
    ByColor.seen.clear()
    register(monkeypatch, ByColorWithMore)
    search(by_color, tmp_path / "run", search=how, settings=settings)
    assert len(ByColor.seen) == left_to_fit + 2


def test_what_cannot_be_searched_is_refused_before_anything_is_read(tmp_path):
    nowhere = tmp_path / "nowhere"
    for settings, space, sentence in (
        ({}, {"q": ("1",)}, "no setting called 'q'"),
        ({"l2": "1"}, {"l2": ("1", "2")}, "both set and searched"),
        ({}, {"l2": ("1", "much")}, "expected a finite number of at least 0"),
        ({}, {"l2": ("1", "-1")}, r"l2=-1.0: expected a number of at least 0 \("),
        ({"l2": "1"}, {}, "All that the method 'linear' suggests to search is set"),
    ):
        with pytest.raises(MisuseError, match=sentence):
            fieldmark.fit("folder", nowhere, "linear", tmp_path / "run", settings=settings, search=Search(space))
    with pytest.raises(MisuseError, match="suggests nothing to search"):
        fieldmark.fit("folder", nowhere, "frequent", tmp_path / "run", search=Search({}))
    with pytest.raises(MisuseError, match="whole classes"):
        Search({}, by="class")
    with pytest.raises(MisuseError, match="folds=1: expected a whole number of at least 2"):
        Search({}, folds=1)
    with pytest.raises(MisuseError, match=r"--search l2: found no key=value,value"):
        parse_search(["l2"])


def test_folds_by_what_the_release_does_not_tell_are_refused(by_color, tmp_path):
    with pytest.raises(InputError, match="no row with a day"):
        search(by_color, tmp_path / "run", search=Search({}, by="day"))
    assert not (tmp_path / "run").exists()


def test_the_rule_for_a_small_val_follows_from_the_error_of_a_share():
    smallest = math.ceil((0.5 / LARGEST_ERROR) ** 2)
    assert largest_error(smallest) <= LARGEST_ERROR < largest_error(smallest - 1)
    l2 = [ChosenSetting("l2", ON_VAL, 0.1)]
    said = remarks_on_val(Linear(), l2, smallest - 1)
    assert len(said) == 1 and said[0].startswith("SMALL VAL: val has 1,111 independent units") and "--search" in said[0]
    assert remarks_on_val(Linear(), l2, smallest) == []
    assert remarks_on_val(Linear(l2=0.1), [], 10) == []  # nothing was chosen
    assert remarks_on_val(Linear(), [ChosenSetting("margin", ON_TRAIN, 0.1)], 10) == []  # not on val
    assert "up to 15.8 points; it chose l2." in remarks_on_val(Ridge(), l2, 10)[0]
    both = remarks_on_val(Ridge(), [ChosenSetting("threshold", ON_BOTH, 0.1)], 10)[0]
    assert both.endswith("it chose threshold (with train).")


def test_search_and_split_from_the_shell(by_color, tmp_path, run_main):
    split = tmp_path / "split.csv"
    table = by_color / "observations.csv"
    parts = ("--by", "site", "--val", 0.2, "--test", 0.2, "--files", "file", "--out", split)
    code, printed, _ = run_main("split", table, *parts)
    assert code == 0 and "by site: 0 of 5; drawn row by row it would be" in printed
    fitted = ("fit", "folder", "--data", by_color, "--method", "by-color", "--out", tmp_path / "run", "--split", split)
    code, printed, _ = run_main(*fitted, "--search", "trust=-1,1", "--folds", 3, "--folds-by", "site")
    assert code == 0, printed
    assert "note: NOT THE OFFICIAL SPLIT." in printed and "not the official split of folder" in printed
    assert "2 trials in" in printed


@dataclass(frozen=True)
class Weighted(Frequent):
    """The training frequencies to some power: a negative one puts the rarest first."""

    power: float = 1.0
    search_space: ClassVar = {"power": (-1.0, 1.0)}

    def scores(self, arrays, part):
        return self.power * super().scores(arrays, part)


@pytest.mark.parametrize(
    ("benchmark", "world"),
    [
        ("birdclef-2020", "bird_world"),
        ("fungitastic/closed", "fungi_world"),
        ("fungitastic/temporal", "fungi_world"),
        ("fungitastic/cost-poison", "fungi_world"),
    ],
)
def test_every_kind_of_question_can_be_searched(benchmark, world, request, tmp_path, monkeypatch):
    entries = {"weighted": (f"{__name__}:Weighted", "")}
    for place in ("fieldmark.fitting.configuration.METHODS", "fieldmark.models.model.METHODS"):
        monkeypatch.setattr(place, Registry("method", entries))
    root = request.getfixturevalue(world)
    result = fieldmark.fit(benchmark, root, "weighted", tmp_path / "run", search=Search({}, folds=3))
    rows = json.loads((tmp_path / "run" / "search.json").read_text())["rows"]
    task = fieldmark.benchmark(benchmark).task
    metric = next(one for one in task.metrics if one.name == result.run.search["metric"])
    # Train has no unknown items: how well those are told apart cannot be measured there.
    assert metric == task.deciding or benchmark == "fungitastic/temporal"
    values = [row[metric.name] for row in rows]
    best = max(values) if metric.higher_is_better else min(values)
    assert result.run.search["chosen"]["power"] == rows[values.index(best)]["power"]
