"""Names of one taxon in several words, joined offline, with how each was found."""

import json

import polars as pl
import pytest

from fieldmark.cli.main import application
from fieldmark.errors import InputError
from fieldmark.tables.name_concepts import load_concepts

LABELS = (
    "Turdus merula_Eurasian Blackbird\nParus major_Great Tit\nParus minor_Japanese Tit\nCorvus corax_Common Raven\n"
)


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "labels.txt").write_text(LABELS)
    codes = {"Turdus merula_Eurasian Blackbird": "eurbla", "eurbla": "Turdus merula_Eurasian Blackbird"}
    (tmp_path / "codes.json").write_text(json.dumps(codes))
    taxa = {"id": [12716, 203153], "scientificName": ["Turdus merula", "Parus major"], "taxonRank": ["species"] * 2}
    pl.DataFrame(taxa).write_parquet(tmp_path / "taxa.parquet")
    (tmp_path / "changes.csv").write_text(
        "synonym,name,kind,since\nMerula vulgaris,Turdus merula,renamed,1850\n"
        "Parus cinereus,Parus major,split,2005\nParus cinereus,Parus minor,split,2005\n"
    )
    return [tmp_path / name for name in ("labels.txt", "codes.json", "taxa.parquet", "changes.csv")]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("Turdus merula", "exact"),
        ("Eurasian Blackbird", "concept"),
        ("eurbla", "concept"),
        ("12716", "concept"),
        ("Turdus merula_Eurasian Blackbird", "concept"),
        ("Merula vulgaris", "synonym"),
        ("eurasian-blackbird", "spelling"),
        ("Turdus merulus", "spelling"),
        ("Turdus merulla", "spelling"),
    ],
)
def test_every_name_of_a_taxon_leads_to_it_and_says_how(sources, name, how):
    match = load_concepts(sources, packages=()).find(name)
    assert match.how == how and match.concept is not None
    assert match.concept.birdnet == "Turdus merula_Eurasian Blackbird"
    assert (match.concept.ebird, match.concept.inat) == ("eurbla", "12716")


def test_a_split_is_joined_with_none_and_dated(sources):
    match = load_concepts(sources, packages=()).find("Parus cinereus")
    assert (match.concept, match.how) == (None, "ambiguous")
    assert match.note == "split in 2005 into Parus major and Parus minor"


def test_another_species_of_the_genus_is_not_a_spelling(sources):
    concepts = load_concepts(sources, packages=())
    assert concepts.find("Corvus corone").how == "not found"
    assert concepts.find("Parus majr").concept.scientific == "Parus major"


def test_a_join_says_which_files_it_rests_on(sources):
    assert [one.partition(" ")[0] for one in load_concepts(sources, packages=()).sources] == [
        one.name for one in sources
    ]


def test_a_source_of_no_known_kind_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="the columns a, b"):
        load_concepts([tmp_path / "x.csv"], packages=())


def test_the_verb_writes_the_names_in_the_words_that_were_asked_for(sources, tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("species,count\nEurasian Blackbird,3\nWren,1\n")
    options = [part for source in sources for part in ("--source", str(source))]
    arguments = ["names", str(tmp_path / "mine.csv"), "--to", "ebird", *options, "--out", str(tmp_path / "out.csv")]
    application("names")(arguments, standalone_mode=False)
    assert pl.read_csv(tmp_path / "out.csv").select("found", "how").rows() == [
        ("eurbla", "concept"),
        ("", "not found"),
    ]
    assert "labels.txt (" in capsys.readouterr().out
