"""Semi-Aves 2020 as it lies on disk.

```
ROOT/
  anno_l_train.json, anno_val.json        COCO's images and annotations, without categories
  anno_u_train_in.json, anno_u_train_out.json     the same; every category_id is -1
  anno_test.json                          images alone
  trainval_images/<class id>/<n>.jpg      200 species of birds
  u_train_in/<n>.jpg, u_train_out/<n>.jpg unlabeled photos of the 200 species, and of 800 others
  test/<n>.jpg
  solution.csv                            Id,Category[,Usage]: the classes of test, published afterwards
  semi_aves_class_names.txt               <class> <Genus_epithet>
  u_train_in_oracle.txt, u_train_out_oracle.txt   hidden classes, published afterwards; 200 and more are out-of-class
```

Quirks:

- Annotations may lie in a folder `annotation/`, lists in `labels/`.
- Unlike in Semi-iNat, it is no secret which unlabeled photos are of the 200 species. The subset `in` leaves the others
  out, as a part of the published results does.
- A class is called by its number. A run calls a photo of test by the number it has in `anno_test.json`.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.citations import preprint
from fieldmark.releases.coco import read_coco
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.releases.semi.photo_lists import (
    IN_CLASS,
    NO_CLASS,
    OUT_OF_CLASS,
    SOLUTION,
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

NAME = "semi-aves-2020"
SUBSETS = ("all", "in")
NAMES_FILE = "semi_aves_class_names.txt"
# The files of annotations, with the part that each belongs to and whether its photos are of the classes.
FILES = {
    "l_train": ("l_train", None),
    "val": ("val", None),
    "test": ("test", None),
    "u_train_in": ("u_train", IN_CLASS),
    "u_train_out": ("u_train", OUT_OF_CLASS),
}
# All of them are birds.
RANKS_OF_BIRDS = {"kingdom": "Animalia", "phylum": "Chordata", "class": "Aves"}


def open_semi_aves(release: Release, subset: str = "all") -> Dataset:
    """Opens what there is of the release.

    Args:
        release: The root.
        subset: "all", or "in" for no unlabeled photos but those of the 200 species.

    Raises:
        InputError: When there are no annotations, or when files contradict each other.
    """
    if subset not in SUBSETS:
        raise MisuseError(f"{NAME} has no subset called {subset!r}: all or in.")
    photos = read_photos(release)
    taxa = class_table(release, photos)
    refuse_strange_classes(release, photos.by_path.values(), taxa["label"])
    every = [photo for photo in photos.by_path.values() if subset == "all" or photo.membership != OUT_OF_CLASS]
    for photo in every:
        photo.ranks = RANKS_OF_BIRDS
    return Dataset(
        NAME,
        release,
        taxa,
        observation_table(every, taxa),
        media_table(every),
        tuple(_remarks(release, photos)),
        inputs=(PHOTO_INPUT,),
    )


def read_photos(release: Release) -> ListedPhotos:
    """The photos that annotations and lists name.

    Raises:
        InputError: When neither are there.
    """
    photos = ListedPhotos(release)
    for name, (part, membership) in FILES.items():
        path = find_table(release, f"anno_{name}.json")
        if path is not None:
            _add_annotations(photos, path, part, membership)
        photos.add_list(f"{name}.txt", part, membership=membership)
        photos.add_list(f"{name}_oracle.txt", part, membership=membership)
    if not photos.by_path:
        expected, hint = "anno_l_train.json", f"fieldmark get {NAME} ROOT --only annotations labels downloads them."
        raise InputError(release.root, found="no annotations", expected=expected, hint=hint)
    photos.add_solution()
    return photos


def _add_annotations(photos: ListedPhotos, path: str, part: str, membership: str | None) -> None:
    where = photos.release.where(path)
    coco = read_coco(photos.release, path)
    label_of: dict[int, str] = {}
    for image, category in coco.annotations.select("image_id", "category_id").iter_rows():
        if image in label_of:
            raise InputError(where, found=f"two annotations of the image {image}", expected="one each")
        label_of[image] = str(category)
    for row in coco.images.select("id", "file_name").to_dicts():
        if row["file_name"] in photos.by_path:
            raise InputError(where, found=f"{row['file_name']!r} again", expected="each photo in one file")
        photo = photos.add(row["file_name"], part)
        photo.membership = membership
        label = label_of.pop(row["id"], NO_CLASS)
        if part in ("l_train", "val") and label == NO_CLASS:
            raise InputError(where, found=f"no class for {row['file_name']!r}", expected="one each")
        if part == "test":
            photo.media_id = str(row["id"])
        elif part != "u_train" and label != NO_CLASS:
            photo.label = label
    if label_of:
        found = f"an annotation of the image {next(iter(label_of))}, which is not listed"
        raise InputError(where, found=found, expected="annotations of the images of the file")


def class_table(release: Release, photos: ListedPhotos) -> pl.DataFrame:
    """The species in the order of their numbers: as the file of names has them, or else those of labeled photos."""
    path = find_table(release, NAMES_FILE)
    if path is not None:
        rows = _names(release, path)
    else:
        numbers = {photo.label for part in ("l_train", "val") for photo in photos.of_part(part) if photo.label}
        rows = dict.fromkeys(numbers)
    table: list[tuple[Any, ...]] = []
    for number in sorted(rows, key=int):
        name = rows[number]
        table.append((number, *RANKS_OF_BIRDS.values(), name.split(" ")[0] if name else None, name, name))
    columns = ("label", *RANKS_OF_BIRDS, "genus", "species", "scientific_name")
    return pl.DataFrame(table, schema=dict.fromkeys(columns, pl.String), orient="row")


def _names(release: Release, path: str) -> dict[str, str | None]:
    where = release.where(path)
    rows: dict[str, str | None] = {}
    for number, line in enumerate(release.read(path).decode("utf-8", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        label, _, name = line.strip().partition(" ")
        if not is_digits(label) or not name or label in rows:
            raise InputError(where, line=number, found=repr(line), expected="the number of a class and its name")
        rows[label] = name.replace("_", " ")
    return rows


def _remarks(release: Release, photos: ListedPhotos) -> list[str]:
    """What is missing, one sentence each."""
    remarks = []
    folders = {photo.path.partition("/")[0] for photo in photos.by_path.values()}
    absent = sorted(folders - set(release.folders()))
    if absent:
        remarks.append(f"No folder {', '.join(f'{name}/' for name in absent)}: the tables open, the photos do not.")
    if not photos.of_part("u_train"):
        remarks.append("There are no unlabeled photos: anno_u_train_in.json and anno_u_train_out.json are missing.")
    if any(photo.label is None for photo in photos.of_part("test")):
        remarks.append(f"Labels of test are not there ({SOLUTION}); val is scored in their place.")
    return remarks


RECORDS = (
    ReleaseRecord(
        name="semi-aves-2020",
        about="Semi-Aves 2020: birds, few labeled photos, unlabeled ones of these and other species",
        open=open_semi_aves,
        check="fieldmark.releases.semi.check:check_semi_aves",
        download="fieldmark.releases.download.manifests.semi_aves_2020:SEMI_AVES_2020",
        world=World(
            "fieldmark_worlds.layouts.semi:write_aves",
            "invented animals as Semi-Aves 2020 is released: unlabeled photos in class and out of class",
        ),
        terms="non-commercial research and education only, no redistribution (terms in the README)",
        homepage="https://github.com/cvl-umass/semi-inat-2020",
        size=PublishedSize(photos=162_807),
        citation=preprint(
            "su2021semiaves",
            "The Semi-Supervised iNaturalist-Aves Challenge at FGVC7 Workshop",
            "Su, Jong-Chyi and Maji, Subhransu",
            2021,
            "2103.06937",
        ),
    ),
)
