"""What every run is: the record of where model and answers came from, scored parts, and the folder of all that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fieldmark.features.settings import data_behind_crop
from fieldmark.fitting.additions import Added
from fieldmark.fitting.allowed import lessons_of, modalities_of, parts_learned_from, seen_by
from fieldmark.fitting.chains import Chain
from fieldmark.fitting.configuration import Configured
from fieldmark.fitting.copies import remarks_on_looks
from fieldmark.fitting.fit_part import Learned
from fieldmark.fitting.lineage import Lineage, lineage_of
from fieldmark.fitting.search_table import Searched
from fieldmark.methods import Method
from fieldmark.methods.base import NOT_STATED
from fieldmark.models import MODEL_FOLDER, Model
from fieldmark.models.photo_by_photo import OF_FEATURES
from fieldmark.models.supply import Supply
from fieldmark.releases.facts import CITATION_FILE, citations_of
from fieldmark.runs.predictions import predictions_file
from fieldmark.runs.provenance import Run, declared_external_data
from fieldmark.scoring import SCORECARD_FILE, Scorecard, score_predictions
from fieldmark.splits.files import SPLIT_FILE
from fieldmark.steps import Step, step_to_data
from fieldmark.storage.addresses import recorded_place
from fieldmark.views.open_benchmark import Opened, remarks_on_answers, remarks_on_copies, remarks_on_split


def model_of(
    configured: Configured,
    learned: Learned,
    opened: Opened,
    supply: Supply,
    data: str | Path,
    *,
    seed: int,
    external_data: Sequence[str],
    extra_annotations: Sequence[str],
    pooling: str,
    added: Added | None,
    chain: Chain | None = None,
) -> Model:
    """The model that was learned, with what it records about how; the last arguments are those of `fit`."""
    backbone = supply.main.fine_tuned if supply.main else None
    lineage = lineage_of(backbone, opened, data) if backbone else None
    steps = learned.on_train.steps
    said = declared_external_data(external_data)
    known = configured.method.origin_known and all(source.origin_known for source in supply.sources.values())
    external: list[str] | None = None  # an object of one's own says nothing about itself
    if known or said is not None:
        external = [*_declared_external(configured.method, steps, lineage, supply), *(said or ())]
        external += added.external_data if added is not None else ()
    if added is not None:
        extra_annotations = (*extra_annotations, f"Checked answers: {added.remarks[0]}")
    trained = {
        "benchmark": opened.benchmark.name,
        "version": opened.benchmark.version,
        "parts": learned.parts,
        "seed": seed,
        "data_digest": opened.dataset.digest,
        "world": opened.dataset.release.world,
        "external_data": external,
        **({"backbone": asdict(lineage)} if lineage else {}),
        **({"split": opened.split.record} if opened.split is not None else {}),
        **({"added": dict(added.record)} if added is not None else {}),
        **({"extra_annotations": list(extra_annotations)} if extra_annotations else {}),
        **({"pooling": pooling} if pooling != OF_FEATURES else {}),
        **({"chain": chain.to_data()} if chain is not None else {}),
    }
    terms = learned.final.method.license
    if terms == NOT_STATED and backbone is not None:
        terms = backbone.license
    return Model(
        configured.name,
        learned.final,
        steps,
        opened.view.labels,
        opened.dataset.taxa,
        {name: source.settings_used for name, source in supply.sources.items()},
        trained,
        license=terms,
        backbone=backbone,
        encoders=supply.encoders,
        guide=learned.guide,
        axes=supply.axes,
        own=configured.own,
        own_backbone=configured.own_backbone,
    )


def run_of(
    model: Model,
    opened: Opened,
    supply: Supply,
    data: str | Path,
    seconds: dict[str, float],
    remarks: Sequence[str],
    searched: Searched | None,
) -> Run:
    """The record of a run; further remarks stand behind those of data, features and method."""
    fine_tuned = model.trained.get("backbone", {})
    return Run(
        benchmark=opened.benchmark.name,
        version=opened.benchmark.version,
        method=model.name,
        options=model.fitted.method.options,
        sees=seen_by(model.fitted.method, model.steps),
        features=_features(supply, fine_tuned),
        steps=[step_to_data(step) for step in model.steps],
        trained_on=parts_learned_from(model.trained["parts"], model.steps),
        seed=model.trained["seed"],
        data=recorded_place(data),
        data_digest=opened.dataset.digest,
        world=opened.dataset.release.world,
        remarks=[
            *opened.dataset.remarks,
            *remarks_on_answers(opened),
            *remarks_on_split(opened),
            *remarks_on_copies(opened),
            *remarks_on_looks(opened, supply, data),
            *fine_tuned.get("remarks", ()),
            *supply.remarks,
            *model.fitted.remarks,
            *remarks,
        ],
        seconds=seconds,
        external_data=model.trained["external_data"],
        learns_from=list(model.fitted.method.learns_from),
        step_lessons=lessons_of(model.steps),
        split=opened.split.record if opened.split is not None else None,
        search=searched.record if searched is not None else None,
        extra_annotations=model.trained.get("extra_annotations", []),
        modalities=modalities_of(model.fitted.method, model.steps, opened.dataset.medium.name),
        pooling=model.pooling if _has_several(opened) else "",
    )


def _has_several(opened: Opened) -> bool:
    """Whether some items consist of several photos."""
    parts = [part for part in (opened.view.train, opened.view.val, opened.view.test) if part is not None]
    return any((part.items["media_ids"].list.len().max() or 0) > 1 for part in parts)  # type: ignore[operator]


def _features(supply: Supply, fine_tuned: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a run records about its features; those of further inputs stand under their names."""
    if not supply.sources and not supply.encoders:
        return None
    further = {name: source.about for name, source in supply.sources.items() if name}
    encoded = {name: encoder.about for name, encoder in supply.encoders.items()}
    main = supply.main.about if supply.main else {}
    named = {"fine_tuned": fine_tuned, "inputs": further, "encoded": encoded}
    return {**main, **{name: about for name, about in named.items() if about}}


def _declared_external(method: Method, steps: Sequence[Step], lineage: Lineage | None, supply: Supply) -> list[str]:
    """What method, features and steps declare: pre-trained weights, a location model."""
    features = [sentence for source in supply.sources.values() for sentence in source.settings.external_data]
    features += [sentence for encoder in supply.encoders.values() for sentence in encoder.external_data]
    crops = [sentence for source in supply.sources.values() for sentence in data_behind_crop(source.crop[0])]
    behind = features if lineage is None else [*lineage.external_data, *crops]
    behind = list(dict.fromkeys(behind))
    return [*method.external_data, *behind, *(sentence for step in steps for sentence in step.external_data)]


def score_part(opened: Opened, predictions: Any, part: str, run: Run | None = None) -> Scorecard:
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
    entries = {} if opened.dataset.simulated else citations_of([opened.benchmark.dataset])[opened.benchmark.dataset]
    if entries:
        (folder / CITATION_FILE).write_text("\n\n".join(entries.values()) + "\n", encoding="utf-8")
    run.write(folder)
