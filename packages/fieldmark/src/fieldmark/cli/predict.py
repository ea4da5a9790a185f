"""`fieldmark predict`: a fitted model on photos, or on a part of a release."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.cli.options import AddressOption, EngineOption, TrustCode

if TYPE_CHECKING:
    from fieldmark.identification.predicted_dangers import PredictedDangers
    from fieldmark.models import Model
    from fieldmark.runs.label_scores import LabelScores
    from fieldmark.runs.masks import Masks


def add_to(app: typer.Typer) -> None:
    app.command("predict", epilog="Example: `fieldmark predict runs/linear photo.jpg more-photos/`")(predict)


def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a model, or of the run that made it.")],
    photos: Annotated[list[Path] | None, typer.Argument(help="Photos, or folders of photos.")] = None,
    data: Annotated[Path | None, typer.Option(help="A release, in place of photos.")] = None,
    split: Annotated[str, typer.Option(help="With --data: the part to answer.")] = "test",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the answers: of photos with their probabilities (.csv or .parquet); with --data as the run "
            "file of the benchmark, or with probabilities if it ends in .parquet."
        ),
    ] = None,
    with_probabilities: Annotated[
        bool | None,
        typer.Option("--probabilities/--run-file", help="With --out: one of the two, whatever is answered."),
    ] = None,
    answers_each: Annotated[
        int | None,
        typer.Option("--answers", min=1, help="With --out: the number of answers per item, if not the maximum."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="The number of answers to print per photo.")] = 3,
    trust_code: TrustCode = False,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Skip photos that cannot be read, and list them.")
    ] = False,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answers as JSON.")] = False,
) -> None:
    """Predict labels with a fitted model, for photos or a part of a release."""
    from fieldmark.errors import MisuseError
    from fieldmark.fitting import predict as predict_part
    from fieldmark.models import find_photos, load_model
    from fieldmark.runs.masks import Masks
    from fieldmark.work.engines import working_on

    if bool(photos) == (data is not None):
        raise MisuseError("predict needs either photos or --data ROOT.")
    if skip_broken and data is not None:
        raise MisuseError("--skip-broken goes with photos: a part of a release is predicted as a whole.")
    loaded = load_model(model, trust_code=trust_code)
    found = find_photos(photos) if photos else []
    found = _readable(found) if skip_broken else found
    with working_on(engine, address):
        if photos:
            predictions = loaded.predict_photos(found)
        else:
            assert data is not None  # one of the two is given
            predictions = predict_part(loaded, data, split=split)
    if out is not None:
        as_table = with_probabilities if with_probabilities is not None else bool(photos) or out.suffix == ".parquet"
        _write(out, loaded, predictions, answers_each, as_table=as_table)
    if isinstance(predictions, Masks):
        _print_masks(predictions, out, as_json=as_json, simulated=loaded.simulated)
    else:
        _print_labels(loaded, predictions, found, out, top, as_json=as_json)


def _readable(photos: list[Path]) -> list[Path]:
    """The photos that can be read; the others are named on standard error.

    Raises:
        InputError: When none can be read.
    """
    from fieldmark.errors import InputError
    from fieldmark.releases.photo_checks import fault_of

    faults = {photo: fault_of(photo.read_bytes()) for photo in photos}
    for photo, fault in faults.items():
        if fault:
            print(f"left out: {photo}: {fault}", file=sys.stderr)
    readable = [photo for photo, fault in faults.items() if not fault]
    if not readable:
        raise InputError(photos[0], found="no photo that can be read", expected="at least one")
    return readable


def _write(
    out: Path, model: Model, predictions: LabelScores | Masks, answers_each: int | None, *, as_table: bool
) -> None:
    """Writes the answers with their probabilities, or as the run file of the benchmark."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.identification.predicted_dangers import predicted_dangers
    from fieldmark.runs.answer_tables import write_answer_table
    from fieldmark.runs.masks import Masks

    if as_table and not isinstance(predictions, Masks):
        write_answer_table(out, predictions, answers_each, predicted_dangers(model, predictions).poisonous)
        return
    run_format = BENCHMARKS[model.trained["benchmark"]].task.run
    if answers_each is not None:
        run_format = run_format.of_length(answers_each)
    run_format.write(out, predictions)


