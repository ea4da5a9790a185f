"""AnimalCLEF: the release opens, faults are named, and photos of one individual are put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark_tests.fixtures import save_photo

HEADER = "image_id,identity,path,date,orientation,species,split,dataset"


def write_release(root: Path, *, known: bool = True) -> Path:
    """Two datasets of four animals, each of its own color, six photos an animal, two of them asked about."""
    lines, number = [HEADER], 0
    for place, dataset in enumerate(("Lynx", "Newt")):
        for animal in range(4):
            color = tuple(int(value) for value in np.roll([230, 30 + 60 * animal, 60 + 90 * place], animal))
            for photo in range(6):
                number += 1
                asked = photo >= 4
                path = f"images/{dataset}/{number}.jpg"
                save_photo(root / path, color, number)
                identity = f"{dataset}_{animal}" if known or not asked else ""
                part = "test" if asked else "train"
                lines.append(f"{number},{identity},{path},2024-05-{photo + 1:02d},left,{dataset},{part},{dataset}")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


def test_photos_of_one_animal_are_put_together(tmp_path):
    root = write_release(tmp_path / "release")
    settings = {"size": 32, "threshold": 0.9}
    result = fieldmark.fit("animalclef-2026", root, "clustering", tmp_path / "run", settings=settings)
    assert result.scorecard.items == 16 and result.scorecard.units == 8
    assert result.scorecard.metrics["adjusted_rand"].value > 0.3
    lines = (tmp_path / "run" / "run.csv").read_text().splitlines()
    assert lines[0] == "image_id,cluster" and all(",cluster_" in line for line in lines[1:])
    again = fieldmark.score("animalclef-2026", tmp_path / "run", data=root)
    assert again.metrics == result.scorecard.metrics


def test_clusters_never_span_datasets(tmp_path):
    root = write_release(tmp_path / "release")
    fieldmark.fit("animalclef-2026", root, "clustering", tmp_path / "run", settings={"size": 32, "threshold": -1.0})
    clusters = {line.split(",")[1] for line in (tmp_path / "run" / "run.csv").read_text().splitlines()[1:]}
    assert clusters == {"cluster_Lynx_0", "cluster_Newt_0"}


def test_photos_without_identity_are_counted_and_answered(tmp_path):
    dataset = fieldmark.dataset("animalclef-2026", write_release(tmp_path / "release", known=False))
    assert dataset.remarks == ("16 photos have no identity: a run on them can be written, not scored.",)
    assert len(dataset.taxa) == 8 and len(dataset.media) == 48


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (",train,Lynx", ",training,Lynx", "line 2: found a part that is not known, expected train or test"),
        ("1,Lynx_0,", "1,,", "line 2: found no identity, expected one for each photo of train"),
        ("\n2,", "\n1,", "line 3: found an image_id again"),
        ("Newt_0", "Lynx_0", "the individual 'Lynx_0' in another dataset than in line"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused_with_its_line(old, new, sentence, tmp_path):
    table = write_release(tmp_path / "release") / "metadata.csv"
    table.write_text(table.read_text().replace(old, new, 1 if "\n" in old or old.startswith("1") else -1))
    with pytest.raises(InputError, match=sentence):
        fieldmark.dataset("animalclef-2026", tmp_path / "release")


def test_pairs_of_val_decide_from_where_on_two_photos_are_one_animal(tmp_path):
    root = write_release(tmp_path / "release")
    result = fieldmark.fit("animalclef-2026", root, "clustering", tmp_path / "run", settings={"size": 32})
    assert -1 < result.model.fitted.method.threshold < 1


def test_clusters_of_train_and_val_choose_the_threshold_where_pairs_do_not(tmp_path):
    root = write_release(tmp_path / "release")
    settings = {"size": 32, "by": "clusters"}
    result = fieldmark.fit("animalclef-2026", root, "clustering", tmp_path / "run", settings=settings)
    assert -1 < result.model.fitted.method.threshold < 1
    assert result.scorecard.metrics["adjusted_rand"].value > 0.3
    # No pair is a million times likelier the same than not: clusters choose then as well.
    other = {"size": 32, "odds": 1e6}
    again = fieldmark.fit("animalclef-2026", root, "clustering", tmp_path / "other", settings=other)
    assert again.model.fitted.method.threshold == result.model.fitted.method.threshold
    with pytest.raises(MisuseError, match="expected pairs or clusters"):
        fieldmark.fit("animalclef-2026", root, "clustering", tmp_path / "x", settings={"by": "photos"})
