"""Any dataset as COCO JSON, as pycocotools and the tools around it read it.

```
info         which dataset and part, its digest, whether it is simulated, what to know about it
licenses     id, name, url: where the dataset knows them
images       id, file_name (below the root of the release), width, height; observation_id; and where they are known
             license, rights_holder, date, lat, lon; `unknown: true` for a species that is none of the categories;
             `part` where a split is given
categories   id, name, supercategory, and the ranks that are known
annotations  one for each photo with a label: id, image_id, category_id, iscrowd; where the dataset has masks also
             segmentation, area and bbox of the whole, and `parts`: the same for each named part
```

Ids are those of the dataset where they are whole numbers, so that a release in this format comes back as it was;
otherwise images and categories are numbered from 1 in the order of the whole dataset, so that they mean the same in the
files of all its parts. Width and height come from the header of the file, as it is stored; masks are brought to that
size. With instances, the parts are the categories and each piece of a part is an annotation. Nothing depends on when or
where the file is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.masks.coco_runlengths import coco_rle
from fieldmark.masks.parts import NEVER_PARTS, WHOLE, Mask, resized, whole
from fieldmark.releases import Dataset
from fieldmark.splits import PARTS
from fieldmark.splits.files import Split
from fieldmark.storage.files import appearing_file
from fieldmark.tables.inputs import MaskLayer
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.schema import RANKS
from fieldmark.version import __version__
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress

BLOCK_PHOTOS = 256


@dataclass(frozen=True)
class CocoExport:
    """What was written: how many images, annotations, masks and categories, and photos whose size is not known."""

    images: int
    annotations: int
    masks: int
    categories: int
    without_size: int


def export_coco(
    dataset: Dataset, out: Path, *, part: str | None = None, instances: bool = False, split: Split | None = None
) -> CocoExport:
    """Writes a dataset, or one of its parts, as COCO JSON.

    Args:
        dataset: What to write.
        out: The file to be; it appears when complete.
        part: One of the parts of the release, or of the split; everything if not given.
        instances: Whether each piece of each part is an annotation of its own, and the parts are the categories.
        split: Parts from a file (`fieldmark export split`, `fieldmark split`): each image then says which it is in.

    Raises:
        InputError: When the split does not fit the release.
        MisuseError: When there is no such part, or there are no masks to take apart.
    """
    media = _media_of(dataset, part, split)
    image_ids = _ids(dataset.media["media_id"])
    category_ids = _ids(dataset.taxa["label"])
    licenses = _licenses(dataset.media)
    sizes = _sizes(dataset, media)
    told = {} if split is None else dict(media.select("media_id", "parts").iter_rows())
    images = [
        _image(row, image_ids, sizes[row["media_id"]], licenses)
        | ({"part": told[row["media_id"]][0]} if told.get(row["media_id"]) else {})
        for row in media.iter_rows(named=True)
    ]
    categories = [_category(row, category_ids) for row in dataset.taxa.iter_rows(named=True)]
    if instances:
        categories, annotations = _instances(dataset, media, image_ids, sizes)
    else:
        annotations = _annotations(dataset, media, image_ids, category_ids, sizes)
    data = {
        "info": _info(dataset, part) | ({} if split is None else {"split": split.record}),
        "licenses": [{"id": number, "name": name, "url": url} for (name, url), number in licenses.items()],
        "images": images,
        "categories": categories,
        "annotations": annotations,
    }
    with appearing_file(out) as partial:
        partial.write_text(json.dumps(data, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    return CocoExport(
        images=len(images),
        annotations=len(annotations),
        masks=sum("segmentation" in annotation for annotation in annotations),
        categories=len(categories),
        without_size=sum(size is None for size in sizes.values()),
    )


def box_of(mask: Mask) -> list[float]:
    """The box around a mask: left, top, width, height; all 0 for an empty one.

    >>> box_of(np.array([[0, 1, 1], [0, 0, 1]], dtype=bool))
    [1.0, 0.0, 2.0, 2.0]
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return [0.0, 0.0, 0.0, 0.0]
    left, top = float(columns[0]), float(rows[0])
    return [left, top, float(columns[-1]) + 1 - left, float(rows[-1]) + 1 - top]


