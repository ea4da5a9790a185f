from pathlib import Path

import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.training.recipe import Recipe, read_recipe, shipped_recipes

NETWORKS = [
    "resnet50",
    "resnext50",
    "efficientnet_b3",
    "efficientnetv2_b3",
    "convnext_base",
    "vit_base",
    "swin_base",
    "beit_base",
]


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_can_be_followed(name):
    timm = pytest.importorskip("timm")
    recipe = Recipe(**read_recipe(name))
    assert recipe.network.startswith("efficientnet_lite") or timm.is_model(recipe.network.partition(".")[0])
    if recipe.weights == "pretrained" and not recipe.network.startswith("efficientnet_lite"):
        assert recipe.network in timm.list_pretrained()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("size", [224, 384])
def test_the_recipe_of_the_paper_is_there_for_every_cell_of_its_table(network, size):
    recipe = Recipe(**read_recipe(f"fungitastic-{network}-{size}"))
    assert recipe.size == size
    assert (recipe.loss, recipe.optimizer, recipe.momentum) == ("seesaw", "sgd", 0.9)
    assert recipe.randaugment_magnitude == 6 and ("window12" in recipe.network or network != "swin_base")
    theirs = Recipe(**read_recipe(f"fungitastic-{network}-{size}+organizers"))
    assert (theirs.loss, theirs.randaugment_magnitude, theirs.size) == ("seesaw-mitigation", 20, size)
    assert recipe.lr == (0.1 if network in ("resnet50", "resnext50") else 0.01)
    assert (recipe.batch, recipe.epochs, recipe.best_by) == (64, 100, "macro_f1_all")
    assert (recipe.schedule, recipe.plateau_factor, recipe.plateau_patience) == ("plateau", 0.9, 1)
    assert (recipe.crop_scale, recipe.randaugment_ops, recipe.randaugment_magnitude) == (0.8, 2, 6)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("epoch = 3", "found the key 'epoch'.*Did you mean epochs"),
        ("epochs = 'three'", "found epochs = 'three', expected epochs of type int"),
        ("epochs == 3", "expected a recipe in TOML"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused_with_its_file_and_key(tmp_path, text, sentence):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        read_recipe(str(file))
    assert "mine.toml" in str(caught.value)


def test_a_recipe_on_disk_counts_whole_numbers_as_numbers(tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text("lr = 1\nsampler = 'class-balanced'\n")
    assert Recipe(**read_recipe(str(file))).lr == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"sampler": "balanced"},
        {"epochs": 0},
        {"crop_scale": 0.0},
        {"randaugment_magnitude": 31},
        {"network": "hf-hub:a/b"},
    ],
)
def test_settings_outside_their_range_are_refused(wrong):
    with pytest.raises(MisuseError, match=next(iter(wrong))):
        Recipe(**wrong)


def test_a_misspelt_recipe_names_the_nearest():
    with pytest.raises(MisuseError, match="Did you mean better"):
        read_recipe("beter")
