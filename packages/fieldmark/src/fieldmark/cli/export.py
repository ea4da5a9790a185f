"""`fieldmark export`: into the formats of others, one subcommand each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli import completion
from fieldmark.cli.options import BenchmarkName, Overwrite, Release, ReleaseOrPhotos


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Export datasets and models: COCO, Darwin Core, ONNX, phone guides.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        epilog="Example: `fieldmark export coco folder --data my-photos --out my-photos.json`",
    )
    group.command("coco", epilog="Example: `fieldmark export coco folder --data my-photos --out my-photos.json`")(coco)
    drawn = "fieldmark export split folder --data my-photos --out split.csv"
    group.command("split", epilog=f"Example: `{drawn}`")(split)
    example = "fieldmark export darwin-core occurrences --data finds.csv --out finds.zip --run runs/mine"
    group.command("darwin-core", epilog=f"Example: `{example}`")(darwin_core)
    group.command("onnx", epilog="Example: `fieldmark export onnx runs/folder-finetune --out birds.onnx`")(onnx)
    group.command("app", epilog="Example: `fieldmark export app runs/folder-linear --out guide/`")(app_guide)
    submission = "fieldmark export snakeclef-2020 --model runs/snakes submission"
    group.command("snakeclef-2020", epilog=f"Example: `{submission}`")(snakeclef_2020)
    app.add_typer(group, name="export")


def coco(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="The dataset (`fieldmark list datasets`).", autocompletion=completion.datasets
        ),
    ],
    data: Release,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    part: Annotated[str | None, typer.Option(help="One part of the release, such as train; all if not given.")] = None,
    subset: Annotated[str, typer.Option(help="The subset, where there are any (fungitastic: all, Mini, FewShot).")] = (
        "all"
    ),
    instances: Annotated[
        bool, typer.Option("--instances", help="Write each piece of each part by itself; the parts are the categories.")
    ] = False,
    split: Annotated[
        Path | None,
        typer.Option(help="A split file (`fieldmark export split`): each image says which part it is in."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a dataset, or a part of it, as COCO JSON: images, categories, labels, masks."""
    from dataclasses import asdict

    from fieldmark.cli.output import print_json
    from fieldmark.exporting.coco import export_coco
    from fieldmark.releases import open_dataset
    from fieldmark.splits.files import read_split

    parts = None if split is None else read_split(split)
    written = export_coco(open_dataset(name, data, subset), out, part=part, instances=instances, split=parts)
    if as_json:
        print_json(asdict(written))
        return
    print(
        f"{written.images:,} images, {written.annotations:,} annotations ({written.masks:,} with masks), "
        f"{written.categories:,} categories in {out}"
    )
    if written.without_size:
        print(f"note: {written.without_size:,} photos cannot be opened, so that their width and height are left out")


