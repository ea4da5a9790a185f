"""Naming by a list of species: a tiny random network in the format of BioCLIP, real lists."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.checklists import read_checklist
from fieldmark.identification.zero_shot import text_of, zero_shot_model

TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "patch_size": 16, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
PREPROCESS = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "shortest"}
LIST = """scientificName,class,order,family,vernacularName,countryCode
Pica pica (Linnaeus 1758),Aves,Passeriformes,Corvidae,magpie,DE
Garrulus glandarius,Aves,Passeriformes,Corvidae,Eurasian jay,DE
Cyanocitta cristata,Aves,Passeriformes,Corvidae,blue jay,US
Cyanocitta,Aves,Passeriformes,Corvidae,,US
Pica pica,Aves,Passeriformes,Corvidae,magpie,FR
"""
META = """<archive xmlns="http://rs.tdwg.org/dwc/text/"><core encoding="UTF-8" fieldsTerminatedBy="\\t"
 linesTerminatedBy="\\n" ignoreHeaderLines="1" rowType="http://rs.tdwg.org/dwc/terms/Taxon">
<files><location>taxon.txt</location></files><id index="0"/>
<field index="1" term="http://rs.tdwg.org/dwc/terms/scientificName"/>
<field index="2" term="http://rs.tdwg.org/dwc/terms/family"/>
<field index="3" term="http://rs.tdwg.org/dwc/terms/taxonRank"/></core></archive>
"""
TAXA = "id\tname\tfamily\trank\n1\tPica pica\tCorvidae\tspecies\n2\tCorvidae\tCorvidae\tfamily\n"


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    import open_clip

    torch.manual_seed(3)
    return open_clip.CLIP(**TINY).eval()


@pytest.fixture(scope="module")
def folder(network, tmp_path_factory):
    place = tmp_path_factory.mktemp("clip") / "bioclip"
    place.mkdir()
    (place / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY, "preprocess_cfg": PREPROCESS}))
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    save_file(tensors, place / "open_clip_model.safetensors")
    return place


@pytest.fixture
def checklist(tmp_path):
    (tmp_path / "birds.csv").write_text(LIST)
    return tmp_path / "birds.csv"


@pytest.fixture
def photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_a_list_gives_each_species_once_with_its_ranks(checklist):
    taxa = read_checklist(checklist)
    assert taxa["label"].to_list() == ["Pica pica", "Garrulus glandarius", "Cyanocitta cristata"]
    assert taxa["genus"].to_list() == ["Pica", "Garrulus", "Cyanocitta"] and set(taxa["family"]) == {"Corvidae"}
    assert read_checklist(checklist, "us")["label"].to_list() == ["Cyanocitta cristata"]
    assert text_of(taxa.row(0, named=True)).startswith("a photo of Aves Passeriformes Corvidae Pica pica with common")


def test_a_text_of_names_and_an_archive_are_lists_too(tmp_path):
    (tmp_path / "names.txt").write_text("Pica pica\nGarrulus glandarius (L., 1758)\n")
    assert read_checklist(tmp_path / "names.txt")["label"].to_list() == ["Pica pica", "Garrulus glandarius"]
    with zipfile.ZipFile(tmp_path / "list.zip", "w") as archive:
        archive.writestr("meta.xml", META)
        archive.writestr("taxon.txt", TAXA)
    assert read_checklist(tmp_path / "list.zip").select("label", "family").rows() == [("Pica pica", "Corvidae")]


def test_a_list_without_species_or_countries_is_refused_by_name(tmp_path, checklist):
    (tmp_path / "empty.csv").write_text("name\nCorvidae\n")
    with pytest.raises(InputError, match=r"empty\.csv: found no species"):
        read_checklist(tmp_path / "empty.csv")
    with pytest.raises(InputError, match="no species of XX"):
        read_checklist(checklist, "XX")
    with pytest.raises(InputError, match="no column countryCode"):
        read_checklist(tmp_path / "empty.csv", "DE")
    with pytest.raises(InputError, match="no such file"):
        read_checklist(tmp_path / "nowhere.csv")


def test_names_are_scored_as_the_network_itself_scores_them(network, folder, checklist, photo):
    import open_clip

    model = zero_shot_model(f"local-dir:{folder}", checklist)
    chances = model.predict_photos([photo]).chances()[0]
    square = np.asarray(Image.open(photo), dtype=np.float32)
    pixels = (torch.from_numpy(square / 255).permute(2, 0, 1)[None] - 0.5) / 0.5
    texts = [text_of(row) for row in model.taxa.iter_rows(named=True)]
    with torch.inference_mode():
        image = torch.nn.functional.normalize(network.encode_image(pixels), dim=-1)
        names = torch.nn.functional.normalize(network.encode_text(open_clip.get_tokenizer("ViT-B-32")(texts)), dim=-1)
        expected = (network.logit_scale.exp() * image @ names.T).softmax(-1).numpy()[0]
    assert chances == pytest.approx(expected, abs=0.01) and chances.max() - chances.min() > 0.02


def test_identify_by_a_list_says_that_nothing_was_checked(folder, checklist, photo, run_main):
    model = f"local-dir:{folder}"
    answer = fieldmark.identify(photo, model, checklist=checklist)
    assert {name.species for name in answer.names} == {"Pica pica", "Garrulus glandarius", "Cyanocitta cristata"}
    assert answer.verdict.known is None and any("checked on no photo" in remark for remark in answer.remarks)
    one = fieldmark.identify(photo, model, checklist=checklist, only=["Pica"])
    assert [name.label for name in one.names if name.probability > 0] == ["Pica pica"]
    code, out, _ = run_main("identify", photo, "--model", model, "--checklist", checklist, "--country", "US")
    assert code == 0 and "blue jay" in out and "magpie" not in out


def test_without_a_list_or_weights_there_is_a_sentence(folder, checklist, photo, monkeypatch, tmp_path):
    with pytest.raises(MisuseError, match="add --checklist FILE"):
        fieldmark.identify(photo, f"local-dir:{folder}")
    with pytest.raises(MisuseError, match="--checklist is for networks that name by a list"):
        fieldmark.identify(photo, "imagenet", checklist=checklist)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MisuseError, match=r"weights of hf-hub:imageomics/bioclip-2 could not be downloaded"):
        fieldmark.identify(photo, "bioclip-2", checklist=checklist)
