"""What every run is: scored parts, and a folder with the answers, the scores, the model and where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fieldmark.models import MODEL_FOLDER, Model
from fieldmark.opening import Opened
from fieldmark.runs.provenance import Run
from fieldmark.scoring import SCORECARD_FILE, Scorecard, score_predictions
from fieldmark.splits.files import SPLIT_FILE

PREDICTIONS_FOLDER = "predictions"


def predictions_file(folder: Path, part: str) -> Path:
    """Where the predictions of a part lie in the folder of a run."""
    return folder / PREDICTIONS_FOLDER / f"{part}.parquet"


def score_part(opened: Opened, predictions: Any, part: str, run: Run) -> Scorecard:
    """The score of a run on a part whose truth is there."""
    return score_predictions(
        opened.benchmark,
        predictions,
        opened.truth[part],
        labels=opened.view.labels,
        split=part,
        run=run,
        classes=opened.dataset.taxa,
    )


def kept_scores(card: Scorecard) -> dict[str, dict[str, float | None]]:
    """What a model keeps of its scores, for its card: values and bounds by metric."""
    plain = card.to_json()["metrics"]
    return {name: {key: score[key] for key in ("value", "low", "high")} for name, score in plain.items()}


def write_run(
    folder: Path,
    opened: Opened,
    run: Run,
    model: Model,
    predictions: Mapping[str, Any],
    scorecards: Mapping[str, Scorecard],
) -> None:
    """Writes what `fitting.harness` says stands in the folder of every run."""
    for part, predicted in predictions.items():
        predicted.write(predictions_file(folder, part))
    run_format = opened.benchmark.task.run
    run_format.write(folder / run_format.file_name, predictions.get("test", predictions["val"]))
    main = scorecards.get("test") or scorecards["val"]
    main.write(folder / SCORECARD_FILE)
    scorecards["val"].write(folder / "scorecard-val.json")
    model.trained["scores"] = {part: kept_scores(card) for part, card in scorecards.items()}
    model.save(folder / MODEL_FOLDER)
    if opened.split is not None:
        opened.split.write(folder / SPLIT_FILE)
    run.write(folder)
