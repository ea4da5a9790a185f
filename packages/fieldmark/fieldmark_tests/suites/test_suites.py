"""Suites: cells that are kept, resumed, merged and ranked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.packaged import PackagedBackbone
from fieldmark.suites import suite_runs
from fieldmark.suites.catalog import SUITES, suite_named
from fieldmark.suites.foreign_answers import add_answers
from fieldmark.suites.model_pages import model_profile
from fieldmark.suites.ranking import suite_table
from fieldmark.suites.results import check_results, digest_of, merge_results, options_of, read_results, write_result
from fieldmark.suites.suite_pages import suite_page
from fieldmark.suites.suite_runs import few_shots, models_of, run_suite
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.work.grid import address_of
from fieldmark_tests.fixtures import write_release

LITTLE = {"size": 32}
METHODS = ("centroid", "knn", "frequent")
CHILD = """
import os, signal, sys
from fieldmark.suites import suite_runs
from fieldmark.suites.catalog import suite_named
root, out, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
fit = suite_runs.fit_cell
def dying(task):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return fit(task)
suite_runs.fit_cell = dying
suite_runs.cost_of = lambda model: {}  # seconds of engines that start, and no part of the score
suite = suite_named("own", root)
models = suite_runs.models_of(suite, ["efficientnet_lite0"], ["centroid", "knn", "frequent"], {"size": 32})
suite_runs.run_suite(suite, root, out, models=models)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("suites") / "data"
    write_release(root / "first")
    write_release(root / "second", per_class=10)
    return root


@pytest.fixture(scope="module")
def own(data):
    suite = suite_named("own", data)
    return suite, models_of(suite, ["efficientnet_lite0"], METHODS, LITTLE)


