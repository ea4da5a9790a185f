"""What every layout writer needs, whatever its files look like: photos of observations, their truth, and the mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark_worlds.fungi.photos import PhotoJob
from fieldmark_worlds.nature.kingdom import Codes, Floats
from fieldmark_worlds.nature.nature import Nature
from fieldmark_worlds.nature.observations import Sightings
from fieldmark_worlds.nature.posterior import log_posterior
from fieldmark_worlds.scenery.camera import Camera

Size = Literal["tiny", "small", "medium"]
T = TypeVar("T")

_NOTE = (
    "Simulated. These species do not exist; nothing measured here says how well a method does on real photos. "
    "best_possible is what the exact posterior given the true traits reaches on the test photos: no classifier of "
    "pixels can be expected to do better."
)


def extent_of(extents: Mapping[Size, T], size: str) -> T:
    """Returns what belongs to a size, or raises the sentence that names the sizes there are."""
    for name, extent in extents.items():
        if name == size:
            return extent
    raise MisuseError(f"There is no size called {size!r}. {did_you_mean(size, get_args(Size))}")


def finding_rng(seed: int, *, of: int = 0) -> np.random.Generator:
    """Returns the chance in what is found and noted: streams of their own, apart from those the nature grew from."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1000 + of,)))


def within_budget(seen: Sightings, wanted: NDArray[np.bool_], most: int) -> Codes:
    """Returns the rows of the first wanted observations that have at most so many photos together."""
    rows = np.flatnonzero(wanted)
    return rows[np.cumsum(seen.table["photos"].to_numpy()[rows]) <= most].astype(np.int64)


def one_row_per_photo(observations: pl.DataFrame) -> pl.DataFrame:
    """Returns `row` (of the observation), `photo` (from 1), and the columns of the observation, for every photo."""
    numbered = observations.with_row_index("row")
    return numbered.with_columns(pl.int_ranges(1, pl.col("photos") + 1).alias("photo")).explode("photo")


def photo_jobs(nature: Nature, seen: Sightings, photos: pl.DataFrame, seed: int) -> list[PhotoJob]:
    """Returns what there is to paint, in the order of the photos.

    Args:
        nature: Whose observers hold the cameras.
        seen: The observations.
        photos: `file` and, from `one_row_per_photo`, `row`, `observation_id` and `photo`.
        seed: Seed of the world.
    """
    people = nature.observers
    cameras = [
        Camera(*(float(values[who]) for values in (people.blur_px, people.noise, people.warmth, people.exposure)))
        for who in seen.observer_codes
    ]
    specimens = [seen.traits.specimen(row) for row in range(len(seen))]
    return [
        PhotoJob(file, specimens[row], cameras[row], seed, observation, photo)
        for file, row, observation, photo in photos.select("file", "row", "observation_id", "photo").iter_rows()
    ]


def trait_table(seen: Sightings, photos: pl.DataFrame) -> pl.DataFrame:
    """Returns every trait of the specimen on each photo, in the order of the photos."""
    return pl.DataFrame([seen.traits.specimen(int(row)) for row in photos["row"]])


def best_top_1(
    nature: Nature, seen: Sightings, prior: Floats, *, unknown: NDArray[np.bool_] | None = None
) -> tuple[float, float]:
    """Returns the share of photos that the exact posterior gets right, and the share that it expects to.

    Args:
        nature: Where the specimens came from.
        seen: The observations; each counts as often as it has photos.
        prior: (S,) share of each species among them, 0 for those that cannot be among them.
        unknown: (S,) species that count as one class, if there are any.
    """
    posterior = np.exp(log_posterior(nature, seen.traits, prior=prior))
    truth = seen.species
    if unknown is not None:
        truth = np.where(unknown[truth], len(nature), truth)
        together = posterior[:, unknown].sum(axis=1, keepdims=True)
        posterior = np.concatenate([np.where(unknown, 0.0, posterior), together], axis=1)
    weights = seen.table["photos"].to_numpy()
    right = posterior.argmax(axis=1) == truth
    return (
        round(float(np.average(right, weights=weights)), 4),
        round(float(np.average(posterior.max(axis=1), weights=weights)), 4),
    )


def prior_over(nature: Nature, years: Sequence[int], species: NDArray[np.bool_]) -> Floats:
    """Returns (S,) the shares of some species among the finds of some years; all others have 0."""
    prior = np.where(species, nature.prior(years), 0.0)
    shares: Floats = prior / prior.sum()
    return shares


def world_mark(
    dataset: str, *, size: str, seed: int, generator_version: int, about: Mapping[str, object]
) -> dict[str, object]:
    """Returns the content of `WORLD.json`; `about` is what this layout has to say: its counts and the like."""
    return {
        "fieldmark_world": 1,
        "simulated": True,
        "dataset": dataset,
        "size": size,
        "seed": seed,
        "generator_version": generator_version,
        **about,
        "note": _NOTE,
    }
