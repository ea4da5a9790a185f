"""What a method of another package cannot find out: the names and times of files, and what it says it does not look at.

The package under `packages/` is as if installed; its methods look where they should not.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, PeekingError
from fieldmark.fitting import with_features
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import shown_to
from fieldmark.fitting.sandboxed import Walls, configured_walled
from fieldmark.methods.base import Fitted
from fieldmark.releases import open_dataset
from fieldmark.runs.predictions import read_predictions
from fieldmark.sandbox.bubblewrap import environment, wall
from fieldmark.views.opaque_ids import blinded, blinded_view
from fieldmark.views.open_benchmark import Opened, open_benchmark
from fieldmark_tests.fixtures import COLORS, save_photo

PACKAGES = Path(__file__).parent / "packages" / "site-packages"
LITTLE = {"size": 32}


@pytest.fixture(autouse=True)
def cheats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as if it were installed."""
    monkeypatch.syspath_prepend(str(PACKAGES))


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """Photos whose folder, name and time tell the label, which nothing in the photo does."""
    root = tmp_path / "photos"
    for code, label in enumerate(COLORS):
        for number in range(8):
            part = "train" if number < 4 else "val" if number % 2 else "test"
            photo = root / part / label / f"{label} {number}.jpg"
            save_photo(photo, (128, 128, 128), 100 * code + number)
            os.utime(photo, (1e9 + 1e6 * code, 1e9 + 1e6 * code))
    return root


def opened(root: Path) -> Opened:
    return open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root))


@pytest.mark.parametrize("cheat", ["by-folder", "by-name", "by-time", "by-store"])
def test_names_folders_times_and_the_release_tell_a_method_nothing(telling, tmp_path, cheat):
    result = fieldmark.fit("folder", telling, cheat, tmp_path / "run", steps=())
    assert result.scorecard.metrics["top_1"].value == pytest.approx(1 / 3)  # the same answer to all


def test_the_order_of_rows_tells_a_method_of_the_test_set_no_classes(telling, tmp_path):
    result = fieldmark.fit("folder", telling, "by-order", tmp_path / "run", steps=())
    assert result.scorecard.metrics["top_1"].value < 0.9
    truth = opened(telling).truth["test"]
    assert read_predictions(tmp_path / "run/predictions/test.parquet").items == tuple(truth.items)


def test_answers_bear_the_ids_of_the_release(telling, tmp_path):
    fieldmark.fit("folder", telling, "by-name", tmp_path / "run", steps=())
    truth = opened(telling).truth["test"]
    assert read_predictions(tmp_path / "run/predictions/test.parquet").items == tuple(truth.items)


def test_a_method_meets_no_name_of_the_release_and_the_same_ids_every_time(telling):
    part = opened(telling).view.test
    with blinded(part) as (shown, names):
        told = repr(shown.items.to_dicts()) + repr(shown.media.ids) + shown.media.where(shown.media.ids[0])
        assert not any(word in told for label in COLORS for word in (label, label.split()[0], ".jpg"))
        assert shown.media.read(shown.media.ids[0]) == part.media.read(names.real(shown.media.ids[0]))
    with blinded(opened(telling).view.test.take([2, 0])) as (again, _):
        assert again.item_ids == (shown.item_ids[2], shown.item_ids[0])
        with blinded(again) as (twice, _):
            assert twice.item_ids == again.item_ids


def test_a_file_that_a_method_opens_has_neither_name_nor_number_and_reads_as_it_is(telling):
    part = opened(telling).view.test
    with blinded(part) as (shown, names):
        one = shown.media.ids[1]
        whole = part.media.read(names.real(one))
        with shown.media.open(one) as file, next(shown.media.open.many([one])) as other:
            assert not hasattr(file, "name") and file.read(10) == whole[:10]
            assert file.seek(-5, os.SEEK_END) == len(whole) - 5 and file.read() == whole[-5:]
            assert other.read() == whole
            with pytest.raises(OSError, match="fileno"):
                file.fileno()


