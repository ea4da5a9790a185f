"""`fieldmark split`: any table cut into train, val and test, or into folds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fieldmark.errors import MisuseError

if TYPE_CHECKING:
    from fieldmark.exporting.fungitastic import DrawnBenchmark
    from fieldmark.splits.by_date import DateCut
    from fieldmark.splits.files import Split
    from fieldmark.views.semi_splits import SemiSplit
    from fieldmark.views.split_tables import SplitResult

EXAMPLE = "Example: `fieldmark split observations.csv --by site --val 0.1 --test 0.2 --out split.csv`"


def add_to(app: typer.Typer) -> None:
    app.command("split", epilog=EXAMPLE)(split)


def split(
    table: Annotated[
        Path,
        typer.Argument(help="A CSV or Parquet table with one row for each thing to assign; or records of occurrences."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The CSV file to write (id,part); a JSON file beside it says how. Or a folder: --fungitastic."
        ),
    ],
    by: Annotated[
        str,
        typer.Option(
            help="What stays together: unit, day, class, block:METRES, cells:METRES, quadrats:METRES (as "
            "GeoLifeCLEF cuts them), or a column such as site."
        ),
    ] = "unit",
    val: Annotated[float, typer.Option(help="The share of val, such as 0.1.")] = 0.0,
    test: Annotated[float, typer.Option(help="The share of test; train gets the rest.")] = 0.0,
    folds: Annotated[int, typer.Option(min=0, help="The number of folds, instead of parts.")] = 0,
    share_of: Annotated[
        Literal["rows", "groups"] | None,
        typer.Option(help="Whether shares count rows (the default) or groups (the default for quadrats)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same split: 0, or 1949 for quadrats.")
    ] = None,
    block: Annotated[float | None, typer.Option(metavar="METRES", help="The same as --by block:METRES.")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column of row ids: id, media_id, file, ... if not given.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="A column whose rows stay together as well, such as observation.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column of classes, of which each part gets its share.")] = None,
    date: Annotated[str, typer.Option(help="The column of dates, for --by day and --val-from.")] = "date",
    lat: Annotated[str, typer.Option(help="The column of latitudes in degrees, for blocks and cells.")] = "lat",
    lon: Annotated[str, typer.Option(help="The column of longitudes in degrees.")] = "lon",
    files: Annotated[
        str | None,
        typer.Option(help="The column of paths below the table's folder: files with the same bytes stay together."),
    ] = None,
    check: Annotated[
        list[str] | None, typer.Option(help="Also count how many of these are in more than one part: site, day, ...")
    ] = None,
    val_from: Annotated[
        str | None, typer.Option(help="Cut by date: the first day of val, such as 2022 or 2022-05-01.")
    ] = None,
    test_from: Annotated[str | None, typer.Option(help="The first day of test, such as 2023.")] = None,
    until: Annotated[
        str | None, typer.Option(help="The last day of test, such as 2023; later rows are unused.")
    ] = None,
    fungitastic: Annotated[
        bool,
        typer.Option(
            "--fungitastic",
            help="Write records as a benchmark like FungiTastic: cut by date, with open, closed and few-shot sets.",
        ),
    ] = False,
    few: Annotated[
        int | None,
        typer.Option(help="With --fungitastic: a species with fewer observations in train is a few-shot one; 5."),
    ] = None,
    semi: Annotated[
        bool, typer.Option("--semi", help="Few labels, many unlabeled rows: the recipe of Semi-iNat. Needs --label.")
    ] = False,
    group: Annotated[
        str | None, typer.Option(help="With --semi: the column (phylum) within which species are in or out of class.")
    ] = None,
    contributor: Annotated[
        str | None, typer.Option(help="With --semi: the column of people; one row of each for every species.")
    ] = None,
    drop: Annotated[
        Path | None, typer.Option(help="With --semi: a text file of species seen elsewhere, one on each line.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="With --semi: val=5, public=10, private=10, labeled=0.1, ...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Split a table into train, val and test by site, day, class or spatial block.

    `fieldmark fit --split FILE` uses it in place of the split of a benchmark.
    """
    from fieldmark.cli.output import print_json
    from fieldmark.settings import parse_pairs
    from fieldmark.views.semi_splits import refuse_other_options, split_semi_supervised
    from fieldmark.views.split_tables import Columns, split_by_date, split_table

    drawing = {
        "--val": bool(val), "--test": bool(test), "--folds": bool(folds), "--by": by != "unit",
        "--block": block is not None,
    }  # fmt: skip
    by_date = {"--val-from": val_from is not None, "--test-from": test_from is not None, "--until": until is not None}
    together = {"--unit": unit is not None, "--files": files is not None}
    if few is not None and not fungitastic:
        raise MisuseError("--few goes with --fungitastic.")
    if fungitastic:
        others = {"--semi": semi, "--id": id_column is not None, "--label": label is not None}
        refuse_other_options("--fungitastic", {**drawing, **together, **others})
        drawn = _draw_fungitastic(table, out, val_from, test_from, until, few)
        print_json(drawn.to_json()) if as_json else _print_drawn(drawn)
        return
    if semi:
        refuse_other_options("--semi", {**drawing, **by_date, **together})
        if label is None:
            raise MisuseError("--semi needs the column of species: --label COLUMN.")
        few_labels = split_semi_supervised(
            table,
            label=label,
            group=group,
            contributor=contributor,
            settings=parse_pairs(settings or []),
            dropped=drop,
            id_column=id_column,
            seed=seed or 0,
            out=out,
        )
        print_json(few_labels.to_json()) if as_json else _print_semi(few_labels, out)
        return
    if group or contributor or drop or settings:
        raise MisuseError("--group, --contributor, --drop and --set go with --semi.")
    columns = Columns(id_column, unit, label, date, lat, lon, files)
    if any(by_date.values()):
        refuse_other_options("--val-from", drawing)
        if val_from is None or test_from is None:
            raise MisuseError("A cut by date needs the first day of val and of test: --val-from 2022 --test-from 2023.")
        dated = split_by_date(table, _cut(val_from, test_from, until), columns=columns, check=check or (), out=out)
        print_json(dated.to_json()) if as_json else _print(dated, out)
        return
    result = split_table(
        table,
        by if block is None else f"block:{block:g}",
        val=val,
        test=test,
        folds=folds,
        counted=share_of,
        seed=seed,
        columns=columns,
        check=check or (),
        out=out,
    )
    print_json(result.to_json()) if as_json else _print(result, out)


