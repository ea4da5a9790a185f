"""The harness: opens a benchmark, fits a method, applies steps, scores, and writes the folder of a run.

```
OUT/
  run.csv                  the answers on test, in the benchmark's own format (on val, where there is no test)
  run.json                 where they came from
  scorecard.json           the score on test (on val, where there is no truth for test), with .units.parquet beside it
  scorecard-val.json       the score on val
  predictions/val.parquet  every score of every label, steps applied
  predictions/test.parquet
  unknown-scores.json      how well each score of strangeness tells the unknown, where a method has some
  unknown-scores/*.parquet those scores, one row per item
  model/                   see `fieldmark.models`
  training/log.jsonl       what was measured along the way, for methods that train a network
```
While a network is trained its checkpoints lie in `OUT.training`; the same command goes on from them.
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

from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.datasets.base import Dataset, MediaKind
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.settings import FeatureSettings, defaults_for
from fieldmark.files import appearing_folder, only_writer
from fieldmark.lineage import Lineage, lineage_of
from fieldmark.methods import METHODS, Fitted, Method
from fieldmark.methods.base import OpenMethod, truth_of
from fieldmark.models import MODEL_FOLDER, NOT_STATED, FeatureSource, Model, load_model
from fieldmark.runs.predictions import Predictions, write_predictions
from fieldmark.runs.provenance import Run
from fieldmark.scoring import RUN_CSV, SCORECARD_FILE, Scorecard, score_predictions
from fieldmark.settings import configure
from fieldmark.steps import Step, make_step, step_to_data
from fieldmark.steps.base import Asked, OpenStep, fit_step
from fieldmark.unknowns import UnknownTable, unknown_table
from fieldmark.views import PARTS, Opened, View, open_benchmark, open_release

DEFAULT_STEPS = ("temperature",)
OPEN_SET_STEPS = ("temperature", "max-softmax")
SEVERAL_LABELS_STEPS = ("presence",)


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

    Raises:
        InputError: When the release is at fault.
        MisuseError: When names or settings are, or when the task does not allow what the method sees.
    """
    seconds: dict[str, float] = {}
    declared = BENCHMARKS[benchmark]
    # Names and settings are checked before anything is read, and the rest follows from what the media turn out to be.
    planned = _configure(method, settings or {}, "photo", seed)[0]
    _check_allowed(method, planned, declared.task)
    unfitted = _steps(planned, declared.task, steps)
    with _held(Path(out)), appearing_folder(Path(out), overwrite=overwrite) as folder:
        with _timed(seconds, "open"):
            opened = open_benchmark(declared, open_release(declared, data), seed=seed)
        configured, features = _configure(method, settings or {}, opened.dataset.media_kind, seed)
        _check_media(method, configured, opened.dataset)
        if hasattr(configured, "check"):  # what can be refused before features are computed
            configured.check(opened.view)
        source = FeatureSource(features, store) if features else None
        with _timed(seconds, "features"):
            view = _supply(opened, source)
        with _timed(seconds, "fit"):
            scratch = Path(f"{out}.training")
            asked = Asked(declared.task, view.labels, opened.dataset.taxa)
            fitted, fitted_steps, val_predictions = _fit(configured, unfitted, replace(view, scratch=scratch), asked)
            final, trained_on = _final(fitted, replace(view, scratch=scratch / "refit"), opened.val_is_drawn)
        lineage = lineage_of(source.fine_tuned, opened, data) if source and source.fine_tuned else None
        external = [*_declared_external(configured, lineage or features, *fitted_steps), *external_data]
        model = _model(method, final, fitted_steps, opened, source, trained_on, seed, external, lineage)
        run = _provenance(model, opened, source, data, seconds)
        predictions = {"val": val_predictions}
        with _timed(seconds, "predict"):
            if view.test is not None:
                predictions["test"] = model.predict(view.test)
        with _timed(seconds, "score"):
            scorecards = {
                part: score_predictions(
                    declared, predictions[part], truth, split=part, run=run, classes=opened.dataset.taxa
                )
                for part, truth in opened.truth.items()
            }
            unknown = unknown_table(declared, opened, view, {"val": fitted, "test": model.fitted})
        if unknown is not None:
            unknown.write(folder)
        _write(folder, declared.task, run, model, predictions, scorecards)
        if scratch.exists():
            shutil.copytree(scratch, folder / "training", ignore=shutil.ignore_patterns("*.pt", "*.safetensors"))
    shutil.rmtree(scratch, ignore_errors=True)
    return FitResult(Path(out), run, model, scorecards, unknown)


