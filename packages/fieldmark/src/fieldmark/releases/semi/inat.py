"""Semi-iNat 2021 as it lies on disk.

```
ROOT/
  l_train/<class id>/<n>.jpg       810 species, 5 to 80 photos each
  val/<class id>/<n>.jpg           5 photos each
  u_train/<name>.jpg               photos of these species and of 1,629 others, mixed
  test/<md5>.jpg                   20 photos each
  annotation_v2.json               {info, annotations: [{class_id, kingdom ... species}],
                                    unlabeled_taxa: [{image_name, kingdom, phylum}]}
  labels/                          what was hidden during the challenge (also beside the folders):
    all_taxa_info.json             the ranks of all 2,439 species by their number; 0 to 809 are in-class
    label2taxaid.json              the 810 in-class species with the numbers of their taxa at each rank
    l_train.txt, val.txt, test.txt, u_train_in.txt, u_train_out.txt     <path> <class>, -1 for none
    solution.csv                   Id,Category,Usage: as Kaggle keeps it, where somebody has it; Public or Private
```

Quirks:

- `annotation_v2.json` is not COCO, and replaces a first version that was withdrawn.
- A class is called by its number. A run calls a photo of test by the name of its file.
- The document contradicts itself about coarse labels: the abstract gives kingdom and phylum for all unlabeled photos,
  section 2 for out-of-class photos alone. Whatever the annotations tell is taken.
- The document speaks of "2439 animal species"; its table 1 and the taxonomy have 2,439 species of three kingdoms, of
  which 1,294 are animals.
- Nothing tells which photos show the same individual. The organizers took one photo per contributor and species, so
  that each is an observation of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.citations import preprint
from fieldmark.releases.coco import read_json
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.releases.semi.photo_lists import (
    IN_CLASS,
    OUT_OF_CLASS,
    ListedPhotos,
    find_table,
    media_table,
    observation_table,
    refuse_strange_classes,
)
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import PHOTO_INPUT
from fieldmark.tables.numbers import is_digits
from fieldmark.tables.schema import RANKS

NAME = "semi-inat-2021"
ANNOTATIONS, ALL_TAXA, CLASS_TAXA = "annotation_v2.json", "all_taxa_info.json", "label2taxaid.json"
COARSE = ("kingdom", "phylum")


def open_semi_inat(release: Release, subset: str = "all") -> Dataset:
    """Opens what there is of the release; there are no subsets.

    Raises:
        InputError: When neither annotations nor the taxonomy are there, or when files contradict each other.
    """
    if subset != "all":
        raise MisuseError(f"{NAME} has no subset called {subset!r}.")
    annotations = read_annotations(release)
    taxa = class_table(release, annotations)
    photos = read_photos(release, annotations)
    refuse_strange_classes(release, photos.by_path.values(), taxa["label"])
    every = list(photos.by_path.values())
    return Dataset(
        NAME,
        release,
        taxa,
        observation_table(every, taxa),
        media_table(every),
        tuple(_remarks(release, photos)),
        inputs=(PHOTO_INPUT,),
    )


def read_annotations(release: Release) -> dict[str, Any]:
    """The content of `annotation_v2.json`; empty where it is not there."""
    path = find_table(release, ANNOTATIONS)
    return {} if path is None else read_json(release, path)


def all_taxa(release: Release) -> pl.DataFrame | None:
    """Every species of the taxonomy that was published afterwards, in-class or not; None where it is not there."""
    path = find_table(release, ALL_TAXA)
    if path is None:
        return None
    return _ranked(read_json(release, path).items(), release.where(path))


def class_table(release: Release, annotations: Mapping[str, Any]) -> pl.DataFrame:
    """The in-class species in the order of their numbers, with their ranks.

    Raises:
        InputError: When nothing names them.
    """
    path = find_table(release, ANNOTATIONS)
    if annotations.get("annotations"):
        where = release.where(path or ANNOTATIONS)
        entries = _entries(annotations, "annotations", ("class_id", "species"), where)
        by_class = {str(entry["class_id"]): entry for entry in entries}
        return _ranked(by_class.items(), where)
    every, listed = all_taxa(release), find_table(release, CLASS_TAXA)
    if every is None or listed is None:
        found = f"neither {ANNOTATIONS} nor {ALL_TAXA} with {CLASS_TAXA}"
        hint = f"They come with the release: fieldmark get {NAME} ROOT --only annotations labels."
        raise InputError(release.root, found=found, expected="the species of the release", hint=hint)
    inside = set(read_json(release, listed))
    missing = sorted(inside - set(every["label"]))
    if missing:
        found = f"the class {missing[0]!r}, which {ALL_TAXA} does not have"
        raise InputError(release.where(listed), found=found, expected="classes of the taxonomy")
    return every.filter(pl.col("label").is_in(list(inside)))


def _ranked(rows: Any, where: str) -> pl.DataFrame:
    """Classes by number with their ranks."""
    table = []
    for number, entry in rows:
        if not is_digits(str(number)) or not isinstance(entry, dict):
            raise InputError(where, found=f"the class {number!r}", expected="a number with the ranks of a species")
        table.append((str(number), *(entry.get(rank) for rank in RANKS)))
    schema = dict.fromkeys(("label", *RANKS), pl.String)
    taxa = pl.DataFrame(table, schema=schema, orient="row").sort(pl.col("label").cast(pl.Int64))
    known = [rank for rank in RANKS if taxa[rank].is_not_null().any()]
    return taxa.select("label", *known).with_columns(scientific_name="species" if "species" in known else pl.lit(None))


def _entries(data: Mapping[str, Any], name: str, needed: tuple[str, ...], where: str) -> list[dict[str, Any]]:
    entries = data.get(name, [])
    if not isinstance(entries, list):
        raise InputError(where, found=f"{name!r} that is no list", expected=f"a list of {', '.join(needed)}")
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or any(entry.get(key) is None for key in needed):
            found = f"entry {place} of {name!r} without {' or '.join(needed)}"
            raise InputError(where, found=found, expected=f"{', '.join(needed)} in each")
    return entries


def read_photos(release: Release, annotations: Mapping[str, Any]) -> ListedPhotos:
    """The photos that folders, lists and annotations name."""
    photos = ListedPhotos(release)
    for part in ("l_train", "val"):
        photos.add_folder(part, by_class=True)
        photos.add_list(f"{part}.txt", part)
    for part in ("u_train", "test"):
        photos.add_folder(part, by_class=False)
    photos.add_list("test.txt", "test")
    for photo in photos.of_part("test"):
        photo.media_id = photo.path.rpartition("/")[2]
    photos.add_solution()
    photos.add_list("u_train.txt", "u_train")
    for suffix in ("", "_oracle"):
        photos.add_list(f"u_train_in{suffix}.txt", "u_train", membership=IN_CLASS)
        photos.add_list(f"u_train_out{suffix}.txt", "u_train", membership=OUT_OF_CLASS)
    where = release.where(find_table(release, ANNOTATIONS) or ANNOTATIONS)
    for entry in _entries(annotations, "unlabeled_taxa", ("image_name",), where):
        name = str(entry["image_name"])
        photo = photos.add(name if "/" in name else f"u_train/{name}", "u_train")
        photo.ranks = {rank: entry[rank] for rank in COARSE if isinstance(entry.get(rank), str)}
    return photos


def _remarks(release: Release, photos: ListedPhotos) -> list[str]:
    """What is missing, one sentence each."""
    if not photos.by_path:
        return ["There are no photos and no lists of them: only the taxonomy opens."]
    remarks = []
    absent = [part for part in ("l_train", "val", "u_train", "test") if part not in release.folders()]
    if absent:
        remarks.append(f"No folder {', '.join(f'{name}/' for name in absent)}: lists open, their photos do not.")
    if any(photo.label is None for photo in photos.of_part("test")):
        remarks.append("Labels of test are not there (test.txt); val is scored in their place.")
    return remarks


RECORDS = (
    ReleaseRecord(
        name="semi-inat-2021",
        about="Semi-iNat 2021: few labeled photos, many unlabeled ones, three kingdoms",
        open=open_semi_inat,
        check="fieldmark.releases.semi.check:check_semi_inat",
        download="fieldmark.releases.download.manifests.semi_inat_2021:SEMI_INAT_2021",
        world=World(
            "fieldmark_worlds.layouts.semi:write_inat",
            "invented organisms as Semi-iNat 2021 is released: three kingdoms, few labels, many unlabeled photos",
        ),
        terms="non-commercial research and education only, no redistribution (terms in the README)",
        homepage="https://github.com/cvl-umass/semi-inat-2021",
        size=PublishedSize(photos=343_219),
        citation=preprint(
            "su2021semiinat",
            "The Semi-Supervised iNaturalist Challenge at the FGVC8 Workshop",
            "Su, Jong-Chyi and Maji, Subhransu",
            2021,
            "2106.01364",
        ),
    ),
)
