"""A user's own occurrences made into a benchmark with few labels: cut, opened, and what a method is shown."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.main import app
from fieldmark.errors import MisuseError
from fieldmark.fitting.fit_part import shown_to
from fieldmark.methods.semi.heads import Oracle
from fieldmark.methods.semi.pseudo_labels import PseudoLabel
from fieldmark.releases import open_dataset
from fieldmark.splits.files import read_split
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.fixtures import save_photo

RECIPE = ("val=1", "public=1", "private=1", "least_labeled=1", "labeled=0.4", "in_class=0.5")


@pytest.fixture
def root(tmp_path):
    """Four species of two phyla, six photos each of six people."""
    lines = ["id,scientificName,kingdom,phylum,genus,species,recordedBy,image_path"]
    for number, (phylum, name) in enumerate(
        (p, f"{g} {e}") for p, g in (("Mollusca", "Helix"), ("Chordata", "Anas")) for e in ("prima", "altera")
    ):
        for photo in range(6):
            save_photo(tmp_path / f"photos/{number}{photo}.jpg", (40 * number, 90, 90), seed=10 * number + photo)
            ranks = f"Animalia,{phylum},{name.split()[0]},{name}"
            lines.append(f"{number}{photo},{name},{ranks},person {photo},photos/{number}{photo}.jpg")
    (tmp_path / "occurrences.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_occurrences_are_cut_by_the_recipe_and_open_with_the_in_class_species_alone(root):
    options = ["--semi", "--label", "species", "--group", "phylum", "--contributor", "recordedBy", "--id", "id"]
    settings = [text for setting in RECIPE for text in ("--set", setting)]
    out = root.parent / "split.csv"
    done = CliRunner().invoke(app, ["split", str(root / "occurrences.csv"), "--out", str(out), *options, *settings])
    assert done.exit_code == 0, done.output
    assert "2 species in-class, 2 species out-of-class" in done.output
    data = open_dataset("occurrences", root, "photos")
    opened = open_benchmark(BENCHMARKS["occurrences"], data, split=read_split(out))
    assert len(opened.view.labels) == 2 and len(data.taxa) == 4
    assert set(opened.items["train"]["label"]) == set(opened.view.labels.names) == set(opened.items["test"]["label"])
    assert (opened.hidden >= 0).sum() == 2 * 2 and (opened.hidden < 0).sum() == 2 * 6
    assert shown_to(PseudoLabel(), opened.view, opened.hidden).unlabeled.targets is None
    assert (shown_to(Oracle(), opened.view, opened.hidden).unlabeled.truth == opened.hidden).all()
    phylum = opened.view.unlabeled.targets.coarse["phylum"]
    assert set(phylum.tolist()) == {0, 1} and (opened.view.unlabeled.targets.codes == -1).all()


def test_options_of_other_splits_are_refused_beside_the_recipe(root):
    table = str(root / "occurrences.csv")
    for wrong, said in ((["--val", "0.1"], "leave --val out"), ([], "--label COLUMN")):
        label = ["--label", "species"] if wrong else []
        done = CliRunner().invoke(app, ["split", table, "--out", str(root.parent / "s.csv"), "--semi", *label, *wrong])
        assert isinstance(done.exception, MisuseError) and said in str(done.exception)