def predict(
    model: str | Path | Model,
    data: str | Path,
    *,
    split: str = "test",
    out: Path | None = None,
    benchmark: str | None = None,
) -> Predictions:
    """Answers one part of a release with a fitted model, and writes the run file if `out` is given.

    Args:
        model: A model, or the folder of one or of the run that made it.
        data: The root of the release.
        split: Which part.
        out: The run file to write, in the benchmark's format.
        benchmark: The benchmark whose parts and format are meant, if not the one the model was trained on.
    """
    loaded = model if isinstance(model, Model) else load_model(model)
    declared = BENCHMARKS[benchmark or loaded.trained["benchmark"]]
    opened = open_benchmark(declared, open_release(declared, data), seed=loaded.trained["seed"])
    part = {"train": opened.view.train, "val": opened.view.val, "test": opened.view.test}.get(split)
    if part is None:
        raise MisuseError(f"{data} has no part called {split!r} to predict. {did_you_mean(split, PARTS)}")
    predictions = loaded.predict(replace(part, truth=None))
    if out is not None:
        declared.task.run.write(out, predictions)
    return predictions


def _configure(
    method: str, settings: Mapping[str, Any], media_kind: MediaKind, seed: int = 0
) -> tuple[Method, FeatureSettings | None]:
    cls = METHODS[method]
    if "seed" in getattr(cls, "__dataclass_fields__", {}):  # a method that draws, unless its own seed was given
        settings = {"seed": seed, **settings}
    if hasattr(cls, "expand"):  # settings that stand for others, such as a recipe
        settings = cls.expand(settings)
    if "features" in cls.needs:
        usual = {**defaults_for(media_kind), **getattr(cls, "feature_defaults", {})}
        configured, features = configure({**usual, **settings}, cls, FeatureSettings)
        return configured, features
    return configure(settings, cls)[0], None


def _declared_external(*sources: object) -> list[str]:
    """What methods, features and steps declare in a tuple `external_data` (pre-trained weights, a location model)."""
    return [sentence for source in sources for sentence in getattr(source, "external_data", ())]


def _steps(method: Method, task: Task, names: Sequence[str] | None) -> list[Step]:
    """The steps that were asked for, else those of the method, else those of the task."""
    if names is None and isinstance(method, OpenMethod):
        steps = list(method.default_steps())
    else:
        steps = [make_step(name) for name in (_default_steps(task) if names is None else names)]
    for step in steps:
        if isinstance(step, OpenStep):
            step.check(task)
    return steps


def _check_allowed(name: str, method: Method, task: Task) -> None:
    if task.item not in ("photo", "observation", "segment"):
        raise MisuseError(
            f"The benchmark asks about a {task.item}, which no method here answers yet; "
            "runs made elsewhere can be scored with `fieldmark score`."
        )
    if method.sees not in task.sees:
        allowed = " or ".join(task.sees)
        raise MisuseError(f"The method {name!r} is shown {method.sees} at prediction time; the task allows {allowed}.")


def _check_media(name: str, method: Method, dataset: Dataset) -> None:
    """Refuses a network for photos on recordings, and the other way around; features are looked at by their source."""
    reads = {"pixels": "photo", "audio": "recording"}
    wanted = {reads[need] for need in method.needs if need in reads}
    if wanted and dataset.media_kind not in wanted:
        raise MisuseError(
            f"The method {name!r} reads {wanted.pop()}s; {dataset.release.root} holds {dataset.media_kind}s."
        )


def _default_steps(task: Task) -> tuple[str, ...]:
    if task.item == "segment":
        return SEVERAL_LABELS_STEPS
    return OPEN_SET_STEPS if task.unknown else DEFAULT_STEPS


def _supply(opened: Opened, source: FeatureSource | None) -> View:
    """The view with the features a method needs."""
    view = opened.view
    if source is None:
        return view

    parts = {"train": view.train, "val": view.val, "unlabeled": view.unlabeled, "test": view.test}
    supplied: dict[str, Any] = {
        name: source.supply(part, where=opened.dataset.where, what=f"{name} {part.media_kind}s")
        for name, part in parts.items()
        if part is not None
    }
    return replace(view, **supplied)


def _fit(
    method: Method, steps: Sequence[Step], view: View, asked: Asked | None = None
) -> tuple[Fitted, tuple[Step, ...], Predictions]:
    """Fits the method on train and the steps on val; returns the predictions on val with all steps applied."""
    # A method that answers item by item is not given the test set: what is not there cannot be peeked at.
    shown = view if method.sees == "test set" else replace(view, test=None)
    assert view.val is not None  # open_benchmark refuses an empty val
    # Unknown items teach nothing about the classes; only methods that look for the unknown are shown them.
    val = view.val if isinstance(method, OpenMethod) else view.val.of_known_labels()
    fitted = method.fit(replace(shown, val=val))
    predictions = fitted.predict(view.val, view.labels)
    # Silence is an answer to a soundscape: steps see the items without any label too.
    truth: NDArray[Any] = truth_of(view.val) if view.val.marks is None else view.val.marks.dense()
    fitted_steps: list[Step] = []
    for step in steps:
        fitted_steps.append(fit_step(step, predictions, truth, view.val.items, asked))
        predictions = fitted_steps[-1].apply(predictions, view.val.items)
    return fitted, tuple(fitted_steps), predictions


