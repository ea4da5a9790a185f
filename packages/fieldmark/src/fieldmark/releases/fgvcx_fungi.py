"""FGVCx Fungi 2018 as it is released.

```
ROOT/
  train.json, val.json                     COCO's lists: info, images, categories, annotations, licenses
  test.json                                info, images, licenses
  images/<taxon id>_<Genus>_<epithet>/<file>.JPG     the photos of train and val
  train_val_images/<super category>/<category>/<file>.jpg     the same in the tree that the draft described
  test/<uuid>.JPG                                    the photos of test
  solution.csv                             id,expected,usage: the organizers' own, where somebody has it
  fungi_dataset_spec.json                  the categories as Meta-Dataset lists them, where there is nothing better
```

Quirks:

- A class is a category id, which counts from 0. Two names stand for two ids each (`Cortinarius anomalus`, `Inocybe
  rimosa`), so that a name is never a key.
- Names and folders of forms and varieties contain dots and spaces, and some end in a space
  (`15809_Lactarius_azonites f. azonites `). Copies that went through other systems have lost the space (or the dot) at
  the end of the folder; they are found all the same.
- Ids of images are sparse. The id of a photo is that number, which the run file asks for. Should train or val use a
  number of test again, the name of the part is put in front there.
- Images of test have nothing but `file_name`, `license` and `id`; those of train and val also have size and rights
  holder.
- Nothing tells which photos show the same specimen: each is an observation of its own.
- The ranks are what the names give: genus, species, and `infraspecific` (`var. conica`). `name` is the name as it
  stands in the file.
- The solution is any CSV in ROOT with the columns `id` and `expected`; `usage` (Public, Private) tells which board a
  photo counted for.
- Links to the photos are dead since 2024, so that few people have everything: missing photos are noted in a remark, and
  whatever is there opens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.citations import bibtex
from fieldmark.releases.coco import CocoFile, read_coco, read_json
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.reader import read_csv
from fieldmark.tables.scientific_names import parse_name

NAME = "fgvcx-fungi-2018"
RELEASED_PARTS = ("train", "val", "test")
# Where photos of train and val may lie, and how many folders deep.
PHOTO_TREES = {"images": 1, "train_val_images": 2}
CATEGORY_LIST = "fungi_dataset_spec.json"
LISTED_CLASS = re.compile(r"([0-9]+)\.(.*)", re.DOTALL)
_NOWHERE = (
    pl.lit(None, pl.Date).alias("date"),
    pl.lit(None, pl.Float64).alias("lat"),
    pl.lit(None, pl.Float64).alias("lon"),
)


def open_fgvcx_fungi(release: Release, subset: str = "all") -> Dataset:
    """Opens what there is of the release; there are no subsets.

    Raises:
        InputError: When neither annotations nor a list of categories are there, or when they contradict themselves.
    """
    if subset != "all":
        raise MisuseError(f"FGVCx Fungi 2018 has no subset called {subset!r}.")
    files = annotation_files(release)
    if not files and not release.exists(CATEGORY_LIST):
        raise InputError(
            release.root,
            found="none of train.json, val.json and test.json",
            expected="the annotations of FGVCx Fungi 2018",
            hint=f"`fieldmark get {NAME} ROOT` tells where to find them.",
        )
    taxa = _taxa(release, files)
    photos = _photos(release, files, set(taxa["label"]))
    photos, solved = _with_solution(release, photos, set(taxa["label"]))
    unlabeled = (pl.col("part") != "test") & pl.col("label").is_null()
    parts = pl.when(unlabeled).then(pl.lit([], pl.List(pl.String))).otherwise(pl.concat_list("part"))
    return Dataset(
        NAME,
        release,
        taxa,
        photos.select(pl.col("media_id").alias("observation_id"), "label", *_NOWHERE, "usage"),
        photos.select(
            "media_id", pl.col("media_id").alias("observation_id"), "path", parts.alias("parts"),
            "license", "license_url", "rights_holder", "width_px", "height_px",
        ),
        _remarks(release, files, photos, taxa, solved),
    )  # fmt: skip


def annotation_files(release: Release) -> dict[str, CocoFile]:
    """The annotations that are there, by part."""
    return {part: read_coco(release, f"{part}.json") for part in RELEASED_PARTS if release.exists(f"{part}.json")}


def listed_categories(release: Release) -> pl.DataFrame:
    """`id, name, supercategory` from Meta-Dataset's list, whose classes are called `<category id>.<name>`."""
    named = read_json(release, CATEGORY_LIST).get("class_names")
    matches = [LISTED_CLASS.fullmatch(str(name)) for name in named.values()] if isinstance(named, dict) else [None]
    if None in matches:
        raise InputError(
            release.where(CATEGORY_LIST), found="another list", expected="'class_names' such as '0571.Lactarius ...'"
        )
    rows = sorted((int(match.group(1)), match.group(2), None) for match in matches if match)
    schema = {"id": pl.Int64, "name": pl.String, "supercategory": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def solution_file(release: Release) -> str | None:
    """The organizers' solution: the CSV in the root that has the columns `id` and `expected`.

    Raises:
        InputError: When there are several, none of them called `solution.csv`.
    """
    candidates = [name for name in release.files() if name.lower().endswith(".csv") and _is_solution(release, name)]
    if len(candidates) > 1 and "solution.csv" not in candidates:
        hint = "Keep one of them, or call it solution.csv."
        raise InputError(release.root, found=f"{' and '.join(candidates)}", expected="one solution", hint=hint)
    return "solution.csv" if "solution.csv" in candidates else candidates[0] if candidates else None


def _is_solution(release: Release, path: str) -> bool:
    with release.open(path) as file:
        header = file.readline().decode("utf-8-sig", errors="replace")
    return {"id", "expected"} <= {field.strip() for field in header.split(",")}


def read_solution(release: Release, path: str) -> pl.DataFrame:
    """`id`, `expected` and `usage` as text, one row per photo of test."""
    where = release.where(path)
    with release.open(path) as file:
        rows = read_csv(file, where, required=("id", "expected"))
    if "usage" not in rows.columns:
        rows = rows.with_columns(usage=pl.lit(None, pl.String))
    rows = rows.select(pl.col("id", "expected", "usage").str.strip_chars())
    for problem, wrong in (
        ("no id or no category", rows["id"].is_null() | rows["expected"].is_null()),
        ("an id again", ~rows["id"].is_first_distinct()),
    ):
        if wrong.any():
            line = int(wrong.arg_true()[0]) + 2
            raise InputError(where, line=line, found=problem, expected="one category for each id")
    return rows


def photo_folders(release: Release) -> list[str]:
    """The folders that hold photos of train and val."""
    found = []
    for root, depth in PHOTO_TREES.items():
        folders = [root]
        for _ in range(depth):
            folders = [f"{folder}/{name}" for folder in folders for name in release.folders(folder)]
        found += folders
    return found


def cut_folders(release: Release) -> dict[str, str]:
    """Those folders by their path without the spaces and dots at the end of names, which copying may have cost."""
    return {cut_name(folder): folder for folder in photo_folders(release)}


def cut_name(folder: str) -> str:
    """A path without the spaces and dots at the end of each name in it.

    >>> cut_name("images/15809_Lactarius_azonites f. azonites ")
    'images/15809_Lactarius_azonites f. azonites'
    """
    return "/".join(name.rstrip(" .") for name in folder.split("/"))


def _taxa(release: Release, files: Mapping[str, CocoFile]) -> pl.DataFrame:
    """One row per category, in the order of the ids."""
    tables = [file.categories for file in files.values() if len(file.categories)]
    if not tables and release.exists(CATEGORY_LIST):
        tables = [listed_categories(release)]
    schema = {"id": pl.Int64, "name": pl.String, "supercategory": pl.String}
    rows = pl.concat(tables).unique().sort("id", "name") if tables else pl.DataFrame(schema=schema)
    twice = rows.filter(pl.col("id").is_duplicated())
    if len(twice):
        names = " and ".join(repr(name) for name in twice.filter(pl.col("id") == twice["id"][0])["name"])
        raise InputError(
            release.root,
            found=f"the category {twice['id'][0]} as {names}",
            expected="one meaning for each id",
            hint="Are train.json and val.json of the same release?",
        )
    parsed = [parse_name(name) for name in rows["name"]]
    return rows.select(
        pl.col("id").cast(pl.String).alias("label"),
        pl.lit(None, pl.Boolean).alias("poisonous"),
        pl.Series("genus", [name.genus for name in parsed], pl.String),
        pl.Series("species", [name.species for name in parsed], pl.String),
        pl.Series("infraspecific", [name.infraspecific for name in parsed], pl.String),
        pl.col("name").str.strip_chars().alias("scientific_name"),
        "name",
        "supercategory",
    )


def _photos(release: Release, files: Mapping[str, CocoFile], category_ids: set[str]) -> pl.DataFrame:
    """One row per photo of all parts: ids, place, label, license."""
    tables = [_photos_of(release, part, file, category_ids) for part, file in files.items()]
    if not tables:
        tables = [_photos_of(release, "test", _no_file(), category_ids)]
    photos = pl.concat(tables)
    # Test comes last, and its ids must stay as they are.
    again = pl.col("media_id").is_duplicated() & (pl.col("part") != "test")
    renamed = pl.when(again).then(pl.format("{}-{}", "part", "media_id")).otherwise("media_id")
    photos = photos.with_columns(renamed.alias("media_id"))
    folder, there = pl.col("path").str.extract(r"^(.*)/[^/]+$"), cut_folders(release)
    cut = folder.str.replace_all(r"[ .]+(/|$)", "${1}")
    actual = cut.replace_strict(there, default=None, return_dtype=pl.String)
    moved = pl.format("{}/{}", actual, pl.col("path").str.extract(r"([^/]+)$"))
    lost = actual.is_not_null() & ~folder.is_in(list(there.values()))
    return photos.with_columns(pl.when(lost).then(moved).otherwise("path").alias("path"))


def _photos_of(release: Release, part: str, file: CocoFile, category_ids: set[str]) -> pl.DataFrame:
    where = release.where(file.path)
    twice = file.images.filter(pl.col("id").is_duplicated())
    if len(twice):
        raise InputError(where, found=f"the image {twice['id'][0]} more than once", expected="each id once")
    labels = file.annotations.select("image_id", pl.col("category_id").cast(pl.String).alias("label")).unique()
    torn = labels.filter(pl.col("image_id").is_duplicated())
    if len(torn):
        both = " and ".join(sorted(torn.filter(pl.col("image_id") == torn["image_id"][0])["label"]))
        raise InputError(where, found=f"the image {torn['image_id'][0]} in {both}", expected="one category per image")
    strange = labels.filter(~pl.col("label").is_in(list(category_ids))).sort("image_id")
    if len(strange):
        raise InputError(
            where,
            found=f"the category {strange['label'][0]} for image {strange['image_id'][0]}",
            expected="one that is listed under 'categories'",
        )
    licenses = file.licenses.unique("id", keep="first", maintain_order=True)
    licenses = licenses.select("id", pl.col("name").alias("license_name"), pl.col("url").alias("license_url"))
    rows = file.images.join(labels, left_on="id", right_on="image_id", how="left", maintain_order="left")
    rows = rows.join(licenses, left_on="license", right_on="id", how="left", maintain_order="left")
    return rows.select(
        pl.col("id").cast(pl.String).alias("media_id"),
        pl.lit(part).alias("part"),
        pl.col("file_name").alias("path"),
        "label",
        pl.col("license_name").alias("license"),
        "license_url",
        "rights_holder",
        pl.col("width").alias("width_px"),
        pl.col("height").alias("height_px"),
    )


def _no_file() -> CocoFile:
    """Annotations of nothing, for when there is only a list of categories."""
    whole, text = pl.Int64, pl.String
    images = {"id": whole, "file_name": text, "license": whole, "rights_holder": text, "width": whole, "height": whole}
    annotations = pl.DataFrame(schema={"image_id": whole, "category_id": whole})
    licenses = pl.DataFrame(schema={"id": whole, "name": text, "url": text})
    return CocoFile("", pl.DataFrame(schema=images), pl.DataFrame(), annotations, licenses, False, False)


def _with_solution(release: Release, photos: pl.DataFrame, category_ids: set[str]) -> tuple[pl.DataFrame, bool]:
    """The photos with the labels of test and `usage`, and whether there was a solution."""
    path = solution_file(release)
    if path is None:
        return photos.with_columns(usage=pl.lit(None, pl.String)), False
    solution = read_solution(release, path)
    strange = (~solution["expected"].is_in(list(category_ids))).arg_true()
    if category_ids and len(strange):
        row = int(strange[0])
        found = f"the category {solution['expected'][row]!r}"
        raise InputError(release.where(path), line=row + 2, found=found, expected="an id of the categories")
    joined = photos.join(
        solution.with_columns(part=pl.lit("test")), left_on=["media_id", "part"], right_on=["id", "part"], how="left",
        maintain_order="left",
    )  # fmt: skip
    return joined.with_columns(pl.coalesce("label", "expected").alias("label")).drop("expected"), True


def _remarks(
    release: Release, files: Mapping[str, CocoFile], photos: pl.DataFrame, taxa: pl.DataFrame, solved: bool
) -> tuple[str, ...]:
    """What is missing, one sentence each."""
    remarks = []
    absent = [f"{part}.json" for part in RELEASED_PARTS if part not in files]
    if absent:
        remarks.append(f"Not there: {', '.join(absent)}.")
    if taxa.is_empty():
        remarks.append("No file lists the categories, so that there are no classes.")
    elif not any(file.has_categories for file in files.values()):
        remarks.append(f"The categories are those of {CATEGORY_LIST}; no file tells which photo shows which.")
    for folder in sorted(set(photos["path"].str.extract(r"^([^/]+)/").drop_nulls())):
        if not release.exists(folder):
            remarks.append(f"The photos in {folder}/ are not there: only their annotations can be read.")
    unlabeled = len(photos.filter((pl.col("part") != "test") & pl.col("label").is_null()))
    if unlabeled:
        remarks.append(f"{unlabeled:,} photo(s) of train or val have no annotation and are in no part.")
    hidden = len(photos.filter((pl.col("part") == "test") & pl.col("label").is_null()))
    if hidden:
        which = f"{hidden:,} photos of test are not in the solution" if solved else "Labels are not published for test"
        remarks.append(f"{which}{'; val is scored in their place' if 'val' in files else ''}.")
    return tuple(remarks)


RECORDS = (
    ReleaseRecord(
        name="fgvcx-fungi-2018",
        about="FGVCx Fungi 2018",
        open=open_fgvcx_fungi,
        check="fieldmark.releases.fgvcx_fungi_check:check_fgvcx_fungi",
        download="fieldmark.releases.download.manifests.fgvcx_fungi_2018:FGVCX_FUNGI_2018",
        world=World(
            "fieldmark_worlds.layouts.fgvcx_fungi:write",
            "invented fungi as FGVCx Fungi 2018 is released, with the organizers' solution",
        ),
        license="photos CC BY-NC 4.0",
        terms="non-commercial research and education only, no redistribution (terms in the README)",
        homepage="https://github.com/visipedia/fgvcx_fungi_comp",
        size=PublishedSize(photos=100_000, rounded=True),
        citation=bibtex(
            "misc",
            "fgvcx2018fungi",
            title="FGVCx Fungi Classification Challenge",
            year="2018",
            url="https://github.com/visipedia/fgvcx_fungi_comp",
        ),
    ),
)
