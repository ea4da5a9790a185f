"""Stored predictions with further steps: a classifier is adapted without fitting it again.

```
OUT/            as `fitting.harness` writes it, and:
  prior.csv     where steps estimate how frequent labels are among all items of test: label, source, estimated
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting.allowed import lessons_of, parts_learned_from, refuse_disallowed, seen_by
from fieldmark.fitting.fit_part import answered, applied, fit_steps, revealed_labels
from fieldmark.fitting.run_folders import score_part, write_run
from fieldmark.methods import METHODS
from fieldmark.models import Model, load_model
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import predictions_file, read_predictions
from fieldmark.runs.provenance import Run
from fieldmark.scoring import Scorecard
from fieldmark.settings import configure
from fieldmark.steps import Step, make_step, step_to_data
from fieldmark.steps.base import Lesson
from fieldmark.steps.prior_shift import OnTestSet, default_step
from fieldmark.storage.files import appearing_folder, only_writer
from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark.version import __version__
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release, split_of_run

PRIOR_FILE = "prior.csv"


@dataclass(frozen=True)
class Adapted:
    """A run with further steps, and the scores on each part before and after."""

    folder: Path
    run: Run
    model: Model
    before: dict[str, Scorecard]
    scorecards: dict[str, Scorecard]

    @property
    def scorecard(self) -> Scorecard:
        """The score on test, or on val where there is no truth for test."""
        return self.scorecards.get("test") or self.scorecards["val"]


def adapt(
    run: str | Path,
    out: str | Path,
    *,
    steps: Sequence[str] = (),
    method: str = "",
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    overwrite: bool = False,
) -> Adapted:
    """Adds steps to a run: fits them on its stored val predictions, and applies them to its test predictions.

    Steps that they need are added before them: a temperature where the run has logits, a probability of unknown in an
    open set. A decision rule of the run (`unknown-threshold`, `min-cost`) is fitted again after them.

    Args:
        run: The folder of the run.
        out: The folder to write.
        steps: The steps, in order, with settings after a colon. If none are named: `prior-online` in time order, else
            `prior-em` for up to 100 labels and `prior-map` for more.
        method: A method that predicts with the run's network in another mode (`norm-online`): val and test are
            predicted again, and the steps of the run are fitted again.
        settings: Settings of that method.
        data: The release, if it has moved.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When the run or the release is at fault.
        MisuseError: When steps are, or when the task does not allow what they see.
    """
    folder = Path(run)
    made, model = Run.read(folder), load_model(folder)
    task = BENCHMARKS[made.benchmark].task
    if method:
        model = _answering_as(model, method, settings or {})
    asked = [make_step(name) for name in steps or ("temperature",)]
    refuse_disallowed(model.name, model.fitted.method, asked, task)  # before anything else is read
    opened = _open(made, folder, data)
    stored = {part: _stored(folder, part, opened) for part in ("val", "test") if opened.items[part].height}
    with only_writer(Path(out)), appearing_folder(Path(out), overwrite=overwrite) as target:
        kept = () if method else tuple(step for step in model.steps if not step.decides)
        if method:
            plain = _answered_again(model, opened)
            further = [*(step for step in model.steps if not step.decides), *map(make_step, steps)]
        else:
            plain = {part: replace(one, decisions=None) for part, one in stored.items()}
            further = [*_needed(stored["val"], task), *_asked(steps, opened)]
        refuse_disallowed(model.name, model.fitted.method, further, task)
        further += [step for step in model.steps if step.decides]
        fitted, predictions = _with_steps(further, plain, opened, target)
        model = replace(model, steps=(*kept, *fitted), guide=None)  # its lines were drawn for other steps
        brought = [sentence for step in fitted for sentence in step.external_data]
        known = model.trained.get("external_data") or ()
        model = replace(model, trained={**model.trained, "external_data": list(dict.fromkeys([*known, *brought]))})
        adapted = _provenance(made, model, folder)
        before = {part: score_part(opened, stored[part], part, made) for part in opened.truth}
        after = {part: score_part(opened, predictions[part], part, adapted) for part in opened.truth}
        write_run(target, opened, adapted, model, predictions, after)
    return Adapted(Path(out), adapted, model, before, after)


def _with_steps(
    steps: Sequence[Step], plain: Mapping[str, Any], opened: Opened, folder: Path
) -> tuple[tuple[Step, ...], dict[str, Any]]:
    """Steps fitted on val, and the predictions on val and test with all of them applied."""
    val, task = opened.view.val, opened.benchmark.task
    assert val is not None  # open_benchmark refuses an empty val
    lesson = Lesson(task, opened.view.labels, opened.dataset.taxa, val, opened.view.train)
    fitted, on_val = fit_steps(steps, plain["val"], lesson)
    predictions = {"val": on_val}
    if "test" in plain and opened.view.test is not None:
        predictions["test"] = _applied(fitted, plain["test"], opened, folder)
    return fitted, predictions


def _answering_as(model: Model, method: str, settings: Mapping[str, Any]) -> Model:
    """The model with another way to answer from the same weights.

    Raises:
        MisuseError: When the method cannot take over what this one has learned.
    """
    cls, own = METHODS[method], model.fitted.method
    if not issubclass(cls, type(own)) or cls is type(own):
        raise MisuseError(f"The method {method!r} cannot answer with what the method {model.name!r} has learned.")
    changed = configure({**own.options, **settings}, cls)[0]
    return replace(model, name=method, fitted=replace(model.fitted, method=changed), guide=None)


def _answered_again(model: Model, opened: Opened) -> dict[str, Any]:
    """The answers to val and test, before any step."""
    task, parts = opened.benchmark.task, {"val": opened.view.val, "test": opened.view.test}
    pooled = (model.supply, model.pooling)
    return {
        name: answered(model.fitted, part, model.labels, task, pooled)
        for name, part in parts.items()
        if part is not None
    }


def _open(run: Run, folder: Path, data: str | Path | None) -> Opened:
    benchmark = BENCHMARKS[run.benchmark]
    dataset = open_release(benchmark, run.data if data is None else data)
    if dataset.digest != run.data_digest:
        raise InputError(
            run.data if data is None else data,
            found=f"data with the digest {dataset.digest}",
            expected=f"{run.data_digest}, on which the run was made",
            hint="The release changed since: fit again, or pass the unchanged release with --data.",
        )
    return open_benchmark(benchmark, dataset, seed=run.seed, split=split_of_run(folder, run))


def _stored(folder: Path, part: str, opened: Opened) -> LabelScores:
    """The predictions of a part, in the order of its items."""
    path = predictions_file(folder, part)
    predictions = read_predictions(path)
    if not isinstance(predictions, LabelScores) or not predictions.dense:
        raise InputError(path, found="no score for every label", expected="one: steps change scores of labels")
    asked = opened.items[part]["item_id"]
    absent = set(asked) - set(predictions.items)
    if absent:
        raise InputError(path, found=f"no answer for {min(absent)!r}", expected="one for each item")
    return predictions.coded_by(opened.view.labels).select(asked)


def _needed(val: LabelScores, task: Task) -> list[Step]:
    """The steps that must come first: calibration, and a probability of unknown in an open set."""
    if val.scale == "score":
        raise MisuseError("The scores of this run only rank: nothing can be told from them about frequencies.")
    steps = [make_step("temperature")] if val.scale == "logit" else []
    if task.unknown and val.unknown_label is None:
        steps += [] if val.unknown is not None else [make_step("max-softmax")]
        steps.append(make_step("unknown-probability"))
    return steps


def _asked(steps: Sequence[str], opened: Opened) -> list[Step]:
    in_time = opened.benchmark.task.time_order is not None
    return [make_step(name) for name in steps or ("prior-online" if in_time else default_step(opened.view.labels),)]


def _applied(steps: Sequence[Step], test: LabelScores, opened: Opened, folder: Path) -> Any:
    """The predictions on test; what is estimated on all of it is written beside them."""
    task, items = opened.benchmark.task, opened.view.test
    assert items is not None  # the caller has looked
    truth = revealed_labels(opened, "test")
    for step in steps:
        if isinstance(step, OnTestSet):
            names = [*test.labels.names, *([UNKNOWN_NAME] if test.unknown_label is not None else [])]
            shares = {"label": names, "source": step.source, "estimated": step.prior(test)}
            pl.DataFrame(shares).write_csv(folder / PRIOR_FILE)
        test = applied([step], test, items.items, task, truth)
    return test


def _provenance(run: Run, model: Model, folder: Path) -> Run:
    return replace(
        run,
        method=model.name,
        options=model.fitted.method.options,
        sees=seen_by(model.fitted.method, model.steps),
        steps=[step_to_data(step) for step in model.steps],
        trained_on=parts_learned_from(run.trained_on, model.steps),
        step_lessons=lessons_of(model.steps),
        external_data=run.external_data if run.external_data is None else model.trained["external_data"],
        remarks=[*run.remarks, f"Adapted from the run {folder.name}; nothing was trained again."],
        code_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