def _media_of(dataset: Dataset, part: str | None, split: Split | None) -> pl.DataFrame:
    """The photos of a part in the order of the dataset, with what is known about their observations."""
    further = [name for name in dataset.observations.columns if name not in dataset.media.columns]
    observations = dataset.observations.select("observation_id", *further)
    media = dataset.media.join(observations, on="observation_id", how="left", maintain_order="left")
    if split is not None:
        media = media.with_columns(parts=_parts_of(split, media))
    if part is None:
        return media
    names = media["parts"].explode().drop_nulls().unique(maintain_order=True).to_list()
    if part not in names:
        advice = did_you_mean(part, names) if names else "It has no parts: leave --part out."
        raise MisuseError(f"{dataset.name} at {dataset.release.root} has no part called {part!r}. {advice}")
    return media.filter(pl.col("parts").list.contains(part))


def _parts_of(split: Split, media: pl.DataFrame) -> pl.Series:
    """The part of each photo as a file says, as a list of one; of none where it is left out."""
    members = split.cut(media).members
    rows = zip(*(members[name] for name in PARTS), strict=True)
    return pl.Series("parts", [[name for name, inside in zip(PARTS, row, strict=True) if inside] for row in rows])


def _ids(names: pl.Series) -> dict[str, int]:
    """A number for each name: the one it spells where all of them do, else its place, from 1."""
    spelled = names.to_list()
    if spelled and all(name.isascii() and name.isdigit() and str(int(name)) == name for name in spelled):
        return {name: int(name) for name in spelled}
    return {name: number for number, name in enumerate(spelled, 1)}


def _licenses(media: pl.DataFrame) -> dict[tuple[str, str | None], int]:
    """The licenses that photos are under, by name and address, numbered from 1."""
    if "license" not in media.columns:
        return {}
    address = pl.col("license_url") if "license_url" in media.columns else pl.lit(None, pl.String).alias("license_url")
    rows = media.select("license", address).drop_nulls("license").unique().sort("license", "license_url")
    return {pair: number for number, pair in enumerate(rows.iter_rows(), 1)}


def _sizes(dataset: Dataset, media: pl.DataFrame) -> dict[str, tuple[int, int] | None]:
    """Width and height of each photo from its header; what the tables say where it cannot be opened."""

    def size_block(paths: Sequence[str]) -> list[tuple[int, int] | None]:
        return [_header_size(dataset, path) for path in paths]

    sizes: list[tuple[int, int] | None] = []
    with progress("reading headers", len(media)) as tick:
        for block in map_blocks(size_block, blocks_of(media["path"].to_list(), BLOCK_PHOTOS), all_cores("thread")):
            sizes += block
            tick(len(block))
    if "width_px" in media.columns:
        listed = media.select("width_px", "height_px").rows()
        sizes = [
            size or ((width, height) if width and height else None)
            for size, (width, height) in zip(sizes, listed, strict=True)
        ]
    return dict(zip(media["media_id"], sizes, strict=True))


def _header_size(dataset: Dataset, path: str) -> tuple[int, int] | None:
    try:
        with dataset.release.open(path) as file, Image.open(file) as photo:
            return photo.size
    except (InputError, UnidentifiedImageError, OSError, SyntaxError, ValueError):
        return None


def _image(
    row: Mapping[str, Any],
    image_ids: Mapping[str, int],
    size: tuple[int, int] | None,
    licenses: Mapping[tuple[str, str | None], int],
) -> dict[str, Any]:
    facts = {
        "width": size[0] if size else None,
        "height": size[1] if size else None,
        "license": licenses.get((row.get("license", ""), row.get("license_url"))),
        "rights_holder": row.get("rights_holder"),
        "observation_id": row["observation_id"],
        "date": row["date"].isoformat() if row["date"] else None,
        "lat": row["lat"],
        "lon": row["lon"],
        "unknown": True if row["label"] == str(UNKNOWN) else None,
    }
    bare = {"id": image_ids[row["media_id"]], "file_name": row["path"]}
    return bare | {name: value for name, value in facts.items() if value is not None}