def split(
    benchmark: BenchmarkName,
    data: ReleaseOrPhotos,
    out: Annotated[Path, typer.Option(help="The CSV file to write (id,part); a JSON file beside it says how.")],
    seed: Annotated[int, typer.Option(min=0, help="The seed of parts that are drawn, as given to `fit`.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write the parts of a benchmark, drawn or as released, as a split file: for other tools, and for `fit --split`."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.exporting.split import export_split

    written = export_split(benchmark, data, out, seed=seed)
    counted = written.table.group_by("part", maintain_order=True).len()
    rows = dict(counted.iter_rows())
    if as_json:
        print_json({"rows": rows, "digest": written.digest, **written.about})
        return
    print_table(["part", "rows"], [[part, f"{count:,}"] for part, count in rows.items()])
    print(f"split in {out} (digest {written.digest})")
    print(f"use it with fieldmark fit --split {out}, or show it with fieldmark export coco --split {out}")


def darwin_core(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="The dataset (`fieldmark list datasets`).", autocompletion=completion.datasets
        ),
    ],
    data: Release,
    out: Annotated[Path, typer.Option(help="The .zip to write.")],
    run: Annotated[
        Path | None, typer.Option(help="The folder of a run on this dataset: its answers become identifications.")
    ] = None,
    answers: Annotated[int, typer.Option(min=1, help="The number of answers per item, best first.")] = 1,
    photos: Annotated[bool, typer.Option("--photos", help="Put the photos themselves into the archive.")] = False,
    title: Annotated[str, typer.Option(help="The title of the dataset; its name if not given.")] = "",
    creator: Annotated[str, typer.Option(help="The publisher: a person or an organization.")] = "not stated",
    subset: Annotated[str, typer.Option(help="The subset, where there are any; that of the run's benchmark.")] = "all",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a dataset, and the answers of a run, as a Darwin Core Archive for GBIF and others."""
    from dataclasses import asdict

    from fieldmark.cli.output import print_json
    from fieldmark.errors import MisuseError
    from fieldmark.exporting.darwin_core import About, export_darwin_core
    from fieldmark.exporting.identifications import benchmark_of_run, identifications_of
    from fieldmark.releases import open_dataset

    if run is not None:
        benchmark = benchmark_of_run(run)
        if benchmark.dataset != name:
            raise MisuseError(f"{run} answers {benchmark.name}, which is about {benchmark.dataset}, not {name}.")
        subset = benchmark.subset
    dataset = open_dataset(name, data, subset)
    identified = None if run is None else identifications_of(run, dataset, at_most=answers)
    about = About(title, creator)
    written = export_darwin_core(dataset, out, answers=identified, photos=photos, about=about)
    if as_json:
        print_json(asdict(written))
        return
    print(
        f"{written.observations:,} observations, {written.media:,} media ({written.files:,} files inside), "
        f"{written.identifications:,} identifications in {out}"
    )


def onnx(
    model: Annotated[str, typer.Argument(help="The folder of a model or a run, or hf://owner/name.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write the network of a fitted model as ONNX, checked against torch."""
    from dataclasses import asdict

    from fieldmark.cli.output import print_json
    from fieldmark.exporting.onnx import export_onnx
    from fieldmark.models import load_model

    written = export_onnx(load_model(model), out)
    if as_json:
        print_json(asdict(written))
        return
    print(
        f"{written.labels:,} labels, photos of {written.size_px} px in {out}; "
        f"differs from torch by at most {written.difference:.1g} of the largest output"
    )


def app_guide(
    model: Annotated[str, typer.Argument(help="The folder of a model or a run, or hf://owner/name.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    weights: Annotated[
        str,
        typer.Option(
            help="How weights are stored: single, half or 8-bit, each with its loss measured on val; auto takes half "
            "where a first visit then takes at most 12 MB, else 8-bit."
        ),
    ] = "auto",
    title: Annotated[str, typer.Option(help="The title of the guide.")] = "",
    pictures: Annotated[
        int,
        typer.Option(
            min=0, help="How many training photos to include as thumbnails, spread over the species; 0 for none."
        ),
    ] = 600,
    data: Annotated[Path | None, typer.Option(help="The training photos, if they have moved.")] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a model as a field guide: a folder of static files that answers in a browser, without a network."""
    from dataclasses import asdict

    from fieldmark.cli.output import print_json
    from fieldmark.identification.field_guide.export import MOST_FIRST_LOAD, export_guide

    written = export_guide(model, out, weights=weights, title=title, pictures=pictures, data=data, overwrite=overwrite)
    if as_json:
        print_json({**asdict(written), "folder": str(written.folder)})
        return
    print(
        f"{written.labels:,} names, {written.pictures:,} pictures, weights in {written.precision} in {out}: "
        f"first download: {written.first_load / 1e6:.1f} MB"
    )
    if written.too_large:
        print(
            f"note: that is more than {MOST_FIRST_LOAD / 1e6:.0f} MB; use --weights 8-bit, fewer --pictures or a "
            f"smaller network"
        )
    for loss in written.losses.losses:
        right = f"{100 * loss.right[0]:.1f} % of {written.losses.observations} observations of val correct"
        print(f"  {loss.precision}: {right}{'' if loss.less is None else _loss(*loss.less)}")
    if written.losses.not_measured:
        print(f"note: the loss from smaller weights was not measured. {written.losses.not_measured}")
    print(f"try it: fieldmark app {out}")


def _loss(value: float, low: float, high: float) -> str:
    return f", {100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}] points to single precision"


def snakeclef_2020(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    model: Annotated[Path, typer.Option(help="The folder of a model, or of the run that made it.")],
    author: Annotated[str, typer.Option(help="Who submits: a name on the platform.")] = "",
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a model as a code submission: a folder with run.sh, as SnakeCLEF 2020 asked for.

    `run.sh` reads AICROWD_TEST_IMAGES_PATH and AICROWD_TEST_METADATA_PATH, and writes AICROWD_PREDICTIONS_OUTPUT_PATH.
    """
    from dataclasses import asdict

    from fieldmark.cli.output import print_json
    from fieldmark.exporting.code_submission import export_submission

    written = export_submission(model, out, author=author, overwrite=overwrite)
    if as_json:
        print_json(asdict(written))
        return
    variables = " ".join(f"AICROWD_{name}_PATH=..." for name in ("TEST_IMAGES", "TEST_METADATA", "PREDICTIONS_OUTPUT"))
    print(
        f"a submission for {written.classes:,} classes in {out}, with {written.requirements} requirements; to try it:"
    )
    print(f"  {variables} {out}/run.sh")
