"""The label of each occurrence from the names that it was given, and the taxonomy of the labels."""

from __future__ import annotations

from typing import Final

import polars as pl

from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark.tables.row_problems import RowProblems
from fieldmark.tables.schema import RANKS
from fieldmark.tables.scientific_names import DECLARED, NamesOfColumn, parse_name

# Ranks of which a record has no species; names of ranks as Darwin Core, GBIF and iNaturalist write them.
ABOVE_SPECIES: Final = frozenset(
    [
        "domain",
        "superkingdom",
        "kingdom",
        "subkingdom",
        "infrakingdom",
        "superphylum",
        "phylum",
        "subphylum",
        "infraphylum",
        "superclass",
        "class",
        "subclass",
        "infraclass",
        "superorder",
        "order",
        "suborder",
        "infraorder",
        "parvorder",
        "superfamily",
        "family",
        "subfamily",
        "supertribe",
        "tribe",
        "subtribe",
        "genus",
        "subgenus",
        "section",
        "subsection",
        "series",
        "clade",
        "cohort",
        "complex",
        "species_aggregate",
        "aggregate",
        "unranked",
        "epifamily",
        "zoosection",
        "zoosubsection",
        "genushybrid",
        "division",
        "subdivision",
    ]
)
OF_SPECIES: Final = frozenset(
    [
        "species",
        "subspecies",
        "variety",
        "subvariety",
        "form",
        "subform",
        "forma",
        "f.",
        "var.",
        "subsp.",
        "ssp.",
        "infraspecies",
        "cultivar",
        "hybrid",
        "strain",
        "morph",
        "race",
        "infraspecific_name",
        "infrahybrid",
        "infrasubspecific_name",
        "infraspecific",
    ]
)


# Columns that hold scientific names by what they are called.
SCIENTIFIC: Final = frozenset(["accepted_name", "scientific_name"])


def with_labels(
    rows: pl.DataFrame, problems: RowProblems, *, as_stated: bool, by_rank: bool, declared: bool = False
) -> pl.DataFrame:
    """Adds `label`, the name of the species, and `scientific_name`, the name as it was given.

    Args:
        rows: The table, with any of `label`, `species`, `accepted_name`, `scientific_name`, `name`, `genus`, `epithet`
            and `rank`.
        problems: Where ranks that nobody knows, rows without a name, and labels that join several names are noted.
        as_stated: Whether `label` is taken as it is.
        by_rank: Whether the table knows ranks, so that a name above the species is no label. Otherwise every name is a
            label, without its author where it is a binomial.
        declared: Whether the format says that names are scientific; otherwise each column is read as it looks.
    """
    given = ("scientific_name", "accepted_name", "name", "label", "species")
    names: list[str] = [name for name in given if name in rows.columns]
    both = {"genus", "epithet"} <= set(rows.columns)
    binomial = pl.concat_str("genus", "epithet", separator=" ") if both else pl.lit(None, pl.String)
    label = named = pl.col("label") if as_stated else binomial
    if not as_stated:
        label, named = _species(rows, names, binomial, by_rank=by_rank, declared=declared)
    if "rank" in rows.columns and not as_stated:
        label = pl.when(_is_above_species(rows, problems).fill_null(False)).then(None).otherwise(label)
    rows = rows.with_columns(label=label, named=named, scientific_name=pl.coalesce(*names, binomial))
    problems.note_names(rows)
    reserved = (pl.col("label") == UNKNOWN_NAME).fill_null(False)
    problems.add("warning", f"has the name {UNKNOWN_NAME}, which is no label", rows.filter(reserved))
    rows = rows.with_columns(label=pl.when(~reserved).then(pl.col("label")))
    unnamed, shown = rows.filter(pl.col("label").is_null()), pl.col("scientific_name")
    if by_rank and not as_stated:
        problems.add("note", "is not identified to species, and so has no label", unnamed, shown)
    else:
        problems.add("warning", "has no name, and so no label", unnamed)
    return rows.drop(
        [name for name in ("species", "accepted_name", "name", "epithet", "named") if name in rows.columns]
    )


