"""What FungiTastic has besides photos and tables: masks, captions, climate, satellite images.

```
ROOT/
  captions/{train,val,test}/<filename>.json
  climaticData/FungiTastic-Climatic-Timeseries.csv
  satellite_RGB/<observationID>.png, satellite_NIR/<observationID>.png
```

Quirks:

- Masks: see `fungitastic_masks`.
- Captions: one bare JSON string per photo. Sixteen are known to be broken, and some are empty. Newer metadata files
  carry them in a column `captions` instead.
- Climate: one row per observation. The names of the monthly columns are not documented; anything that holds a
  variable, a four-digit year and a month is read, in either order (`tas_2000_01`, `CHELSA_tas_01_2000`).
- Satellite: how the files inside the archives are called is not documented; they are looked up by observation id.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from fieldmark.releases.exif import ExifLayer
from fieldmark.releases.fungitastic_masks import Microscopic, PhotoMasks, mask_files
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import KeyedBy, Layer
from fieldmark.tables.reader import refuse_uneven
from fieldmark.work.blocks import blocks_of

BLOCK_CAPTIONS = 256
# Named by the organizers' own code as missing or corrupt.
BROKEN_CAPTIONS = frozenset(
    (
        "1-3861325341.JPG",
        "2-4100092812.JPG",
        "0-2238480458.JPG",
        "0-2238152962.JPG",
        "1-2238552443.JPG",
        "0-2597564674.JPG",
        "1-2238554704.JPG",
        "1-2238483885.JPG",
        "1-2238523717.JPG",
        "1-2237914372.JPG",
        "0-2238496151.JPG",
        "0-2238127565.JPG",
        "0-2238365191.JPG",
        "1-4169763613.JPG",
        "0-4465865676.JPG",
        "0-4465900600.JPG",
    )
)

# Reflectance as it is measured, and the picture the organizers made of it.
REFLECTANCE_LIMIT, GAMMA = 10_000, 2.5

MONTHLY = re.compile(r"(?P<variable>tasmin|tasmax|tas|pr)\D*(?P<first>\d{1,4})\D+(?P<second>\d{1,4})")
ANNUAL = re.compile(r"bio_?0*(?P<number>\d{1,2})$", re.IGNORECASE)
CLIMATE_VARIABLES = ("pr", "tas", "tasmax", "tasmin")
CLIMATE_FILE = "climaticData/FungiTastic-Climatic-Timeseries.csv"


def layers(release: Release, subset: str, captions: Mapping[str, str], photos: Mapping[str, str]) -> dict[str, Layer]:
    """The layers that a release holds.

    Args:
        release: The root.
        subset: Which subset.
        captions: Captions that stand in the metadata, by photo.
        photos: Where each photo lies.
    """
    layer_of: dict[str, Layer] = {"exif": ExifLayer(release, photos)}
    if mask_files(release):  # photos of Mini stand in the full set as well
        layer_of["microscopic"] = Microscopic(release)
        if subset == "Mini":
            layer_of["masks"] = PhotoMasks(release)
    if captions or release.exists("captions"):
        layer_of["caption"] = Captions(release, captions)
    if release.exists(CLIMATE_FILE):
        layer_of["climate"] = Climate(release)
        layer_of["climate_series"] = ClimateSeries(release)
    for band in ("RGB", "NIR"):
        if release.exists(f"satellite_{band}"):
            layer_of[f"satellite_{band.lower()}"] = Satellite(release, band)
    return layer_of


def caption_path(release: Release, media_id: str) -> str | None:
    """Where the caption of a photo lies; None where there is none, or where it is known to be broken."""
    if media_id in BROKEN_CAPTIONS:
        return None
    paths = [f"captions/{split}/{media_id}.json" for split in ("train", "val", "test")]
    return next((path for path in paths if release.exists(path)), None)


def caption_of(data: bytes) -> str | None:
    """The text in the file of a caption; None where it is broken or empty."""
    try:
        text = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return text.strip() or None if isinstance(text, str) else None


def satellite_picture(reflectance: NDArray[Any]) -> NDArray[np.uint8]:
    """The organizers' picture of raw reflectance: clipped at 10,000, scaled to [0, 1], gamma 1 / 2.5, scaled to 255.

    >>> satellite_picture(np.array([0, 10_000, 20_000]))
    array([  0, 255, 255], dtype=uint8)
    """
    share = np.clip(reflectance, 0, REFLECTANCE_LIMIT) / REFLECTANCE_LIMIT
    return np.asarray(np.round(share ** (1 / GAMMA) * 255), dtype=np.uint8)


def climate_columns(names: Sequence[str]) -> tuple[dict[tuple[str, int, int], str], dict[int, str]]:
    """The monthly columns by variable, year and month, and the annual ones by number.

    >>> climate_columns(["observationID", "tas_2000_01", "CHELSA_pr_12_2019", "bio7"])
    ({('tas', 2000, 1): 'tas_2000_01', ('pr', 2019, 12): 'CHELSA_pr_12_2019'}, {7: 'bio7'})
    """
    monthly, annual = {}, {}
    for name in names:
        if match := ANNUAL.search(name):
            annual[int(match["number"])] = name
        elif match := MONTHLY.search(name):
            year, month = sorted((int(match["first"]), int(match["second"])), reverse=True)
            if 1 <= month <= 12 and year > 1900:
                monthly[match["variable"], year, month] = name
    return monthly, annual


@dataclass(frozen=True)
class Captions(Layer):
    """What a photo shows, in words.

    Args:
        release: The root.
        given: Captions that stand in the metadata, by photo.
    """

    release: Release
    given: Mapping[str, str]
    input: ClassVar[str] = "caption"
    by: ClassVar[KeyedBy] = "media_id"

    def read(self, ids: Sequence[str]) -> list[str | None]:
        return list(self.texts(ids))

    def texts(self, ids: Sequence[str]) -> Iterator[str | None]:
        for block in blocks_of(ids, BLOCK_CAPTIONS):
            paths = [None if self.given.get(one) else caption_path(self.release, one) for one in block]
            files = self.release.read_many(path for path in paths if path is not None)
            for media_id, path in zip(block, paths, strict=True):
                yield self.given.get(media_id) or None if path is None else caption_of(next(files))


@dataclass(frozen=True)
class Climate(Layer):
    """Monthly and annual climate at the place of an observation."""

    release: Release
    input: ClassVar[str] = "climate"
    by: ClassVar[KeyedBy] = "observation_id"

    @cached_property
    def _table(self) -> tuple[pl.DataFrame, dict[str, int], Any, Any]:
        with self.release.open(CLIMATE_FILE) as file:
            data = file.read()
        rows = pl.read_csv(data, schema_overrides={"observationID": pl.String}, infer_schema_length=None)
        refuse_uneven(data, self.release.where(CLIMATE_FILE), rows)
        monthly, annual = climate_columns(rows.columns)
        row_of = {name.removesuffix(".0"): row for row, name in enumerate(rows["observationID"])}
        return rows, row_of, monthly, annual

    def read(self, ids: Sequence[str]) -> list[dict[str, Any] | None]:
        return [self._of(observation_id) for observation_id in ids]

    def _of(self, observation_id: str) -> dict[str, Any] | None:
        rows, row_of, monthly, annual = self._table
        if observation_id not in row_of:
            return None
        row = rows.row(row_of[observation_id], named=True)
        series: dict[str, dict[tuple[int, int], float]] = {}
        for (variable, year, month), name in monthly.items():
            series.setdefault(variable, {})[year, month] = row[name]
        return {"monthly": series, "annual": {number: row[name] for number, name in annual.items()}}

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """The mean of each variable in each month of the year over all years, then the annual values."""
        rows, row_of, monthly, annual = self._table
        groups: dict[tuple[str, int], list[str]] = {}
        for (variable, _, month), name in sorted(monthly.items()):
            groups.setdefault((variable, month), []).append(name)
        means = [
            pl.mean_horizontal(pl.col(*names).cast(pl.Float64, strict=False)).alias(f"{variable} {month}")
            for (variable, month), names in groups.items()
        ]
        years = [pl.col(name).cast(pl.Float64, strict=False).alias(f"bio {number}") for number, name in annual.items()]
        there = np.array([row_of.get(one, -1) for one in ids], dtype=np.int64)
        table = rows[np.maximum(there, 0).tolist()].select(*means, *years)
        found: NDArray[np.float64] = table.to_numpy().astype(np.float64)
        found[there < 0] = np.nan
        return found


@dataclass(frozen=True)
class ClimateSeries(Climate):
    """The same month by month, for methods that read the series itself."""

    input: ClassVar[str] = "climate_series"

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """Every month of each variable in the order of time, one variable after the other; NaN where there is none."""
        rows, row_of, monthly, _ = self._table
        months = sorted({(year, month) for _, year, month in monthly})
        columns = [
            pl.col(monthly[variable, *when]).cast(pl.Float64, strict=False).alias(f"{variable} {when}")
            if (variable, *when) in monthly
            else pl.lit(None, pl.Float64).alias(f"{variable} {when}")
            for variable in CLIMATE_VARIABLES
            for when in months
        ]
        there = np.array([row_of.get(one, -1) for one in ids], dtype=np.int64)
        table = rows[np.maximum(there, 0).tolist()].select(columns)
        found: NDArray[np.float64] = table.to_numpy().astype(np.float64)
        found[there < 0] = np.nan
        return found


@dataclass(frozen=True)
class Satellite(Layer):
    """A satellite picture of the place of an observation, in one of two bands."""

    release: Release
    band: str
    input: ClassVar[str] = "satellite"
    by: ClassVar[KeyedBy] = "observation_id"

    @cached_property
    def _file_of(self) -> dict[str, str]:
        return {name.partition(".")[0]: name for name in self.release.files(f"satellite_{self.band}")}

    def read(self, ids: Sequence[str]) -> list[NDArray[np.uint8] | None]:
        return [None if data is None else np.asarray(Image.open(io.BytesIO(data))) for data in self.files(ids)]

    def there(self, ids: Sequence[str]) -> list[bool]:
        return [observation_id in self._file_of for observation_id in ids]

    def files(self, ids: Sequence[str]) -> list[bytes | None]:
        names = [self._file_of.get(observation_id) for observation_id in ids]
        found = self.release.read_many(f"satellite_{self.band}/{name}" for name in names if name is not None)
        return [None if name is None else next(found) for name in names]
