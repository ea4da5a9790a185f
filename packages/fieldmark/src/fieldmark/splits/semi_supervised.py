"""The recipe by which Semi-iNat was made, for any table of photos with species and higher taxa.

Su and Maji, "The Semi-Supervised iNaturalist Challenge at the FGVC8 Workshop" (2021), section 2: species of earlier
challenges are left out; of each species one photo per contributor is taken; within each phylum a third of the species
is in-class; of each in-class species 5, 10 and 10 photos go to val and two tests, about a tenth of the rest (at least
5) is labeled, and what remains is unlabeled, mixed with up to 400 photos of each out-of-class species.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.settings import Settings, setting
from fieldmark.splits.division import UNUSED

PUBLIC, PRIVATE = "Public", "Private"


@dataclass(frozen=True)
class SemiSupervised(Settings):
    """How a semi-supervised benchmark is drawn.

    Args:
        in_class: The share of the species of each group that is in-class; rounded down, at least one of two.
        val: Photos of each in-class species for val.
        public, private: The same for the two tests.
        labeled: The share of the other photos of an in-class species that is labeled.
        least_labeled: At least so many are.
        most_out_of_class: At most so many photos of an out-of-class species are taken.
        one_per_contributor: Whether one photo of each contributor is taken for each species.
    """

    in_class: float = setting(1 / 3, above=0, below=1)
    val: int = setting(5, least=1)
    public: int = setting(10, least=0)
    private: int = setting(10, least=0)
    labeled: float = setting(0.1, least=0, most=1)
    least_labeled: int = setting(5, least=1)
    most_out_of_class: int = setting(400, least=1)
    one_per_contributor: bool = True

    @property
    def least(self) -> int:
        """How many photos an in-class species must have: all that is taken of it before anything is unlabeled."""
        return self.val + self.public + self.private + self.least_labeled

    def to_data(self) -> dict[str, Any]:
        """The recipe as plain data."""
        return {"rule": "semi-supervised", **asdict(self)}


@dataclass(frozen=True)
class SemiDraw:
    """What a draw came to.

    Args:
        table: `id`, `part` (train, val, test, unlabeled, unused) and `usage` (of test: Public or Private), in the order
            of the rows.
        species: `label`, `group`, `photos`, and `membership`: in-class, out-of-class or dropped.
    """

    table: pl.DataFrame
    species: pl.DataFrame


def draw_semi_supervised(
    rows: pl.DataFrame,
    recipe: SemiSupervised,
    *,
    seed: int = 0,
    dropped: Collection[str] = (),
    where: object = "the table",
) -> SemiDraw:
    """Draws a semi-supervised benchmark.

    The draw depends on the ids, labels and seed, not on the order of rows. Rows without a label are unlabeled: nobody
    knows what they show.

    Args:
        rows: `id`, `label`, `group` (the phylum; null counts as a group of its own) and `contributor` (null for
            nobody known, who is then nobody's double).
        recipe: How.
        seed: The seed of the draw.
        dropped: Species that have been seen elsewhere, by their labels; their photos are unused.
        where: What to call the table in messages.

    Raises:
        InputError: When no species has enough photos to be in-class.
    """
    rng = np.random.default_rng(seed)
    part_of: dict[str, str] = dict.fromkeys(rows.filter(pl.col("label").is_null())["id"], "unlabeled")
    usage_of: dict[str, str] = {}
    photos_of: dict[str, list[str]] = {}
    group_of: dict[str, str] = {}
    labeled = rows.drop_nulls("label").sort("label", "id")
    for (label,), own in labeled.group_by("label", maintain_order=True):
        group_of[str(label)] = str(own["group"].drop_nulls().first() or "")
        photos_of[str(label)] = _one_per_contributor(own, rng) if recipe.one_per_contributor else own["id"].to_list()
    kept = [label for label in photos_of if label not in set(dropped)]
    inside = _in_class({label: photos_of[label] for label in kept}, group_of, recipe, rng)
    if not inside:
        most = max((len(photos_of[label]) for label in kept), default=0)
        found = f"at most {most} photos of a species" if kept else "no species"
        hint = "Take fewer for val, tests and labels, or all photos of a contributor."
        raise InputError(where, found=found, expected=f"{recipe.least} for a species to be in-class", hint=hint)
    for label in kept:
        photos = [str(one) for one in rng.permutation(np.array(photos_of[label], dtype=object))]
        if label not in inside:
            part_of.update(dict.fromkeys(photos[: recipe.most_out_of_class], "unlabeled"))
            continue
        for part, usage, taken in _shared_out(photos, recipe):
            part_of.update(dict.fromkeys(taken, part))
            usage_of.update(dict.fromkeys(taken, usage))
    ids = rows["id"].to_list()
    table = pl.DataFrame(
        {
            "id": pl.Series(ids, dtype=pl.String),
            "part": pl.Series([part_of.get(one, UNUSED) for one in ids], dtype=pl.String),
            "usage": pl.Series([usage_of.get(one) or None for one in ids], dtype=pl.String),
        }
    )
    return SemiDraw(table, _species_table(photos_of, group_of, inside, set(dropped)))


def _shared_out(photos: list[str], recipe: SemiSupervised) -> Iterator[tuple[str, str, list[str]]]:
    """The photos of an in-class species by part, each with what it is used for in test."""
    for part, usage, number in (
        ("val", "", recipe.val),
        ("test", PUBLIC, recipe.public),
        ("test", PRIVATE, recipe.private),
    ):
        yield part, usage, photos[:number]
        photos = photos[number:]
    number = max(recipe.least_labeled, round(recipe.labeled * len(photos)))
    yield "train", "", photos[:number]
    yield "unlabeled", "", photos[number:]


def _one_per_contributor(own: pl.DataFrame, rng: np.random.Generator) -> list[str]:
    """One photo of each contributor, drawn at random; photos of nobody known all stay."""
    ids, contributors = own["id"].to_list(), own["contributor"].to_list()
    taken: list[str] = []
    seen: set[str] = set()
    for place in rng.permutation(len(ids)):
        who = contributors[place]
        if who is None or who not in seen:
            taken.append(ids[place])
            seen.add(who)
    return sorted(taken)


def _in_class(
    photos_of: dict[str, list[str]], group_of: dict[str, str], recipe: SemiSupervised, rng: np.random.Generator
) -> set[str]:
    """The in-class species: a share of each group, drawn among those with enough photos."""
    inside: set[str] = set()
    for group in sorted({group_of[label] for label in photos_of}):
        members = [label for label in photos_of if group_of[label] == group]
        wanted = int(recipe.in_class * len(members) + 1e-9)
        wanted = max(wanted, 1) if len(members) > 1 else wanted
        able = [label for label in members if len(photos_of[label]) >= recipe.least]
        inside.update(str(label) for label in rng.permutation(np.array(able, dtype=object))[:wanted])
    return inside


def _species_table(
    photos_of: dict[str, list[str]], group_of: dict[str, str], inside: set[str], dropped: set[str]
) -> pl.DataFrame:
    rows = [
        (
            label,
            group_of[label],
            len(photos),
            "dropped" if label in dropped else ("in-class" if label in inside else "out-of-class"),
        )
        for label, photos in photos_of.items()
    ]
    schema = {"label": pl.String, "group": pl.String, "photos": pl.Int64, "membership": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
