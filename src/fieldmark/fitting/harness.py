"""The harness: opens a benchmark, fits a method, applies steps, scores, and writes the folder of a run.

```
OUT/
  run.csv                  the answers on test, in the benchmark's own format (on val, where there is no test);
                           run.parquet for masks
  run.json                 where they came from
  scorecard.json           the score on test (on val, where there is no truth for test), with .units.parquet beside it
  scorecard-val.json       the score on val
  predictions/val.parquet  every score of every label, steps applied
  predictions/test.parquet
  unknown-scores.json      how well each score of strangeness tells the unknown, where a method has some
  unknown-scores/*.parquet those scores, one row per item
  model/                   see `fieldmark.models`
  training/log.jsonl       what was measured along the way, for methods that train a network
  search.csv, search.json  what was tried, where settings were chosen by cross-validation
  split.csv, split.json    the parts, where they are not those of the benchmark
```
While a network is trained its checkpoints lie in `OUT.training`, and the finished folds of a search in `OUT.search`;
the same command goes on from them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.settings import data_behind_crop
from fieldmark.fitting.adding import with_added
from fieldmark.fitting.allowed import modalities_of, refuse_disallowed, seen_by
from fieldmark.fitting.configuring import configured_method
from fieldmark.fitting.learning import (
    answer_test,
    final_fit,
    fit_on_train,
    guide_of,
    prepare,
    readable_inputs,
    steps_of,
    supplied_view,
    supply_of,
    told_labels,
    with_features,
)
from fieldmark.fitting.lineage import Lineage, lineage_of
from fieldmark.fitting.run_folders import score_part, write_run
from fieldmark.fitting.search_table import Searched
from fieldmark.fitting.searching import Search, plan, run_search
from fieldmark.fitting.unknown_table import UnknownTable, unknown_table
from fieldmark.fitting.val_size import remarks_on_val
from fieldmark.foundation.addresses import recorded_place
from fieldmark.foundation.engines import working_on
from fieldmark.foundation.files import appearing_folder, only_writer
from fieldmark.foundation.notebooks import html_note, html_page
from fieldmark.guides import Guide
from fieldmark.methods import Fitted, Method
from fieldmark.methods.base import NOT_STATED
from fieldmark.models import Model, load_model
from fieldmark.models.photo_by_photo import OF_FEATURES, check_pooling
from fieldmark.opening import (
    ANSWERABLE_PARTS,
    Opened,
    open_benchmark,
    open_release,
    remarks_on_answers,
    remarks_on_copies,
    remarks_on_split,
)
from fieldmark.runs.provenance import Run
from fieldmark.scoring import Scorecard
from fieldmark.splits.files import SPLIT_FILE, Split, read_split
from fieldmark.steps import Step, step_to_data
from fieldmark.supply import Supply, remarks_on_missing


@dataclass(frozen=True)
class FitResult:
    """What `fit` made: the folder of the run and what stands in it."""

    folder: Path
    run: Run
    model: Model
    scorecards: dict[str, Scorecard]
    unknown: UnknownTable | None = None

    @property
    def scorecard(self) -> Scorecard:
        """The score on test, or on val where there is no truth for test."""
        return self.scorecards.get("test") or self.scorecards["val"]

    def _repr_html_(self) -> str:
        """The score, what a reader should know about it, and where the run lies."""
        remarks = [html_note(remark) for remark in self.run.remarks]
        card = self.scorecard._repr_html_()
        return html_page(f"{self.run.method}: {self.folder}", card, *remarks)


def fit(
    benchmark: str,
    data: str | Path,
    method: str,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    steps: Sequence[str] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    store: Path | None = None,
    external_data: Sequence[str] = (),
    split: str | Path | None = None,
    search: Search | None = None,
    extra_annotations: Sequence[str] = (),
    pooling: str = OF_FEATURES,
    shared: Path | None = None,
    add: str | Path | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> FitResult:
    """Fits a method to a benchmark and writes the folder of the run.

    Val serves for every choice: settings left open, steps, temperatures. Where val was drawn from train by us, the
    final model is fitted to train and val together with those choices; where the release has its own val, it is not.

    Args:
        benchmark: The name of the benchmark.
        data: The root of the release.
        method: The name of the method.
        out: The folder to write.
        settings: Settings of the method and of its features.
        steps: The names of the steps, in order, each with settings after a colon (`group-temperature:column=habitat`);
            those that the method asks for if not given, else temperature, with max-softmax in an open set, and presence
            where several labels may hold at once.
        seed: The seed of everything random: parts that are drawn, and methods that draw.
        overwrite: Whether an existing folder is replaced.
        store: Where features are kept, if not in the user's cache.
        external_data: What besides the release went in, one sentence each; pre-trained weights declare themselves.
        split: A split file (`fieldmark split`) in place of the split of the benchmark.
        search: Settings to choose by cross-validation on train before the fit.
        extra_annotations: What was annotated on the media of the release beyond what it holds, one sentence each.
        pooling: How items of several photos are answered: features, mean, max or attention (`models.photo_by_photo`).
        shared: A folder for fitted parts of methods that other fits can take over, as those of an ablation do.
        add: A table of checked answers to learn from as well (`fitting.adding`).
        engine: What makes features and samples rasters: "local", or "ray" for a cluster (`foundation.engines`).
        address: With "ray": the address of the cluster, "auto" for the one of this machine.

    Raises:
        InputError: When the release or the split is at fault.
        MisuseError: When names or settings are, or when the task does not allow what the method sees.
    """
    seconds: dict[str, float] = {}
    declared = BENCHMARKS[benchmark]
    task = declared.task
    # Names and settings are checked before anything is read; what is left open follows from what the release holds.
    configured = configured_method(method, settings or {}, seed)
    unfitted = steps_of(configured.method, task, steps)
    refuse_disallowed(method, configured.method, unfitted, task)
    planned = plan(method, settings or {}, search, seed) if search is not None else None
    check_pooling(pooling)
    other_split = read_split(Path(split)) if split is not None else None
    with (
        _held(Path(out)),
        working_on(engine, address),
        appearing_folder(Path(out), overwrite=overwrite) as folder,
    ):
        with _timed(seconds, "open"):
            opened = open_benchmark(declared, open_release(declared, data), seed=seed, split=other_split)
        swapped = []
        if opened.benchmark is not declared:  # the release has no open set, and the closed one is meant
            swapped = [f"The release has no open set for {benchmark}: this run is of {opened.benchmark.name}."]
            declared, task = opened.benchmark, opened.benchmark.task
            unfitted = steps_of(configured.method, task, steps)
            refuse_disallowed(method, configured.method, unfitted, task)
        added = with_added(opened, Path(add)) if add is not None else None
        if added is not None:
            opened, swapped = added.opened, [*swapped, *added.remarks]
        told = told_labels(opened, "test")
        searched, trials = None, Path(f"{out}.search")
        if planned is not None:
            with _timed(seconds, "search"):
                searched = run_search(*planned, opened, steps=steps, seed=seed, store=store, scratch=trials)
            configured = planned[1][searched.best].configured
        configured = configured.on_release(readable_inputs(opened))
        if searched is not None:
            unfitted = steps_of(configured.method, task, steps)
        supply = supply_of(configured, opened, store)
        with _timed(seconds, "features"):
            view = replace(supplied_view(opened, supply), shared=shared)
        with _timed(seconds, "fit"):
            scratch = Path(f"{out}.training")
            made = fit_on_train(configured.method, unfitted, replace(view, scratch=scratch), opened, (supply, pooling))
            fitted, fitted_steps, val_predictions, _ = made
            guide = guide_of(made, view, opened)
            final, trained_on = final_fit(fitted, replace(view, scratch=scratch / "refit"), opened)
        main = supply.main
        lineage = lineage_of(main.fine_tuned, opened, data) if main and main.fine_tuned else None
        external = [*_declared_external(configured.method, fitted_steps, lineage, supply), *external_data]
        model = _model(method, final, fitted_steps, opened, supply, trained_on, seed, external, lineage, guide)
        if added is not None:
            extra_annotations = (*extra_annotations, f"Checked answers: {added.remarks[0]}")
            model.trained["added"] = dict(added.record)
        if extra_annotations:
            model.trained["extra_annotations"] = list(extra_annotations)
        if pooling != OF_FEATURES:
            model.trained["pooling"] = pooling
        choices = [*swapped, *_remarks_on_choices(configured.method, fitted.method, opened, searched)]
        run = _provenance(model, opened, supply, data, seconds, [*remarks_on_missing(view), *choices], searched)
        predictions = {"val": val_predictions}
        with _timed(seconds, "predict"):
            if view.test is not None:
                predictions["test"] = model.predict(view.test, order=task.time_order, truth=told)
        with _timed(seconds, "score"):
            scorecards = {part: score_part(opened, predictions[part], part, run) for part in opened.truth}
            unknown = unknown_table(declared, opened, view, {"val": fitted, "test": model.fitted})
        for table in (unknown, searched):
            if table is not None:
                table.write(folder)
        write_run(folder, opened, run, model, predictions, scorecards)
        if scratch.exists():
            shutil.copytree(scratch, folder / "training", ignore=shutil.ignore_patterns("*.pt", "*.safetensors"))
    for done in (scratch, trials):
        shutil.rmtree(done, ignore_errors=True)
    return FitResult(Path(out), run, model, scorecards, unknown)


def _remarks_on_choices(asked: Method, fitted: Method, opened: Opened, searched: Searched | None) -> list[str]:
    """What a reader should know about how settings were chosen, by search and on val."""
    units = len(set(opened.truth["val"].units)) if "val" in opened.truth else len(opened.items["val"])
    return [*(searched.remarks if searched is not None else ()), *remarks_on_val(asked, fitted, units)]


def predict(
    model: str | Path | Model,
    data: str | Path,
    *,
    split: str = "test",
    out: Path | None = None,
    benchmark: str | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> Any:
    """Answers one part of a release with a fitted model, and writes the run file if `out` is given.

    Args:
        model: A model, or the folder of one or of the run that made it.
        data: The root of the release.
        split: Which part.
        out: The run file to write, in the benchmark's format.
        benchmark: The benchmark whose parts and format are meant, if not the one the model was trained on.
        engine: What makes features, as in `fit`.
        address: Of the cluster, as in `fit`.
    """
    loaded = model if isinstance(model, Model) else load_model(model)
    declared = BENCHMARKS[benchmark or loaded.trained["benchmark"]]
    cut_by = None if benchmark else split_of_model(model, loaded)
    opened = open_benchmark(declared, open_release(declared, data), seed=loaded.trained["seed"], split=cut_by)
    part = {"train": opened.view.train, "val": opened.view.val, "test": opened.view.test}.get(split)
    if part is None:
        raise MisuseError(f"{data} has no part called {split!r} to predict. {did_you_mean(split, ANSWERABLE_PARTS)}")
    task = opened.benchmark.task
    with working_on(engine, address):
        predictions = loaded.predict(part.unlabeled(), order=task.time_order, truth=told_labels(opened, split))
    if out is not None:
        task.run.write(out, predictions)
    return predictions


def split_of_model(model: str | Path | Model, loaded: Model) -> Split | None:
    """The split that a model was trained with, where it was not that of the benchmark: it lies beside the model.

    Raises:
        MisuseError: When it is not there, or another one is.
    """
    record = loaded.trained.get("split")
    if record is None:
        return None
    places = [] if isinstance(model, Model) else [Path(model) / SPLIT_FILE, Path(model).parent / SPLIT_FILE]
    for place in places:
        if place.exists() and (split := read_split(place)).digest == record["digest"]:
            return split
    raise MisuseError(
        f"The model was trained with the split {record['file']} (digest {record['digest']}), which is not beside it: "
        f"keep {SPLIT_FILE} in the folder of the run, and name that folder."
    )


def _declared_external(method: Method, steps: Sequence[Step], lineage: Lineage | None, supply: Supply) -> list[str]:
    """What method, features and steps declare: pre-trained weights, a location model."""
    features = [sentence for source in supply.sources.values() for sentence in source.settings.external_data]
    features += [sentence for encoder in supply.encoders.values() for sentence in encoder.external_data]
    crops = [sentence for source in supply.sources.values() for sentence in data_behind_crop(source.crop[0])]
    behind = features if lineage is None else [*lineage.external_data, *crops]
    behind = list(dict.fromkeys(behind))
    return [*method.external_data, *behind, *(sentence for step in steps for sentence in step.external_data)]


def _model(
    name: str,
    fitted: Fitted,
    steps: tuple[Step, ...],
    opened: Opened,
    supply: Supply,
    trained_on: list[str],
    seed: int,
    external_data: list[str],
    lineage: Lineage | None,
    guide: Guide | None,
) -> Model:
    trained = {
        "benchmark": opened.benchmark.name,
        "version": opened.benchmark.version,
        "parts": trained_on,
        "seed": seed,
        "data_digest": opened.dataset.digest,
        "world": opened.dataset.release.world,
        "external_data": external_data,
        **({"backbone": asdict(lineage)} if lineage else {}),
        **({"split": opened.split.record} if opened.split is not None else {}),
    }
    features = {name: source.settings for name, source in supply.sources.items()}
    backbone = supply.main.fine_tuned if supply.main else None
    terms = fitted.method.license
    if terms == NOT_STATED and backbone is not None:
        terms = backbone.license
    taxa, labels = opened.dataset.taxa, opened.view.labels
    return Model(name, fitted, steps, labels, taxa, features, trained, terms, backbone, supply.encoders, guide)


def _provenance(
    model: Model,
    opened: Opened,
    supply: Supply,
    data: str | Path,
    seconds: dict[str, float],
    choices: list[str],
    searched: Searched | None,
) -> Run:
    fine_tuned = model.trained.get("backbone", {})
    return Run(
        benchmark=opened.benchmark.name,
        version=opened.benchmark.version,
        method=model.name,
        options=model.fitted.method.options,
        sees=seen_by(model.fitted.method, model.steps),
        features=_features(supply, fine_tuned),
        steps=[step_to_data(step) for step in model.steps],
        trained_on=model.trained["parts"],
        seed=model.trained["seed"],
        data=recorded_place(data),
        data_digest=opened.dataset.digest,
        world=opened.dataset.release.world,
        remarks=[
            *opened.dataset.remarks,
            *remarks_on_answers(opened),
            *remarks_on_split(opened),
            *remarks_on_copies(opened),
            *fine_tuned.get("remarks", ()),
            *supply.remarks,
            *model.fitted.remarks,
            *choices,
        ],
        seconds=seconds,
        external_data=model.trained["external_data"],
        learns_from=list(model.fitted.method.learns_from),
        split=opened.split.record if opened.split is not None else None,
        search=searched.record if searched is not None else None,
        extra_annotations=model.trained.get("extra_annotations", []),
        modalities=modalities_of(model.fitted.method, model.steps, opened.dataset.media_kind),
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


def _held(out: Path) -> AbstractContextManager[None]:
    """Keeps other commands off the folder and its checkpoints; of the processes of one training the first does so."""
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK", "0")  # of all hosts, where torchrun says it
    return only_writer(out) if rank == "0" else nullcontext()


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[phase] = round(time.perf_counter() - start, 3)


__all__ = ["FitResult", "answer_test", "fit", "predict", "prepare", "with_features"]