def _final(fitted: Fitted, view: View, val_is_drawn: bool) -> tuple[Fitted, list[str]]:
    """The model that answers test: fitted once more, to train and val, where val was ours to draw."""
    if not val_is_drawn or not getattr(fitted.method, "learns_from_val", True):
        return fitted, ["train"]
    together = replace(view.with_val_in_train(), test=None)
    if isinstance(fitted.method, OpenMethod):
        return fitted.method.refit(fitted.arrays, together), ["train", "val"]
    return fitted.method.fit(together), ["train", "val"]


def _model(
    name: str,
    fitted: Fitted,
    steps: tuple[Step, ...],
    opened: Opened,
    source: FeatureSource | None,
    trained_on: list[str],
    seed: int,
    external_data: list[str],
    lineage: Lineage | None,
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
    }
    features, backbone = (source.settings, source.fine_tuned) if source else (None, None)
    terms = getattr(fitted.method, "license", backbone.license if backbone else NOT_STATED)
    return Model(name, fitted, steps, opened.view.labels, opened.dataset.taxa, features, trained, terms, backbone)


def _provenance(
    model: Model, opened: Opened, source: FeatureSource | None, data: str | Path, seconds: dict[str, float]
) -> Run:
    fine_tuned = model.trained.get("backbone", {})
    return Run(
        benchmark=opened.benchmark.name,
        version=opened.benchmark.version,
        method=model.name,
        options=asdict(model.fitted.method),  # type: ignore[call-overload]
        sees=model.fitted.method.sees,
        features={**source.about, **({"fine_tuned": fine_tuned} if fine_tuned else {})} if source else None,
        steps=[step_to_data(step) for step in model.steps],
        trained_on=model.trained["parts"],
        seed=model.trained["seed"],
        data=str(Path(data).resolve()) if Path(data).exists() else str(data),
        data_digest=opened.dataset.digest,
        world=opened.dataset.release.world,
        remarks=[
            *opened.dataset.remarks,
            *fine_tuned.get("remarks", ()),
            *(source.remarks if source else []),
            *model.fitted.remarks,
        ],
        seconds=seconds,
        external_data=model.trained["external_data"],
    )


def _write(
    folder: Path,
    task: Task,
    run: Run,
    model: Model,
    predictions: Mapping[str, Predictions],
    scorecards: Mapping[str, Scorecard],
) -> None:
    for part, predicted in predictions.items():
        write_predictions(folder / "predictions" / f"{part}.parquet", predicted.blocks())
    task.run.write(folder / RUN_CSV, predictions.get("test", predictions["val"]))
    main = scorecards.get("test") or scorecards["val"]
    main.write(folder / SCORECARD_FILE)
    scorecards["val"].write(folder / "scorecard-val.json")
    model.save(folder / MODEL_FOLDER)
    run.write(folder)


def _held(out: Path) -> AbstractContextManager[None]:
    """Keeps other commands off the folder and its checkpoints; of the processes of one training the first does so."""
    return only_writer(out) if os.environ.get("LOCAL_RANK", "0") == "0" else nullcontext()


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[phase] = round(time.perf_counter() - start, 3)


def prepare(
    method: str, settings: Mapping[str, Any], task: Task, media_kind: MediaKind = "photo"
) -> tuple[Method, FeatureSettings | None]:
    """A method with its settings, and the features it needs.

    Raises:
        MisuseError: When names or settings are at fault, or when the task does not allow what the method sees.
    """
    configured, features = _configure(method, settings, media_kind)
    _check_allowed(method, configured, task)
    return configured, features


def with_features(opened: Opened, features: FeatureSettings | None, store: Path | None = None) -> View:
    """What methods see of an opened benchmark, with features where they are wanted."""
    return _supply(opened, FeatureSource(features, store) if features else None)


def answer_test(opened: Opened, view: View, method: Method, steps: Sequence[str]) -> Predictions:
    """Fits a method on train and its choices and steps on val, and answers test. Val stays apart from train."""
    task = opened.benchmark.task
    asked = Asked(task, view.labels, opened.dataset.taxa)
    fitted, fitted_steps, _ = _fit(method, _steps(method, task, steps), view, asked)
    if view.test is None:
        raise ValueError("there is no test to answer")
    predictions = fitted.predict(view.test, view.labels)
    for step in fitted_steps:
        predictions = step.apply(predictions, view.test.items)
    return predictions


__all__ = ["FitResult", "answer_test", "fit", "predict", "prepare", "with_features"]
