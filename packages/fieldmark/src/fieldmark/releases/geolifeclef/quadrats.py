"""GeoLifeCLEF 2020, and the same data as it was packed again in 2021 and 2022.

```
ROOT/  (2020)
  occurrences_{fr,us}_{train,test}.csv     id;lat;lon;species_id, no species_id in test
  species_metadata.csv                     species_id;GBIF_species_id;GBIF_species_name
  patches/<CD>/<AB>/<XXXXABCD>.npy         256 x 256 x 5: red, green, blue, near infrared, land cover
  patches/<CD>/<AB>/<XXXXABCD>_alti.npy    256 x 256 heights
  rasters/<name>/<name>_{FR,USA}.tif       27 layers; GeoMetaData.csv beside those without a coordinate system
  example_occurrences.csv                  a sample with the old ids
ROOT/  (2021, 2022)
  observations/observations_{fr,us}_{train,test}.csv   observation_id;latitude;longitude;species_id;subset
  patches/{fr,us}/<CD>/<AB>/ID_{rgb.jpg,near_ir.jpg,altitude.tif,landcover.tif}   (2022: patches-fr, patches-us)
  metadata/species_details.csv             species_id, GBIF_species_name and others
  pre-extracted/environmental_vectors.csv  observation_id and 27 numbers
  test_observation_ids_mapping.csv         observation_id;Id: under which id an answer is submitted (2021)
  rasters/                                 as in 2020
```

Quirks:

- The first digit of an id is the country, 1 for France and 2 for the United States; the rasters of a layer are chosen
  by longitude: France is east of 10 degrees west.
- Ids were given anew on 28 April 2020. `example_occurrences.csv` still has the old ones, which counted the rows: they
  are recognized, a remark says so, and no patch is looked up by them.
- Species were numbered anew in 2022, and the set is a filtered one: the editions are datasets of their own, and nothing
  is joined across them.
- Rasters of 2020 hold whole numbers as in WorldClim 1 (tenths of a degree); the vectors of 2021 and 2022 hold degrees.
  Where a release has vectors, they are its environment; else what the rasters say.
- No value is -2147483647 in layers of climate and in bdticm, -32768 in the other layers of soil; the files need not
  say so.
- The land cover of France and that of the United States have codes of their own, 34 together; 0 is nothing known.
- 2020 has no val. It is cut from train as the organizers cut test from everything: quadrats of 5 km, the permutation
  of the seed 1949, and the share of quadrats that test has (2.5 %).
- `quadrat` is what is independent. Some points of Florida lie outside the rasters of the United States.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.releases.citations import LIFECLEF_2021, preprint, working_note
from fieldmark.releases.environment import ENVIRONMENT
from fieldmark.releases.geolifeclef.layers import CountryRasters, patch_layers, read_vectors
from fieldmark.releases.geolifeclef.tables import (
    EDITIONS,
    GeoEdition,
    has_old_ids,
    read_id_mapping,
    read_observations,
    read_species,
)
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.splits.grids import organizers_quadrats
from fieldmark.splits.quadrats import ORGANIZERS_SHARE, organizers_draw
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import CONTEXT, MEDIA_INPUTS, Input, Layer
from fieldmark.tables.schema import MEDIA

QUADRAT_M: Final = 5_000.0
SUBSETS: Final = ("all", "fr", "us")
OLD_IDS: Final = (
    "These occurrences carry the old ids, which counted the rows; ids were given anew on 28 April 2020. "
    "They belong to no patch, and must not be joined to other tables of the challenge."
)
_OWN_INPUTS = ("landcover", "elevation", "satellite", "environment")
INPUTS: Final = (
    MEDIA_INPUTS["photo"],
    *(one for one in CONTEXT if one.name not in _OWN_INPUTS),
    Input("landcover", extractor="patches"),
    Input("elevation", extractor="patches"),
    Input("satellite", extractor="patches"),
    ENVIRONMENT,
)


def open_geolifeclef_2020(release: Release, subset: str = "all") -> Dataset:
    """Opens a release of 2020.

    Args:
        release: The root, or the folder of the table that was named.
        subset: `all`, or one country: `fr`, `us`.

    Raises:
        InputError: When there is no table, or one cannot be read.
        MisuseError: When there is no such subset.
    """
    return _open(release, EDITIONS[2020], subset)


def open_geolifeclef_2021(release: Release, subset: str = "all") -> Dataset:
    """The same for the repackaging of 2021."""
    return _open(release, EDITIONS[2021], subset)


def open_geolifeclef_2022(release: Release, subset: str = "all") -> Dataset:
    """The same for the repackaging of 2022."""
    return _open(release, EDITIONS[2022], subset)


def _open(release: Release, edition: GeoEdition, subset: str) -> Dataset:
    if subset not in SUBSETS:
        raise MisuseError(f"GeoLifeCLEF has no subset called {subset!r}. {did_you_mean(subset, SUBSETS)}")
    table = read_observations(release, edition)
    if subset != "all":
        table = table.filter(pl.col("country") == subset)
    table = with_parts(with_quadrats(table))
    old = has_old_ids(table)
    observations = table.select("observation_id", "label", "lat", "lon", "country", "quadrat", "parts")
    handed_in = read_id_mapping(release)
    if handed_in:
        other = pl.col("observation_id").replace_strict(handed_in, default=pl.col("observation_id"))
        observations = observations.with_columns(other.alias("submission_id"))
    layers: dict[str, Layer] = {} if old else patch_layers(release, edition)
    environment = environment_of(release, observations, edition)
    if environment is not None:
        layers["environment"] = environment
    told = remarks(release, table, old=old, handed_in=len(handed_in), layers=layers)
    taxa = taxa_of(release, table)
    return Dataset(edition.name, release, taxa, observations, MEDIA.empty(), told, layers=layers, inputs=INPUTS)


def environment_of(release: Release, observations: pl.DataFrame, edition: GeoEdition) -> Layer | None:
    """What describes places in numbers: the vectors of a later edition, or else the rasters."""
    vectors = None if edition.year == 2020 else read_vectors(release)
    return vectors if vectors is not None else CountryRasters.find(release, observations)


def with_quadrats(table: pl.DataFrame) -> pl.DataFrame:
    """The observations with the quadrat of 5 km that each lies in, as the organizers name it."""
    row, column = organizers_quadrats(table["lat"].to_numpy(), table["lon"].to_numpy(), QUADRAT_M)
    digits = [pl.lit(pl.Series(values)).cast(pl.String).str.zfill(4) for values in (column, row)]
    name = pl.concat_str(pl.lit("e"), digits[0], pl.lit("n"), digits[1])
    return table.with_columns(name.alias("quadrat"))


def with_parts(table: pl.DataFrame) -> pl.DataFrame:
    """The observations with `parts`; where the release has no val, quadrats of train are drawn for it."""
    part = pl.col("part")
    if table["subset"].is_not_null().any():
        part = pl.when(pl.col("subset") == "val").then(pl.lit("val")).otherwise(part)
        return table.with_columns(pl.concat_list(part).alias("parts"))
    is_train = (table["part"] == "train").to_numpy()
    share = test_share(table)
    quadrat = quadrat_numbers(table)[is_train]
    drawn = np.zeros(len(table), dtype=np.bool_)
    drawn[is_train] = organizers_draw(quadrat, share) if len(quadrat) else False
    part = pl.when(pl.Series(drawn)).then(pl.lit("val")).otherwise(pl.col("part"))
    return table.with_columns(pl.concat_list(part).alias("parts"))


def quadrat_numbers(table: pl.DataFrame) -> NDArray[np.int64]:
    """The quadrats as numbers in the order of their names, which are sorted faster."""
    digits = pl.col("quadrat").str.slice(1, 4).cast(pl.Int64), pl.col("quadrat").str.slice(6, 4).cast(pl.Int64)
    return table.select(digits[0] * 10_000 + digits[1]).to_series().to_numpy()


def test_share(table: pl.DataFrame) -> float:
    """The share of the quadrats that is test; that of the organizers where there is no test."""
    of_part = {part: own["quadrat"].n_unique() for (part,), own in table.group_by("part")}
    if "test" not in of_part:
        return ORGANIZERS_SHARE
    return of_part["test"] / sum(of_part.values())


def taxa_of(release: Release, table: pl.DataFrame) -> pl.DataFrame:
    """The species of a release: those that it lists, or else those that were observed, by number."""
    listed, _ = read_species(release)
    seen = table["label"].drop_nulls().unique()
    missing = seen.filter(~seen.is_in(listed["label"].implode()))
    taxa = pl.concat([listed, pl.DataFrame({"label": missing})], how="diagonal") if len(missing) else listed
    return taxa.sort(pl.col("label").cast(pl.Int64, strict=False), "label", nulls_last=True)


def remarks(
    release: Release, table: pl.DataFrame, *, old: bool, handed_in: int, layers: dict[str, Layer]
) -> tuple[str, ...]:
    """What a reader of the numbers should know, one sentence each."""
    told = [OLD_IDS] if old else []
    if handed_in:
        told.append(f"{handed_in:,} observation(s) of test are submitted under another id (column submission_id).")
    if "environment" not in layers:
        told.append("There are no rasters and no vectors here: nothing describes places but their coordinates.")
    if not any(name in layers for name in ("satellite", "altitude")) and not old:
        told.append("There are no patches here.")
    if table["subset"].is_null().all():
        told.append("The release has no val of its own.")
    return tuple(told)


DATASET_2020 = preprint(
    "cole2020geolifeclef",
    "The GeoLifeCLEF 2020 Dataset",
    "Cole, Elijah and Deneu, Benjamin and Lorieul, Titouan and Servajean, Maximilien and Botella, Christophe and "
    "Morris, Dan and Jojic, Nebojsa and Bonnet, Pierre and Joly, Alexis",
    2020,
    "2004.04192",
)

RECORDS = (
    ReleaseRecord(
        name="geolifeclef-2020",
        about="GeoLifeCLEF 2020: species by place, with 27 rasters and patches of two countries",
        open=open_geolifeclef_2020,
        check="fieldmark.releases.geolifeclef.check:check_geolifeclef",
        download="fieldmark.releases.download.manifests.lifeclef_2020:GEOLIFECLEF_2020",
        world=World(
            "fieldmark_worlds.layouts.geolifeclef:write",
            "an invented land as GeoLifeCLEF 2020 is released: two countries, 27 rasters each, patches, niches",
        ),
        single_file=True,
        terms="no license is stated; files are given to those who agree to the rules of the challenge",
        homepage="https://www.imageclef.org/GeoLifeCLEF2020",
        size=PublishedSize(observations=1_900_000, rounded=True),
        citation=DATASET_2020,
    ),
    ReleaseRecord(
        name="geolifeclef-2021",
        about="GeoLifeCLEF 2021: the same data packed again, with vectors of the environment",
        open=open_geolifeclef_2021,
        check="fieldmark.releases.geolifeclef.check:check_geolifeclef",
        homepage="https://www.kaggle.com/c/geolifeclef-2021",
        size=PublishedSize(observations=1_878_718 + 42_405),
        citation=DATASET_2020 + "\n" + LIFECLEF_2021,
    ),
    ReleaseRecord(
        name="geolifeclef-2022",
        about="GeoLifeCLEF 2022: a filtered set with species numbered anew",
        open=open_geolifeclef_2022,
        check="fieldmark.releases.geolifeclef.check:check_geolifeclef",
        homepage="https://www.kaggle.com/competitions/geolifeclef-2022-lifeclef-2022-fgvc9",
        size=PublishedSize(observations=1_600_000, rounded=True),
        citation=working_note(
            "lorieul2022geolifeclef",
            "Overview of GeoLifeCLEF 2022: Predicting species presence from multi-modal remote sensing, bioclimatic "
            "and pedologic data",
            "Lorieul, Titouan and Cole, Elijah and Deneu, Benjamin and Servajean, Maximilien and Bonnet, Pierre and "
            "Joly, Alexis",
            2022,
            paper="paper-155",
        ),
    ),
)