def test_what_is_learned_from_keeps_the_order_of_its_ids(telling):
    view = opened(telling).view
    with blinded_view(view) as (shown, names):
        for real, opaque in ((view.train, shown.train), (view.val, shown.val)):
            assert [names.real(one) for one in sorted(opaque.item_ids)] == sorted(real.item_ids)
        assert (shown.fold_numbers(number=3) == view.fold_numbers(number=3)).all()


def test_an_error_of_a_method_names_the_file_as_a_person_would_look_for_it(make_release, tmp_path):
    root = make_release()
    photo = root / "test/Alba alba/0-4.jpg"
    photo.write_bytes(photo.read_bytes()[:400])
    part = opened(root).view.test
    with (
        pytest.raises(InputError, match=r"photos/test/Alba alba/0-4.jpg: found broken"),
        blinded(part) as (shown, names),
    ):
        raise InputError(shown.media.where(names["0-4.jpg"]), found="broken")


@pytest.mark.parametrize("method", ["centering", "remembering"])
def test_a_method_that_looks_at_others_and_says_it_does_not_is_refused(make_release, tmp_path, method):
    with pytest.raises(PeekingError, match=f"the method {method} depend on which other items are asked about"):
        fieldmark.fit("folder", make_release(), method, tmp_path / "run", settings=LITTLE)
    assert not (tmp_path / "run").exists()


def test_it_is_refused_on_val_where_there_is_no_test(make_release, tmp_path):
    root = make_release()
    shutil.rmtree(root / "test")
    with pytest.raises(PeekingError, match="asked by itself, it is answered otherwise, by more than 2% of a score"):
        fieldmark.fit("folder", root, "centering", tmp_path / "run", settings=LITTLE)


def test_a_step_that_looks_at_others_and_says_it_does_not_is_refused(make_release, tmp_path):
    with pytest.raises(PeekingError, match="the step centering-step depend on which other items"):
        fieldmark.fit("folder", make_release(), "honest", tmp_path / "run", settings=LITTLE, steps=["centering-step"])


def test_who_looks_at_the_unit_is_asked_about_the_unit(make_release, tmp_path):
    root = make_release()
    rows = [f"test/{label}/{code}-{number}.jpg,o{code}" for code, label in enumerate(COLORS) for number in (4, 6)]
    (root / "observations.csv").write_text("\n".join(["file,observation", *rows]) + "\n")
    assert fieldmark.fit("folder", root, "of-unit", tmp_path / "run", settings=LITTLE).run.sees == "unit"


def test_behind_walls_there_is_no_disk_to_walk(telling, tmp_path, run_main):
    told = ("fit", "folder", "--data", telling, "--method", "by-walk", "--set", f"root={telling}", "--out")
    assert run_main(*told, tmp_path / "plain")[0] == 0
    assert run_main(*told, tmp_path / "walled", "--walled")[0] == 0
    scores = [fieldmark.score("folder", tmp_path / name, data=telling).metrics["top_1"] for name in ("plain", "walled")]
    assert scores[0].value == 1.0  # what Python cannot prevent
    assert scores[1].value == pytest.approx(1 / 3)
    assert "The method ran behind walls" in (tmp_path / "walled/run.json").read_text()


def test_behind_walls_a_method_learns_and_answers_as_it_does_before_them(make_release):
    root = make_release()
    walls = Walls(partial(wall, shutil.which("bwrap")), environment)
    outside = configured_method("honest", LITTLE)
    inside = configured_walled("honest", LITTLE, 0, walls, root)
    assert inside.features == outside.features and inside.method.needs == outside.method.needs
    view = with_features(opened(root), outside)
    fitted = [Fitted.to(one.method, shown_to(one.method, view)) for one in (outside, inside)]
    one, other = (made.predict(view.test, view.labels) for made in fitted)
    assert one.items == other.items == view.test.item_ids and one.scale == other.scale
    assert other.scores == pytest.approx(one.scores, rel=1e-5)
    inside.method.inmate.close()


def test_without_bubblewrap_walls_are_refused(make_release, tmp_path, run_main, monkeypatch):
    told = ("fit", "folder", "--data", make_release(), "--method", "honest", "--out", tmp_path / "run", "--walled")
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, said = run_main(*told)
    assert code == 2 and "--walled needs bubblewrap, and it is not installed" in said