def _species(
    rows: pl.DataFrame, names: list[str], binomial: pl.Expr, *, by_rank: bool, declared: bool
) -> tuple[pl.Expr, pl.Expr]:
    """The species by the best of several columns, and the name that it was taken from.

    The accepted species comes before the name as it was identified. Each distinct name is parsed once.
    """
    parsed, taken = [], []
    for name in ("species", "accepted_name", "scientific_name", "name", "label"):
        distinct = rows[name].drop_nulls().unique().sort().to_list() if name in names else []
        column = DECLARED if declared or name in SCIENTIFIC else NamesOfColumn.of(distinct)
        species = {one: species_name(one, column, keep_others=not by_rank) for one in distinct}
        if species:
            parsed.append(pl.col(name).replace_strict(species, default=None, return_dtype=pl.String))
            taken.append(pl.when(parsed[-1].is_not_null()).then(pl.col(name)))
    return pl.coalesce(*parsed, binomial), pl.coalesce(*taken, binomial)


def species_name(name: str, column: NamesOfColumn = DECLARED, *, keep_others: bool) -> str | None:
    """The binomial that a name begins with; for other names the name itself, or None.

    Where nothing but scientific names is kept, one that was written in small letters gets its capital.

    >>> species_name("Solanum acaule Bitter", keep_others=True), species_name("amanita muscaria", keep_others=False)
    ('Solanum acaule', 'Amanita muscaria')
    >>> species_name("Amanita aff. fulva", keep_others=True), species_name("Amanita", keep_others=False)
    ('Amanita aff. fulva', None)
    >>> species_name("Black throated Sparrow", NamesOfColumn(False, False), keep_others=True)
    'Black throated Sparrow'
    """
    text = " ".join(name.replace("_", " ").split())
    if text.islower() and not keep_others:
        text = text[0].upper() + text[1:]
    return column.species(text) or (" ".join(name.split()) if keep_others else None)


def _is_above_species(rows: pl.DataFrame, problems: RowProblems) -> pl.Expr:
    # A table has far fewer ranks than rows.
    given = rows["rank"].drop_nulls().unique()
    plain = given.str.to_lowercase().str.replace_all(" ", "_")
    above = given.filter(plain.is_in(list(ABOVE_SPECIES)))
    unknown = given.filter(~plain.is_in([*ABOVE_SPECIES, *OF_SPECIES]))
    if len(unknown):
        strange = rows.filter(pl.col("rank").is_in(unknown.implode()))
        problems.add("warning", "has a rank that is not known, and is named all the same", strange, pl.col("rank"))
    return pl.col("rank").is_in(above.implode()) if len(above) else pl.lit(False)


def taxa_of(rows: pl.DataFrame, problems: RowProblems, *, declared: bool = False) -> pl.DataFrame:
    """One row per label with the ranks that its rows tell: of several, the one that most of them do.

    Genus and species are read from the labels as well, where these are scientific names.
    """
    ranks = [rank for rank in (*RANKS[:-1], "common_name") if rank in rows.columns]
    # One look at all rows: there are far fewer combinations of names than rows.
    named = rows.select("label", *ranks, "file", "line").drop_nulls("label")
    together = named.group_by("label", *ranks, maintain_order=True).agg(pl.len(), pl.col("file", "line").first())
    taxa = together.select(pl.col("label").unique().sort())
    for rank in ranks:
        by_name = together.drop_nulls(rank).group_by("label", rank, maintain_order=True)
        counts = by_name.agg(pl.col("len").sum(), pl.col("file", "line").first())
        counts = counts.sort("label", "len", rank, descending=[False, True, False])
        firsts = counts.unique("label", keep="first", maintain_order=True).select("label", rank)
        taxa = taxa.join(firsts, on="label", how="left", maintain_order="left")
        if rank != "common_name":
            what = f"gives a label another {rank} than most of its rows, which count"
            others = counts.filter(~pl.col("label").is_first_distinct())
            problems.add("warning", what, others, pl.concat_str("label", pl.lit(" in "), rank))
    scientific = declared or NamesOfColumn.of(taxa["label"]).scientific
    names = [parse_name(label if scientific else "") for label in taxa["label"]]
    own = {"genus": [name.genus for name in names], "species": [name.species for name in names]}
    for rank, values in own.items():
        series = pl.Series(rank, values, dtype=pl.String)
        taxa = taxa.with_columns(pl.coalesce(rank, series).alias(rank) if rank in taxa.columns else series)
    there = [rank for rank in (*RANKS, "common_name") if rank in taxa.columns]
    return taxa.select("label", *there, pl.lit(None, pl.Boolean).alias("poisonous"))
