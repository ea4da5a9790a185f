"""The packaged photo model: its taxonomy holds together, and it never says more than it knows."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageFile

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.photos import HeldPhoto, Preprocessing, decode_square
from fieldmark.identification.packaged.imagenet_model import imagenet_model
from fieldmark.identification.packaged.imagenet_taxa import CLASSES, classes, label_table, lineage, taxa
from fieldmark.identification.packaged.photo_groups import GROUPS, chances_of, squares_of
from fieldmark.models.guides.rollup import at_rank
from fieldmark.tables.schema import RANKS

DOGS, BIRDS, SNAKES = range(151, 269), (*range(7, 25), *range(80, 101), *range(127, 147)), range(52, 69)


def test_every_taxon_leads_up_to_its_kingdom_by_ranks_that_rise():
    for taxon in taxa().values():
        ranks = [RANKS.index(above.rank) for above in lineage(taxon.name)]
        assert ranks == sorted(ranks, reverse=True) and len(set(ranks)) == len(ranks)
        assert ranks[-1] == 0, taxon.name


def test_a_species_stands_below_the_genus_that_its_name_begins_with():
    for taxon in taxa().values():
        if taxon.rank == "species":
            assert taxon.parent == taxon.name.split()[0] and taxa()[taxon.parent].rank == "genus"
        else:
            assert " " not in taxon.name


def test_names_stand_once_and_every_taxon_is_above_a_class():
    assert max(Counter(taxon.common_name for taxon in taxa().values() if taxon.rank == "species").values()) == 1
    used = {above.name for _, taxon in classes().values() for above in lineage(taxon)}
    assert used == set(taxa())


def test_every_class_that_is_an_organism_has_a_taxon():
    # The order of the classes of ImageNet: animals first, then things, then food, scenery and what grows.
    assert set(range(398)) <= set(classes())
    plants_and_fungi = {*range(936, 958), *range(984, 999)}
    assert set(classes()) == set(range(398)) | plants_and_fungi and max(classes()) < CLASSES
    for indices, rank, name in [
        (DOGS, "species", "Canis familiaris"),
        (BIRDS, "class", "Aves"),
        (SNAKES, "order", "Squamata"),
        (range(300, 327), "class", "Insecta"),
        (range(281, 294), "family", "Felidae"),
        (range(365, 385), "order", "Primates"),
        ((947, *range(991, 998)), "kingdom", "Fungi"),
        ((*range(936, 947), *range(948, 958), *range(984, 991)), "kingdom", "Plantae"),
    ]:
        for index in indices:
            above = {taxon.rank: taxon.name for taxon in lineage(classes()[index][1])}
            assert above.get(rank) == name, (index, classes()[index])


def test_no_fungus_is_named_below_its_family():
    fungi = label_table().filter(kingdom="Fungi")
    assert fungi.height >= 5
    assert fungi["genus"].null_count() == fungi["species"].null_count() == fungi.height


def test_the_order_of_the_classes_is_that_of_the_weights():
    """The names that another package gives the same classes hold ours, for classes that are called the same in both."""
    from timm.data import ImageNetInfo

    info = ImageNetInfo()
    same = [index for index, (name, _) in classes().items() if name.lower() in info.index_to_description(index).lower()]
    assert len(same) > 300


def save(path, pixels):
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(path)
    return path


@pytest.fixture(scope="module")
def strange_photos(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("strange"), np.random.default_rng(0)
    return {
        "grey": save(folder / "grey.png", np.full((300, 400, 3), 128)),
        "noise": save(folder / "noise.png", rng.integers(0, 255, (300, 400, 3))),
        "stripes": save(
            folder / "stripes.png", np.tile(np.where(np.arange(400) % 40 < 20, 255, 0)[:, None], (300, 1, 3))
        ),
    }


@pytest.mark.parametrize("name", ["grey", "noise", "stripes"])
def test_no_species_is_claimed_of_what_shows_nothing(strange_photos, name):
    answer = fieldmark.identify(strange_photos[name])
    assert answer.verdict.known is False and answer.claim is None
    assert answer.verdict.because.startswith("None of them: no organism")
    assert any("knows few species" in remark for remark in answer.remarks)


def test_without_a_model_a_photo_is_answered_from_the_shell(run_main, strange_photos):
    code, out, _ = run_main("identify", strange_photos["grey"], "--json")
    told = json.loads(out)
    assert code == 0 and told["verdict"]["known"] is False and told["claim"] is None and told["short_list"] is None
    code, out, _ = run_main("identify", strange_photos["grey"], strange_photos["noise"], "--model", "imagenet")
    assert code == 0 and "none of the 278 names" in out and "knows few species" in out


def test_the_model_by_a_wrong_name_or_for_sound_is_refused(strange_photos, tmp_path):
    with pytest.raises(InputError, match="Did you mean imagenet"):
        fieldmark.identify(strange_photos["grey"], "imagnet")
    (tmp_path / "sound.wav").write_bytes(b"RIFF")
    with pytest.raises(MisuseError, match=r"was fitted to photos; .*is a recording"):
        fieldmark.identify(tmp_path / "sound.wav", "imagenet")


def test_probabilities_of_taxa_are_sums_over_their_classes():
    model = imagenet_model()
    chances = np.random.default_rng(1).dirichlet(np.ones(len(model.labels)))[None]
    for rank in ("species", "family", "kingdom"):
        names, _, sums = at_rank(chances, model.taxonomy, rank)
        assert len(set(names)) == len(names) and 0 < sums.sum() <= 1 + 1e-9
    assert sums.sum() == pytest.approx(1)
    assert set(model.guide.roll_up.lines) == {"species", "genus", "family", "order", "class", "kingdom"}


def test_a_restriction_holds_for_it_too(strange_photos):
    answer = fieldmark.identify(strange_photos["noise"], only=["Canidae"], top=50)
    assert {name.label.split()[0] for name in answer.names if name.probability > 0} <= {
        "Canis",
        "Cuon",
        "Lycaon",
        "Vulpes",
        "Urocyon",
    }


def test_groups_weigh_the_same_however_many_classes_imagenet_has_of_them():
    """A photo that says the same of every class shows a plant at most a little more than anything else."""
    chances = dict(zip(GROUPS, chances_of([np.zeros((1, 1000))])[0], strict=True))
    assert chances["birds"] == pytest.approx(chances["fungi"]) == pytest.approx(chances["mammals"])
    assert chances["plants"] == pytest.approx(9 * chances["birds"])  # the count of plants, to the power


def test_a_group_is_told_by_its_classes_and_both_looks_count():
    logits = np.zeros((3, 1000))
    for row, index in enumerate((992, 63, 738)):  # agaric, Indian cobra, flowerpot
        logits[row, index] = 12
    told = chances_of([logits, logits])
    assert [GROUPS[place] for place in told.argmax(axis=1)] == ["fungi", "snakes", "plants"]
    halves = chances_of([logits, np.zeros_like(logits)])
    assert (halves.max(axis=1)[:2] < told.max(axis=1)[:2]).all()


@pytest.mark.parametrize(("kind", "size"), [("JPEG", (1100, 900)), ("PNG", (2400, 1900))])
def test_a_photo_that_a_network_has_seen_is_not_decoded_again_for_its_group(kind, size, monkeypatch):
    decoded, load, written = [], ImageFile.ImageFile.load, io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(noise).resize(size).save(written, kind)
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: (self.tile and decoded.append(self)) or load(self))
    how, photo = Preprocessing(224, 0.875, (0.5,) * 3, (0.5,) * 3), HeldPhoto(written.getvalue())
    decode_square(photo, how)
    assert [square.shape for square in squares_of(photo, replace(how, size_px=260, crop=0.89))] == [(260, 260, 3)] * 2
    assert len(decoded) == 1