def _category(row: Mapping[str, Any], category_ids: Mapping[str, int]) -> dict[str, Any]:
    name = row.get("name") or row.get("scientific_name") or row["label"]
    nearest = next((row[rank] for rank in ("family", "genus", "order", "class", "kingdom") if row.get(rank)), None)
    ranks = {rank: row[rank] for rank in (*RANKS, "infraspecific") if row.get(rank)}
    category = {"id": category_ids[row["label"]], "name": name, "supercategory": row.get("supercategory") or nearest}
    poisonous = {} if row.get("poisonous") is None else {"poisonous": row["poisonous"]}
    return {key: value for key, value in category.items() if value is not None} | ranks | poisonous


def _annotations(
    dataset: Dataset,
    media: pl.DataFrame,
    image_ids: Mapping[str, int],
    category_ids: Mapping[str, int],
    sizes: Mapping[str, tuple[int, int] | None],
) -> list[dict[str, Any]]:
    masks_of = dataset.layers.get("masks")
    labeled = media.filter(pl.col("label").is_in(list(category_ids))).select("media_id", "label")
    annotations = []
    with progress("writing annotations", len(labeled) if masks_of else 0) as tick:
        for number, (media_id, label) in enumerate(labeled.iter_rows(), 1):
            annotation = {"id": number, "image_id": image_ids[media_id], "category_id": category_ids[label]}
            annotations.append(annotation | {"iscrowd": 0} | _segmentation(masks_of, media_id, sizes[media_id]))
            tick(1)
    return annotations


def _instances(
    dataset: Dataset,
    media: pl.DataFrame,
    image_ids: Mapping[str, int],
    sizes: Mapping[str, tuple[int, int] | None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The parts as categories, and each piece of each part as an annotation; what was merged at the end is left out."""
    layer = dataset.layers.get("masks")
    if not isinstance(layer, MaskLayer):
        raise MisuseError(f"{dataset.name} at {dataset.release.root} has no masks, and so no instances.")
    photos = media["media_id"].to_list()
    number_of = {name: number for number, name in enumerate(sorted(layer.names(photos)), 1)}
    annotations: list[dict[str, Any]] = []
    with progress("writing instances", len(photos)) as tick:
        for media_id in photos:
            rows = layer.instances(media_id)
            for row in rows[:-1] if len(rows) > 1 and rows[-1].label == WHOLE else rows:
                size = sizes[media_id]
                mask = resized(row.mask(), (size[1], size[0]) if size else (row.height, row.width))
                place = {"id": len(annotations) + 1, "image_id": image_ids[media_id]}
                annotations.append(place | {"category_id": number_of[row.label], "iscrowd": 0} | _drawn(mask))
            tick(1)
    return [{"id": number, "name": name, "supercategory": "part"} for name, number in number_of.items()], annotations


def _segmentation(
    masks_of: Callable[[str], Mapping[str, Mask] | None] | None, media_id: str, size: tuple[int, int] | None
) -> dict[str, Any]:
    """The mask of the whole and of each part, at the size of the photo; nothing where there is none."""
    masks = masks_of(media_id) if masks_of else None
    if not masks or set(masks) <= {"microscopic", "background"}:
        return {}
    shape = (size[1], size[0]) if size else next(iter(masks.values())).shape
    parts = {name: resized(mask, shape) for name, mask in masks.items() if name not in NEVER_PARTS}
    described = {"parts": [{"name": name, **_drawn(mask)} for name, mask in parts.items()]} if parts else {}
    return _drawn(resized(whole(masks), shape)) | described


def _drawn(mask: NDArray[np.bool_]) -> dict[str, Any]:
    return {"segmentation": coco_rle(mask), "area": int(mask.sum()), "bbox": box_of(mask)}


def _info(dataset: Dataset, part: str | None) -> dict[str, Any]:
    what = f"{dataset.name}, {part}" if part else dataset.name
    return {
        "description": f"{what}{' (simulated)' if dataset.simulated else ''}",
        "version": f"Fieldmark {__version__}",
        "part": part,
        "simulated": dataset.simulated,
        "data_digest": dataset.digest,
        "remarks": list(dataset.remarks),
    }