@pytest.fixture(scope="module")
def results(data, own, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("results")
    suite, models = own
    done = run_suite(suite, data, out, models=models)
    assert (done.made, done.missing, done.failed) == (6, {}, {})
    return out


def digests(folder: Path) -> dict[str, str]:
    return {one.file: one.data["digest"] for one in read_results([folder])}


def test_killed_twice_and_resumed_a_suite_has_the_same_scores_to_the_last_digit(data, own, results, tmp_path):
    there = []
    for cells in (2, 1):
        command = [sys.executable, "-c", CHILD, data, tmp_path, str(cells)]
        ended = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
        there.append(len(read_results([tmp_path])))
    suite, models = own
    assert there == [2, 3] and run_suite(suite, data, tmp_path, models=models).made == 3
    assert digests(tmp_path) == digests(results)


def test_the_engine_of_a_network_is_chosen_before_it_sees_a_photo(data, own, tmp_path, monkeypatch):
    """Else a killed run would have features of two engines, which differ in the last digits."""
    asked = []
    monkeypatch.setattr(PackagedBackbone, "settle_engine", lambda self: asked.append((self.name, self.preprocessing)))
    monkeypatch.setattr(PackagedBackbone, "decode", lambda *one: pytest.fail("a photo before the engine is chosen"))
    monkeypatch.setattr(suite_runs, "run_grid", lambda *how, **more: iter(()))
    suite, models = own
    run_suite(suite, data, tmp_path, models=models)
    assert [(name, how.size_px) for name, how in asked] == [("efficientnet_lite0", LITTLE["size"])]


def test_what_is_stored_is_not_fitted_again(data, own, results, monkeypatch):
    monkeypatch.setattr(suite_runs, "fit_cell", lambda task: pytest.fail("fitted again"))
    suite, models = own
    done = run_suite(suite, data, results, models=models)
    assert done.made == 0 and len(done.results) == 6


def test_a_result_is_the_score_of_the_same_fit_and_readable_without_fieldmark(data, results, tmp_path):
    path = next((results / "first").glob("efficientnet_lite0-knn.*.json"))
    told = json.loads(path.read_text())
    settings = {"backbone": "efficientnet_lite0", **LITTLE}
    fitted = fieldmark.fit("folder", data / "first", "knn", tmp_path / "run", settings=settings)
    assert told["scorecard"]["metrics"] == fitted.scorecard.to_json()["metrics"]
    assert told["values_per_unit"] == pytest.approx(list(fitted.scorecard.pseudo["macro_f1_all"]), rel=1e-5)
    assert told["cost"]["parameters"] > 4e6 and told["cost"]["features"] > 1280 and told["cost"]["memory_mib"] >= 0
    assert path.stat().st_size < 20_000
    assert str(data) not in path.read_text()  # what is shared tells nothing of the machine


def test_a_release_that_is_absent_is_a_missing_cell_with_what_to_do(data, tmp_path):
    done = run_suite("photos", data, tmp_path, only=["birds", "fungitastic-mini-closed"])
    assert not done.results and not done.failed
    assert "CUB-200-2011" in done.missing["birds"]
    assert "fieldmark get fungitastic" in done.missing["fungitastic-mini-closed"]


def test_a_model_that_is_refused_in_a_cell_is_named_and_the_others_go_on(data, own, tmp_path):
    suite, _ = own
    models = models_of(suite, ["efficientnet_lite0"], ["frequent", "align"], LITTLE)
    done = run_suite(suite, data, tmp_path, models=models, only=["first"])
    assert [one.model for one in done.results] == ["frequent"] and list(done.failed) == [
        ("efficientnet_lite0 align", "first")
    ]


def test_names_that_do_not_exist_are_refused_before_anything_is_read(tmp_path):
    with pytest.raises(MisuseError, match="no suite called 'fotos'"):
        run_suite("fotos", tmp_path, tmp_path)
    with pytest.raises(MisuseError, match="no cell called 'brids'"):
        run_suite("photos", tmp_path, tmp_path, only=["brids"])
    with pytest.raises(InputError, match="no folders"):
        run_suite("own", tmp_path, tmp_path)


def test_results_of_two_machines_are_merged_and_a_changed_one_is_found(results, tmp_path):
    paths = sorted(results.glob("*/*.json"))
    for number, path in enumerate(paths):
        for machine in ("one", "two") if number == 0 else (("one", "two")[number % 2],):
            write_result(tmp_path / machine / path.parent.name / path.name, json.loads(path.read_text()))
    assert merge_results(tmp_path / "both", [tmp_path / "one", f"file://{tmp_path}/two"]) == 6
    assert digests(tmp_path / "both") == digests(results)
    assert check_results(read_results([tmp_path / "both"])) == []
    told = json.loads(paths[0].read_text())
    told["scorecard"]["metrics"]["macro_f1_all"]["value"] = 0.123
    write_result(tmp_path / "forged" / paths[0].parent.name / paths[0].name, told)
    problems = check_results(read_results([tmp_path / "forged"]))
    assert len(problems) == 1 and "the digest is not that of the content" in problems[0]
    told["digest"] = "0" * 32
    write_result(tmp_path / "forged" / paths[0].parent.name / paths[0].name, told)
    with pytest.raises(InputError, match="another score of the same content"):
        merge_results(tmp_path / "both", [tmp_path / "forged"])
    other = json.loads(paths[0].read_text())  # the same scores of a machine whose features differ in the last digits
    other["provenance"]["steps"] = [{"step": "temperature", "temperature": 1.2330145}]
    other["digest"] = digest_of(other)
    write_result(tmp_path / "elsewhere" / paths[0].parent.name / paths[0].name, other)
    assert merge_results(tmp_path / "both", [tmp_path / "elsewhere"]) == 6
    (tmp_path / "one" / "notes.json").write_text("{}")
    with pytest.raises(InputError, match=r"notes.json.*the result of a suite"):
        read_results([tmp_path / "one"])


def test_a_result_tells_by_which_defaults_it_was_made_and_a_check_finds_that_they_changed(results):
    found = next(one for one in read_results([results]) if one.model == "efficientnet_lite0 knn")
    content = {**found.data["content"], "options": {**found.data["content"]["options"], "k": "99"}}
    data = {**found.data, "content": content, "address": address_of(content)}
    (problem,) = check_results([replace(found, data={**data, "digest": digest_of(data)})])
    assert "knn has another default today: k was 99, is " in problem
    assert options_of("knn", {})["features.output"] == "second-order"
    assert "features.output" not in options_of("knn", {"output": "features"}) | options_of("frequent", {})


def test_the_table_ranks_complete_models_and_lists_the_others(own, results):
    suite, _ = own
    found = read_results([results])
    table = suite_table(suite, found)
    assert table.cells == table.ranked == ("first", "second") and len(table.rows) == 3
    means = [row.standing.mean.value for row in table.rows if row.standing]
    assert means == sorted(means, reverse=True)
    short = suite_table(suite, [one for one in found if (one.model, one.cell) != ("frequent", "second")])
    assert [row.model for row in short.rows if row.standing is None] == ["frequent"]
    assert "lack a score" in short.remarks[0]
    page = suite_page(table, suite)
    assert page.count('<tr class="best"') >= 1 and "http" not in page.replace("http://www.w3.org", "")


def test_cells_that_share_their_units_count_as_one(own, results):
    """The same cell twice is no second data set: neither the mean nor what is known about it may change."""
    suite, _ = own
    found = read_results([results])
    again = [replace(one, data={**one.data, "cell": "again"}) for one in found if one.cell == "second"]
    once, twice = suite_table(suite, found), suite_table(suite, [*found, *again])
    assert twice.ranked == ("first", "second", "again") and "3 cells are 2 sets" in twice.remarks[0]
    assert [row.standing for row in twice.rows] == [row.standing for row in once.rows]


def test_few_shots_leave_val_and_test_whole(data):
    declared = fieldmark.benchmark("folder")
    opened = open_benchmark(declared, fieldmark.dataset("folder", data / "second"))
    split = few_shots(opened, 2, seed=1)
    cut = open_benchmark(declared, opened.dataset, split=split)
    assert cut.view.train.targets.codes.tolist().count(0) == 2 and len(cut.view.train) == 6
    assert cut.items["test"]["item_id"].to_list() == opened.items["test"]["item_id"].to_list()
    assert not cut.val_is_drawn


def test_a_model_is_evaluated_beside_what_is_in_the_folder(data, results):
    table = fieldmark.evaluate("frequent", "own", data, results, name="always the same")
    assert {row.model for row in table.rows} >= {"always the same", "efficientnet_lite0 knn"}
    for path in results.glob("*/always-the-same*"):
        path.unlink()
    with pytest.raises(MisuseError, match="needs one for the table"):
        fieldmark.evaluate(object(), "own", data, results)


def test_a_pipeline_of_scikit_learn_stands_in_the_table(data, results):
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.naive_bayes import GaussianNB

    settings = {"backbone": "efficientnet_lite0", **LITTLE}
    table = fieldmark.evaluate(GaussianNB(), "own", data, results, name="naive Bayes", settings=settings)
    row = next(row for row in table.rows if row.model == "naive Bayes")
    assert row.standing is not None and set(row.scores) == {"first", "second"}
    for path in results.glob("*/naive-Bayes*"):
        told = json.loads(path.read_text())
        assert told["model"]["method"] == "sklearn.naive_bayes.GaussianNB"
        assert told["content"]["called"] == "naive Bayes" and told["content"]["settings_of_object"] == "GaussianNB()"
        path.unlink()
    with pytest.raises(MisuseError, match="No cell of the suite own could be run"):
        fieldmark.evaluate(RidgeClassifierCV(), "own", data, results, name="no probabilities", settings=settings)


def test_a_model_has_a_page_of_its_own_that_counts_what_it_got_right(data, own, results, tmp_path, run_main):
    suite, _ = own
    found = read_results([results])
    profile = model_profile(suite, found, "frequent")
    told = {one.cell: one.strengths for one in found if one.model == "frequent"}
    assert all(sum(row[1] for row in one["labels"]) == one["items"] for one in told.values())
    assert all(sum(row[2] for row in one["labels"]) == one["right"] for one in told.values())
    for one in found:  # the same share of right answers as the scorecard has
        assert one.strengths["right"] / one.strengths["items"] == one.data["scorecard"]["metrics"]["top_1"]["value"]
    # Who always gives one answer misses all other species, and says so with the share of that one in train.
    assert not profile.worst or profile.worst[0].right == 0
    assert [one.cell for one in profile.calibration] == ["first", "second"]
    path = tmp_path / "model.html"
    code, printed, _ = run_main("suite", "model", "own", "frequent", str(results), "--page", str(path))
    assert code == 0 and "of 3" in printed and "frequent" in path.read_text()
    assert "http" not in path.read_text().replace("http://www.w3.org", "")
    with pytest.raises(MisuseError, match="No model of the suite own is called 'frequents'"):
        model_profile(suite, found, "frequents")
    old = [replace(one, data={key: value for key, value in one.data.items() if key != "strengths"}) for one in found]
    assert model_profile(suite, old, "frequent").lacking == ("first", "second") and check_results(old) == []


def test_the_table_knows_tasks_licenses_and_what_may_have_been_seen(own, results):
    suite, _ = own
    cells = tuple(replace(cell, also_in=("ImageNet",) if cell.name == "first" else ()) for cell in suite.cells)
    table = suite_table(replace(suite, cells=cells), read_results([results]))
    rows = {row.model: row for row in table.rows}
    assert set(table.questions.values()) == {"photos, one label"}
    assert rows["efficientnet_lite0 knn"].license == "Apache-2.0" and rows["frequent"].license == "no backbone"
    assert rows["efficientnet_lite0 knn"].seen == {"first"} and not rows["frequent"].seen
    page = suite_page(table, suite)
    assert page.count('class="seen"') == 2 and page.count('data-license="Apache-2.0"') == 2
    assert rows["efficientnet_lite0 knn"].cost["relative_speed"] > 0


class Colors:
    """An encoder that nobody has published: the mean color, and how many photos it was shown."""

    def __init__(self) -> None:
        self.shown = 0

    def encode(self, images):
        self.shown += len(images)
        return np.array([np.asarray(image.resize((4, 4))).ravel() for image in images])


def test_the_folder_of_a_run_goes_into_the_table_with_what_it_states_of_itself(data, own, tmp_path):
    settings = {"backbone": "efficientnet_lite0", **LITTLE}
    run = fieldmark.fit("folder", data / "first", "knn", tmp_path / "run", settings=settings)
    suite, _ = own
    (path,) = add_answers(suite, data, tmp_path / "out", {"first": run.folder}, name="mine")
    (result,) = read_results([path])
    assert result.score.value == run.scorecard.metrics["macro_f1_all"].value
    assert result.data["provenance"]["external_data"] == run.run.external_data and check_results([result]) == []
    with pytest.raises(MisuseError, match="states its external data"):
        add_answers(suite, data, tmp_path / "out", {"first": run.folder}, name="mine", external_data=["none"])


def test_backbones_that_are_objects_get_every_head_and_look_at_each_photo_once(data, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(SUITES, "own", replace(SUITES["own"], methods=("centroid", "knn")))
    colors = Colors()
    table = fieldmark.evaluate(colors, "own", data, tmp_path, name="colors", only=["first"])
    assert [row.model for row in table.rows] == ["colors centroid", "colors knn"]
    assert table.rows[0].external_data is None  # nobody has declared what it was trained on
    assert colors.shown == len(fieldmark.dataset("folder", data / "first").media)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=3), torch.nn.ReLU())
    how = {"input_size": [3, 32, 32], "mean": [0, 0, 0], "std": [1, 1, 1]}
    said = {"name": "small net", "preprocessing": how, "external_data": ["none"], "only": ["first"]}
    table = fieldmark.evaluate(network, "own", data, tmp_path, **said)
    row = next(row for row in table.rows if row.model == "small net knn")
    assert row.external_data == () and len(table.rows) == 4
    torch.nn.init.zeros_(network[0].weight)  # other weights are another model, whatever it is called
    fieldmark.evaluate(network, "own", data, tmp_path, **said)
    assert len(list(tmp_path.glob("first/small-net-knn.*"))) == 2
    with pytest.raises(MisuseError, match="stay in this process"):
        fieldmark.evaluate(colors, "own", data, tmp_path, name="colors", processes=2)


def test_every_cell_counts_by_a_share_that_is_better_when_higher():
    for suite in SUITES.values():
        for cell in suite.cells:
            assert cell.scored_by.is_share and cell.scored_by.higher_is_better, (suite.name, cell.name)
            assert not cell.metric or cell.scored_by.name == cell.metric


def test_the_verb_lists_runs_tables_checks_and_merges(data, results, tmp_path, run_main):
    assert "few-shot" in run_main("suite", "list")[1]
    assert "birds_cub_odd" in run_main("suite", "list", "photos")[1]
    shell = run_main(
        "suite", "run", "own", "--data", str(data), "--out", str(results), "--backbone", "efficientnet_lite0",
        "--method", "knn", "--set", "size=32", "--json",
    )  # fmt: skip
    assert json.loads(shell[1])["table"]["models"][0]["model"] == "efficientnet_lite0 knn"
    page = tmp_path / "page.html"
    assert "rank elsewhere" in run_main("suite", "table", "own", str(results), "--page", str(page))[1]
    assert page.exists() and "6 results, 0 problems" in run_main("suite", "check", str(results))[1]
    assert "6 results" in run_main("suite", "merge", str(tmp_path / "merged"), str(results))[1]