def _print_labels(
    model: Model, predictions: LabelScores, photos: list[Path], out: Path | None, top: int, *, as_json: bool
) -> None:
    """The best answers to each photo, or how many were written; and what may be dangerous among them."""
    from fieldmark.cli.output import print_json
    from fieldmark.identification.predicted_dangers import groups_seen, predicted_dangers

    dangers = predicted_dangers(model, predictions, groups_seen(model, photos))
    answers = _answers(predictions, min(top, len(model.labels)), dangers.poisonous)
    if as_json:
        notice = {"allowed": dangers.allowed, "probability": dangers.probability, "notice": dangers.lines()}
        print_json({"simulated": model.simulated, "answers": answers, "danger": notice})
        return
    if out is None:
        _print_answers(answers, top, dangers)
        if model.simulated:
            print("The model was trained on simulated data.")
    else:
        print(f"{len(predictions.items)} answers in {out}")
    for line in dangers.lines():
        print(line)


def _print_answers(answers: dict[str, list[dict[str, Any]]], top: int, dangers: PredictedDangers) -> None:
    from fieldmark.cli.output import print_table
    from fieldmark.identification.text import percent

    careful = [dangers.word] if dangers.probability else []
    rows = [
        [
            item,
            *(f"{_said(a['label'])} {100 * a['probability']:.0f} %" for a in row),
            *([""] * (top - len(row))),
            *(percent(dangers.probability[item]) if item in dangers.probability else "" for _ in careful),
        ]
        for item, row in answers.items()
    ]
    print_table(["photo", *(f"{place}." for place in range(1, top + 1)), *careful], rows)


def _print_masks(masks: Masks, out: Path | None, *, as_json: bool, simulated: bool) -> None:
    """How much of each photo every mask covers, or how many were written."""
    from fieldmark.cli.output import print_json, print_table

    if out is not None and not as_json:
        print(f"masks of {len(masks.items)} photos in {out}")
        return
    shares = {
        item: {part: round(float(mask.mean()), 6) for part, mask in masks.open(item).items()} for item in masks.items
    }
    if as_json:
        print_json({"simulated": simulated, "shares": shares})
        return
    rows = [[item, part, f"{100 * share:.1f} %"] for item, parts in shares.items() for part, share in parts.items()]
    print_table(["photo", "mask", "of the photo"], rows)
    print("Write the masks themselves with --out masks.parquet, or as pictures with --out FOLDER.")


def _said(label: str) -> str:
    from fieldmark.tables.labels import UNKNOWN_NAME

    return "unknown" if label == UNKNOWN_NAME else label


def _answers(predictions: LabelScores, top: int, poisonous: Mapping[str, bool]) -> dict[str, list[dict[str, Any]]]:
    import numpy as np

    from fieldmark.runs.label_scores import NOTHING

    best, names = predictions.top(top), predictions.labels
    # Where several labels may hold at once, each score is a probability of its own already.
    probabilities = predictions.scores if predictions.scale == "score" else predictions.probabilities()
    # Unknown stands in a last column where it competes with the labels; a rule may answer it without stating any.
    stated = np.column_stack([probabilities, np.zeros(len(probabilities), dtype=probabilities.dtype)])
    column = np.where(best >= 0, best, len(names))
    chances = np.take_along_axis(stated, column, axis=1).astype(float).round(6).tolist()
    return {
        item: [
            {"label": label, "probability": chance, **({"poisonous": poisonous[label]} if label in poisonous else {})}
            for code, label, chance in zip(best[row], names.decode(best[row]), chances[row], strict=True)
            if code != NOTHING
        ]
        for row, item in enumerate(predictions.items)
    }