def _cut(val_from: str, test_from: str, until: str | None, few: int = 1) -> DateCut:
    from fieldmark.splits.by_date import DateCut, first_day, last_day

    return DateCut(first_day(val_from), first_day(test_from), last_day(until) if until else None, few)


def _draw_fungitastic(
    records: Path, out: Path, val_from: str | None, test_from: str | None, until: str | None, few: int | None
) -> DrawnBenchmark:
    """Draws with FungiTastic's own days, or with days of one's own, which then need both."""
    from fieldmark.exporting.fungitastic import draw_fungitastic
    from fieldmark.splits.by_date import DateCut

    usual = DateCut()
    few = usual.few if few is None else few
    if val_from is None and test_from is None and until is None:
        return draw_fungitastic(records, out, DateCut(few=few))
    if val_from is None or test_from is None:
        raise MisuseError("Days of your own need both: --val-from 2022 --test-from 2023.")
    return draw_fungitastic(records, out, _cut(val_from, test_from, until, few))


def _print_drawn(drawn: DrawnBenchmark) -> None:
    from fieldmark.cli.output import print_table

    names = ("observations", "photos", "species")
    rows = [[file, *(f"{count[name]:,}" for name in names)] for file, count in drawn.counts.items()]
    print_table(["file", *names], rows)
    print("species: " + ", ".join(f"{count:,} {kind}" for kind, count in drawn.species.items()))
    for reason, number in drawn.left_out.items():
        print(f"left out: {number:,} records {reason}")
    print(f"benchmark in {drawn.root}; check it: fieldmark check fungitastic {drawn.root}")


def _print_semi(result: SemiSplit, out: Path) -> None:
    from fieldmark.cli.output import print_table

    print_table(["part", "rows"], [[part, f"{count:,}"] for part, count in result.rows.items()])
    print(", ".join(f"{count:,} species {membership}" for membership, count in result.species.items()))
    _print_where(result.split, out)


def _print(result: SplitResult, out: Path) -> None:
    from fieldmark.cli.output import print_table

    rows = [[part, f"{count:,}", f"{result.groups[part]:,}"] for part, count in result.rows.items()]
    print_table(["part", "rows", "groups"], rows)
    for shared, plain in zip(result.shared, result.by_rows, strict=True):
        leak = f" ({shared.example}, for one)" if shared.shared else ""
        print(
            f"in more than one part, by {shared.what}: {shared.shared:,} of {shared.total:,}{leak}; "
            f"drawn row by row it would be {plain.shared:,}"
        )
    for part, found in result.apart.items():
        plain_apart = result.apart_by_rows.get(part)
        beside = f"; drawn row by row it would be {plain_apart.median_m:,.0f} m" if plain_apart else ""
        print(
            f"from {part} to the nearest place of train: {found.nearest_m:,.0f} m at least, {found.tenth_m:,.0f} m for "
            f"a tenth, {found.median_m:,.0f} m in the middle, {found.same_place:,} at the same place{beside}"
        )
    _print_where(result.split, out)


def _print_where(split: Split, out: Path) -> None:
    print(f"split in {out} (digest {split.digest}); how it was made in {out.with_suffix('.json')}")
