"""What a fine-tuned backbone has seen before, and that it does not pass silently."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting.lineage import lineage_of
from fieldmark.methods import Fitted
from fieldmark.methods.finetune import Finetune
from fieldmark.models import Model
from fieldmark.releases import open_dataset
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import SECTIONS
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.open_release import write_open_release

NETWORK = {"network": "resnet10t", "weights": "random"}


def opened_as(benchmark, root, seed=0):
    declared = BENCHMARKS[benchmark]
    return open_benchmark(declared, open_dataset(declared.dataset, root, declared.subset), seed=seed)


def trained_on(opened, seed=0, **changed):
    """A model as `fit` would have made it, but for its weights: lineage does not ask about them."""
    trained = {
        "benchmark": opened.benchmark.name,
        "version": opened.benchmark.version,
        "parts": ["train"],
        "seed": seed,
        "data_digest": opened.dataset.digest,
        "world": None,
        "external_data": [],
    }
    fitted = Fitted(Finetune(**NETWORK), {})
    return Model("finetune", fitted, (), opened.view.labels, opened.dataset.taxa, {}, trained | changed)


def test_a_backbone_of_the_same_parts_has_seen_nothing_of_val_and_test(make_release):
    root = make_release(flat=True)
    opened = opened_as("folder", root)
    lineage = lineage_of(trained_on(opened), opened, root)
    assert lineage.within_train and lineage.external_data == []
    assert {part: (seen.learned, seen.items) for part, seen in lineage.seen.items()} == {
        part: (0, len(opened.items[part])) for part in ("val", "test")
    }
    assert not any("LEAKAGE" in remark for remark in lineage.remarks)


def test_a_backbone_of_another_draw_is_known_to_have_seen_val_and_test(make_release):
    root = make_release(flat=True)
    here, there = opened_as("folder", root, seed=1), opened_as("folder", root, seed=0)
    lineage = lineage_of(trained_on(there), here, root)
    learned = set(there.items["train"]["observation_id"])
    for part in ("val", "test"):
        assert lineage.seen[part].learned == sum(one in learned for one in here.items[part]["observation_id"])
    assert lineage.seen["test"].learned > 0 and not lineage.within_train
    leak = f"{lineage.seen['test'].learned} of {lineage.seen['test'].items} items of test"
    assert any("LEAKAGE: the backbone has learned from" in one and leak in one for one in lineage.remarks)
    assert leak in lineage.external_data[-1] and "train of folder" in lineage.external_data[-1]


def test_a_backbone_whose_epoch_was_chosen_on_test_says_so(make_release):
    root = make_release(flat=True)
    here, there = opened_as("folder", root, seed=1), opened_as("folder", root, seed=0)
    test = here.items["test"]["observation_id"]
    chosen = sum(one in set(there.items["val"]["observation_id"]) for one in test)
    lineage = lineage_of(trained_on(there), here, root)
    assert lineage.seen["test"].chosen_by == chosen
    assert any(f"chosen on {chosen} of {len(test)} items of test" in one for one in lineage.remarks) == (chosen > 0)


def test_a_backbone_that_learned_from_val_in_the_end_makes_val_no_fair_judge(make_release):
    root = make_release(flat=True)
    opened = opened_as("folder", root)
    refitted = trained_on(opened, parts=["train", "val"])
    last = replace(refitted, fitted=Fitted(Finetune(**NETWORK, best_by="last"), {}))
    for backbone, chosen in ((refitted, len(opened.items["val"])), (last, 0)):
        lineage = lineage_of(backbone, opened, root)
        seen = lineage.seen["val"]
        assert (seen.learned, seen.chosen_by, lineage.seen["test"].learned) == (seen.items, chosen, 0)
        assert not lineage.within_train and any("LEAKAGE" in one and "items of val" in one for one in lineage.remarks)
        assert ("epoch was chosen" in lineage.remarks[0]) == (chosen > 0)


def test_leakage_reaches_the_printed_line_the_run_and_the_card(make_release, tmp_path):
    root = make_release(flat=True)
    small = {"recipe": "scratch", "size": 32, "epochs": 1, "batch": 4, "workers": 1}
    fieldmark.fit("folder", root, "finetune", tmp_path / "backbone", settings=small, seed=0)
    settings = {"backbone": str(tmp_path / "backbone")}
    result = fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings=settings, seed=1)
    assert any("LEAKAGE" in remark for remark in result.run.remarks)
    assert "items of test" in result.scorecard.provenance["external_data"][-1]
    assert "LEAKAGE" in (tmp_path / "run/model/README.md").read_text()
    page = SECTIONS["scores"].render(load_context([tmp_path / "run"]))
    assert f"<strong>Leakage.</strong> centroid: {result.run.leaks[0]}" in page


@pytest.mark.parametrize(
    "changed",
    [{"data_digest": "other"}, {"benchmark": "fungitastic/closed"}, {"benchmark": "later"}, {"version": "0"}],
    ids=lambda changed: "-".join(changed.values()).replace("/", "-"),
)
def test_what_cannot_be_checked_is_external_data_and_said_to_be_unchecked(make_release, changed):
    root = make_release()
    opened = opened_as("folder", root)
    lineage = lineage_of(trained_on(opened, **changed), opened, root)
    assert lineage.seen is None and lineage.within_train is None
    assert any("could not be checked" in remark for remark in lineage.remarks)
    assert f"train of {changed.get('benchmark', 'folder')}" in lineage.external_data[-1]


def test_what_the_network_was_trained_on_before_stays_declared(make_release):
    root = make_release()
    opened = opened_as("folder", root)
    declared = lineage_of(trained_on(opened, external_data=["ImageNet"]), opened, root)
    assert declared.external_data == ["ImageNet"]
    silent = trained_on(opened)
    del silent.trained["external_data"]  # a model from before the question
    assert "does not state" in lineage_of(silent, opened, root).external_data[0]


def test_another_task_on_the_same_parts_is_checked_too(tmp_path):
    root = write_open_release(tmp_path / "FungiTastic")
    here = opened_as("fungitastic/open", root)
    lineage = lineage_of(trained_on(opened_as("fungitastic/temporal", root)), here, root)
    assert lineage.within_train and lineage.seen["val"].learned == 0


def test_another_subset_of_the_release_is_compared_by_observation(tmp_path):
    root = write_open_release(tmp_path / "FungiTastic")
    tables = root / "metadata" / "FungiTastic"
    (root / "metadata" / "FungiTastic-Mini").mkdir()
    rows = pl.read_csv(tables / "FungiTastic-OpenSet-Test.csv").filter(pl.col("category_id") >= 0)
    for part, members in {"Train": rows.head(7), "Val": rows.slice(7, 2), "Test": rows.slice(9, 2)}.items():
        members.write_csv(root / "metadata" / "FungiTastic-Mini" / f"FungiTastic-Mini-{part}.csv")
    here, there = opened_as("fungitastic/open", root), opened_as("fungitastic-mini/closed", root)
    lineage = lineage_of(trained_on(there), here, root)
    assert (lineage.seen["test"].learned, lineage.seen["test"].chosen_by, lineage.seen["val"].learned) == (7, 2, 0)
    assert "the labels of 7 of 29 items of test among it" in lineage.external_data[-1]
    assert "LEAKAGE: the epoch of the backbone was chosen on 2 of 29 items of test." in lineage.remarks


def test_species_that_the_backbone_was_taught_are_not_unknown_to_it(tmp_path):
    root = write_open_release(tmp_path / "FungiTastic")
    opened = opened_as("fungitastic/open", root)
    backbone = trained_on(opened)
    assert lineage_of(backbone, opened, root).known_unknown == []
    more = pl.concat(
        [backbone.taxa, pl.DataFrame({"label": ["9"], "scientific_name": ["Flava prima"]})], how="diagonal"
    )
    lineage = lineage_of(replace(backbone, taxa=more), opened, root)
    assert lineage.known_unknown == ["Flava prima"]
    assert any("LEAKAGE" in one and "Flava prima" in one for one in lineage.remarks)
