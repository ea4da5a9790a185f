import json
import shutil

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError

SETTINGS = {"recipe": "scratch", "size": 32, "epochs": 2, "batch": 4, "workers": 1}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path / "cache"))


def fit(root, out, **settings):
    return fieldmark.fit("folder", root, "finetune", out, settings=SETTINGS | settings)


def test_a_fine_tuned_run_is_complete_and_its_model_answers_alike(make_release, tmp_path):
    root = make_release()
    result = fit(root, tmp_path / "run", flip=True, randaugment_ops=1, ema=0.5)
    assert result.run.options["network"] == "resnet10t" and result.run.options["epochs"] == 2
    assert any("Best of 2 epochs by top_1" in remark for remark in result.run.remarks)
    assert result.run.trained_on == ["train"]  # the epoch was chosen on val
    log = [json.loads(line) for line in (tmp_path / "run/training/log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log if "val" in line] == [1, 2]
    assert not (tmp_path / "run.training").exists()
    model = fieldmark.load_model(tmp_path / "run")
    photos = sorted((root / "test").rglob("*.jpg"))
    again = model.predict_photos(photos)
    whole = result.model.predict_photos(photos)
    np.testing.assert_allclose(again.scores, whole.scores, rtol=1e-4, atol=1e-5)
    answered = fieldmark.predict(tmp_path / "run", root)
    np.testing.assert_allclose(np.sort(answered.scores, axis=0), np.sort(again.scores, axis=0), rtol=1e-3, atol=1e-4)
    assert "# finetune on folder" in (tmp_path / "run/model/README.md").read_text()


def test_a_photo_of_train_that_cannot_be_read_is_left_out_and_said(make_release, tmp_path):
    root = make_release()
    broken = sorted((root / "train").rglob("*.jpg"))[0]
    broken.write_bytes(broken.read_bytes()[:200])
    result = fit(root, tmp_path / "run")
    assert any(broken.name in remark and "left out" in remark for remark in result.run.remarks)


@pytest.mark.parametrize("part", ["val", "test"])
def test_a_photo_that_is_to_be_answered_must_be_readable(make_release, tmp_path, part):
    root = make_release()
    broken = sorted((root / part).rglob("*.jpg"))[0]
    broken.write_bytes(b"")
    with pytest.raises(InputError, match=f"{broken.name}.*an empty file"):
        fit(root, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_same_command_goes_on_after_the_training_was_done(make_release, tmp_path):
    root = make_release()
    broken = sorted((root / "test").rglob("*.jpg"))[0]
    whole = broken.read_bytes()
    broken.write_bytes(b"")
    with pytest.raises(InputError):
        fit(root, tmp_path / "run")
    assert (tmp_path / "run.training" / "last.pt").exists()  # what was trained is not lost
    with pytest.raises(MisuseError, match="unfinished training: epochs was 2 and is now 3"):
        fit(root, tmp_path / "run", epochs=3)
    broken.write_bytes(whole)
    assert fit(root, tmp_path / "run").scorecard.split == "test"


def test_recordings_are_not_taken_for_photos(make_release, tmp_path):
    with pytest.raises(MisuseError, match=r"'cnn' reads recordings; .*photos holds photos"):
        fieldmark.fit("folder", make_release(), "cnn", tmp_path / "run")
    sound = tmp_path / "sound" / "Alba" / "a.wav"
    sound.parent.mkdir(parents=True)
    for number in range(8):
        sound.with_name(f"{number}.wav").write_bytes(b"")
    with pytest.raises(MisuseError, match=r"'finetune' reads photos; .*sound holds recordings"):
        fit(tmp_path / "sound", tmp_path / "run")


def test_settings_beside_a_recipe_win_and_unknown_ones_are_refused(make_release, tmp_path):
    root = make_release()
    with pytest.raises(MisuseError, match="no setting called 'epoch'"):
        fit(root, tmp_path / "run", epoch=3)
    with pytest.raises(MisuseError, match="Did you mean scratch"):
        fit(root, tmp_path / "run", recipe="scratsh")


def test_the_seed_of_the_run_is_the_seed_of_the_training(make_release, tmp_path):
    root, little = make_release(), SETTINGS | {"epochs": 1}
    runs = [fieldmark.fit("folder", root, "finetune", tmp_path / str(n), settings=little, seed=n) for n in (0, 1)]
    assert [run.run.options["seed"] for run in runs] == [0, 1]
    first, second = (run.model.fitted.arrays["fc.weight"] for run in runs)
    assert not np.allclose(first, second)


def test_with_refit_the_final_network_learns_from_val_as_well(make_release, tmp_path, monkeypatch):
    from fieldmark.methods import finetune

    root = make_release()
    shutil.rmtree(root / "val")  # without an official val, one is drawn from train
    shown = []

    def remember(network, train, val, *arguments, **options):
        shown.append((len(train), None if val is None else len(val)))
        return trained(network, train, val, *arguments, **options)

    trained = finetune.train
    monkeypatch.setattr(finetune, "train", remember)
    result = fit(root, tmp_path / "run", refit=True, best_by="last", schedule="cosine")
    (fewer, held_out), (all_photos, none) = shown
    assert none is None and fewer + held_out == all_photos
    assert result.run.trained_on == ["train", "val"]
    log = (tmp_path / "run/training/refit/log.jsonl").read_text().splitlines()
    assert [line["val"] for line in map(json.loads, log) if "val" in line] == [{}, {}]


def test_refit_has_no_val_to_choose_an_epoch_by(make_release, tmp_path):
    with pytest.raises(MisuseError, match="refit needs best_by=last"):
        fit(make_release(), tmp_path / "run", refit=True)


def test_a_network_learns_genera_beside_species_and_answers_with_species(make_release, tmp_path):
    result = fit(make_release(), tmp_path / "run", objective="auxiliary-rank:weight=0.5", epochs=1)
    assert result.model.fitted.arrays["fc.weight"].shape[0] == 3  # the heads of genera are gone
    assert any("No auxiliary head for family" in remark for remark in result.run.remarks)
    lines = [json.loads(line) for line in (tmp_path / "run/training/log.jsonl").read_text().splitlines()]
    assert "genus_top_1" in lines[-1]["val"]
    again = fieldmark.load_model(tmp_path / "run")
    assert again.fitted.method.objective == "auxiliary-rank:weight=0.5" == result.run.options["objective"]


def test_a_network_learns_triplets_beside_labels_and_is_chosen_by_retrieval(make_release, tmp_path):
    settings = {"objective": "triplet:each=2", "best_by": "retrieval_top_1", "epochs": 1}
    result = fit(make_release(), tmp_path / "run", **settings)
    assert any("by retrieval_top_1 on val" in remark for remark in result.run.remarks)
    assert result.model.fitted.arrays["fc.weight"].shape[0] == 3


@pytest.mark.parametrize(
    ("objective", "sentence"),
    [
        ("consistency", "finetune has no objective=consistency: expected labels or triplet or auxiliary-rank"),
        ("triplet:labels=0", "answers with its head"),
        ("auxiliary-rank:ranks=kingdom", "no such rank tells labels apart; the release has genus"),
    ],
)
def test_objectives_that_cannot_be_learned_here_are_refused(objective, sentence, make_release, tmp_path):
    with pytest.raises(MisuseError, match=sentence):
        fit(make_release(), tmp_path / "run", objective=objective)


def test_a_usual_objective_goes_unsaid_in_what_is_saved():
    from fieldmark.methods.finetune import Finetune

    assert "objective" not in Finetune().options and Finetune(objective="triplet").options["objective"] == "triplet"
